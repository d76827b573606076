/* SPDX-License-Identifier: MIT */
/* test_clock.c - the clock stands still, as under tools that fake the time for programs: timeouts and delays still end. */
#define _GNU_SOURCE
#include "../unit/testing.h"

#include <quiesce/hazptr.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/srcu.h>

/* ---- the clock ---- */

static int stands_still;
static struct timespec still;

/* Replaces clock_gettime() for the whole process, including the library. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (!flag_get(&stands_still))
		return (int)syscall(SYS_clock_gettime, clock, ret);
	*ret = still;
	return 0;
}

static uint64_t true_ns(void)
{
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A call lasts its time, and not less, by a clock that runs. */
#define LIMIT 100000000u
#define lasts(call)                                          \
	do {                                                 \
		uint64_t since = true_ns();                  \
		assert_true(call);                           \
		assert_true(true_ns() - since >= LIMIT / 2); \
	} while (0)

static int clock_stops(void **state)
{
	testing_setup(state);
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &still);
	flag_set(&stands_still);
	return 0;
}

static int clock_goes_on(void **state)
{
	quiesce_store_relaxed(&stands_still, 0);
	return testing_teardown(state);
}

#define STILL(f) cmocka_unit_test_prestate_setup_teardown(f, clock_stops, clock_goes_on, (void *)(uintptr_t)#f)

/* ---- the end of the library ---- */

struct object { struct rcu_head rcu; struct hazptr_head hazptr; };

static int nr_run;

static void run_rcu(struct rcu_head *unused)
{
	(void)unused;
	count_up(&nr_run);
}

static void run_hazptr(struct hazptr_head *unused)
{
	(void)unused;
	count_up(&nr_run);
}

static void a_shutdown_beside_a_reader_ends(void **state)
{
	static struct object object;
	struct held reader;

	(void)state;
	nr_run = 0;
	held_begin(&reader, NULL);
	call_rcu(&object.rcu, run_rcu);
	lasts(quiesce_shutdown(LIMIT) == -ETIMEDOUT);
	held_end(&reader);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(nr_run, 1);
}

static void a_shutdown_beside_a_protection_ends(void **state)
{
	static struct object object;
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)state;
	assert_non_null(slot);
	hazptr_set(slot, &object.hazptr);
	call_hazptr(&object.hazptr, run_hazptr);
	lasts(quiesce_shutdown(LIMIT) == -ETIMEDOUT);
	hazptr_free(NULL, slot);
	assert_int_equal(quiesce_shutdown(0), 0);
}

DEFINE_STATIC_SRCU(domain);

static void a_shutdown_beside_a_section_ends(void **state)
{
	static struct object object;
	int idx = srcu_read_lock(&domain);

	(void)state;
	call_srcu(&domain, &object.rcu, run_rcu);
	lasts(quiesce_shutdown(LIMIT) == -ETIMEDOUT);
	srcu_read_unlock(&domain, idx);
	assert_int_equal(quiesce_shutdown(0), 0);
}

/* ---- locks ---- */

DEFINE_STATIC_PERCPU_RWSEM(lock);

static void a_lock_is_not_had_after_a_while(void **state)
{
	(void)state;
	percpu_down_read(&lock);
	lasts(!percpu_down_write_timeout(&lock, LIMIT));
	percpu_up_read(&lock);
	percpu_down_write(&lock);
	lasts(!percpu_down_read_timeout(&lock, LIMIT));
	percpu_up_write(&lock);
}

/* The helper makes readers fast again after some milliseconds. */
static void readers_are_fast_again(void **state)
{
	(void)state;
	percpu_down_write(&lock);
	percpu_up_write(&lock);
	wait_until(!quiesce_load_relaxed(&lock.rss.gp_state));
	percpu_free_rwsem(&lock);
}

/* ---- waits for readers that leave after a while ---- */

static void *leaves_late(void *unused)
{
	int idx = srcu_read_lock(&domain);

	percpu_down_read(&lock);
	flag_set(&nr_run);
	for (int i = 0; i < 100; i++)
		short_rest();
	percpu_up_read(&lock);
	srcu_read_unlock(&domain, idx);
	return unused;
}

static void readers_that_leave_are_waited_for(void **state)
{
	pthread_t thread;

	(void)state;
	nr_run = 0;
	thread_must(pthread_create(&thread, NULL, leaves_late, NULL));
	wait_until(flag_get(&nr_run));
	percpu_down_write(&lock);
	percpu_up_write(&lock);
	synchronize_srcu(&domain);
	synchronize_rcu();
	pthread_join(thread, NULL);
	percpu_free_rwsem(&lock);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		STILL(a_shutdown_beside_a_reader_ends),
		STILL(a_shutdown_beside_a_protection_ends),
		STILL(a_shutdown_beside_a_section_ends),
		STILL(a_lock_is_not_had_after_a_while),
		STILL(readers_are_fast_again),
		STILL(readers_that_leave_are_waited_for),
		TEST(a_shutdown_beside_a_reader_ends),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
