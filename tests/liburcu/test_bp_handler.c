/* SPDX-License-Identifier: MIT */
/* test_bp_handler.c - a handler that reads registers its thread, which may be an updater that is just scanning readers.  A failure is
 * a deadlock. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#define NR_IDLE 1000 /* gives the updater a long scan */
#define NR_ROUNDS 3000

void urcu_bp_read_lock(void);
void urcu_bp_read_unlock(void);
void urcu_bp_synchronize_rcu(void);

static pthread_barrier_t registered, over, started;

static void handler(int signal)
{
	(void)signal;
	urcu_bp_read_lock();
	urcu_bp_read_unlock();
}

static void *idle(void *unused)
{
	urcu_bp_read_lock();
	urcu_bp_read_unlock();
	pthread_barrier_wait(&registered);
	pthread_barrier_wait(&over);
	return unused;
}

static void *updater(void *unused)
{
	pthread_barrier_wait(&started);
	for (int i = 0; i < 30; i++)
		urcu_bp_synchronize_rcu();
	return unused;
}

static void start(pthread_t *thread, void *(*fn)(void *))
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	if (pthread_create(thread, &attr, fn, NULL))
		abort();
	pthread_attr_destroy(&attr);
}

/* Send the signal a little later in the updater's wait each time. */
static void interrupt_updater(uint32_t delay)
{
	pthread_t thread;

	start(&thread, updater);
	pthread_barrier_wait(&started);
	for (volatile uint32_t i = 0; i < delay; i++) /* raw: nothing but a delay */
		;
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
}

int main(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	pthread_t threads[NR_IDLE];

	sigaction(SIGUSR1, &action, NULL);
	pthread_barrier_init(&registered, NULL, NR_IDLE + 1);
	pthread_barrier_init(&over, NULL, NR_IDLE + 1);
	pthread_barrier_init(&started, NULL, 2);
	for (int i = 0; i < NR_IDLE; i++)
		start(&threads[i], idle);
	pthread_barrier_wait(&registered);
	for (uint32_t i = 0; i < NR_ROUNDS; i++)
		interrupt_updater(i % 50 * 100);
	pthread_barrier_wait(&over);
	for (int i = 0; i < NR_IDLE; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
