/* SPDX-License-Identifier: MIT */
/* test_wakeups.c - a long section beside many short ones: the updater's wake-ups, and its interruptions of readers, are bounded. */
#include <urcu/urcu-mb.h>

#include "../unit/watched.h"

#include <quiesce/control.h>

#define HOLD_NS 100000000u
#define ROUND_NS 1000000u /* the longest time that src/urcu/urcu_words.c backs off for */

static uint32_t inside, left;
static uint64_t nr_short;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t nr_sleeps(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	return stats.sleeps;
}

static void *long_section(void *unused)
{
	uint64_t begun = now_ns();

	(void)unused;
	urcu_mb_register_thread();
	urcu_mb_read_lock();
	flag_set(&inside);
	while (now_ns() - begun < HOLD_NS)
		short_rest();
	flag_set(&left);
	urcu_mb_read_unlock();
	urcu_mb_unregister_thread();
	return NULL;
}

static void *short_sections(void *unused)
{
	(void)unused;
	urcu_mb_register_thread();
	while (!flag_get(&left)) {
		urcu_mb_read_lock();
		urcu_mb_read_unlock();
		count_up(&nr_short);
	}
	urcu_mb_unregister_thread();
	return NULL;
}

/* Eight wake-ups are free.  Then each round is two sleeps, and a quarter longer than the wait was, until it has a millisecond. */
static uint64_t most_sleeps(uint64_t waited_ns)
{
	uint64_t rounds = waited_ns / ROUND_NS;

	for (uint64_t ns = 1000; ns < 4 * (uint64_t)ROUND_NS; ns += ns / 4)
		rounds++;
	return 8 + 2 + 2 * rounds; /* two further readers may have delayed it */
}

static void short_sections_wake_seldom(void **state)
{
	pthread_t holds, busy;
	uint64_t begun, sleeps;

	(void)state;
	thread_must(pthread_create(&holds, NULL, long_section, NULL));
	thread_must(pthread_create(&busy, NULL, short_sections, NULL));
	wait_until(flag_get(&inside) && flag_get(&nr_short));
	sleeps = nr_sleeps();
	begun = now_ns();
	urcu_mb_synchronize_rcu();
	assert_true(flag_get(&left));
	assert_in_range(nr_sleeps() - sleeps, 0, most_sleeps(now_ns() - begun));
	pthread_join(holds, NULL);
	pthread_join(busy, NULL);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(short_sections_wake_seldom),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
