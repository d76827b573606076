/* SPDX-License-Identifier: MIT */
/* rcu_reclaimers.c - scenarios: several threads run the callbacks of a pass. */
#include "rcu/reclaim.h"
#include "rcu_retired.h"

/* Each queuer numbers its callbacks; of one queuer they run one after the other, in that order. */
#define NR_QUEUERS 8

static int nr_queuers, nr_of[NR_QUEUERS], nr_run_of[NR_QUEUERS], nr_running;
static int queuer_of[NR_ITEMS], number_of[NR_ITEMS];
static bool running_of[NR_QUEUERS];
static bool forked; /* a callback has forked */

static bool in_further(void)
{
	return quiesce__self()->state & QUIESCE_TLS_RECLAIMER;
}

static void run_begins(struct rcu_head *head)
{
	int id = ((struct item *)head)->id, by = queuer_of[id];

	sim_assert(quiesce__self()->state & QUIESCE_TLS_IN_CALLBACK);
	sim_assert(!running_of[by]);
	/* Callbacks that another thread had just taken when the process forked are lost to the child. */
	sim_assert(forked ? number_of[id] >= nr_run_of[by] : number_of[id] == nr_run_of[by]);
	running_of[by] = true;
	nr_run_of[by] = number_of[id] + 1;
	nr_running++;
	sim_point("in a callback");
	check_and_free(head);
	sim_point("in a callback");
}

static void run_ends(const struct rcu_head *head)
{
	running_of[queuer_of[((const struct item *)head)->id]] = false;
	nr_running--;
}

/* The scenario must reach two callbacks that run at the same time. */
static void run_in_order(struct rcu_head *head)
{
	run_begins(head);
	if (nr_running > 1)
		sim_saw();
	run_ends(head);
}

static void retire_as(int by, void (*callback)(struct rcu_head *head))
{
	struct item *old = world_replace();

	queuer_of[old->id] = by;
	number_of[old->id] = nr_of[by]++;
	retire(old, callback);
}

static void queue_by_one(intptr_t nr, void (*callback)(struct rcu_head *head))
{
	int by = nr_queuers++;

	for (intptr_t i = 0; i < nr; i++)
		retire_as(by, callback);
}

static void in_order(void *nr)
{
	queue_by_one((intptr_t)nr, run_in_order);
}

static void begin(void)
{
	world_begin();
	sim_assert(quiesce_set_reclaimers(2 + (unsigned int)sim_random(2)) == 0);
	world_readers(1);
}

static void queuers(void (*main)(void *nr))
{
	sim_spawn(main, (void *)3, "queuer");
	sim_spawn(main, (void *)2, "queuer");
	if (sim_random(2))
		sim_spawn(main, (void *)2, "queuer");
}

static void setup_reclaimers(void)
{
	begin();
	queuers(in_order);
}

static void setup_full_fence_reclaimers(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_reclaimers();
}

/* ---- waiters ---- */

static void in_order_and_wait(void *nr)
{
	int by = nr_queuers;

	in_order(nr);
	rcu_barrier();
	sim_assert(nr_run_of[by] == (intptr_t)nr && !running_of[by]);
}

static void setup_reclaimers_barrier(void)
{
	begin();
	queuers(in_order_and_wait);
}

static void in_order_and_shut_down(void *nr)
{
	struct quiesce_stats stats;

	in_order(nr);
	sim_assert(quiesce_shutdown(0) == 0);
	quiesce_get_stats(&stats, sizeof stats);
	if (!nr_running)
		in_order(nr);
}

static void setup_reclaimers_shutdown(void)
{
	begin();
	sim_spawn(in_order_and_shut_down, (void *)2, "shutter");
	sim_spawn(in_order, (void *)3, "queuer");
}

/* ---- more or less of them ---- */

static void changes(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		quiesce_set_reclaimers(1 + (unsigned int)sim_random(3));
		for (int k = 0; k < 10; k++)
			platform_yield();
	}
}

static void run_and_change(struct rcu_head *head)
{
	run_begins(head);
	if (in_further())
		sim_saw();
	if (sim_random(4) == 0)
		quiesce_set_reclaimers(1 + (unsigned int)sim_random(3));
	run_ends(head);
}

static void changing_queuer(void *nr)
{
	queue_by_one((intptr_t)nr, run_and_change);
}

static void setup_reclaimers_change(void)
{
	begin();
	queuers(changing_queuer);
	sim_spawn(changes, NULL, "changer");
}

/* The worker exists, and no other thread can be started. */
static void without_more_threads(void *nr)
{
	in_order_and_wait((void *)1);
	sim_config()->thread_start_failures = -1;
	in_order_and_wait(nr);
	sim_saw();
}

static void setup_reclaimers_no_thread(void)
{
	begin();
	sim_spawn(without_more_threads, (void *)3, "queuer");
	sim_spawn(without_more_threads, (void *)2, "queuer");
}

/* ---- callbacks that wait, and some that are linked ---- */

static void run_and_wait(struct rcu_head *head)
{
	run_begins(head);
	if (in_further())
		sim_saw();
	synchronize_rcu();
	run_ends(head);
}

static void waiting_queuer(void *nr)
{
	queue_by_one((intptr_t)nr, run_and_wait);
}

static void setup_reclaimers_wait(void)
{
	begin();
	queuers(waiting_queuer);
}

static void free_in_any_order(struct rcu_head *head)
{
	if (in_further())
		sim_saw();
	check_and_free(head);
}

static void queues_and_waits(void *nr)
{
	struct item *last = NULL;

	for (intptr_t i = 0; i < (intptr_t)nr; i++) {
		last = world_replace();
		retire(last, free_in_any_order);
	}
	rcu_barrier();
	sim_assert(sim_obj_is_free(last->id));
}

static void setup_reclaimers_little_memory(void)
{
	begin();
	sim_config()->block_failures = 1 + (int)sim_random(3);
	queuers(queues_and_waits);
}

/* ---- callbacks that end their thread ---- */

#define MOST_EXITS 3
static int nr_exits;

static void run_and_exit(struct rcu_head *head)
{
	run_begins(head);
	run_ends(head);
	if (nr_exits == MOST_EXITS || sim_random(2))
		return;
	nr_exits++;
	if (in_further())
		sim_saw();
	sim_exit();
}

static void exiting_queuer(void *nr)
{
	queue_by_one((intptr_t)nr, run_and_exit);
}

static void setup_reclaimers_exits(void)
{
	begin();
	queuers(exiting_queuer);
}

static void exit_and_wait(void *nr)
{
	int by = nr_queuers;

	exiting_queuer(nr);
	rcu_barrier();
	sim_assert(nr_run_of[by] == (intptr_t)nr && !running_of[by]);
}

static void setup_reclaimers_exits_barrier(void)
{
	begin();
	queuers(exit_and_wait);
}

/* ---- figures ---- */

/* No thread is in the middle of anything. */
static void check_figures(void)
{
	struct quiesce_stats stats;
	uint32_t nr = 0;

	quiesce_get_stats(&stats, sizeof stats);
	sim_assert(stats.callbacks_queued == stats.callbacks_run);
	sim_assert(stats.garbage_bytes == 0);
	for (int i = 0; i < QUIESCE_RECLAIMERS_MAX; i++) {
		sim_assert(!quiesce__reclaimer[i].func && !quiesce__reclaimer[i].queue && !quiesce__reclaimer[i].in_gate);
		nr += quiesce__reclaimer[i].by != NULL;
	}
	sim_assert(stats.reclaimers_running == nr);
}

/* ---- fork ---- */

static void forker(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 20; k++)
			platform_yield();
		quiesce__fork_prepare();
		for (int k = 0; k < 3; k++)
			sim_assert(!nr_running);
		quiesce__fork_parent();
	}
}

static void setup_reclaimers_fork(void)
{
	begin();
	queuers(in_order);
	sim_spawn(forker, NULL, "forker");
}

/* A callback forks: callbacks that were running elsewhere count as run, and all others run once, in the child's threads or in this one. */

static void wait_in_child(void *nr)
{
	in_order_and_wait(nr);
	sim_assert(quiesce_shutdown(0) == 0);
	check_figures();
}

/* No thread of the child waits for the callbacks that are left, or queues more. */
static void watch_in_child(void *unused)
{
	struct quiesce_stats stats;
	uint32_t never = 0;

	(void)unused;
	do {
		platform_futex_wait(&never, 0, 10000000);
		quiesce_get_stats(&stats, sizeof stats);
	} while (stats.callbacks_queued != stats.callbacks_run);
}

static void run_and_fork(struct rcu_head *head)
{
	run_begins(head);
	if (!forked && sim_random(2)) {
		forked = true;
		if (in_further())
			sim_saw();
		sim_fork();
		quiesce__init(); /* a handler of fork() would do this */
		nr_running = 1;
		for (int i = 0; i < NR_QUEUERS; i++)
			running_of[i] = false;
		sim_spawn(sim_random(2) ? wait_in_child : watch_in_child, (void *)2, "child's thread");
		for (uint64_t i = sim_random(30); i; i--)
			platform_yield();
	}
	run_ends(head);
	if (forked && in_further() && sim_random(2))
		sim_exit();
}

static void forking_queuer(void *nr)
{
	queue_by_one((intptr_t)nr, run_and_fork);
}

static void setup_reclaimers_forks(void)
{
	begin();
	queuers(forking_queuer);
}

/* A thread queues, forks, and queues more in the child: no two of its callbacks run at the same time. */

static void run_alone(struct rcu_head *head)
{
	int by = queuer_of[((struct item *)head)->id];

	sim_assert(!running_of[by]);
	running_of[by] = true;
	sim_point("in a callback");
	check_and_free(head);
	sim_point("in a callback");
	running_of[by] = false;
	if (in_further())
		sim_saw();
}

static void queue_alone(void *nr)
{
	queue_by_one((intptr_t)nr, run_alone);
}

static void queue_and_fork(void *unused)
{
	int by = nr_queuers++;

	(void)unused;
	for (int i = 0; i < 2; i++)
		retire_as(by, run_alone);
	for (uint64_t i = sim_random(30); i; i--)
		platform_yield();
	sim_fork();
	quiesce__init(); /* a handler of fork() would do this */
	for (int i = 0; i < NR_QUEUERS; i++)
		running_of[i] = false;
	sim_spawn(queue_alone, (void *)2, "child's queuer");
	for (int i = 0; i < 2; i++)
		retire_as(by, run_alone);
}

static void setup_reclaimers_queuer_forks(void)
{
	begin();
	sim_spawn(queue_alone, (void *)2, "queuer");
	sim_spawn(queue_and_fork, NULL, "forker");
}

/* ---- the end ---- */

static void finish_reclaimers(void)
{
	finish_all_run();
	check_figures();
	sim_assert(!nr_running);
}

#define TWO .must_see = "two callbacks at the same time", .finish = finish_reclaimers
#define ONE .must_see = "one that a further reclaimer runs", .finish = finish_reclaimers

const struct sim_scenario rcu_reclaimer_scenarios[] = {
	{ .name = "reclaimers", .what = "several threads run callbacks", .setup = setup_reclaimers, TWO },
	{ .name = "full_fence_reclaimers", .what = "... without membarrier", .setup = setup_full_fence_reclaimers, TWO },
	{ .name = "reclaimers_barrier", .what = "... beside rcu_barrier()", .setup = setup_reclaimers_barrier, TWO },
	{ .name = "reclaimers_shutdown", .what = "... and quiesce_shutdown()", .setup = setup_reclaimers_shutdown, TWO },
	{ .name = "reclaimers_change", .what = "... more and less of them", .setup = setup_reclaimers_change, ONE },
	{ .name = "reclaimers_no_thread", .what = "... that cannot be had", .setup = setup_reclaimers_no_thread,
	  .must_see = "the end", .finish = finish_reclaimers },
	{ .name = "reclaimers_wait", .what = "... which wait for readers", .setup = setup_reclaimers_wait, ONE },
	{ .name = "reclaimers_little_memory", .what = "... of which some are linked", .setup = setup_reclaimers_little_memory, ONE },
	{ .name = "reclaimers_exits", .what = "... and are ended by them", .setup = setup_reclaimers_exits, ONE },
	{ .name = "reclaimers_exits_barrier", .what = "... beside rcu_barrier()", .setup = setup_reclaimers_exits_barrier, ONE },
	{ .name = "reclaimers_fork", .what = "no callback runs while the process forks", .setup = setup_reclaimers_fork, TWO },
	{ .name = "reclaimers_forks", .what = "a callback forks", .setup = setup_reclaimers_forks,
	  .must_see = "one that a further reclaimer runs" },
	{ .name = "reclaimers_queuer_forks", .what = "a thread queues before and after its fork", .setup = setup_reclaimers_queuer_forks,
	  .must_see = "one that a further reclaimer runs" },
	{ .name = NULL },
};
