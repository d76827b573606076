/* SPDX-License-Identifier: MIT */
/* test_yield.c - which readers are forced to yield the CPU, from when, and until when.
 *
 * This program has two functions of the C library's for itself, which the library calls: sched_yield() counts the calls
 * of the thread that asks to be counted; sched_getcpu() returns another CPU than the one on which the counted thread runs.
 */
#define _GNU_SOURCE
#include "testing.h"

#include <sched.h>

static __thread int counted;
static __thread int elsewhere;
static int nr_yields;

int sched_yield(void)
{
	if (counted)
		count_up(&nr_yields);
	return (int)syscall(SYS_sched_yield);
}

int sched_getcpu(void)
{
	unsigned int cpu = 0;

	syscall(SYS_getcpu, &cpu, NULL, NULL);
	return (int)cpu + elsewhere;
}

/* ---- a reader in the way ---- */

struct in_the_way {
	pthread_t thread;
	sem_t inside;
	int leave;
};

/* This thread is runnable all the time. */
static void *in_the_way_main(void *arg)
{
	struct in_the_way *r = arg;

	rcu_read_lock();
	sem_post(&r->inside);
	while (!flag_get(&r->leave))
		syscall(SYS_sched_yield);
	rcu_read_unlock();
	return NULL;
}

static void in_the_way_begin(struct in_the_way *r)
{
	sem_init(&r->inside, 0, 0);
	r->leave = 0;
	thread_must(pthread_create(&r->thread, NULL, in_the_way_main, r));
	wait_for(&r->inside);
}

static void in_the_way_end(struct in_the_way *r)
{
	flag_set(&r->leave);
	pthread_join(r->thread, NULL);
}

static void *wait_expedited(void *arg)
{
	(void)arg;
	synchronize_rcu_expedited();
	return NULL;
}

static void *wait_plain(void *arg)
{
	(void)arg;
	synchronize_rcu();
	return NULL;
}

/* Run one section of this thread; return how often it yielded. */
static int yields_in_a_section(void)
{
	int before = flag_get(&nr_yields);

	counted = 1;
	rcu_read_lock();
	rcu_read_lock();
	rcu_read_unlock();
	rcu_read_unlock();
	counted = 0;
	return flag_get(&nr_yields) - before;
}

/* Begin a wait that a reader delays, and that has begun to force readers to yield. */
static void begin_urgent_wait(struct in_the_way *r, pthread_t *updater, void *(*wait)(void *))
{
	uint64_t before = stats_now().expedited;

	in_the_way_begin(r);
	thread_must(pthread_create(updater, NULL, wait, NULL));
	wait_until(stats_now().expedited > before);
}

/* Readers are forced during windows of time; a section in one yields once, at its outermost unlock. */
static void readers_yield_while(void *(*wait)(void *))
{
	struct in_the_way r;
	pthread_t updater;
	int yields;

	begin_urgent_wait(&r, &updater, wait);
	wait_until((yields = yields_in_a_section()) != 0);
	assert_int_equal(yields, 1);
	in_the_way_end(&r);
	pthread_join(updater, NULL);
}

static void readers_yield_to_an_expedited_wait(void **state)
{
	(void)state;
	readers_yield_while(wait_expedited);
}

static void readers_yield_to_a_plain_wait_in_the_end(void **state)
{
	(void)state;
	readers_yield_while(wait_plain);
}

static int may_go_on, stands_still;

static void stand_still(int sig)
{
	(void)sig;
	flag_set(&stands_still);
	while (!flag_get(&may_go_on))
		syscall(SYS_sched_yield);
}

/* The waiter does not end the window that it began: the next readers end it when its time is over. */
static void readers_stop_by_themselves_when_the_waiter_does_not_run(void **state)
{
	enum { ROUNDS = 20 };
	struct sigaction action = { .sa_handler = stand_still, .sa_flags = SA_RESTART }, before;

	(void)state;
	sigaction(SIGUSR2, &action, &before);
	for (int i = 0; i < ROUNDS; i++) {
		struct in_the_way r;
		pthread_t updater;

		quiesce_store_relaxed(&may_go_on, 0);    /* Relaxed: no thread is in the handler. */
		quiesce_store_relaxed(&stands_still, 0); /* Relaxed: no thread is in the handler. */
		begin_urgent_wait(&r, &updater, wait_expedited);
		pthread_kill(updater, SIGUSR2);
		wait_until(flag_get(&stands_still));
		wait_until((yields_in_a_section(), !(quiesce_load_relaxed(&quiesce_rcu_v1.gp) & QUIESCE_RCU_SLOW))); /* Relaxed: a poll. */
		flag_set(&may_go_on);
		in_the_way_end(&r);
		pthread_join(updater, NULL);
	}
	sigaction(SIGUSR2, &before, NULL);
}

static void no_reader_yields_when_the_wait_is_over(void **state)
{
	struct in_the_way r;
	pthread_t updater;

	(void)state;
	begin_urgent_wait(&r, &updater, wait_expedited);
	in_the_way_end(&r);
	pthread_join(updater, NULL);
	assert_int_equal(yields_in_a_section(), 0);
}

/* Run sections of this thread during @nr sleeps of a wait; return how many of them yielded. */
static int yields_during(void *(*wait)(void *), uint64_t nr)
{
	int before = flag_get(&nr_yields);
	uint64_t sleeps = stats_now().sleeps;
	pthread_t updater;

	thread_must(pthread_create(&updater, NULL, wait, NULL));
	while (stats_now().sleeps < sleeps + nr)
		yields_in_a_section();
	pthread_detach(updater);
	return flag_get(&nr_yields) - before;
}

#define SLEEPS 10

/* Only the reader that delays the wait receives a request, and it is not forced to yield. */
static void no_reader_yields_to_a_plain_wait_when_yielding_is_off(void **state)
{
	struct in_the_way r;

	(void)state;
	quiesce_set_yield(0);
	in_the_way_begin(&r);
	assert_int_equal(yields_during(wait_plain, SLEEPS), 0);
	in_the_way_end(&r);
	synchronize_rcu();
	quiesce_set_yield(1);
}

/* The test covers the first window only, because later the delaying reader may wait on another CPU. */
static void readers_on_other_cpus_do_not_yield_at_first(void **state)
{
	enum { ROUNDS = 20 };
	cpu_set_t all, one;

	(void)state;
	/* All threads run on one CPU, which this thread takes for another one. */
	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	elsewhere = 1;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t windows = stats_now().expedited, begun = now_ns();
		struct in_the_way r;
		pthread_t updater;

		begin_urgent_wait(&r, &updater, wait_expedited);
		do
			if (yields_in_a_section())
				assert_in_range(stats_now().expedited, windows + 2, UINT64_MAX);
		while (now_ns() - begun < 3000000);
		in_the_way_end(&r);
		pthread_join(updater, NULL);
	}
	elsewhere = 0;
	sched_setaffinity(0, sizeof all, &all);
}

enum { WINDOWS = 8 };

/* Check that eight windows of a wait take at least @at_least_ns, while readers @r leave one after the other, or the only one stays. */
static void check_share(void *(*wait)(void *), struct in_the_way *r, int nr, uint64_t at_least_ns)
{
	uint64_t before = stats_now().expedited, begun;
	pthread_t updater;
	int left = 0;

	for (int i = 0; i < nr; i++)
		in_the_way_begin(&r[i]);
	begun = now_ns();
	thread_must(pthread_create(&updater, NULL, wait, NULL));
	for (int i = 1; i <= WINDOWS; i++) {
		wait_until(stats_now().expedited >= before + (uint64_t)i);
		if (left + 1 < nr)
			in_the_way_end(&r[left++]);
	}
	assert_in_range(now_ns() - begun, at_least_ns, UINT64_MAX);
	for (; left < nr; left++)
		in_the_way_end(&r[left]);
	pthread_join(updater, NULL);
}

/* A window takes a millisecond, and a pause follows.  The other readers are behind the first in the registry, as they came later. */
static void readers_yield_half_of_the_time_or_a_fifth(void **state)
{
	struct in_the_way r[WINDOWS + 1];

	(void)state;
	check_share(wait_expedited, r, WINDOWS + 1, (WINDOWS - 1) * 2000000);
	check_share(wait_plain, r, WINDOWS + 1, (WINDOWS - 1) * 5000000);
}

/* A reader is left alone for 4 ms in an expedited wait and 16 ms in others, then twice as long each time, at most 100 ms. */
static void readers_are_left_alone_where_yielding_does_not_help(void **state)
{
	struct in_the_way r;

	(void)state;
	check_share(wait_expedited, &r, 1, (4 + 8 + 16 + 32 + 64 + (WINDOWS - 6) * 100) * 1000000ull);
	check_share(wait_plain, &r, 1, (16 + 32 + 64 + (WINDOWS - 4) * 100) * 1000000ull);
}

/* A normal wait that may not force readers to yield does so once an expedited caller follows it. */
static void an_expedited_caller_raises_the_urgency_of_the_wait_before_it(void **state)
{
	uint64_t before, sleeps;
	struct in_the_way r;
	pthread_t plain, expedited;

	(void)state;
	quiesce_set_yield(0);
	in_the_way_begin(&r);
	before = stats_now().expedited;
	sleeps = stats_now().sleeps;
	thread_must(pthread_create(&plain, NULL, wait_plain, NULL));
	wait_until(stats_now().sleeps > sleeps + 2);
	assert_int_equal(stats_now().expedited, before);
	thread_must(pthread_create(&expedited, NULL, wait_expedited, NULL));
	wait_until(stats_now().expedited > before);
	in_the_way_end(&r);
	pthread_join(plain, NULL);
	pthread_join(expedited, NULL);
	quiesce_set_yield(1);
}

/* ---- waits of the worker ---- */

#define DEFERRED_NS 10000000u /* a deferred grace period forces no reader for so long, unless a caller waits */
#define TIMES 10
#define TRIES 200
static void do_nothing(struct rcu_head *head)
{
	(void)head;
}

/* Retire more bytes than the ceiling. */
static void *retire_much(void *arg)
{
	static struct rcu_head much;

	(void)arg;
	call_rcu_sized(&much, do_nothing, 2u << 30);
	return NULL;
}

static void *wait_for_callbacks(void *arg)
{
	(void)arg;
	rcu_barrier();
	return NULL;
}

/* Measure the time from call_rcu() until readers are forced to yield, with one that delays it; @other begins when the worker waits. */
static uint64_t ns_until_forced(void *(*other)(void *))
{
	static struct rcu_head head;
	struct quiesce_stats before;
	uint64_t begun, ns;
	pthread_t thread;
	struct in_the_way r;

	rcu_barrier();
	in_the_way_begin(&r);
	before = stats_now();
	begun = now_ns();
	call_rcu(&head, do_nothing);
	wait_until(stats_now().sleeps > before.sleeps);
	if (other)
		thread_must(pthread_create(&thread, NULL, other, NULL));
	wait_until(stats_now().expedited > before.expedited);
	ns = now_ns() - begun;
	in_the_way_end(&r);
	if (other)
		pthread_join(thread, NULL);
	rcu_barrier();
	return ns;
}

static void no_reader_yields_soon_for_garbage_alone(void **state)
{
	(void)state;
	for (int i = 0; i < TIMES; i++)
		assert_in_range(ns_until_forced(NULL), DEFERRED_NS, UINT64_MAX);
}

/* One forced yield is enough: the worker alone never forces a reader so early, and load on the machine only delays it. */
static void readers_yield_sooner_where(void *(*other)(void *))
{
	for (int i = 0; i < TRIES; i++)
		if (ns_until_forced(other) < DEFERRED_NS)
			return;
	fail_msg("readers were left alone in %d of %d grace periods", TRIES, TRIES);
}

static void readers_yield_sooner_where_a_caller_waits_for_callbacks(void **state)
{
	(void)state;
	readers_yield_sooner_where(wait_for_callbacks);
}

static void readers_yield_sooner_where_a_caller_waits_for_the_next_grace_period(void **state)
{
	(void)state;
	readers_yield_sooner_where(wait_plain);
}

static void readers_yield_sooner_above_the_ceiling(void **state)
{
	(void)state;
	readers_yield_sooner_where(retire_much);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(readers_yield_to_an_expedited_wait),
		TEST(readers_yield_to_a_plain_wait_in_the_end),
		TEST(readers_stop_by_themselves_when_the_waiter_does_not_run),
		TEST(no_reader_yields_when_the_wait_is_over),
		TEST(no_reader_yields_to_a_plain_wait_when_yielding_is_off),
		TEST(readers_on_other_cpus_do_not_yield_at_first),
		TEST(readers_yield_half_of_the_time_or_a_fifth),
		TEST(readers_are_left_alone_where_yielding_does_not_help),
		TEST(an_expedited_caller_raises_the_urgency_of_the_wait_before_it),
		TEST(no_reader_yields_soon_for_garbage_alone),
		TEST(readers_yield_sooner_where_a_caller_waits_for_callbacks),
		TEST(readers_yield_sooner_where_a_caller_waits_for_the_next_grace_period),
		TEST(readers_yield_sooner_above_the_ceiling),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
