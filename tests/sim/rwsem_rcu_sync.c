/* SPDX-License-Identifier: MIT */
/* rwsem_rcu_sync.c - scenarios: rcu_sync by itself, with readers in sections of RCU, and with grace periods that the scenario
 * makes. */
#include "rwsem_world.h"

static struct rcu_sync *rss;
static struct quiesce__lock mutex; /* lock of updaters, and of readers on the slow path */
static int nr_fast, nr_between, nr_updaters_left;
static uint32_t all_gone;
static bool dtor_done;

/* ---- readers and updaters ---- */

static void read_fast(void)
{
	nr_fast++;
	if (nr_between)
		sim_fail("a reader takes the fast path beside an updater");
	world_check();
	sim_point("in the fast path");
	world_check();
	nr_fast--;
	sim_saw();
}

static void rcu_reader(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		bool fast;

		rcu_read_lock();
		fast = rcu_sync_is_idle(rss);
		if (fast)
			read_fast();
		rcu_read_unlock();
		if (fast)
			continue;
		quiesce__lock(&mutex);
		world_check();
		quiesce__unlock(&mutex);
		world_rest();
	}
}

static void update(void)
{
	rcu_sync_enter(rss);
	nr_between++;
	if (nr_fast)
		sim_fail("an updater goes on beside %d readers on the fast path", nr_fast);
	quiesce__lock(&mutex);
	world_replace();
	quiesce__unlock(&mutex);
	sim_point("between enter and exit");
	nr_between--;
	rcu_sync_exit(rss);
}

static void updater(void *unused)
{
	(void)unused;
	for (int i = 0; i < world_laps; i++) {
		update();
		world_rest();
	}
	if (!--nr_updaters_left)
		world_set(&all_gone, 1);
}

/* Readers begin sections that may still be open when the last updater calls the destructor. */
static void ends(void *unused)
{
	(void)unused;
	world_await(&all_gone, 1);
	rcu_sync_dtor(rss);
	sim_assert(rss->gp_state == RCU_SYNC_IDLE);
	dtor_done = true;
}

static void ends_and_frees(void *unused)
{
	ends(unused);
	world_page_gone(rss);
}

static void begin(const struct rcu_sync_ops *ops, void *domain, int nr_updaters)
{
	world_begin(ANY);
	world_rests = sim_random(2);
	rss = world_page();
	rcu_sync_init_ops(rss, ops, domain);
	nr_updaters_left = nr_updaters;
	spawn_each(nr_updaters, updater, "updater");
}

static void with_readers(const struct rcu_sync_ops *ops, int nr_updaters)
{
	begin(ops, NULL, nr_updaters);
	spawn_each(driver_readers, rcu_reader, "reader");
	sim_spawn(ends, NULL, "ends");
}

static void setup_sync(void) { with_readers(NULL, 1); }
static void setup_sync_two(void) { with_readers(NULL, 2); }
static void setup_sync_expedited(void) { with_readers(&quiesce_rcu_sync_rcu_expedited, 2); }

/* An updater exits in the place of another one. */
static uint32_t between;

static void enters(void *unused)
{
	(void)unused;
	rcu_sync_enter(rss);
	nr_between++;
	quiesce__lock(&mutex);
	world_replace();
	quiesce__unlock(&mutex);
	world_set(&between, 1);
}

static void exits(void *unused)
{
	world_await(&between, 1);
	nr_between--;
	rcu_sync_exit(rss);
	updater(unused);
}

static void setup_sync_handed(void)
{
	begin(NULL, NULL, 0);
	nr_updaters_left = 1;
	sim_spawn(enters, NULL, "enters");
	sim_spawn(exits, NULL, "exits");
	sim_spawn(rcu_reader, NULL, "reader");
	sim_spawn(ends, NULL, "ends");
}

static void freed_after(const struct rcu_sync_ops *ops)
{
	begin(ops, NULL, 2);
	sim_spawn(ends_and_frees, NULL, "ends");
}

static void setup_sync_free(void) { freed_after(NULL); }
static void setup_sync_free_fence(void) { freed_after(&quiesce_rcu_sync_fence); }

/* There are two objects at once that use fences: each may meet the other's callback. */
static struct rcu_sync *pair[2];

static void owns(void *mine)
{
	struct rcu_sync *own = mine;

	for (uint32_t i = 1 + sim_random(3); i; i--) {
		rcu_sync_enter(own);
		rcu_sync_exit(own);
		world_rest();
	}
	rcu_sync_dtor(own);
	sim_assert(own->gp_state == RCU_SYNC_IDLE);
	world_page_gone(own);
	dtor_done = true;
}

static void setup_sync_free_pair(void)
{
	world_begin(ANY);
	world_rests = sim_random(2);
	for (int i = 0; i < 2; i++) {
		pair[i] = world_page();
		rcu_sync_init_ops(pair[i], &quiesce_rcu_sync_fence, NULL);
		sim_spawn(owns, pair[i], "owner");
	}
}

/* ---- grace periods of the scenario: every line of the table in rcu_sync.h ---- */

enum event { BY_ENTER, BY_EXIT, BY_CALLBACK, NR_EVENTS };
#define NR_STATES (RCU_SYNC_REPLAY + 1)
#define TO(state) (1u << (state))

/* Transitions that the table allows, by event and state before; transitions that were seen, over all runs. */
static const uint32_t allowed[NR_EVENTS][NR_STATES] = {
	[BY_ENTER] = { TO(RCU_SYNC_PASSED), 0, TO(RCU_SYNC_PASSED), TO(RCU_SYNC_EXIT), TO(RCU_SYNC_REPLAY) },
	[BY_EXIT] = { 0, 0, TO(RCU_SYNC_PASSED) | TO(RCU_SYNC_EXIT), TO(RCU_SYNC_EXIT) | TO(RCU_SYNC_REPLAY), TO(RCU_SYNC_REPLAY) },
	[BY_CALLBACK] = { 0, 0, 0, TO(RCU_SYNC_PASSED) | TO(RCU_SYNC_IDLE), TO(RCU_SYNC_PASSED) | TO(RCU_SYNC_EXIT) },
};
static uint32_t seen[NR_EVENTS][NR_STATES] SIM_KEEP;

/* Numbers of events that have begun, and that are going on: the table covers one event at a time. */
static int nr_begun, nr_going_on;

struct watch {
	enum event event;
	uint64_t before;
	int begun; /* 0: another event was under way */
};

static struct rcu_head *queued;
static void (*queued_func)(struct rcu_head *head);
static uint32_t is_queued;
static int nr_inside_gp;

static uint64_t state_now(void)
{
	return *(volatile uint64_t *)&rss->gp_state; /* raw: no step of the machine */
}

static struct watch begins(enum event event)
{
	struct watch w = { event, state_now(), ++nr_begun };

	if (nr_going_on++)
		w.begun = 0;
	return w;
}

static void is_over(struct watch w)
{
	uint64_t after = state_now();

	nr_going_on--;
	if (nr_begun != w.begun)
		return;
	if (!(allowed[w.event][w.before] & TO(after)))
		sim_fail("event %d: from state %d to %d", (int)w.event, (int)w.before, (int)after);
	seen[w.event][w.before] |= TO(after);
}

static void gp_wait(void *domain)
{
	sim_assert(domain == &queued && state_now() == RCU_SYNC_ENTER);
	sim_assert(!nr_inside_gp++);
	world_stay(10);
	sim_assert(state_now() == RCU_SYNC_ENTER);
	nr_inside_gp--;
}

static void gp_call(void *domain, struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	sim_assert(domain == &queued && !is_queued);
	queued = head;
	queued_func = func;
	world_set(&is_queued, 1);
}

static uint32_t callbacks_stop;

static void gp_barrier(void *domain, struct rcu_head *head)
{
	sim_assert(domain == &queued && head == &rss->head);
	world_await(&is_queued, 0);
	sim_point("no callback");
}

static const struct rcu_sync_ops own_ops = { gp_wait, gp_call, gp_barrier, NULL };

static void call_back(void)
{
	struct rcu_head *head = queued;
	struct watch watch;

	world_stay(sim_random(2) ? 60 : 5);
	watch = begins(BY_CALLBACK);
	quiesce_store_relaxed(&is_queued, 0);
	queued_func(head);
	is_over(watch);
	platform_futex_wake(&is_queued, INT32_MAX);
}

static void callbacks(void *unused)
{
	(void)unused;
	for (;;) {
		if (quiesce_load_acquire(RU3, &is_queued))
			call_back();
		else if (quiesce_load_acquire(RU3, &callbacks_stop))
			break;
		else
			platform_yield();
	}
}

static void table_updater(void *unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++) {
		struct watch watch = begins(BY_ENTER);

		rcu_sync_enter(rss);
		is_over(watch);
		sim_assert(state_now() >= RCU_SYNC_PASSED);
		world_stay(4);
		sim_assert(state_now() >= RCU_SYNC_PASSED);
		watch = begins(BY_EXIT);
		rcu_sync_exit(rss);
		is_over(watch);
		world_stay(20);
	}
	if (!--nr_updaters_left)
		world_set(&all_gone, 1);
}

static void table_ends(void *unused)
{
	world_await(&all_gone, 1);
	nr_going_on++, nr_begun++; /* an event beside the table */
	ends(unused);
	sim_assert(!quiesce_load_relaxed(&is_queued));
	world_set(&callbacks_stop, 1);
}

static bool table_covered(void)
{
	for (int event = 0; event < NR_EVENTS; event++)
		for (int state = 0; state < NR_STATES; state++)
			if ((seen[event][state] & allowed[event][state]) != allowed[event][state])
				return false;
	return true;
}

/* A callback ends its thread; there are other updaters. */
static bool has_exited;

static void exit_or_wait(void *domain)
{
	sim_assert(!sim_cancelable());
	if (!has_exited && nr_updaters_left > 1) {
		has_exited = true;
		nr_updaters_left--;
		nr_begun++; /* the thread never exits: the table has no row for that */
		world_stay(20);
		sim_saw();
		sim_exit();
	}
	gp_wait(domain);
}

static const struct rcu_sync_ops exit_ops = { exit_or_wait, gp_call, gp_barrier, NULL };

static void table_with(const struct rcu_sync_ops *ops, int nr_updaters)
{
	world_begin(LIGHT);
	rss = world_page();
	rcu_sync_init_ops(rss, ops, &queued);
	nr_updaters_left = nr_updaters;
	spawn_each(nr_updaters, table_updater, "updater");
	sim_spawn(callbacks, NULL, "callbacks");
	sim_spawn(table_ends, NULL, "ends");
}

static void setup_sync_table(void) { table_with(&own_ops, 2); }
static void setup_sync_table_three(void) { table_with(&own_ops, 3); }
static void setup_sync_exits(void) { table_with(&exit_ops, 3); }

static void finish_table(void)
{
	sim_assert(dtor_done);
	if (table_covered())
		sim_saw();
}

static void finish_sync(void)
{
	sim_assert(dtor_done);
}

#define SYNC(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = finish_sync }
#define FAST(label, text) \
	{ .name = #label, .what = text, .setup = setup_##label, .finish = finish_sync, .must_see = "a reader on the fast path" }
#define TABLE(label, text) \
	{ .name = #label, .what = text, .setup = setup_##label, .finish = finish_table, .must_see = "every line of the table" }

const struct sim_scenario rcu_sync_scenarios[] = {
	FAST(sync, "rcu_sync: an updater, and readers in sections of RCU"),
	FAST(sync_two, "... two updaters"),
	FAST(sync_expedited, "... expedited"),
	FAST(sync_handed, "... entered by one thread, left by another"),
	SYNC(sync_free, "... freed while its callback is on the way"),
	SYNC(sync_free_fence, "... by fences"),
	SYNC(sync_free_pair, "two of them"),
	TABLE(sync_table, "every change of state, two updaters"),
	TABLE(sync_table_three, "... three"),
	{ .name = "sync_exits", .what = "... and one ends its thread in the wait", .setup = setup_sync_exits, .finish = finish_sync,
	  .must_see = "a thread that ended in its wait" },
	{ .name = NULL },
};
