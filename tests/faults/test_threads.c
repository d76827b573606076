/* SPDX-License-Identifier: MIT */
/* test_threads.c - many threads: one after the other, all at once, and threads with small stacks. */
#include "../unit/testing.h"
#include "small_stack.h"
#include "use.h"

#include <limits.h>
#include <sys/mman.h>

/* The library makes its registry usable in pieces by mprotect(); this program watches. */
#define PIECE_MAX (1u << 20)
static int nr_pieces;

int mprotect(void *start, size_t length, int protection)
{
	if (length <= PIECE_MAX && protection == (PROT_READ | PROT_WRITE))
		count_up(&nr_pieces);
	return (int)syscall(SYS_mprotect, start, length, protection);
}

static void *read_and_queue(void *total)
{
	struct use_object *o = use_new();

	for (int i = 0; i < 10; i++)
		use_reader();
	if (o)
		call_rcu(&o->rcu, use_run);
	if (use_reader())
		count_up((int *)total);
	return NULL;
}

/* A registry that forgot one thread in ten would need another piece. */
static void ten_thousand_threads_come_and_go(void **state)
{
	enum { AT_ONCE = 8, ROUNDS = 10000 / AT_ONCE };
	uint32_t before = stats_now().readers;
	pthread_t thread[AT_ONCE];
	int total = 0, pieces = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		threads_begin(thread, AT_ONCE, read_and_queue, &total);
		threads_end(thread, AT_ONCE);
		if (round == 0)
			pieces = flag_get(&nr_pieces);
	}
	assert_int_equal(total, ROUNDS * AT_ONCE);
	assert_true(pieces > 0); /* otherwise the test has measured nothing */
	assert_int_equal(flag_get(&nr_pieces), pieces);
	assert_int_equal(stats_now().readers, before);
	rcu_barrier();
	assert_int_equal(use_nr_run, total);
	assert_int_equal(stats_now().garbage_objects, 0);
}

/* Memory of the queues of exited threads is returned to the system. */
static long resident_kib(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	if (fscanf(file, "%*d %ld", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void exited_threads_leave_no_memory(void **state)
{
	pthread_t thread;
	long before = 0;
	int total = 0;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		thread_must(pthread_create(&thread, NULL, read_and_queue, &total));
		pthread_join(thread, NULL);
		if (i % 100 == 0)
			rcu_barrier();
		if (i == 500)
			before = resident_kib();
	}
	rcu_barrier();
	assert_in_range(resident_kib(), 0, before + 2048);
}

enum { MANY = 1100 };
static sem_t all_leave;
static int nr_inside, nr_good;

static void *stay_inside(void *unused)
{
	(void)unused;
	rcu_read_lock();
	count_up(&nr_inside);
	wait_for(&all_leave);
	rcu_read_unlock();
	if (use_reader())
		count_up(&nr_good);
	return NULL;
}

static void *synchronize_main(void *done)
{
	synchronize_rcu();
	flag_set((int *)done);
	return NULL;
}

static void eleven_hundred_threads_are_inside(void **state)
{
	static pthread_t thread[MANY];
	uint32_t before = stats_now().readers;
	uint64_t sleeps;
	pthread_attr_t attr = small_stack();
	pthread_t waiter;
	int done = 0;

	(void)state;
	sem_init(&all_leave, 0, 0);
	for (int i = 0; i < MANY; i++)
		thread_must(pthread_create(&thread[i], &attr, stay_inside, NULL));
	wait_until(flag_get(&nr_inside) == MANY);
	assert_int_equal(stats_now().readers, before + MANY);
	sleeps = stats_now().sleeps;
	thread_must(pthread_create(&waiter, NULL, synchronize_main, &done));
	wait_until(stats_now().sleeps > sleeps);
	assert_int_equal(flag_get(&done), 0);
	for (int i = 0; i < MANY; i++)
		sem_post(&all_leave);
	pthread_join(waiter, NULL);
	threads_end(thread, MANY);
	assert_int_equal(nr_good, MANY);
	assert_int_equal(stats_now().readers, before);
	pthread_attr_destroy(&attr);
}

static void *use_in_little_space(void *ok)
{
	*(int *)ok = use_everything();
	return NULL;
}

static void the_smallest_stack_suffices(void **state)
{
	(void)state;
	suffices_for(use_in_little_space);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(ten_thousand_threads_come_and_go),
		TEST(exited_threads_leave_no_memory),
		TEST(eleven_hundred_threads_are_inside),
		TEST(the_smallest_stack_suffices),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
