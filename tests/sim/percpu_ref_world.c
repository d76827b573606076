/* SPDX-License-Identifier: MIT */
#include "percpu_ref_world.h"

#define NR_STOCK 2

struct percpu_ref world_ref;
int world_current;
int world_at_least, world_at_most;
bool world_killed, world_confirmed, world_changing, world_reviving;
int world_nr_released, world_nr_lives = 1, world_nr_revivals, world_nr_lost;
int world_laps = 3;
bool world_cpu_each, world_by_cpu;
static uint32_t released; /* number of releases; a futex of waiters */
static void *stock[NR_STOCK];

bool world_enter(bool live)
{
	int life = world_nr_revivals;
	bool late = live && world_confirmed && !world_reviving;
	bool got;

	world_at_most++;
	got = live ? percpu_ref_tryget_live(&world_ref) : percpu_ref_tryget(&world_ref);
	if (!got) {
		world_at_most--;
		sim_saw();
		return false;
	}
	world_at_least++;
	if (late && life == world_nr_revivals)
		sim_fail("a new user after the confirm function");
	return true;
}

void world_get(void)
{
	world_at_most++;
	percpu_ref_get(&world_ref);
	world_at_least++;
}

void world_leave(void)
{
	world_at_least--;
	percpu_ref_put(&world_ref);
	world_at_most--;
}

void world_check(void)
{
	sim_obj_read(quiesce_load_relaxed(&world_current));
}

void world_user(void *unused)
{
	(void)unused;
	for (int i = 0; i < world_laps; i++) {
		if (!world_enter(true)) {
			platform_yield();
			continue;
		}
		world_check();
		world_get();
		world_leave();
		world_check();
		world_leave();
	}
}

/* Leave references for other threads to put. */
static void hand_over(int place)
{
	void *none = NULL;

	world_check();
	if (!quiesce_cmpxchg(RU3, &stock[place], &none, (void *)&world_ref))
		world_leave();
}

static void put_stock(int place)
{
	if (!quiesce_xchg(RU3, &stock[place], NULL))
		return;
	world_check();
	world_leave();
}

void world_trader(void *unused)
{
	(void)unused;
	for (int i = 0; i < world_laps; i++) {
		if (world_enter(true))
			hand_over(i % NR_STOCK);
		put_stock(sim_random(NR_STOCK));
	}
	for (int i = 0; i < NR_STOCK; i++)
		put_stock(i);
}

void world_release(struct percpu_ref *r)
{
	sim_assert(r == &world_ref);
	sim_assert(world_killed);
	sim_assert(world_at_least == 0);
	world_nr_released++;
	sim_obj_free(quiesce_load_relaxed(&world_current));
	quiesce_store_release(RU3, &released, (uint32_t)world_nr_released);
	platform_futex_wake(&released, 1);
}

void world_last_release(struct percpu_ref *r)
{
	world_release(r);
	percpu_ref_exit(r);
}

static void on_confirm(struct percpu_ref *r)
{
	sim_assert(percpu_ref_is_dying(r));
	sim_assert(!world_changing);
	world_changing = true;
	world_confirmed = true;
	world_stay(4);
	sim_assert(percpu_ref_is_dying(r));
	world_changing = false;
}

void world_kill(void)
{
	world_killed = true;
	percpu_ref_kill_and_confirm(&world_ref, on_confirm);
}

void world_owner(void *unused)
{
	(void)unused;
	world_stay(12);
	world_kill();
}

uint64_t world_count(void)
{
	return quiesce_fetch_add(RU3, &world_ref.count, (uint64_t)0) / 2; /* an atomic addition loads the newest value */
}

void world_wait_released(uint32_t nr)
{
	uint32_t found;

	while ((found = quiesce_load_acquire(RU3, &released)) != nr)
		platform_futex_wait(&released, found, PLATFORM_FOREVER);
}

int world_holes(int id)
{
	return id == 1 ? 100 : id; /* a thread with id 1 has no words */
}

void world_begin(unsigned int flags, percpu_ref_func_t *release)
{
	sim_config()->nr_cpus = world_cpu_each ? 0 : 2;
	sim_config()->rseq_kind = world_by_cpu ? PLATFORM_RSEQ_CPU_ID : PLATFORM_RSEQ_MM_CID;
	sim_obj_init(0);
	sim_assert(!percpu_ref_init(&world_ref, release, flags));
}

void world_users(int nr, void (*fn)(void *), const char *name)
{
	for (int i = 0; i < nr; i++)
		sim_spawn(fn, NULL, name);
}

void world_finish(void)
{
	if (world_nr_released != world_nr_lives)
		sim_fail("%d lives, released %d times", world_nr_lives, world_nr_released);
	if (world_nr_lost == 0)
		sim_assert(world_at_least == 0 && world_at_most == 0);
}
