/* SPDX-License-Identifier: MIT */
/* test_hazptr_bound.c - the bound of unreclaimed memory, whatever readers do; the counters; shutdown; an idle helper. */
#include "hazptrs.h"

/* ---- objects that know how many of them there are ---- */

static int64_t nr_alive, most_alive;

static void dies(struct hazptr_head *head)
{
	quiesce_fetch_add_relaxed(&nr_alive, (int64_t)-1); /* Relaxed: a count. */
	free(head);
}

static void note_the_most(int64_t now)
{
	int64_t most = flag_get(&most_alive);

	while (now > most)
		/* raw: no label, because nothing is ordered by it */
		if (__atomic_compare_exchange_n(&most_alive, &most, now, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return;
}

static struct hazptr_head *born(void)
{
	struct hazptr_head *head = malloc(sizeof *head);

	assert_non_null(head);
	note_the_most(quiesce_fetch_add_relaxed(&nr_alive, (int64_t)1) + 1); /* Relaxed: a count. */
	return head;
}

/* ---- the bound ---- */

#define NR_RETIRED 500000 /* number for each of two threads */
#define NR_STALLED 300

static hazptr_t *stalled[NR_STALLED];

/* Each thread protects one of the first objects, and stays. */
static void stall(struct hazptr_head *object[NR_STALLED])
{
	for (int i = 0; i < NR_STALLED; i++) {
		object[i] = born();
		stalled[i] = slot_with(NULL, object[i]);
	}
}

static void *retire_many(void *unused)
{
	for (int i = 0; i < NR_RETIRED; i++)
		call_hazptr_inline(born(), dies);
	return unused;
}

static void garbage_is_bounded_while_readers_stall(void **state)
{
	static struct hazptr_head *object[NR_STALLED];
	pthread_t thread[2];

	(void)state;
	stall(object);
	for (int i = 0; i < NR_STALLED; i++)
		call_hazptr_inline(object[i], dies);
	threads_begin(thread, 2, retire_many, NULL);
	threads_end(thread, 2);
	/* This thread retires, too, and each of the two may have an object that is not yet retired. */
	assert_in_range(most_alive, NR_STALLED, 3 * HAZPTR_BATCH_MAX + NR_STALLED + 2);
	wait_until(flag_get(&nr_alive) == NR_STALLED);
	hazptr_free_batch(NULL, stalled, NR_STALLED);
	hazptr_barrier();
	assert_int_equal(flag_get(&nr_alive), 0);
}

/* Bytes are bounded as well: a few large objects are a batch.  A sweep may have the queue's lock now and then. */
#define NR_LARGE 900

static void bytes_are_bounded(void (*retire)(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes), int64_t most)
{
	hazptr_barrier();
	quiesce_store_relaxed(&most_alive, 0);
	for (int i = 0; i < NR_LARGE; i++)
		retire(born(), dies, HAZPTR_BATCH_BYTES / 2);
	assert_in_range(flag_get(&most_alive), 1, most);
	hazptr_barrier();
	assert_int_equal(flag_get(&nr_alive), 0);
}

static void a_few_large_objects_are_a_batch(void **state)
{
	(void)state;
	bytes_are_bounded(call_hazptr_inline_sized, NR_LARGE / 9);
	bytes_are_bounded(call_hazptr_sized, NR_LARGE); /* no bound, but all are reclaimed */
}

/* The bytes of a protected object are counted once, or each retirement would scan all slots. */
static void a_large_object_that_stays_is_no_batch(void **state)
{
	struct hazptr_head *object = born();
	hazptr_t *slot = slot_with(NULL, object);
	struct quiesce_stats before, after;

	(void)state;
	call_hazptr_inline_sized(object, dies, 2 * HAZPTR_BATCH_BYTES);
	quiesce_get_stats(&before, sizeof before);
	for (int i = 0; i < NR_LARGE; i++)
		call_hazptr_inline_sized(born(), dies, 1);
	quiesce_get_stats(&after, sizeof after);
	assert_in_range(after.hazptr_scans - before.hazptr_scans, 0, NR_LARGE / 9);
	assert_in_range(flag_get(&nr_alive), 1, NR_LARGE + 1);
	hazptr_free(NULL, slot);
	hazptr_barrier();
	assert_int_equal(flag_get(&nr_alive), 0);
}

/* Threads that come and go share the bound: it does not grow with each thread that ever existed. */
static void *retire_some(void *unused)
{
	for (int i = 0; i < 1000; i++)
		call_hazptr_inline(born(), dies);
	return unused;
}

static void garbage_of_threads_that_come_and_go_is_bounded(void **state)
{
	struct hazptr_head *object = born();
	hazptr_t *slot = slot_with(NULL, object);

	(void)state;
	call_hazptr_inline(object, dies);
	quiesce_store_relaxed(&most_alive, 0);
	for (int i = 0; i < 300; i++)
		in_thread(retire_some, NULL);
	assert_in_range(most_alive, 100, 2 * HAZPTR_BATCH_MAX + 1);
	hazptr_free(NULL, slot);
	hazptr_barrier();
	assert_int_equal(flag_get(&nr_alive), 0);
}

static void a_mark_in_a_slot_keeps_no_object(void **state)
{
	hazptr_t *slot = slot_with(NULL, (void *)-1);

	(void)state;
	in_thread(retire_some, NULL);
	hazptr_barrier();
	assert_int_equal(flag_get(&nr_alive), 0);
	hazptr_free(NULL, slot);
}

/* ---- counters ---- */

static void retired_and_reclaimed_objects_are_counted(void **state)
{
	struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;
	static struct thing object[3];
	struct quiesce_stats before, after;
	hazptr_t *slot = slot_with(NULL, &object[0]);

	(void)state;
	hazptr_barrier();
	before = stats_now();
	assert_int_equal(before.hazptr_retired, before.hazptr_reclaimed);
	thing_retire(&object[0]);
	thing_retire(&object[1]);
	call_hazptr_cohort(&cohort, &object[2].hazptr, thing_run);
	assert_int_equal(stats_now().hazptr_retired, before.hazptr_retired + 3);
	synchronize_hazptr_cohort(&cohort);
	wait_until(things_run(object, 3) == 2);
	wait_until(stats_now().hazptr_reclaimed == before.hazptr_reclaimed + 2);
	after = stats_now();
	assert_int_equal(after.hazptr_retired, before.hazptr_retired + 3);
	assert_true(after.hazptr_scans > before.hazptr_scans);
	assert_true(after.hazptr_swept >= before.hazptr_swept + 2); /* the worker has swept */
	hazptr_free(NULL, slot);
	hazptr_barrier();
	after = stats_now();
	assert_int_equal(after.hazptr_retired, after.hazptr_reclaimed);
	assert_int_equal(after.hazptr_reclaimed, before.hazptr_reclaimed + 3);
}

/* The owner's scans are counted, so try again if the worker scanned meanwhile, as it does when the owner makes no progress for a
 * while. */
static void a_batch_takes_one_scan(void **state)
{
	struct quiesce_stats before, after;

	(void)state;
	do {
		assert_int_equal(quiesce_shutdown(0), 0);
		before = stats_now();
		retire_plenty();
		after = stats_now();
	} while (after.hazptr_swept != before.hazptr_swept);
	assert_in_range(after.hazptr_scans - before.hazptr_scans, 6, 3 * HAZPTR_BATCH_MAX / 128 + 2);
	if (quiesce_fence() == QUIESCE_FENCE_FULL)
		assert_int_equal(after.membarriers, 0);
	hazptr_barrier();
}

/* ---- shutting down ---- */

#define DEPTH 20

struct both {
	struct hazptr_head hazptr;
	struct rcu_head rcu;
	int left;
};

static int nr_hops;

static void hop_by_rcu(struct rcu_head *head);

static void hop_by_hazptr(struct hazptr_head *head)
{
	struct both *b = (struct both *)(void *)head;

	count_up(&nr_hops);
	if (b->left--)
		call_rcu(&b->rcu, hop_by_rcu);
	else
		free(b);
}

static void hop_by_rcu(struct rcu_head *head)
{
	struct both *b = (struct both *)(void *)((char *)head - offsetof(struct both, rcu));

	count_up(&nr_hops);
	call_hazptr(&b->hazptr, hop_by_hazptr);
}

static void shutdown_runs_callbacks_that_queue_the_other_kind(void **state)
{
	(void)state;
	for (int round = 0; round < 3; round++) {
		quiesce_store_relaxed(&nr_hops, 0);
		for (int i = 0; i < 3; i++) {
			struct both *b = calloc(1, sizeof *b);

			assert_non_null(b);
			b->left = DEPTH;
			call_hazptr(&b->hazptr, hop_by_hazptr);
		}
		assert_int_equal(quiesce_shutdown(0), 0);
		assert_int_equal(flag_get(&nr_hops), 3 * (2 * DEPTH + 1));
		assert_int_equal(stats_now().hazptr_retired, stats_now().hazptr_reclaimed);
		assert_int_equal(stats_now().worker_running, 0);
	}
}

static void shutdown_gives_up_in_time_where_something_is_protected(void **state)
{
	static struct thing object;
	hazptr_t *slot = slot_with(NULL, &object);

	(void)state;
	thing_retire(&object);
	assert_int_equal(quiesce_shutdown(20000000), -ETIMEDOUT);
	assert_int_equal(runs_of(&object), 0);
	assert_int_equal(quiesce_shutdown(1), -ETIMEDOUT);
	hazptr_clear(slot);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(runs_of(&object), 1);
	thing_retire(&object); /* an object whose callback has run may be retired again */
	wait_until(runs_of(&object) == 2);
	hazptr_free(NULL, slot);
}

static sem_t in_callback, end_callback;

static void block(struct hazptr_head *head)
{
	sem_post(&in_callback);
	wait_for(&end_callback);
	thing_run(head);
}

/* The shutdown waits for the callback for the given time, and no longer. */
static void shutdown_gives_up_in_time_where_a_callback_blocks(void **state)
{
	static struct thing object;
	uint64_t begun;

	(void)state;
	sem_init(&in_callback, 0, 0);
	sem_init(&end_callback, 0, 0);
	call_hazptr(&object.hazptr, block);
	wait_for(&in_callback);
	begun = now_ns();
	assert_int_equal(quiesce_shutdown(50000000), -ETIMEDOUT);
	assert_true(now_ns() - begun >= 50000000);
	sem_post(&end_callback);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(runs_of(&object), 1);
}

static void *barrier_main(void *unused)
{
	hazptr_barrier();
	return unused;
}

/* Objects for which another thread's barrier waits are still pending for a shutdown. */
static void shutdown_beside_a_barrier(void **state)
{
	static struct thing object;
	hazptr_t *slot = slot_with(NULL, &object);
	uint64_t blocked = stats_now().shazptr_blocked;
	pthread_t thread;

	(void)state;
	thing_retire(&object);
	thread_must(pthread_create(&thread, NULL, barrier_main, NULL));
	wait_until(stats_now().shazptr_blocked > blocked);
	assert_int_equal(quiesce_shutdown(20000000), -ETIMEDOUT);
	assert_int_equal(runs_of(&object), 0);
	hazptr_free(NULL, slot);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(runs_of(&object), 1);
	pthread_join(thread, NULL);
}

/* ---- rest ---- */

static uint32_t helper_tid;

static void report_helper_tid(struct hazptr_head *unused)
{
	(void)unused;
	quiesce_store_relaxed(&helper_tid, (uint32_t)my_tid()); /* Relaxed: awaited. */
}

/* The helper sleeps until it is woken when nothing is left, and scans again by itself when something is. */
static void the_helper_rests_when_nothing_is_left(void **state)
{
	struct timespec rest = { .tv_nsec = 250000000 };
	static struct hazptr_head head;
	static struct thing object;
	hazptr_t *slot = slot_with(NULL, &object);
	long before;

	(void)state;
	thing_retire(&object);
	call_hazptr(&head, report_helper_tid);
	wait_until(flag_get(&helper_tid) != 0);
	before = voluntary_switches((pid_t)flag_get(&helper_tid));
	wait_until(voluntary_switches((pid_t)flag_get(&helper_tid)) > before + 1);
	hazptr_free(NULL, slot);
	wait_until(runs_of(&object) == 1);
	do { /* however long this takes; if the helper never sleeps the watchdog ends the test */
		before = voluntary_switches((pid_t)flag_get(&helper_tid));
		nanosleep(&rest, NULL);
	} while (voluntary_switches((pid_t)flag_get(&helper_tid)) != before);
	thing_retire(&object);
	wait_until(runs_of(&object) == 2);
}

/* ---- cohorts ---- */

static struct hazptr_cohort busy = HAZPTR_COHORT_INIT;

static void *retires_until_stopped(void *stop)
{
	while (!flag_get((int *)stop))
		call_hazptr_cohort(&busy, born(), dies);
	return NULL;
}

static void a_wait_for_a_cohort_ends_beside_retirers(void **state)
{
	pthread_t thread[3];
	int stop = 0;

	(void)state;
	threads_begin(thread, 3, retires_until_stopped, &stop);
	for (int i = 0; i < 50; i++)
		synchronize_hazptr_cohort(&busy);
	flag_set(&stop);
	threads_end(thread, 3);
	synchronize_hazptr_cohort(&busy);
	assert_int_equal(flag_get(&nr_alive), 0);
}

/* The bound of a cohort is the least batch of the process, whatever the size of objects. */
static void a_cohort_keeps_one_batch(void **state)
{
	static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;

	for (uint32_t batch = 16; batch <= 1024; batch *= 8) {
		assert_return_code(quiesce_set_hazptr_batch(batch, 4096), 0);
		most_alive = nr_alive = 0;
		for (int i = 0; i < 5000; i++)
			call_hazptr_cohort(&cohort, born(), dies);
		assert_int_equal(flag_get(&most_alive), batch);
		synchronize_hazptr_cohort(&cohort);
		assert_int_equal(flag_get(&nr_alive), 0);
	}
	assert_return_code(quiesce_set_hazptr_batch(0, 0), 0);
	(void)state;
}

/* An object with a cohort as a member: its callback waits for that. */
struct parent {
	struct hazptr_head hazptr;
	struct hazptr_cohort children;
	struct thing child[3];
	int ended;
};

static void destroy_parent(struct hazptr_head *head)
{
	struct parent *parent = (struct parent *)(void *)head;

	synchronize_hazptr_cohort(&parent->children);
	assert_int_equal(things_run(parent->child, 3), 3);
	flag_set(&parent->ended);
}

static void retire_parent(struct parent *parent)
{
	memset(parent, 0, sizeof *parent);
	for (int i = 0; i < 3; i++)
		call_hazptr_cohort(&parent->children, &parent->child[i].hazptr, thing_run);
}

static void a_callback_may_wait_for_a_cohort(void **state)
{
	void (*const retire[])(struct hazptr_head *head, void (*func)(struct hazptr_head *head)) = { call_hazptr, call_hazptr_inline };
	static struct parent parent;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		retire_parent(&parent);
		retire[i](&parent.hazptr, destroy_parent);
		hazptr_barrier();
		assert_int_equal(flag_get(&parent.ended), 1);
	}
	retire_parent(&parent);
	call_hazptr_cohort(&busy, &parent.hazptr, destroy_parent);
	synchronize_hazptr_cohort(&busy);
	assert_int_equal(flag_get(&parent.ended), 1);
}

/* The callback waits in the helper for a child that is protected. */
static void a_callback_waits_for_what_a_cohort_has_protected(void **state)
{
	static struct parent parent;
	hazptr_t *slot = slot_with(NULL, &parent.child[1]);

	(void)state;
	retire_parent(&parent);
	call_hazptr(&parent.hazptr, destroy_parent);
	wait_until(things_run(parent.child, 3) == 2);
	assert_int_equal(flag_get(&parent.ended), 0);
	hazptr_free(NULL, slot);
	wait_until(flag_get(&parent.ended));
	hazptr_barrier();
}

/* The scan for an owner's queue found many slots; a callback of that queue waits for a cohort, beside still more slots. */
#define NR_MORE 1500 /* more than a table for twice NR_STALLED has room for */

static struct thing held_on[NR_STALLED];
static hazptr_t *more[NR_MORE];

static void destroy_beside_many(struct hazptr_head *head)
{
	for (int i = 0; i < NR_MORE; i++)
		more[i] = slot_with(NULL, &more[i]);
	destroy_parent(head);
}

static void a_wait_in_a_callback_leaves_the_scan_intact(void **state)
{
	static struct parent parent;

	(void)state;
	assert_int_equal(quiesce_set_thread_hazptr_batch(1024, 1024), 0);
	for (int i = 0; i < NR_STALLED; i++)
		stalled[i] = slot_with(NULL, &held_on[i]);
	retire_some(NULL);
	retire_some(NULL); /* the queue has a table now */
	hazptr_barrier();
	retire_parent(&parent);
	call_hazptr_inline(&parent.hazptr, destroy_beside_many);
	for (int i = 0; i < NR_STALLED; i++)
		call_hazptr_inline(&held_on[i].hazptr, thing_run);
	retire_some(NULL);
	assert_int_equal(flag_get(&parent.ended), 1);
	assert_int_equal(things_run(held_on, NR_STALLED), 0);
	hazptr_free_batch(NULL, stalled, NR_STALLED);
	hazptr_free_batch(NULL, more, NR_MORE);
	hazptr_barrier();
	assert_int_equal(things_run(held_on, NR_STALLED), NR_STALLED);
	assert_int_equal(quiesce_set_thread_hazptr_batch(0, 0), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_batch_takes_one_scan),
		TEST(garbage_is_bounded_while_readers_stall),
		TEST(garbage_of_threads_that_come_and_go_is_bounded),
		TEST(a_few_large_objects_are_a_batch),
		TEST(a_large_object_that_stays_is_no_batch),
		TEST(a_mark_in_a_slot_keeps_no_object),
		TEST(retired_and_reclaimed_objects_are_counted),
		TEST(a_wait_for_a_cohort_ends_beside_retirers),
		TEST(a_cohort_keeps_one_batch),
		TEST(a_callback_may_wait_for_a_cohort),
		TEST(a_callback_waits_for_what_a_cohort_has_protected),
		TEST(a_wait_in_a_callback_leaves_the_scan_intact),
		TEST(shutdown_runs_callbacks_that_queue_the_other_kind),
		TEST(shutdown_gives_up_in_time_where_something_is_protected),
		TEST(shutdown_gives_up_in_time_where_a_callback_blocks),
		TEST(shutdown_beside_a_barrier),
		TEST(the_helper_rests_when_nothing_is_left),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
