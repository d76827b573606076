/* SPDX-License-Identifier: MIT */
/* rwsem_locks.c - scenarios: readers and writers of percpu_rwsem keep each other out, however they come and go. */
#include "rwsem_world.h"

#include <string.h>

static void spawn(int nr, void (*fn)(void *), const char *name)
{
	for (int i = 0; i < nr; i++)
		sim_spawn(fn, NULL, name);
}

/* ---- readers and writers ---- */

static void both(enum world_mode mode)
{
	world_begin(mode);
	spawn(driver_readers, world_reader, "reader");
	spawn(1, world_writer, "writer");
}

static void setup_light(void) { both(LIGHT); }
static void setup_full(void) { both(FULL); }
static void setup_no_restart(void) { both(NO_RESTART); }
static void setup_no_rseq(void) { both(NO_RSEQ); }
static void setup_cpu_id(void) { both(CPU_ID); }
static void setup_few_sets(void) { both(FEW_SETS); }
static void setup_holes(void) { both(HOLES); }

/* Readers become fast again between writes, and during them. */
static void rests(enum world_mode mode)
{
	both(mode);
	world_rests = true;
	world_laps = 3;
}

static void setup_rests(void) { rests(LIGHT); }
static void setup_rests_full(void) { rests(FULL); }
static void setup_rests_any(void) { rests(ANY); }

/* Without a helper thread exits complete at once, so the state changes often. */
static void setup_no_helper(void)
{
	both(LIGHT);
	sim_config()->thread_start_failures = -1;
	world_laps = 3;
}

static void setup_no_helper_full(void)
{
	both(FULL);
	sim_config()->thread_start_failures = -1;
	world_laps = 3;
}

static void setup_writers(void)
{
	world_begin(ANY);
	spawn(1, world_reader, "reader");
	spawn(2, world_writer, "writer");
}

static void setup_writers_no_helper(void)
{
	world_begin(LIGHT);
	sim_config()->thread_start_failures = -1;
	spawn(1, world_reader, "reader");
	spawn(2, world_writer, "writer");
}

static void setup_writers_rest(void)
{
	world_begin(ANY);
	world_rests = true;
	spawn(1, world_reader, "reader");
	spawn(2, world_writer, "writer");
}

/* Counts wrap within a few sections. */
static void setup_long(void)
{
	both(LIGHT);
	world_laps = 6;
	sim_config()->nr_cpus = 2;
}

/* ---- the first use of a lock, by two threads at once ---- */

static void first_use(enum world_mode mode)
{
	both(mode);
	percpu_free_rwsem(world_sem);
	*world_sem = (struct percpu_rw_semaphore)PERCPU_RWSEM_INIT;
	world_laps = 1;
}

/* ---- locks that are handed to another thread ---- */

#define NR_PLACES 2
static uint32_t held[NR_PLACES];

/* Leave a read section for another thread to end, if there is a free place. */
static void acquirer(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		uint32_t none = 0;

		percpu_down_read(world_sem);
		world_reader_in();
		world_check();
		if (quiesce_cmpxchg(RU3, &held[sim_random(NR_PLACES)], &none, 1))
			continue;
		world_reader_out();
		percpu_up_read(world_sem);
	}
}

static void release_one(int place)
{
	if (!quiesce_xchg(RU3, &held[place], 0))
		return;
	world_check();
	world_reader_out();
	percpu_up_read(world_sem);
}

static uint32_t nr_acquirers;

static void releaser(void *unused)
{
	(void)unused;
	while (quiesce_load_acquire(RU3, &nr_acquirers)) {
		release_one((int)sim_random(NR_PLACES));
		platform_yield();
	}
	for (int i = 0; i < NR_PLACES; i++)
		release_one(i);
}

static void acquirer_of_all(void *unused)
{
	acquirer(unused);
	quiesce_fetch_add(RU3, &nr_acquirers, -1u);
}

static void handed(enum world_mode mode)
{
	world_begin(mode);
	nr_acquirers = 2;
	spawn(2, acquirer_of_all, "acquirer");
	spawn(1, releaser, "releaser");
	spawn(1, world_writer, "writer");
}

static void setup_handed(void) { handed(LIGHT); }
static void setup_handed_any(void) { handed(ANY); }

/* Hand over a write lock, too. */
static uint32_t write_held;

static void write_acquirer(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		percpu_down_write(world_sem);
		world_writer_in();
		world_replace();
		sim_assert(percpu_is_write_locked_by_me(world_sem));
		world_set(&write_held, 1);
		world_await(&write_held, 0);
	}
	world_set(&write_held, 2);
}

static void write_releaser(void *unused)
{
	uint32_t state;

	(void)unused;
	while ((state = quiesce_load_acquire(RU3, &write_held)) != 2) {
		if (!state) {
			platform_futex_wait(&write_held, 0, PLATFORM_FOREVER);
			continue;
		}
		world_replace();
		sim_assert(!percpu_is_write_locked_by_me(world_sem));
		world_writer_out();
		percpu_up_write(world_sem);
		world_set(&write_held, 0);
	}
}

static void setup_handed_write(void)
{
	world_begin(ANY);
	spawn(1, write_acquirer, "acquirer");
	spawn(1, write_releaser, "releaser");
	spawn(driver_readers, world_reader, "reader");
}

/* ---- sums ---- */

/* Readers that find a writer count an entry and a leave while it sums; one stays inside. */
static uint32_t writer_comes;

static void stays(void *unused)
{
	(void)unused;
	percpu_down_read(world_sem);
	world_reader_in();
	world_set(&writer_comes, 1);
	world_check();
	world_stay(60);
	world_check();
	world_reader_out();
	percpu_up_read(world_sem);
}

static void tries(void *unused)
{
	(void)unused;
	world_await(&writer_comes, 1);
	for (int i = 0; i < 4; i++)
		if (percpu_down_read_trylock(world_sem)) {
			world_read();
			percpu_up_read(world_sem);
		}
}

static void comes(void *unused)
{
	(void)unused;
	world_await(&writer_comes, 1);
	percpu_down_write(world_sem);
	world_write();
	percpu_up_write(world_sem);
}

static void sums(enum world_mode mode)
{
	world_begin(mode);
	sim_spawn(stays, NULL, "stays");
	spawn_each(2, tries, "tries");
	sim_spawn(comes, NULL, "writer");
}

static void setup_sums(void) { sums(LIGHT); }
static void setup_sums_any(void) { sums(ANY); }

/* ---- every call that acquires or releases ---- */

static bool acquire_read(void)
{
	switch (sim_random(3)) {
	case 0:
		return percpu_down_read_trylock(world_sem);
	case 1:
		return percpu_down_read_timeout(world_sem, sim_random(2) ? sim_random(20000) : 20000000);
	default:
		percpu_down_read(world_sem);
		return true;
	}
}

static bool acquire_write(void)
{
	switch (sim_random(3)) {
	case 0:
		return percpu_down_write_trylock(world_sem);
	case 1:
		return percpu_down_write_timeout(world_sem, sim_random(2) ? sim_random(20000) : 20000000);
	default:
		percpu_down_write(world_sem);
		return true;
	}
}

static void mixed_reader(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		if (acquire_read()) {
			world_read();
			percpu_up_read(world_sem);
		} else {
			sim_saw();
		}
		world_rest();
	}
}

static void mixed_writer(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		if (acquire_write()) {
			world_write();
			sim_assert(percpu_is_write_locked(world_sem));
			percpu_up_write(world_sem);
		} else {
			sim_saw();
		}
		world_rest();
	}
}

static void mixed(enum world_mode mode)
{
	world_begin(mode);
	spawn(driver_readers, mixed_reader, "reader");
	spawn(2, mixed_writer, "writer");
}

static void setup_mixed(void) { mixed(LIGHT); }
static void setup_mixed_any(void) { mixed(ANY); }

static void setup_mixed_rests(void)
{
	mixed(ANY);
	world_rests = true;
}

/* ---- signal handlers: the trylock, whatever they interrupt ---- */

static void handler(void)
{
	bool outside = !percpu_is_write_locked_by_me(world_sem);

	if (!percpu_down_read_trylock(world_sem))
		return;
	sim_assert(outside);
	world_read();
	percpu_up_read(world_sem);
	sim_saw();
}

static void interrupted_reader(void *unused)
{
	sim_set_signal(handler, 3);
	world_reader(unused);
}

static void interrupted_writer(void *unused)
{
	sim_set_signal(handler, 3);
	world_writer(unused);
}

static void signals(enum world_mode mode)
{
	world_begin(mode);
	spawn(1, interrupted_reader, "reader");
	spawn(1, interrupted_writer, "writer");
	spawn(1, world_writer, "writer");
}

static void setup_signals(void) { signals(LIGHT); }
static void setup_signals_any(void) { signals(ANY); }

static void setup_signals_rest(void)
{
	signals(ANY);
	world_rests = true;
}

static void setup_first_use(void) { first_use(LIGHT); }
static void setup_first_use_any(void) { first_use(ANY); }

/* ---- no memory for counters at first ---- */

static struct percpu_rw_semaphore others[8]; /* as many as fill a chunk */

/* The last attempt gets memory. */
static void give_memory(void *unused)
{
	(void)unused;
	world_await(&writer_comes, 1);
	percpu_free_rwsem(&others[sim_random(8)]);
}

static void setup_no_memory(void)
{
	sums(LIGHT);
	percpu_free_rwsem(world_sem);
	*world_sem = (struct percpu_rw_semaphore)PERCPU_RWSEM_INIT;
	for (int i = 0; i < 8; i++)
		sim_assert(percpu_init_rwsem(&others[i]) == 0);
	while (platform_pages_get(4096))
		;
	sim_spawn(give_memory, NULL, "memory");
}

/* ---- several at once ---- */

static struct percpu_rw_semaphore second;
static uint32_t nr_reported;

static void count_misuse(enum quiesce_misuse kind, const char *text)
{
	(void)text;
	sim_assert(kind == QUIESCE_MISUSE_TWICE || kind == QUIESCE_MISUSE_NULL);
	nr_reported++;
}

/* Write-lock both, in one order; now and then one is listed twice, and NULL beside it. */
static void writer_of_both(void *unused)
{
	struct percpu_rw_semaphore *locks[] = { world_sem, &second, NULL, NULL };

	(void)unused;
	for (int i = 0; i < world_laps; i++) {
		uint32_t reported = nr_reported;
		bool again = sim_random(2);

		locks[2] = locks[sim_random(2)];
		percpu_down_write_many(locks, again ? 4 : 2);
		sim_assert(!again || nr_reported >= reported + 2);
		world_write();
		percpu_up_write(&second);
		percpu_up_write(world_sem);
		world_rest();
	}
}

static void writer_of_second(void *unused)
{
	(void)unused;
	for (int i = 0; i < world_laps; i++) {
		percpu_down_write(&second);
		world_stay(3);
		percpu_up_write(&second);
	}
}

static void finish_several(void)
{
	quiesce_set_misuse_hook(NULL);
	sim_assert(!second.first && !second.block && !second.rss.gp_count && !second.rss.gp_state);
	world_finish();
}

static void several(enum world_mode mode)
{
	world_begin(mode);
	nr_reported = 0;
	memset(&second, 0, sizeof second); /* zeroed memory is a lock, too */
	quiesce_set_misuse_hook(count_misuse);
	spawn(2, writer_of_both, "writer");
	spawn(1, world_reader, "reader");
	spawn(1, writer_of_second, "second");
}

static void setup_several(void) { several(LIGHT); }
static void setup_several_any(void) { several(ANY); }

/* A lock of zeroed memory is used without initialisation. */
static void setup_zero(void)
{
	both(ANY);
	percpu_free_rwsem(world_sem);
	memset(world_sem, 0, sizeof *world_sem);
}

#define REFUSED(label, text) \
	{ .name = #label, .what = text, .setup = setup_##label, .finish = world_finish, .must_see = "an attempt that failed" }
#define SEVERAL(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = finish_several }
#define SIGNALS(label, text) \
	{ .name = #label, .what = text, .setup = setup_##label, .finish = world_finish, .must_see = "a handler inside" }

const struct sim_scenario rwsem_lock_scenarios[] = {
	SCENARIO(light, "readers and a writer"),
	SCENARIO(full, "... without membarrier"),
	SCENARIO(no_restart, "... without one that restarts sequences"),
	SCENARIO(no_rseq, "... without sequences"),
	SCENARIO(cpu_id, "... words by CPU number"),
	SCENARIO(few_sets, "... some ids have no words"),
	SCENARIO(holes, "... ids with holes"),
	SCENARIO(rests, "readers that become fast again"),
	SCENARIO(rests_full, "... without membarrier"),
	SCENARIO(rests_any, "... on any computer"),
	SCENARIO(no_helper, "... at once, without a helper"),
	SCENARIO(no_helper_full, "... without membarrier either"),
	SCENARIO(writers, "two writers"),
	SCENARIO(writers_no_helper, "... without a helper"),
	SCENARIO(writers_rest, "... and readers become fast again"),
	SCENARIO(long, "counts wrap"),
	SCENARIO(first_use, "a static lock first used by two at once"),
	SCENARIO(first_use_any, "... on any computer"),
	SCENARIO(handed, "acquired by one thread, released by another"),
	SCENARIO(handed_any, "... on any computer"),
	SCENARIO(handed_write, "... for writing"),
	SCENARIO(sums, "counts change while they are summed"),
	SCENARIO(sums_any, "... on any computer"),
	REFUSED(mixed, "trylock, timeout and wait"),
	REFUSED(mixed_any, "... on any computer"),
	REFUSED(mixed_rests, "... and readers become fast again"),
	SIGNALS(signals, "signal handlers try"),
	SIGNALS(signals_any, "... on any computer"),
	SIGNALS(signals_rest, "... and readers become fast again"),
	SCENARIO(no_memory, "memory for the counters comes late"),
	SCENARIO(zero, "a lock in memory that is all zero"),
	SEVERAL(several, "two locks at once, of which one stands there twice"),
	SEVERAL(several_any, "... on any computer"),
	{ .name = NULL },
};
