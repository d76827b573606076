/* SPDX-License-Identifier: MIT */
/* test_call_rcu.c - deferred callbacks: once each, after the readers, counted, drained. */
#include "objects.h"

/* ---- once, after the readers ---- */

static void callbacks_run_once_after_readers(void **state)
{
	enum { N = 100 };
	struct object *o = zeroed(N, sizeof *o);
	uint64_t sleeps = stats_now().sleeps;
	struct held h;

	(void)state;
	held_begin(&h, NULL);
	for (int i = 0; i < N; i++)
		call_rcu(&o[i].rcu, object_run);
	wait_until(stats_now().sleeps > sleeps);
	assert_int_equal(sum_runs(o, N), 0);
	held_end(&h);
	rcu_barrier();
	assert_int_equal(nr_once(o, N), N);
	synchronize_rcu();
	rcu_barrier();
	assert_int_equal(sum_runs(o, N), N);
	nothing_is_left();
	free(o);
}

static void a_reader_may_queue(void **state)
{
	uint64_t sleeps = stats_now().sleeps;
	struct object o = { .runs = 0 };

	(void)state;
	rcu_read_lock();
	call_rcu(&o.rcu, object_run);
	wait_until(stats_now().sleeps > sleeps);
	assert_int_equal(flag_get(&o.runs), 0);
	rcu_read_unlock();
	rcu_barrier();
	assert_int_equal(o.runs, 1);
}

static void *queue_and_exit(void *arg)
{
	struct object *o = arg;

	for (int i = 0; i < 1000; i++)
		call_rcu(&o[i].rcu, object_run);
	return NULL;
}

static void callbacks_of_exited_threads_run(void **state)
{
	enum { THREADS = 8, N = THREADS * 1000 };
	struct object *o = zeroed(N, sizeof *o);
	pthread_t thread[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		thread_must(pthread_create(&thread[i], NULL, queue_and_exit, o + (size_t)i * 1000));
	threads_end(thread, THREADS);
	rcu_barrier();
	assert_int_equal(nr_once(o, N), N);
	nothing_is_left();
	free(o);
}

static void *barrier_alone(void *arg)
{
	struct object *o = arg;

	call_rcu(&o->rcu, object_run);
	rcu_barrier();
	o->total = flag_get(&o->runs) == 1 ? &o->runs : NULL;
	return NULL;
}

static void concurrent_barriers(void **state)
{
	enum { N = 8 };
	struct object o[N];
	pthread_t thread[N];

	(void)state;
	for (int round = 0; round < 20; round++) {
		memset(o, 0, sizeof o);
		for (int i = 0; i < N; i++)
			thread_must(pthread_create(&thread[i], NULL, barrier_alone, &o[i]));
		for (int i = 0; i < N; i++) {
			pthread_join(thread[i], NULL);
			assert_non_null(o[i].total);
		}
	}
}

static void an_idle_barrier_is_no_grace_period(void **state)
{
	struct held h;
	uint64_t before;

	(void)state;
	rcu_barrier();
	held_begin(&h, NULL); /* with this reader a grace period would not end */
	before = stats_now().grace_periods;
	rcu_barrier();
	assert_int_equal(stats_now().grace_periods, before);
	held_end(&h);
}

/* ---- callbacks that call the library ---- */

static int chain_left;

static void chain_run(struct rcu_head *head)
{
	object_run(head);
	if (--chain_left)
		call_rcu(head, chain_run);
}

static void shutdown_drains_chains(void **state)
{
	struct object o = { .runs = 0 };

	(void)state;
	chain_left = 50;
	call_rcu(&o.rcu, chain_run);
	rcu_barrier();
	assert_true(flag_get(&o.runs) >= 1);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(o.runs, 50);
	nothing_is_left();
}

enum { MORE_THAN_FITS = 50000, FAN = MORE_THAN_FITS }; /* a callback must not wait for room in a queue */
static struct object *fan;

static void fan_run(struct rcu_head *head)
{
	object_run(head);
	for (int i = 0; i < FAN; i++)
		call_rcu(&fan[i].rcu, object_run);
}

static void a_callback_may_queue_more_than_fits(void **state)
{
	struct object o = { .runs = 0 };

	(void)state;
	fan = zeroed(FAN, sizeof *fan);
	call_rcu(&o.rcu, fan_run);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(o.runs, 1);
	assert_int_equal(nr_once(fan, FAN), FAN);
	free(fan);
}

static void waiting_run(struct rcu_head *head)
{
	rcu_read_lock();
	rcu_read_unlock();
	synchronize_rcu();
	synchronize_rcu_expedited();
	object_run(head);
}

static void a_callback_may_read_and_wait(void **state)
{
	struct object o = { .runs = 0 };

	(void)state;
	call_rcu(&o.rcu, waiting_run);
	rcu_barrier();
	assert_int_equal(o.runs, 1);
}

/* ---- many, and how large ---- */

static void a_reader_may_queue_more_than_fits(void **state)
{
	enum { N = MORE_THAN_FITS };
	struct object *o = zeroed(N, sizeof *o);

	(void)state;
	rcu_read_lock();
	for (int i = 0; i < N; i++)
		call_rcu(&o[i].rcu, object_run);
	assert_int_equal(sum_runs(o, N), 0);
	assert_int_equal(stats_now().garbage_objects, N);
	rcu_read_unlock();
	rcu_barrier();
	assert_int_equal(nr_once(o, N), N);
	nothing_is_left();
	free(o);
}

static void sizes_are_accounted(void **state)
{
	struct quiesce_stats s;
	struct object o[11];
	struct held h;

	(void)state;
	memset(o, 0, sizeof o);
	rcu_barrier();
	held_begin(&h, NULL);
	for (int i = 0; i < 10; i++)
		call_rcu_sized(&o[i].rcu, object_run, 1000);
	call_rcu(&o[10].rcu, object_run);
	s = stats_now();
	assert_int_equal(s.garbage_bytes, 10 * 1000 + QUIESCE_OBJECT_BYTES);
	assert_int_equal(s.garbage_objects, 11);
	held_end(&h);
	rcu_barrier();
	nothing_is_left();
}

/* ---- shutdown ---- */

static void shutdown_times_out_and_the_library_goes_on(void **state)
{
	struct object o = { .runs = 0 };
	struct held h;

	(void)state;
	held_begin(&h, NULL);
	call_rcu(&o.rcu, object_run);
	assert_int_equal(quiesce_shutdown(20000000), -ETIMEDOUT);
	assert_int_equal(flag_get(&o.runs), 0);
	assert_int_equal(stats_now().garbage_objects, 1);
	held_end(&h);
	rcu_barrier();
	assert_int_equal(o.runs, 1);
	assert_int_equal(quiesce_shutdown(1000000000), 0);
}

static void the_library_works_after_shutdown(void **state)
{
	struct object o = { .runs = 0 };

	(void)state;
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(quiesce_shutdown(0), 0);
		assert_int_equal(stats_now().worker_running, 0);
		synchronize_rcu();
		call_rcu(&o.rcu, object_run);
		assert_int_equal(stats_now().worker_running, 1);
		rcu_barrier();
		assert_int_equal(o.runs, i);
	}
}

static void *queue_until_stopped(void *arg)
{
	struct object o = { .runs = 0 };

	for (int i = 1; !flag_get((int *)arg); i++) {
		call_rcu(&o.rcu, object_run);
		while (quiesce_load_acquire(RU5, &o.runs) < i)
			sched_yield();
	}
	return NULL;
}

/* A callback queued while the worker stops starts another; shutdown must not wait for that one for ever. */
static void shutdown_ends_beside_a_busy_thread(void **state)
{
	int stop = 0, err;
	pthread_t thread[2];

	(void)state;
	threads_begin(thread, 2, queue_until_stopped, &stop);
	for (int i = 0; i < 100; i++) {
		err = quiesce_shutdown(5000000);
		assert_true(err == 0 || err == -ETIMEDOUT);
	}
	flag_set(&stop);
	threads_end(thread, 2);
	assert_int_equal(quiesce_shutdown(0), 0);
	nothing_is_left();
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(callbacks_run_once_after_readers),
		TEST(a_reader_may_queue),
		TEST(callbacks_of_exited_threads_run),
		TEST(concurrent_barriers),
		TEST(an_idle_barrier_is_no_grace_period),
		TEST(shutdown_drains_chains),
		TEST(a_callback_may_queue_more_than_fits),
		TEST(a_callback_may_read_and_wait),
		TEST(a_reader_may_queue_more_than_fits),
		TEST(sizes_are_accounted),
		TEST(shutdown_times_out_and_the_library_goes_on),
		TEST(the_library_works_after_shutdown),
		TEST(shutdown_ends_beside_a_busy_thread),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
