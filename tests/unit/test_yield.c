/* SPDX-License-Identifier: MIT */
/* test_yield.c - who is made to give up the CPU, when, and when no more.
 *
 * This program has its own sched_yield(), which the library calls too, and counts the
 * calls of the thread that asks to be counted.
 */
#include "testing.h"

static __thread int counted;
static int nr_yields;

int sched_yield(void)
{
	if (counted)
		count_up(&nr_yields);
	return (int)syscall(SYS_sched_yield);
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

/* One section of this thread; returns how often it yielded. */
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

/* A wait that a held reader keeps from ending, and that has begun to hurry. */
static void begin_hurried_wait(struct held *h, pthread_t *updater, void *(*wait)(void *))
{
	uint64_t before = stats_now().expedited;

	held_begin(h, NULL);
	thread_must(pthread_create(updater, NULL, wait, NULL));
	wait_until(stats_now().expedited > before);
}

/* The reader that is held sleeps, so the library gives up hurrying after a while and begins
 * again later: a section that yields comes, and it yields once, at its outermost unlock. */
static void readers_yield_while(void *(*wait)(void *))
{
	struct held h;
	pthread_t updater;
	int yields;

	begin_hurried_wait(&h, &updater, wait);
	wait_until((yields = yields_in_a_section()) != 0);
	assert_int_equal(yields, 1);
	held_end(&h);
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

static void nobody_yields_when_the_wait_is_over(void **state)
{
	struct held h;
	pthread_t updater;

	(void)state;
	begin_hurried_wait(&h, &updater, wait_expedited);
	held_end(&h);
	pthread_join(updater, NULL);
	assert_int_equal(yields_in_a_section(), 0);
}

/* Only the reader in the way is spoken to, and it is not made to yield. */
static void nobody_yields_to_a_plain_wait_when_yielding_is_off(void **state)
{
	struct held h;
	pthread_t updater;
	uint64_t before;

	(void)state;
	quiesce_set_yield(0);
	held_begin(&h, NULL);
	before = stats_now().sleeps;
	thread_must(pthread_create(&updater, NULL, wait_plain, NULL));
	wait_until(stats_now().sleeps > before + 2); /* it has had time to lose patience */
	assert_int_equal(yields_in_a_section(), 0);
	held_end(&h);
	pthread_join(updater, NULL);
	quiesce_set_yield(1);
}

/* ---- what the worker waits for ---- */

#define PATIENT_NS 10000000u /* so long it leaves readers alone, unless somebody waits */
#define TIMES 10
#define TRIES 200
static void do_nothing(struct rcu_head *head)
{
	(void)head;
}

/* More than the ceiling. */
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

/* From call_rcu() until readers are hurried, which one that sleeps keeps in the way; @other begins when the worker waits. */
static uint64_t ns_until_hurried(void *(*other)(void *))
{
	static struct rcu_head head;
	struct quiesce_stats before;
	uint64_t begun, ns;
	pthread_t thread;
	struct held h;

	rcu_barrier();
	held_begin(&h, NULL);
	before = stats_now();
	begun = now_ns();
	call_rcu(&head, do_nothing);
	wait_until(stats_now().sleeps > before.sleeps);
	if (other)
		thread_must(pthread_create(&thread, NULL, other, NULL));
	wait_until(stats_now().expedited > before.expedited);
	ns = now_ns() - begun;
	held_end(&h);
	if (other)
		pthread_join(thread, NULL);
	rcu_barrier();
	return ns;
}

static void nobody_yields_soon_for_garbage_alone(void **state)
{
	(void)state;
	for (int i = 0; i < TIMES; i++)
		assert_in_range(ns_until_hurried(NULL), PATIENT_NS, UINT64_MAX);
}

/* One time is enough: the worker alone never hurries anybody so early, and a machine with much else to do makes it later. */
static void readers_yield_sooner_where(void *(*other)(void *))
{
	for (int i = 0; i < TRIES; i++)
		if (ns_until_hurried(other) < PATIENT_NS)
			return;
	fail_msg("readers were left alone in %d of %d grace periods", TRIES, TRIES);
}

static void readers_yield_sooner_where_somebody_waits_for_callbacks(void **state)
{
	(void)state;
	readers_yield_sooner_where(wait_for_callbacks);
}

static void readers_yield_sooner_where_somebody_waits_for_the_next_grace_period(void **state)
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
		TEST(nobody_yields_when_the_wait_is_over),
		TEST(nobody_yields_to_a_plain_wait_when_yielding_is_off),
		TEST(nobody_yields_soon_for_garbage_alone),
		TEST(readers_yield_sooner_where_somebody_waits_for_callbacks),
		TEST(readers_yield_sooner_where_somebody_waits_for_the_next_grace_period),
		TEST(readers_yield_sooner_above_the_ceiling),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
