/* SPDX-License-Identifier: MIT */
/* test_srcu_ends.c - domains that are initialised, cleaned up, and cleaned up too early; how many there may be; when one may be freed. */
#include "rwsems.h"

#include <quiesce/srcu.h>

#include "../sanitized.h"

static struct srcu_struct domain;

static void fresh(void)
{
	assert_int_equal(init_srcu_struct(&domain), 0);
}

static int nr_run;

static void run(struct rcu_head *head)
{
	(void)head;
	count_up(&nr_run);
}

static void *synchronize_main(void *done)
{
	synchronize_srcu(&domain);
	flag_set((int *)done);
	return NULL;
}

/* ---- too early ---- */

static void a_domain_in_use_is_reported_and_goes_on(void **state)
{
	static struct rcu_head head;
	uint64_t sleeps = stats_now().sleeps;
	pthread_t updater;
	int idx, done = 0;

	(void)state;
	fresh();
	nr_run = 0;
	idx = srcu_read_lock(&domain);
	REPORTED(QUIESCE_MISUSE_IN_USE, "readers inside: 1", cleanup_srcu_struct(&domain));
	call_srcu(&domain, &head, run);
	thread_must(pthread_create(&updater, NULL, synchronize_main, &done));
	wait_until(stats_now().sleeps > sleeps);
	REPORTED(QUIESCE_MISUSE_IN_USE, "&domain", cleanup_srcu_struct(&domain));
	assert_false(flag_get(&done));
	assert_int_equal(flag_get(&nr_run), 0);
	srcu_read_unlock(&domain, idx);
	pthread_join(updater, NULL);
	srcu_barrier(&domain);
	assert_int_equal(flag_get(&nr_run), 1);
	cleanup_srcu_struct(&domain);
}

static sem_t reached, go_on;

static void run_slowly(struct rcu_head *head)
{
	sem_post(&reached);
	wait_for(&go_on);
	run(head);
}

/* A callback that runs is one that is pending. */
static void pending_callbacks_are_reported(void **state)
{
	static struct rcu_head head[3];

	(void)state;
	fresh();
	nr_run = 0;
	sem_init(&reached, 0, 0);
	sem_init(&go_on, 0, 0);
	for (int i = 0; i < 3; i++)
		call_srcu(&domain, &head[i], i ? run : run_slowly);
	wait_for(&reached);
	REPORTED(QUIESCE_MISUSE_IN_USE, "callbacks pending: 3", cleanup_srcu_struct(&domain));
	sem_post(&go_on);
	srcu_barrier(&domain);
	assert_int_equal(flag_get(&nr_run), 3);
	cleanup_srcu_struct(&domain);
}

static void null_is_no_callback(void **state)
{
	static struct rcu_head head;

	(void)state;
	fresh();
	nr_run = 0;
	REPORTED(QUIESCE_MISUSE_NULL, "call_srcu()", call_srcu(&domain, NULL, run));
	REPORTED(QUIESCE_MISUSE_NULL, "call_srcu()", call_srcu(&domain, &head, NULL));
	srcu_barrier(&domain);
	assert_int_equal(nr_run, 0);
	cleanup_srcu_struct(&domain);
}

/* ---- garbage ---- */

enum { BIG = 1000, NR_BIG = 150 };

static void waiting_callbacks_are_counted(void **state)
{
	static struct rcu_head head[NR_BIG];
	struct quiesce_stats before, now;
	int idx;

	(void)state;
	fresh();
	before = stats_now();
	nr_run = 0;
	idx = srcu_read_lock(&domain);
	for (int i = 0; i < NR_BIG; i++)
		call_srcu_sized(&domain, &head[i], run, BIG);
	now = stats_now();
	assert_int_equal(now.srcu_callbacks_queued, before.srcu_callbacks_queued + NR_BIG);
	assert_int_equal(now.srcu_callbacks_run, before.srcu_callbacks_run);
	assert_int_equal(now.garbage_objects, before.garbage_objects + NR_BIG);
	assert_true(now.garbage_bytes >= before.garbage_bytes + NR_BIG * BIG - 65536);
	wait_until(stats_now().garbage_bytes == before.garbage_bytes + NR_BIG * BIG); /* the helper has reclaimed */
	srcu_read_unlock(&domain, idx);
	srcu_barrier(&domain);
	now = stats_now();
	assert_int_equal(now.srcu_callbacks_run, before.srcu_callbacks_run + NR_BIG);
	assert_int_equal(now.garbage_objects, before.garbage_objects);
	assert_int_equal(now.garbage_bytes, before.garbage_bytes);
	assert_int_equal(now.callbacks_queued, before.callbacks_queued);
	cleanup_srcu_struct(&domain);
}

/* Above the ceiling readers are forced to yield, whichever index they are in. */
static void too_much_makes_readers_yield(void **state)
{
	static struct rcu_head head;
	uint64_t yields = stats_now().yields;
	int idx;

	(void)state;
	fresh();
	quiesce_set_yield(0); /* plain grace periods shall not */
	idx = srcu_read_lock(&domain);
	call_srcu_sized(&domain, &head, run, 60u << 20);
	for (int i = 0; i < 20; i++) {
		short_rest();
		srcu_read_unlock(&domain, srcu_read_lock(&domain));
	}
	assert_int_equal(stats_now().yields, yields);
	quiesce_set_garbage_ceiling(1u << 20);
	while (stats_now().yields == yields) {
		short_rest();
		srcu_read_unlock(&domain, srcu_read_lock(&domain));
	}
	srcu_read_unlock(&domain, idx);
	srcu_barrier(&domain);
	quiesce_set_garbage_ceiling(64u << 20);
	quiesce_set_yield(1);
	cleanup_srcu_struct(&domain);
}

static struct srcu_struct next_domain;

static void queue_in_another(struct rcu_head *head)
{
	count_up(&nr_run);
	call_srcu(&next_domain, head, run);
}

static void queue_of_another_kind(struct rcu_head *head)
{
	count_up(&nr_run);
	call_srcu(&domain, head, queue_in_another);
}

static void shutdown_returns_the_truth(void **state)
{
	static struct rcu_head head[3];
	int idx, other;

	(void)state;
	fresh();
	assert_int_equal(init_srcu_struct(&next_domain), 0);
	nr_run = 0;
	idx = srcu_read_lock(&domain);
	call_srcu(&domain, &head[0], run);
	assert_int_equal(quiesce_shutdown(30000000), -ETIMEDOUT);
	assert_int_equal(flag_get(&nr_run), 0);
	srcu_read_unlock(&domain, idx);
	call_rcu(&head[1], queue_of_another_kind);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(flag_get(&nr_run), 4);
	/* A grace period without a waiter delays no shutdown. */
	other = srcu_read_lock(&next_domain);
	(void)start_poll_synchronize_srcu(&next_domain);
	assert_int_equal(quiesce_shutdown(0), 0);
	srcu_read_unlock(&next_domain, other);
	synchronize_srcu(&next_domain);
	cleanup_srcu_struct(&next_domain);
	cleanup_srcu_struct(&domain);
}

/* ---- the end ---- */

static void a_domain_ends_and_begins(void **state)
{
	static struct rcu_head head[100];
	DEFINE_SRCU(unused);

	(void)state;
	cleanup_srcu_struct(&unused);
	nr_run = 0;
	for (int i = 0; i < 100; i++) {
		int idx;

		if (i % 3)
			fresh(); /* otherwise the first use opens the domain */
		idx = srcu_read_lock(&domain);
		call_srcu(&domain, &head[i], run);
		srcu_read_unlock(&domain, idx);
		if (i % 2)
			synchronize_srcu(&domain);
		else
			(void)start_poll_synchronize_srcu(&domain);
		srcu_barrier(&domain);
		assert_int_equal(flag_get(&nr_run), i + 1);
		synchronize_srcu(&domain); /* this also completes the grace period that a poller started */
		cleanup_srcu_struct(&domain);
	}
}

struct object {
	struct srcu_struct srcu;
	int idx;
	sem_t begun;
};

static void *last_reader(void *arg)
{
	struct object *o = arg;

	o->idx = srcu_read_lock(&o->srcu);
	sem_post(&o->begun);
	srcu_read_unlock(&o->srcu, o->idx);
	return NULL;
}

/* A reader touches nothing after it is counted as left. */
static void the_waiter_frees_the_domain(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		struct object *o = aligned_alloc(QUIESCE_CACHELINE, (sizeof *o + QUIESCE_CACHELINE - 1) & -(size_t)QUIESCE_CACHELINE);
		pthread_t thread;

		assert_non_null(o);
		assert_int_equal(init_srcu_struct(&o->srcu), 0);
		sem_init(&o->begun, 0, 0);
		thread_must(pthread_create(&thread, NULL, last_reader, o));
		wait_for(&o->begun);
		if (i % 2)
			synchronize_srcu_expedited(&o->srcu);
		else
			synchronize_srcu(&o->srcu);
		cleanup_srcu_struct(&o->srcu);
		memset(o, 0x5a, sizeof *o);
		free(o);
		pthread_join(thread, NULL);
	}
}

/* ---- many domains ---- */

enum { MANY = 2000 };

static void use_all(struct srcu_struct *many)
{
	static struct rcu_head head[MANY];
	static int idx[MANY];

	nr_run = 0;
	for (int i = 0; i < MANY; i++) {
		idx[i] = srcu_read_lock(&many[i]);
		if (i % 2)
			call_srcu(&many[i], &head[i], run);
	}
	assert_int_equal(flag_get(&nr_run), 0);
	for (int i = 0; i < MANY; i++)
		srcu_read_unlock(&many[i], idx[i]);
	for (int i = 0; i < MANY; i++)
		srcu_barrier(&many[i]);
	assert_int_equal(flag_get(&nr_run), MANY / 2);
}

static void many_domains_leave_nothing(void **state)
{
	static struct srcu_struct many[MANY];
	long pages[2], peak[2];

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++)
			assert_int_equal(init_srcu_struct(&many[i]), 0);
		peak[round > 0] = address_space();
		use_all(many);
		for (int i = 0; i < MANY; i++)
			cleanup_srcu_struct(&many[i]);
		pages[round > 0] = address_space();
		if (round > 0 && !SANITIZED) { /* sanitizers have mappings of their own, and large stacks */
			assert_true(peak[1] <= peak[0] + 100);
			assert_true(pages[1] <= pages[0] + 100);
		}
	}
	assert_true(SANITIZED || peak[0] > pages[0]); /* otherwise the second comparison shows nothing */
}

/* ---- cookies ---- */

/* The helper ends the grace period, without a waiter or a poller. */
static void a_started_grace_period_ends_by_itself(void **state)
{
	struct rcu_gp_seq seq, later;
	unsigned long before;
	int idx;

	(void)state;
	fresh();
	idx = srcu_read_lock(&domain);
	before = srcu_batches_completed(&domain);
	seq = start_poll_synchronize_srcu(&domain);
	later = get_state_synchronize_srcu(&domain);
	assert_false(poll_state_synchronize_srcu(&domain, seq));
	srcu_read_unlock(&domain, idx);
	wait_until(srcu_batches_completed(&domain) > before);
	wait_until(poll_state_synchronize_srcu(&domain, seq));
	synchronize_srcu(&domain);
	assert_true(poll_state_synchronize_srcu(&domain, later));
	assert_true(poll_state_synchronize_srcu(&domain, get_completed_synchronize_srcu()));
	cleanup_srcu_struct(&domain);
}

/* A cookie taken inside a section is not complete before the section ends, however many grace periods others request. */
static void a_cookie_waits_for_its_section(void **state)
{
	enum { NR = 4 };
	pthread_t updater[NR];
	int done[NR] = { 0 };
	struct rcu_gp_seq seq;
	int idx;

	(void)state;
	fresh();
	for (int round = 0; round < 20; round++) {
		idx = srcu_read_lock(&domain);
		seq = get_state_synchronize_srcu(&domain);
		for (int i = 0; i < NR; i++) {
			done[i] = 0;
			thread_must(pthread_create(&updater[i], NULL, synchronize_main, &done[i]));
		}
		for (int i = 0; i < 50; i++) {
			srcu_read_unlock(&domain, srcu_read_lock(&domain));
			assert_false(poll_state_synchronize_srcu(&domain, seq));
		}
		srcu_read_unlock(&domain, idx);
		threads_end(updater, NR);
	}
	cleanup_srcu_struct(&domain);
}

#if !QUIESCE_TSAN
/* ---- the child of a fork, and sections of threads that it does not have ---- */

static void *stays_inside(void *leave)
{
	int idx = srcu_read_lock(&domain);

	sem_post(&reached);
	wait_until(flag_get((int *)leave));
	srcu_read_unlock(&domain, idx);
	return NULL;
}

static void *waits_for_it(void *unused)
{
	synchronize_srcu(&domain);
	return unused;
}

static bool was_open;

static void forgets_sections(void)
{
	static struct rcu_head head;

	alarm(20);
	srcu_after_fork_child(&domain);
	/* No request is pending: readers enter and leave on their fast paths as before. */
	for (int i = 0; i < 2; i++)
		if (was_open && (!domain.enter[i] || domain.leave[i] != domain.enter[i] - 16))
			_exit(4);
	synchronize_srcu(&domain);
	call_srcu(&domain, &head, run);
	srcu_barrier(&domain);
	cleanup_srcu_struct(&domain);
	if (flag_get(&nr_run) != 1)
		_exit(3);
}

static void a_child_may_end_sections_that_it_does_not_have(void **state)
{
	struct outcome o;
	pthread_t reader, waiter;
	int leave = 0;

	(void)state;
	nr_run = 0;
	fresh();
	was_open = domain.enter[0] != 0;
	sem_init(&reached, 0, 0);
	thread_must(pthread_create(&reader, NULL, stays_inside, &leave));
	sem_wait(&reached);
	thread_must(pthread_create(&waiter, NULL, waits_for_it, NULL));
	wait_until(quiesce_load_relaxed(&domain.requests[0]) || quiesce_load_relaxed(&domain.requests[1]));
	in_child(forgets_sections, &o);
	assert_string_equal(o.text, "");
	assert_int_equal(o.status, 0);
	REPORTED(QUIESCE_MISUSE_IN_USE, "no child of fork()", srcu_after_fork_child(&domain));
	flag_set(&leave);
	pthread_join(reader, NULL);
	pthread_join(waiter, NULL);
	cleanup_srcu_struct(&domain);
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_domain_in_use_is_reported_and_goes_on),
		TEST(pending_callbacks_are_reported),
		TEST(null_is_no_callback),
		TEST(waiting_callbacks_are_counted),
		TEST(too_much_makes_readers_yield),
		TEST(shutdown_returns_the_truth),
		TEST(a_domain_ends_and_begins),
		TEST(the_waiter_frees_the_domain),
		TEST(many_domains_leave_nothing),
		TEST(a_started_grace_period_ends_by_itself),
		TEST(a_cookie_waits_for_its_section),
#if !QUIESCE_TSAN
		TEST(a_child_may_end_sections_that_it_does_not_have),
#endif
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
