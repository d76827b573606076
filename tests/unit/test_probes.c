/* SPDX-License-Identifier: MIT */
/* test_probes.c - how often a lasting wait probes, by a system call, whether threads still exist. */
#define _GNU_SOURCE
#include "testing.h"

#include <stdarg.h>
#include <sys/syscall.h>

#define NR_IDLE 64
#define PROBE_NS 1000000000u /* pause between two probes: QUIESCE_REAP_NS of src/runtime/readers.h */

static int nr_probes;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
	long arg[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_tgkill && !arg[2])
		count_up(&nr_probes);
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

static sem_t ready, end;

static void *is_idle(void *arg)
{
	rcu_read_lock();
	rcu_read_unlock();
	sem_post(&ready);
	wait_for(&end);
	return arg;
}

static void *waits(void *ret_ns)
{
	uint64_t begun = now_ns();

	synchronize_rcu();
	*(uint64_t *)ret_ns = now_ns() - begun;
	return NULL;
}

static void only_the_reader_in_the_way_is_asked_for(void **state)
{
	pthread_t idle[NR_IDLE], waiter;
	struct held reader;
	uint64_t ns;

	(void)state;
	for (int i = 0; i < NR_IDLE; i++) {
		thread_must(pthread_create(&idle[i], NULL, is_idle, NULL));
		wait_for(&ready);
	}
	held_begin(&reader, NULL);
	thread_must(pthread_create(&waiter, NULL, waits, &ns));
	wait_until(flag_get(&nr_probes) >= 2);
	held_end(&reader);
	pthread_join(waiter, NULL);
	assert_in_range(nr_probes, 2, ns / PROBE_NS);
	for (int i = 0; i < NR_IDLE; i++)
		sem_post(&end);
	threads_end(idle, NR_IDLE);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(only_the_reader_in_the_way_is_asked_for),
	};

	sem_init(&ready, 0, 0);
	sem_init(&end, 0, 0);
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
