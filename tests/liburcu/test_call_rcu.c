/* SPDX-License-Identifier: MIT */
/* test_call_rcu.c - behaviour of liburcu's callbacks that programs rely on without a promise; built for each flavour, and for objects. */
#define _GNU_SOURCE
#if defined(TEST_QSBR)
#include <urcu-qsbr.h>
#elif defined(TEST_BP)
#include <urcu-bp.h>
#else
#include <urcu.h>
#endif

#include "../sanitized.h"
#include "../unit/watched.h"

#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void join_offline(pthread_t thread)
{
	rcu_thread_offline();
	pthread_join(thread, NULL);
	rcu_thread_online();
}

static uint32_t nr_called;

static void called(struct rcu_head *head)
{
	(void)head;
	count_up(&nr_called);
}

/* ---- a barrier beside the end of a queue ---- */

enum { NR_QUEUED = 4 };
static uint32_t nr_queued, stop;

/* The next round begins when the callbacks of this one have been called. */
static void *make_and_free(void *unused)
{
	static struct rcu_head head[NR_QUEUED];

	rcu_register_thread();
	while (!flag_get(&stop)) {
		struct call_rcu_data *c = create_call_rcu_data(0, -1);

		assert_non_null(c);
		set_thread_call_rcu_data(c);
		for (int i = 0; i < NR_QUEUED; i++) {
			call_rcu(&head[i], called);
			count_up(&nr_queued);
		}
		set_thread_call_rcu_data(NULL);
		call_rcu_data_free(c);
		rcu_barrier();
	}
	rcu_unregister_thread();
	return unused;
}

static void a_barrier_waits_for_a_queue_that_is_freed(void **state)
{
	uint64_t until = now_ns() + 2000000000u;
	uint32_t nr_rounds = 0;
	pthread_t thread;

	(void)state;
	nr_called = nr_queued = stop = 0;
	thread_must(pthread_create(&thread, NULL, make_and_free, NULL));
	for (; now_ns() < until; nr_rounds++) {
		uint32_t nr = flag_get(&nr_queued);

		rcu_barrier();
		assert_true(flag_get(&nr_called) >= nr);
	}
	flag_set(&stop);
	join_offline(thread);
	assert_true(nr_rounds > 20);
}

/* ---- order ---- */

enum { NR_ORDERED = 20000, NR_ROUNDS = 20 };
static struct rcu_head ordered[NR_ORDERED];
static uint32_t before_marker;
static sem_t done;

static void *queue_all(void *unused)
{
	rcu_register_thread();
	for (int i = 0; i < NR_ORDERED; i++)
		call_rcu(&ordered[i], called);
	rcu_unregister_thread();
	return unused;
}

static void marker(struct rcu_head *head)
{
	(void)head;
	before_marker = flag_get(&nr_called);
	sem_post(&done);
}

static void callbacks_of_a_joined_thread_are_called_first(void **state)
{
	static struct rcu_head last;

	(void)state;
	sem_init(&done, 0, 0);
	for (int i = 0; i < NR_ROUNDS; i++) {
		pthread_t thread;

		nr_called = 0;
		thread_must(pthread_create(&thread, NULL, queue_all, NULL));
		join_offline(thread);
		call_rcu(&last, marker);
		rcu_thread_offline();
		wait_for(&done);
		rcu_thread_online();
		assert_int_equal(before_marker, NR_ORDERED);
		rcu_barrier();
	}
}

/* ---- in a section ---- */

/* In qsbr the barrier itself leaves the section. */
static void a_barrier_in_a_section_returns(void **state)
{
	static struct rcu_head head;

	(void)state;
	nr_called = 0;
	rcu_read_lock();
	call_rcu(&head, called);
	rcu_barrier();
	rcu_barrier();
#if !defined(TEST_QSBR)
	assert_int_equal(flag_get(&nr_called), 0);
#endif
	rcu_read_unlock();
	rcu_barrier();
	assert_int_equal(flag_get(&nr_called), 1);
}

/* ---- pace ---- */

static uint64_t called_at;

static void notes_the_time(struct rcu_head *head)
{
	(void)head;
	called_at = now_ns();
	sem_post(&done);
}

/* Return the shortest of some times from call_rcu() to the callback. */
static uint64_t shortest(void)
{
	static struct rcu_head head;
	uint64_t least = UINT64_MAX;

	sem_init(&done, 0, 0);
	rcu_thread_offline();
	for (int i = 0; i < 20; i++) {
		const struct timespec idle = { .tv_nsec = 25000000 };
		uint64_t begun;

		nanosleep(&idle, NULL); /* the callback thread is idle and asleep after this */
		begun = now_ns();
		call_rcu(&head, notes_the_time);
		wait_for(&done);
		if (called_at - begun < least)
			least = called_at - begun;
	}
	rcu_thread_online();
	return least;
}

/* Callbacks are paced, so a program's accesses to an object just after call_rcu() precede the callback. */
static void callbacks_come_at_the_chosen_pace(void **state)
{
	const char *chosen = getenv("QUIESCE_URCU_PACE_MS");
	uint64_t pace_ns = chosen ? strtoull(chosen, NULL, 10) * 1000000u : 10000000u, least = shortest();

	(void)state;
	assert_true(least >= pace_ns);
	if (!pace_ns)
		assert_true(least < 5000000u);
}

/* A barrier does not wait for the pace. */
static void a_barrier_keeps_no_pace(void **state)
{
	static struct rcu_head head;
	uint64_t least = UINT64_MAX;

	(void)state;
	for (int i = 0; i < 20; i++) {
		uint64_t begun = now_ns();

		call_rcu(&head, called);
		rcu_barrier();
		if (now_ns() - begun < least)
			least = now_ns() - begun;
	}
	assert_true(least < 8000000u);
}

/* ---- the thread of a queue that is freed ---- */

static void a_requested_thread_is_joined_by_the_requester(void **state)
{
	static struct rcu_head head;
	struct call_rcu_data *queue;
	pthread_t thread;

	(void)state;
	for (int i = 0; i < 20; i++) {
		queue = create_call_rcu_data(0, -1);
		assert_non_null(queue);
		set_thread_call_rcu_data(queue);
		call_rcu(&head, called);
		thread = get_call_rcu_thread(queue);
		set_thread_call_rcu_data(NULL);
		synchronize_rcu();
		call_rcu_data_free(queue);
		rcu_thread_offline();
		assert_int_equal(pthread_join(thread, NULL), 0);
		rcu_thread_online();
		rcu_barrier();
	}
}

static struct call_rcu_data *asked_queue;
static pthread_t asked_thread;

/* The callback requests the thread while its queue is being freed. */
static void asks_late(struct rcu_head *head)
{
	(void)head;
	for (int i = 0; i < 10; i++)
		short_rest();
	asked_thread = get_call_rcu_thread(asked_queue);
}

static void a_thread_requested_by_a_callback_is_joined_too(void **state)
{
	static struct rcu_head head;

	(void)state;
	asked_queue = create_call_rcu_data(0, -1);
	assert_non_null(asked_queue);
	set_thread_call_rcu_data(asked_queue);
	call_rcu(&head, asks_late);
	set_thread_call_rcu_data(NULL);
	call_rcu_data_free(asked_queue);
	rcu_thread_offline();
	assert_int_equal(pthread_join(asked_thread, NULL), 0);
	rcu_thread_online();
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_barrier_waits_for_a_queue_that_is_freed),
		TEST(callbacks_of_a_joined_thread_are_called_first),
		TEST(a_barrier_in_a_section_returns),
		TEST(callbacks_come_at_the_chosen_pace),
		TEST(a_barrier_keeps_no_pace),
		TEST(a_requested_thread_is_joined_by_the_requester),
		TEST(a_thread_requested_by_a_callback_is_joined_too),
	};
	int failed;

	testing_choose(argc, argv);
	rcu_register_thread();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rcu_unregister_thread();
	return failed;
}
