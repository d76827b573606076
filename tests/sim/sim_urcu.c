/* SPDX-License-Identifier: MIT */
/* sim_urcu.c - grace periods over the words of liburcu's inlined readers.
 *
 * The readers here are not the library's: they repeat the accesses that liburcu's inline functions make in programs.
 */
#include "driver.h"
#include "platform/platform.h"
#include "runtime/core.h"

#include <quiesce/detail/urcu_words.h>
#include <quiesce/rcu.h>

#define NR_ITEMS 64
#define NESTING 0xffffffffull

struct words {
	uint64_t ctr;
	uint32_t waiting;
	struct quiesce_urcu_record record;
};

static struct words words[SIM_MAX_THREADS];
static struct {
	uint64_t ctr;
	uint32_t futex;
} gp = { .ctr = 1 };
static struct quiesce_urcu_domain domain = { .call = "synchronize_rcu", .gp = &gp.ctr, .futex = &gp.futex };
static bool light;

static int ids[NR_ITEMS], nr_items;
static int *current;

/* ---- inlined ---- */

static struct words *self(void) { return &words[sim_self()]; }

static void fence(void)
{
	if (light)
		/* UW1: light */
		quiesce_fence_light(UW1);
	else
		quiesce_fence_full(UW1);
}

static void fence_before_futex(void)
{
	if (light)
		/* UW4: light */
		quiesce_fence_light(UW4);
	else
		quiesce_fence_full(UW4);
}

static void wake(void)
{
	if (quiesce_load_relaxed(&gp.futex) != UINT32_MAX)
		return;
	quiesce_store_relaxed(&gp.futex, 0);
	platform_futex_wake(&gp.futex, 1);
}

static void nesting_lock(void)
{
	uint64_t word = quiesce_load_relaxed(&self()->ctr);

	if (word & NESTING) {
		quiesce_store_relaxed(&self()->ctr, word + 1);
		return;
	}
	quiesce_store_relaxed(&self()->ctr, quiesce_load_relaxed(&gp.ctr));
	fence();
}

static void nesting_unlock(void)
{
	uint64_t word = quiesce_load_relaxed(&self()->ctr);

	if ((word & NESTING) != 1) {
		quiesce_store_relaxed(&self()->ctr, word - 1);
		return;
	}
	quiesce_store_release(UW2, &self()->ctr, word - 1);
	fence_before_futex();
	if (domain.futex)
		wake();
}

static void set_word(uint64_t word)
{
	quiesce_store_release(UW2, &self()->ctr, word);
	quiesce_fence_full(UW4);
	if (quiesce_load_relaxed(&self()->waiting)) {
		quiesce_store_relaxed(&self()->waiting, 0);
		quiesce_fence_full(UW4);
		wake();
	}
	quiesce_fence_full(UW1);
}

static void quiescent_state(void)
{
	uint64_t now = quiesce_load_relaxed(&gp.ctr);

	if (now != quiesce_load_relaxed(&self()->ctr))
		set_word(now);
}

static void offline(void) { set_word(0); }

static void online(void)
{
	quiesce_store_relaxed(&self()->ctr, quiesce_load_relaxed(&gp.ctr));
	quiesce_fence_full(UW1);
}

/* ---- items ---- */

static int *new_item(void)
{
	int id = nr_items++;

	sim_assert(id < NR_ITEMS);
	ids[id] = id;
	sim_obj_init(id);
	sim_data_write(id, 100 + (uint64_t)id);
	return &ids[id];
}

static int *replace(void)
{
	return quiesce_xchg(RU3, &current, new_item());
}

static void check_object(void)
{
	int *p = quiesce_load_consume(RU3, &current);

	sim_obj_read(*p);
	sim_assert(sim_data_read(*p) == 100 + (uint64_t)*p);
	sim_obj_read(*p);
}

/* ---- threads ---- */

static void join(void)
{
	self()->record.word = &self()->ctr;
	if (domain.kind == QUIESCE_URCU_QUIET)
		self()->record.waiting = &self()->waiting;
	quiesce_urcu_record_add(&domain, &self()->record);
	if (domain.kind == QUIESCE_URCU_QUIET)
		online();
}

static void leave(void)
{
	if (domain.kind == QUIESCE_URCU_QUIET)
		offline();
	quiesce_urcu_record_remove(&domain, &self()->record);
}

static void section(void)
{
	if (domain.kind == QUIESCE_URCU_QUIET) {
		check_object();
		if (sim_random(3)) {
			quiescent_state();
		} else {
			offline();
			online();
		}
		check_object();
		return;
	}
	nesting_lock();
	check_object();
	if (!sim_random(3)) {
		nesting_lock();
		check_object();
		nesting_unlock();
		check_object();
	}
	nesting_unlock();
}

static void reader(void *laps)
{
	join();
	for (intptr_t i = 0; i < (intptr_t)laps; i++)
		section();
	leave();
}

static void updater(void *laps)
{
	for (intptr_t i = 0; i < (intptr_t)laps; i++) {
		int *old = replace();

		quiesce_urcu_wait(&domain);
		sim_obj_free(*old);
	}
}

/* The updater reads, too; in liburcu's qsbr it is offline while it waits. */
static void reading_updater(void *laps)
{
	join();
	for (intptr_t i = 0; i < (intptr_t)laps; i++) {
		section();
		if (domain.kind == QUIESCE_URCU_QUIET)
			offline();
		updater((void *)1);
		if (domain.kind == QUIESCE_URCU_QUIET)
			online();
	}
	leave();
}

static void poller(void *laps)
{
	for (intptr_t i = 0; i < (intptr_t)laps; i++) {
		int *old = replace();
		uint64_t cookie = quiesce_urcu_cookie(&domain);

		while (!quiesce_urcu_poll(&domain, cookie))
			platform_yield();
		sim_obj_free(*old);
	}
}

/* ---- scenarios ---- */

static void begin(enum quiesce_urcu_kind kind)
{
	struct sim_config *c = sim_config();

	if (!sim_random(4))
		c->nr_cpus = 2;
	if (kind == QUIESCE_URCU_LIGHT && !sim_random(4))
		c->membarrier = SIM_MEMBARRIER_ABSENT;
	domain.kind = kind;
	light = quiesce_urcu_domain_add(&domain) && kind == QUIESCE_URCU_LIGHT;
	current = new_item();
}

static void spawn(void (*fn)(void *), int nr, intptr_t laps, const char *name)
{
	for (int i = 0; i < nr; i++)
		sim_spawn(fn, (void *)laps, name);
}

static void with(enum quiesce_urcu_kind kind, void (*updates)(void *), int nr)
{
	begin(kind);
	spawn(reader, driver_readers, 3, "reader");
	spawn(updates, nr, 2, "updater");
}

static void setup_light(void) { with(QUIESCE_URCU_LIGHT, updater, 1); }
static void setup_light_two(void) { with(QUIESCE_URCU_LIGHT, updater, 2); }
static void setup_light_reads(void) { with(QUIESCE_URCU_LIGHT, reading_updater, 2); }
static void setup_light_poll(void) { with(QUIESCE_URCU_LIGHT, poller, 2); }
static void setup_fenced(void) { with(QUIESCE_URCU_FENCED, updater, 2); }
static void setup_fenced_poll(void) { with(QUIESCE_URCU_FENCED, poller, 2); }
static void setup_quiet(void) { with(QUIESCE_URCU_QUIET, updater, 1); }
static void setup_quiet_reads(void) { with(QUIESCE_URCU_QUIET, reading_updater, 2); }
static void setup_quiet_poll(void) { with(QUIESCE_URCU_QUIET, poller, 2); }

static void setup_no_wake(void)
{
	domain.futex = NULL;
	with(QUIESCE_URCU_LIGHT, updater, 2);
}

/* Numbers wrap while sections are open. */
static void setup_wrap(void)
{
	domain.started = domain.completed = UINT32_MAX - 1;
	gp.ctr = domain.started << 32 | 1;
	with(QUIESCE_URCU_LIGHT, updater, 2);
}

/* A sleeper that is not woken sleeps for longer than the machine allows. */
static void sleeps(enum quiesce_urcu_kind kind)
{
	begin(kind);
	sim_config()->idle_limit_ns = 1000000;
	spawn(reader, driver_readers, 2, "reader");
	spawn(updater, 1, 2, "updater");
}

static void setup_sleep_light(void) { sleeps(QUIESCE_URCU_LIGHT); }
static void setup_sleep_fenced(void) { sleeps(QUIESCE_URCU_FENCED); }
static void setup_sleep_quiet(void) { sleeps(QUIESCE_URCU_QUIET); }

/* Threads come and go while an updater scans the registry. */
static void comes_and_goes(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		reader((void *)1);
		sim_point("away");
	}
}

static void setup_come(void)
{
	begin(sim_random(2) ? QUIESCE_URCU_LIGHT : QUIESCE_URCU_QUIET);
	spawn(comes_and_goes, driver_readers, 0, "reader");
	spawn(updater, 2, 2, "updater");
}

/* The handler reads, in a thread that updates and in one that reads. */
static void handler(void)
{
	static uint32_t kernel_lock;

	/* Inlined code may have set its ctr and not fenced yet.  On x86 the lock that a kernel takes to deliver a signal is that fence. */
	quiesce_fetch_add(LK1, &kernel_lock, 1u);
	section();
}

static void interrupted(void *laps)
{
	join();
	sim_set_signal(handler, 2);
	for (intptr_t i = 0; i < (intptr_t)laps; i++) {
		section();
		updater((void *)1);
	}
	sim_set_signal(NULL, 0);
	leave();
}

static void setup_handler(void) { with(sim_random(2) ? QUIESCE_URCU_LIGHT : QUIESCE_URCU_FENCED, interrupted, 2); }

/* One reader forks, perhaps within a section; grace periods under way do not concern the child. */
static void forks(void *unused)
{
	bool inside = sim_random(2);

	(void)unused;
	join();
	section();
	if (inside)
		nesting_lock();
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	if (inside)
		nesting_unlock();
	sim_assert(domain.records == &self()->record && !self()->record.next);
	sim_assert(gp.ctr >> 32 == domain.started);
	if (sim_random(2))
		sim_spawn(reader, (void *)2, "child's reader");
	section();
	updater((void *)2);
	leave();
	sim_saw();
}

/* Without handlers other threads of the child may make the first call, while the forker is inside. */
static void forks_unannounced(void *unused)
{
	bool inside = sim_random(2);

	(void)unused;
	join();
	section();
	if (inside)
		nesting_lock();
	sim_fork();
	if (sim_random(2))
		sim_spawn(reader, (void *)2, "child's reader");
	if (sim_random(2))
		sim_spawn(updater, (void *)1, "child's updater");
	if (inside) {
		section();
		nesting_unlock();
	}
	section();
	if (sim_random(2))
		updater((void *)1);
	leave();
	sim_saw();
}

static void setup_unannounced(void)
{
	begin(sim_random(2) ? QUIESCE_URCU_LIGHT : QUIESCE_URCU_FENCED);
	spawn(forks_unannounced, 1, 0, "forks");
	spawn(reader, driver_readers, 2, "reader");
	spawn(updater, 2, 2, "updater");
}

static void setup_fork(void)
{
	begin(QUIESCE_URCU_LIGHT);
	spawn(forks, 1, 0, "forks");
	spawn(reader, driver_readers, 2, "reader");
	spawn(updater, 2, 2, "updater");
}

static void finish(void)
{
	sim_assert(domain.started == domain.completed);
	sim_assert(!domain.records);
}

/* A grace period that the parent had begun stays open until a caller needs it. */
static void finish_fork(void)
{
	sim_assert(domain.started - domain.completed <= 1);
	sim_assert(!domain.records);
}

#define S(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = finish }

static const struct sim_scenario scenarios[] = {
	S(light, "readers with light fences, an updater"),
	S(light_two, "... two"),
	S(light_reads, "... that read, too"),
	S(light_poll, "... that poll"),
	S(no_wake, "... that no reader wakes"),
	S(wrap, "... while the numbers wrap"),
	S(fenced, "readers with full fences"),
	S(fenced_poll, "... updaters poll"),
	S(quiet, "readers that announce quiescent states"),
	S(quiet_reads, "... updaters read"),
	S(quiet_poll, "... they poll"),
	S(sleep_light, "a sleeping updater is woken"),
	S(sleep_fenced, "... by full fences"),
	S(sleep_quiet, "... by quiescent states"),
	S(come, "threads that come and go"),
	S(handler, "handlers that read"),
	{ .name = "fork", .what = "a reader forks", .setup = setup_fork, .finish = finish_fork, .must_see = "a child that updates" },
	{ .name = "unannounced", .what = "... by a bare system call; the child's threads come in any order", .setup = setup_unannounced,
	  .finish = finish_fork, .must_see = "a child that has ended" },
	{ .name = NULL },
};

int main(int argc, char **argv)
{
	static const struct sim_scenario *const tables[] = { scenarios, NULL };

	return driver_main(argc, argv, tables);
}
