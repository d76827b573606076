/* SPDX-License-Identifier: MIT */
/* test_throttle.c - garbage above its ceiling: a retirer does not wait, a caller that throttles does. */
#include "objects.h"

#include <quiesce/srcu.h>

/* ---- a retirer never waits ---- */

#define MANY 100000

static pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER;

static void *read_and_lock(void *inside)
{
	rcu_read_lock();
	sem_post(inside);
	pthread_mutex_lock(&wanted);
	pthread_mutex_unlock(&wanted);
	rcu_read_unlock();
	return NULL;
}

static void lock_and_run(struct rcu_head *head)
{
	pthread_mutex_lock(&wanted);
	pthread_mutex_unlock(&wanted);
	object_run(head);
}

/* The garbage is far above the ceiling, and a reader and callbacks wait for the caller. */
static void a_caller_may_hold_what_readers_and_callbacks_want(void **state)
{
	struct object *o = zeroed(MANY, sizeof *o);
	pthread_t reader;
	sem_t inside;

	(void)state;
	quiesce_set_garbage_ceiling(1u << 20);
	sem_init(&inside, 0, 0);
	pthread_mutex_lock(&wanted);
	thread_must(pthread_create(&reader, NULL, read_and_lock, &inside));
	wait_for(&inside);
	for (int i = 0; i < MANY; i++) {
		struct object *plain = malloc(sizeof *plain);

		call_rcu(&o[i].rcu, lock_and_run);
		kfree_rcu(plain, rcu);
	}
	assert_int_equal(sum_runs(o, MANY), 0);
	pthread_mutex_unlock(&wanted);
	pthread_join(reader, NULL);
	rcu_barrier();
	assert_int_equal(nr_once(o, MANY), MANY);
	free(o);
	quiesce_set_garbage_ceiling(64u << 20);
	nothing_is_left();
}

static void below_the_ceiling_no_caller_waits(void **state)
{
	struct object o = { .runs = 0 };
	struct held h;

	(void)state;
	held_begin(&h, NULL);
	call_rcu(&o.rcu, object_run);
	rcu_throttle();
	assert_int_equal(flag_get(&o.runs), 0);
	held_end(&h);
	rcu_barrier();
	assert_int_equal(o.runs, 1);
}

static void throttling_run(struct rcu_head *head)
{
	rcu_throttle();
	object_run(head);
}

static void in_a_callback_it_does_nothing(void **state)
{
	struct object o = { .runs = 0 };

	(void)state;
	quiesce_set_garbage_ceiling(1);
	call_rcu_sized(&o.rcu, throttling_run, 1u << 20);
	rcu_barrier();
	assert_int_equal(o.runs, 1);
	quiesce_set_garbage_ceiling(64u << 20);
	nothing_is_left();
}

/* ---- callers that throttle ---- */

struct producer {
	pthread_t thread;
	struct object *o;
	int n, produced;
	size_t bytes;
	uint32_t tid;
	int throttled; /* calls rcu_throttle(); else the setting does it */
};

static void *producer_main(void *arg)
{
	struct producer *p = arg;

	quiesce_store_relaxed(&p->tid, (uint32_t)my_tid()); /* Relaxed: the thread publishes its own id. */
	for (int i = 0; i < p->n; i++) {
		call_rcu_sized(&p->o[i].rcu, object_run, p->bytes);
		count_up(&p->produced);
		if (p->throttled)
			rcu_throttle();
	}
	return NULL;
}

static void producer_begin(struct producer *p, int n, size_t bytes, int throttled)
{
	*p = (struct producer){ .o = zeroed((size_t)n, sizeof *p->o), .n = n, .bytes = bytes, .throttled = throttled };
	thread_must(pthread_create(&p->thread, NULL, producer_main, p));
}

static void producer_sleeps(const struct producer *p, uint64_t backpressure)
{
	wait_until(stats_now().backpressure > backpressure || flag_get(&p->produced) == p->n);
	assert_true(flag_get(&p->produced) < p->n);
	wait_until(thread_state((pid_t)quiesce_load_relaxed(&p->tid)) == 'S'); /* Relaxed: set long ago. */
}

static void producer_end(struct producer *p)
{
	pthread_join(p->thread, NULL);
	rcu_barrier();
	assert_int_equal(nr_once(p->o, p->n), p->n);
	free(p->o);
	nothing_is_left();
}

/* A thread adds its bytes to the sum in steps of 64 KiB, so there may be that much more. */
static void producer_is_held_at(uint64_t ceiling, int n, size_t bytes, uint64_t slack, int throttled)
{
	uint64_t before = stats_now().backpressure;
	struct producer p;
	struct held h;

	quiesce_set_garbage_ceiling(ceiling);
	quiesce_set_throttle(!throttled);
	held_begin(&h, NULL);
	producer_begin(&p, n, bytes, throttled);
	producer_sleeps(&p, before);
	assert_in_range(stats_now().garbage_bytes, 1, ceiling + slack);
	assert_int_equal(sum_runs(p.o, p.n), 0);
	held_end(&h);
	producer_end(&p);
	quiesce_set_throttle(0);
	quiesce_set_garbage_ceiling(64u << 20);
}

static void a_throttled_thread_is_held_at_the_ceiling(void **state)
{
	(void)state;
	producer_is_held_at(1u << 20, 3000, 4096, 65536 + 4096, 1);
}

static void with_the_setting_calls_are_held_at_the_ceiling(void **state)
{
	(void)state;
	producer_is_held_at(1u << 20, 3000, 4096, 65536 + 4096, 0);
}

/* Threads that come and go with a few bytes each must not lower the effective ceiling. */
static void *queue_some_bytes(void *arg)
{
	struct object *o = arg;

	call_rcu_sized(&o->rcu, object_run, 60000);
	return NULL;
}

static void the_ceiling_survives_short_threads(void **state)
{
	enum { N = 200 };
	static struct object o[N];
	pthread_t thread;

	(void)state;
	for (int i = 0; i < N; i++) {
		thread_must(pthread_create(&thread, NULL, queue_some_bytes, &o[i]));
		pthread_join(thread, NULL);
	}
	rcu_barrier();
	assert_int_equal(nr_once(o, N), N);
	producer_is_held_at(1u << 20, 3000, 4096, 65536 + 4096, 1);
}

/* Objects that owners free in calls that queue callbacks leave nothing in the sum, neither those of live threads nor those of threads
 * that have ended.  So a ceiling that is lowered later is above the sum. */
#define NR_OWNERS 80

static sem_t may_go;

static void free_object(struct rcu_head *head)
{
	free(head);
}

static void *free_own(void *stays)
{
	for (int i = 0; i < 8; i++) {
		struct big {
			struct rcu_head rcu;
			char more[4000];
		} *o = malloc(sizeof *o);

		kfree_rcu(o, rcu);
	}
	rest_ms(3); /* the objects are ready, and the worker leaves them to this thread for a while */
	for (int i = 0; i < 33; i++)
		call_rcu(malloc(sizeof(struct rcu_head)), free_object);
	rest_ms(20); /* the callbacks have run by now */
	if (stays)
		wait_for(&may_go);
	return NULL;
}

static void lower_the_ceiling_beside(int *stays)
{
	pthread_t thread[NR_OWNERS];

	quiesce_set_garbage_ceiling(4u << 20);
	sem_init(&may_go, 0, 0);
	for (int i = 0; i < NR_OWNERS; i++) {
		thread_must(pthread_create(&thread[i], NULL, free_own, stays));
		if (!stays && i >= 8)
			pthread_join(thread[i - 8], NULL);
	}
	wait_until(!stats_now().garbage_objects);
	if (!stays)
		for (int i = NR_OWNERS - 8; i < NR_OWNERS; i++)
			pthread_join(thread[i], NULL);
	quiesce_set_garbage_ceiling(1u << 16);
	rcu_throttle();
	for (int i = 0; i < NR_OWNERS && stays; i++)
		sem_post(&may_go);
	if (stays)
		threads_end(thread, NR_OWNERS);
	quiesce_set_garbage_ceiling(64u << 20);
	rcu_barrier();
	nothing_is_left();
}

static void a_lower_ceiling_finds_nothing_of_threads_that_have_gone(void **state)
{
	(void)state;
	lower_the_ceiling_beside(NULL);
}

static void a_lower_ceiling_finds_nothing_of_threads_that_are_idle(void **state)
{
	int stays = 1;

	(void)state;
	lower_the_ceiling_beside(&stays);
}

/* ---- domains ---- */

DEFINE_STATIC_SRCU(domain);

static void *throttle_main(void *done)
{
	rcu_throttle();
	flag_set((int *)done);
	return NULL;
}

static void garbage_of_domains_is_waited_for(void **state)
{
	uint64_t before = stats_now().backpressure;
	struct object o = { .runs = 0 };
	int idx, done = 0;
	pthread_t thread;

	(void)state;
	quiesce_set_garbage_ceiling(1u << 20);
	idx = srcu_read_lock(&domain);
	call_srcu_sized(&domain, &o.rcu, object_run, 2u << 20);
	thread_must(pthread_create(&thread, NULL, throttle_main, &done));
	wait_until(stats_now().backpressure > before);
	assert_int_equal(flag_get(&done), 0);
	srcu_read_unlock(&domain, idx);
	pthread_join(thread, NULL);
	srcu_barrier(&domain);
	assert_int_equal(o.runs, 1);
	quiesce_set_garbage_ceiling(64u << 20);
}

/* With the setting a caller that throttled here would wait for itself. */
static void a_call_inside_a_section_of_the_domain_returns(void **state)
{
	struct object o[3] = { { .runs = 0 } };
	int idx;

	(void)state;
	quiesce_set_garbage_ceiling(1u << 20);
	quiesce_set_throttle(1);
	idx = srcu_read_lock(&domain);
	for (int i = 0; i < 3; i++)
		call_srcu_sized(&domain, &o[i].rcu, object_run, 2u << 20);
	assert_int_equal(sum_runs(o, 3), 0);
	srcu_read_unlock(&domain, idx);
	srcu_barrier(&domain);
	assert_int_equal(nr_once(o, 3), 3);
	quiesce_set_throttle(0);
	quiesce_set_garbage_ceiling(64u << 20);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_caller_may_hold_what_readers_and_callbacks_want),
		TEST(below_the_ceiling_no_caller_waits),
		TEST(in_a_callback_it_does_nothing),
		TEST(a_throttled_thread_is_held_at_the_ceiling),
		TEST(with_the_setting_calls_are_held_at_the_ceiling),
		TEST(the_ceiling_survives_short_threads),
		TEST(a_lower_ceiling_finds_nothing_of_threads_that_have_gone),
		TEST(a_lower_ceiling_finds_nothing_of_threads_that_are_idle),
		TEST(garbage_of_domains_is_waited_for),
		TEST(a_call_inside_a_section_of_the_domain_returns),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
