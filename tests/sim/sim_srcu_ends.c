/* SPDX-License-Identifier: MIT */
/* sim_srcu_ends.c - scenarios: domains opened, cleaned up, freed; quiesce_shutdown(); the child of a fork. */
#include "sim_srcu.h"

#include <quiesce/control.h>

#include "runtime/core.h"

#include <errno.h>

static uint32_t asked, done;

/* ---- beginnings ---- */

/* Domains that nobody has initialised, by several at once. */
static void forget_domains(void)
{
	for (int i = 0; i < NR_DOMAINS; i++)
		*world_domain[i] = (struct srcu_struct){ .name = "static" };
}

static void setup_static(void)
{
	world_begin(ANY);
	forget_domains();
	world_readers(driver_readers);
	sim_spawn(world_updater, NULL, "updater");
	sim_spawn(world_updater, NULL, "updater");
	sim_spawn(world_queuer, NULL, "queuer");
}

/* ---- the end of a domain ---- */

static void cleanup(intptr_t domain)
{
	cleanup_srcu_struct(world_domain[domain]);
	sim_assert(!world_domain[domain]->percpu.base && !quiesce__srcu_update(world_domain[domain])->begun);
	world_domain_gone(domain);
}

/* What a reader found by a pointer goes, and the domain with it. */
static uint64_t closing;

static void last_reader(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	world_add(&asked);
	world_look(0);
	world_stay(10);
	srcu_read_unlock(world_domain[0], idx);
}

static void ends_domain(void *expedited)
{
	struct item *old;

	world_await(&asked, 2);
	old = world_replace(0);
	if (expedited)
		synchronize_srcu_expedited(world_domain[0]);
	else
		synchronize_srcu(world_domain[0]);
	world_free(old);
	cleanup(0);
}

static void cleanup_after(enum world_mode mode)
{
	world_begin(mode);
	sim_spawn(last_reader, NULL, "reader");
	sim_spawn(last_reader, NULL, "reader");
	sim_spawn(ends_domain, sim_random(2) ? &closing : NULL, "updater");
}

static void setup_cleanup(void) { cleanup_after(ANY); }
static void setup_full_cleanup(void) { cleanup_after(FULL); }

/* The readers are known to have counted, by what they wrote before: no grace period, only cleanup's own look. */
static void reader_tells(void *unused)
{
	(void)unused;
	world_section(0);
	quiesce_fetch_add(RU3, &asked, 1u);
}

static void cleans_when_told(void *unused)
{
	(void)unused;
	while (quiesce_load_acquire(RU3, &asked) != 2)
		platform_yield();
	cleanup(0);
}

static void setup_cleanup_told(void)
{
	world_begin(ANY);
	sim_spawn(reader_tells, NULL, "reader");
	sim_spawn(reader_tells, NULL, "reader");
	sim_spawn(cleans_when_told, NULL, "cleaner");
}

/* The helper may be at its last step. */
static void queues_and_cleans(void *domain)
{
	world_queuer(domain);
	srcu_barrier(world_domain[(intptr_t)domain]);
	cleanup((intptr_t)domain);
}

static void setup_cleanup_barrier(void)
{
	world_begin(ANY);
	if (sim_random(4) == 0)
		sim_config()->thread_start_failures = -1;
	sim_spawn(queues_and_cleans, (void *)0, "cleaner");
	sim_spawn(queues_and_cleans, (void *)1, "cleaner");
}

/* A reader that leaves wakes_helper the helper, which may be anywhere. */
static void queues_beside_readers(void *unused)
{
	(void)unused;
	world_await(&asked, 2);
	world_queuer(NULL);
	srcu_barrier(world_domain[0]);
	cleanup(0);
}

static void setup_cleanup_woken(void)
{
	world_begin(ANY);
	sim_spawn(last_reader, NULL, "reader");
	sim_spawn(last_reader, NULL, "reader");
	sim_spawn(queues_beside_readers, NULL, "cleaner");
}

static void polls_and_cleans(void *unused)
{
	struct rcu_gp_seq seq;

	(void)unused;
	world_await(&asked, 2);
	seq = start_poll_synchronize_srcu(world_domain[0]);
	while (!poll_state_synchronize_srcu(world_domain[0], seq))
		platform_yield();
	cleanup(0);
}

static void setup_cleanup_polled(void)
{
	world_begin(ANY);
	if (sim_random(4) == 0)
		sim_config()->thread_start_failures = -1;
	sim_spawn(last_reader, NULL, "reader");
	sim_spawn(last_reader, NULL, "reader");
	sim_spawn(polls_and_cleans, NULL, "cleaner");
}

/* Then its memory and its counters are another domain's. */
static void lives_again(void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < 3; i++) {
		world_spawn(last_reader, NULL, "reader");
		world_spawn(last_reader, NULL, "reader");
		world_await(&asked, 2 * i + 2);
		synchronize_srcu(world_domain[0]);
		cleanup_srcu_struct(world_domain[0]);
		if (i & 1)
			forget_domains();
		else
			sim_assert(init_srcu_struct(world_domain[0]) == 0);
	}
}

static void setup_again(void)
{
	world_begin(ANY);
	sim_spawn(lives_again, NULL, "updater");
}

/* ---- cleaned up too early: reported, and nothing is lost ---- */

static int nr_reports;

static void count_report(enum quiesce_misuse kind, const char *text)
{
	if (kind != QUIESCE_MISUSE_IN_USE)
		sim_fail("misuse: %s", text);
	nr_reports++;
}

static void holds_until_reported(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	world_set(&asked, 1);
	world_await(&done, 1);
	world_look(0);
	srcu_read_unlock(world_domain[0], idx);
}

static void cleans_too_early(void *unused)
{
	(void)unused;
	world_await(&asked, 1);
	cleanup_srcu_struct(world_domain[0]);
	sim_assert(nr_reports == 1);
	world_set(&done, 1);
}

static void setup_busy_reader(void)
{
	quiesce_set_misuse_hook(count_report);
	world_begin(ANY);
	sim_spawn(holds_until_reported, NULL, "reader");
	sim_spawn(cleans_too_early, NULL, "cleaner");
	sim_spawn(world_updater, NULL, "updater");
}

/* With a reader of its own in the way, a callback cannot have run. */
static void cleans_with_callback(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	world_queue(0);
	cleanup_srcu_struct(world_domain[0]);
	sim_assert(nr_reports == 1);
	srcu_read_unlock(world_domain[0], idx);
	srcu_barrier(world_domain[0]);
	cleanup(0);
}

static void setup_busy_pending(void)
{
	quiesce_set_misuse_hook(count_report);
	world_begin(ANY);
	sim_spawn(cleans_with_callback, NULL, "cleaner");
}

/* ---- quiesce_shutdown() ---- */

static void shutter(void *domain)
{
	struct item *old = world_replace((intptr_t)domain);

	world_queuer(domain);
	world_retire(old, world_free_head);
	sim_assert(quiesce_shutdown(0) == 0);
	if (!sim_obj_is_free((int)old->id))
		sim_fail("a callback was pending when quiesce_shutdown() returned 0");
	world_queue((intptr_t)domain);
}

static void setup_shutdown(void)
{
	world_begin(ANY);
	world_readers(1);
	sim_spawn(shutter, (void *)0, "shutter");
	sim_spawn(shutter, (void *)1, "shutter");
	sim_spawn(world_queuer, NULL, "queuer");
}

/* Who has returned from call_srcu() may be sure, also if it was not the first of its batch. */
static void shutter_alone(void *domain)
{
	shutter(domain);
	sim_assert(quiesce_shutdown(0) == 0);
}

static void setup_shutdown_alone(void)
{
	world_begin(ANY);
	sim_config()->thread_start_failures = -1;
	world_readers(1);
	sim_spawn(shutter_alone, (void *)0, "shutter");
	sim_spawn(shutter_alone, (void *)0, "shutter");
}

/* A reader in the way, and a limit; and a grace period that nobody waits for keeps no thread. */
static void shuts_down_in_vain(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	start_poll_synchronize_srcu(world_domain[0]);
	sim_assert(quiesce_shutdown(0) == 0);
	sim_assert(!quiesce__helper_running());
	world_queue(0);
	sim_assert(quiesce_shutdown(20000000) == -ETIMEDOUT);
	sim_assert(!world_nr_run);
	srcu_read_unlock(world_domain[0], idx);
	sim_assert(quiesce_shutdown(0) == 0);
	sim_assert(world_nr_run == 1 && !quiesce__helper_running());
}

static void setup_shutdown_stuck(void)
{
	world_begin(ANY);
	if (sim_random(3) == 0)
		sim_config()->thread_start_failures = -1;
	sim_spawn(shuts_down_in_vain, NULL, "shutter");
}

/* ---- fork(): the child has one thread, and what the parent's threads have queued ---- */

static uint32_t forked;
static int nr_calling, may_be_lost; /* who vanishes inside a call may take its callback along */

/* Nobody forks while another initialises the library. */
static void fork_begin(enum world_mode mode)
{
	world_begin(mode);
	quiesce_slots();
}

static void parents_queuer(void *domain)
{
	for (int i = 0; i < 6; i++) {
		nr_calling++;
		world_queue((intptr_t)domain);
		nr_calling--;
	}
}

static void parents_waiter(void *domain)
{
	for (int i = 0; i < 6; i++)
		world_updater(domain);
}

static void parents_barrier(void *domain)
{
	for (int i = 0; i < 3; i++) {
		nr_calling++;
		world_queue((intptr_t)domain);
		nr_calling--;
		srcu_barrier(world_domain[(intptr_t)domain]);
	}
}

static void child_of_fork(void)
{
	struct item *mine = world_replace(0);

	world_retire(mine, world_free_head);
	if (sim_random(2))
		world_updater((void *)1);
	srcu_barrier(world_domain[0]);
	sim_assert(sim_obj_is_free((int)mine->id));
	world_spawn(world_reader, (void *)1, "reader");
	world_updater((void *)1);
	srcu_barrier(world_domain[1]);
}

static bool unannounced; /* so other threads of the child may come first */

static void fork_now(void)
{
	if (!unannounced)
		quiesce__fork_prepare();
	sim_fork();
	may_be_lost = nr_calling;
	if (!unannounced)
		quiesce__fork_child();
	else if (sim_random(2))
		sim_spawn(parents_waiter, (void *)0, "child's waiter");
	else
		sim_spawn(parents_barrier, (void *)1, "child's queuer");
}

/* Inside a section, which goes on in the child. */
static void forker(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	world_look(0);
	world_stay(200);
	fork_now();
	world_look(0);
	srcu_read_unlock(world_domain[0], idx);
	quiesce_store_relaxed(&forked, 1);
	child_of_fork();
}

static void fork_threads(enum world_mode mode)
{
	fork_begin(mode);
	sim_spawn(forker, NULL, "forker");
	sim_spawn(parents_queuer, (void *)0, "queuer");
	sim_spawn(parents_queuer, (void *)1, "queuer");
	sim_spawn(parents_waiter, (void *)0, "waiter");
	sim_spawn(parents_waiter, (void *)1, "waiter");
}

static void setup_fork(void) { fork_threads(ANY); }
static void setup_full_fork(void) { fork_threads(FULL); }
static void setup_fork_unannounced(void) { unannounced = true, fork_threads(ANY); }

static void setup_fork_barrier(void)
{
	fork_begin(ANY);
	sim_spawn(forker, NULL, "forker");
	sim_spawn(parents_barrier, (void *)0, "queuer");
	sim_spawn(parents_barrier, (void *)1, "queuer");
	sim_spawn(parents_waiter, (void *)1, "waiter");
}

static void setup_fork_alone(void)
{
	fork_threads(ANY);
	sim_config()->thread_start_failures = -1;
}

/* The child uses one domain only; what is pending in the other must not hinder the helper. */
static void forks_one(void *unused)
{
	(void)unused;
	world_stay(200);
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	quiesce_store_relaxed(&forked, 1);
	world_queuer((void *)1);
	srcu_barrier(world_domain[1]);
}

static void setup_fork_one(void)
{
	fork_begin(ANY);
	sim_spawn(forks_one, NULL, "forker");
	sim_spawn(parents_queuer, (void *)0, "queuer");
	sim_spawn(parents_queuer, (void *)0, "queuer");
	sim_spawn(parents_waiter, (void *)0, "waiter");
}

/* Sections that the child does not have are in the way of what it has inherited, and never end. */
static void parents_section(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	world_set(&asked, 1);
	world_stay(400);
	srcu_read_unlock(world_domain[0], idx);
}

static void forks_beside_section(void *unused)
{
	uint64_t limit = sim_random(2) ? 200000000 : 0;
	int left, mine = sim_random(2) ? -1 : srcu_read_lock(world_domain[1]);

	(void)unused;
	world_await(&asked, 1);
	world_stay(100);
	quiesce__fork_prepare();
	sim_fork();
	may_be_lost = nr_calling;
	quiesce__fork_child();
	if (mine >= 0)
		srcu_read_unlock(world_domain[1], mine);
	world_queue(1);
	left = quiesce_shutdown(limit);
	if (left)
		sim_saw();
	sim_assert(left == -ETIMEDOUT || !left);
	sim_assert(limit || !quiesce__helper_running()); /* else it ends as soon as it can */
	if (!left && world_nr_queued - world_nr_run > may_be_lost)
		sim_fail("quiesce_shutdown() returned 0 with callbacks pending");
	quiesce_store_relaxed(&forked, 1);
}

/* ... and are ended by the child. */
static void forks_and_forgets(void *unused)
{
	(void)unused;
	world_await(&asked, 1);
	world_stay(100);
	quiesce__fork_prepare();
	sim_fork();
	if (quiesce__srcu_inside(world_domain[0], 0) + quiesce__srcu_inside(world_domain[0], 1))
		sim_saw();
	may_be_lost = nr_calling;
	quiesce__fork_child();
	srcu_after_fork_child(world_domain[0]);
	srcu_after_fork_child(world_domain[1]);
	quiesce_store_relaxed(&forked, 1);
	child_of_fork();
}

static void setup_fork_lost(void)
{
	fork_begin(ANY);
	sim_spawn(parents_section, NULL, "reader");
	sim_spawn(parents_section, NULL, "reader");
	sim_spawn(parents_queuer, (void *)0, "queuer");
	sim_spawn(parents_waiter, (void *)0, "waiter");
	sim_spawn(forks_and_forgets, NULL, "forker");
}

static void setup_fork_stuck(void)
{
	fork_begin(ANY);
	if (sim_random(4) == 0)
		sim_config()->thread_start_failures = -1;
	sim_spawn(parents_section, NULL, "reader");
	sim_spawn(parents_queuer, (void *)0, "queuer");
	sim_spawn(parents_queuer, (void *)1, "queuer");
	sim_spawn(forks_beside_section, NULL, "forker");
}

/* What a caller was moving from list to list is lost without a helper. */
static void finish_forked(void)
{
	sim_assert(quiesce_load_relaxed(&forked));
}

/* A callback forks, and the child uses the domain in it, or another thread does. */
static void childs_thread(void *unused)
{
	(void)unused;
	child_of_fork();
}

static void forks_in_callback(struct rcu_head *head)
{
	world_free_head(head);
	world_stay(60);
	quiesce__fork_prepare();
	sim_fork();
	may_be_lost = nr_calling;
	quiesce__fork_child();
	quiesce_store_relaxed(&forked, 1);
	if (sim_random(2))
		world_updater((void *)0);
	world_spawn(childs_thread, NULL, "child");
}

static void queues_fork(void *unused)
{
	(void)unused;
	world_stay(30);
	world_retire(world_replace(0), forks_in_callback);
}

static void fork_callback_threads(void)
{
	fork_begin(ANY);
	sim_spawn(queues_fork, NULL, "queuer");
	sim_spawn(parents_queuer, (void *)0, "queuer");
	sim_spawn(parents_waiter, (void *)0, "waiter");
	sim_spawn(parents_waiter, (void *)1, "waiter");
}

static void setup_fork_callback(void) { fork_callback_threads(); }

static void finish_fork(void)
{
	int left = world_nr_queued - world_nr_run;

	sim_assert(quiesce_load_relaxed(&forked));
	if (left > may_be_lost)
		sim_fail("of %d callbacks %d have not run, and %d may be lost", world_nr_queued, left, may_be_lost);
	world_nothing_is_garbage();
}

#define FORK(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = finish_fork }

const struct sim_scenario srcu_end_scenarios[] = {
	SCENARIO(static, "a domain that opens itself, for several at once"),
	SCENARIO(cleanup, "the last unlock, then the domain is freed"),
	SCENARIO(full_cleanup, "... without membarrier"),
	SCENARIO(cleanup_told, "... known without a grace period"),
	SCENARIO(cleanup_barrier, "... after srcu_barrier()"),
	SCENARIO(cleanup_woken, "... beside readers"),
	SCENARIO(cleanup_polled, "... after a poll"),
	SCENARIO(again, "... and is another one"),
	SCENARIO(busy_reader, "cleaned up with a reader inside"),
	SCENARIO(busy_pending, "cleaned up with a callback pending"),
	SCENARIO(shutdown, "quiesce_shutdown() while callbacks are queued"),
	SCENARIO(shutdown_alone, "... without a helper"),
	SCENARIO(shutdown_stuck, "... and a reader is in the way"),
	FORK(fork, "the child of a fork"),
	FORK(full_fork, "... without membarrier"),
	FORK(fork_barrier, "... in the middle of srcu_barrier()"),
	{ .name = "fork_unannounced", .what = "... of a bare system call", .setup = setup_fork_unannounced, .finish = finish_forked },
	{ .name = "fork_alone", .what = "... without a helper", .setup = setup_fork_alone, .finish = finish_forked },
	FORK(fork_callback, "... that began in a callback"),
	{ .name = "fork_stuck", .what = "... whose sections the child does not have", .setup = setup_fork_stuck,
	  .finish = finish_forked, .must_see = "a callback that cannot run" },
	{ .name = "fork_lost", .what = "... which ends them", .setup = setup_fork_lost, .finish = finish_fork,
	  .must_see = "a section that the child does not have" },
	{ .name = "fork_one", .what = "... that uses one domain only", .setup = setup_fork_one, .finish = finish_forked },
	{ .name = NULL },
};
