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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(readers_yield_to_an_expedited_wait),
		TEST(readers_yield_to_a_plain_wait_in_the_end),
		TEST(nobody_yields_when_the_wait_is_over),
		TEST(nobody_yields_to_a_plain_wait_when_yielding_is_off),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
