/* SPDX-License-Identifier: MIT */
/* torture_other.c - threads beside the readers: writers, barriers, exits and signals. */
#include <signal.h>
#include <stdlib.h>

#include "torture.h"

#define BARRIER_CALLBACKS 16
#define BURST 16

/* ---- rcu_barrier(): every callback queued before it has run when it returns ---- */

static uint64_t barrier_ran;

static void barrier_callback(struct op_head *head)
{
	(void)head;
	(void)quiesce_fetch_add_relaxed(&barrier_ran, (uint64_t)1);
}

static void barrier_test(void)
{
	static struct op_head head[BARRIER_CALLBACKS]; /* the barrier must free them all for reuse */
	uint64_t random = 362436069;

	while (!torture_stopped()) {
		torture_stutter();
		quiesce_store_relaxed(&barrier_ran, 0);
		for (int i = 0; i < BARRIER_CALLBACKS; i++) {
			head[i].fn = barrier_callback;
			torture.op->retire->call(&head[i]);
		}
		torture.op->retire->barrier();
		if (quiesce_load_relaxed(&barrier_ran) != BARRIER_CALLBACKS) {
			torture_count(torture.barrier_errors);
			torture.op->retire->barrier();
			sleep_ns(100000000); /* let the late ones come in before their heads are used again */
		}
		torture_count(torture.barriers);
		sleep_ns(random_next(&random) % 5000000);
	}
}

/* ---- threads that read once and exit ---- */

static void *read_and_exit(void *arg)
{
	struct tally mine = { 0 };

	(void)arg;
	op_thread_enter(torture.op);
	torture_read_once(&mine);
	op_thread_exit(torture.op);
	/* What they find goes to the tally of its own; under the lock, they are many. */
	pthread_mutex_lock(&torture.lock);
	torture.exits++;
	torture.tally[torture.nr_readers].canary_errors += mine.canary_errors;
	torture.tally[torture.nr_readers].magic_errors += mine.magic_errors;
	torture.tally[torture.nr_readers].reuse_errors += mine.reuse_errors;
	for (int i = 0; i <= PIPE_LENGTH; i++)
		torture.tally[torture.nr_readers].pipe[i] += mine.pipe[i];
	pthread_mutex_unlock(&torture.lock);
	return NULL;
}

static void exit_bursts(void)
{
	uint64_t random = 521288629;

	while (!torture_stopped()) {
		pthread_t thread[BURST];
		int n = 0;

		torture_stutter();
		while (n < BURST && !pthread_create(&thread[n], NULL, read_and_exit, NULL))
			n++;
		while (n > 0)
			pthread_join(thread[--n], NULL);
		sleep_ns(random_next(&random) % 20000000);
	}
}

/* ---- signals that hit readers anywhere, and read themselves ---- */

static void signal_storm(void)
{
	uint64_t random = 88675123;

	while (!torture_stopped()) {
		torture_stutter();
		pthread_kill(torture.readers.thread[random_next(&random) % (uint64_t)torture.nr_readers], SIGUSR1);
		torture_count(torture.signals);
		sleep_ns(20000 + random % 200000);
	}
}

enum { ROLE_WRITER, ROLE_BARRIER, ROLE_EXITS, ROLE_SIGNALS, ROLE_FAKE };

int torture_nr_others(void)
{
	return ROLE_FAKE + NR_FAKE_WRITERS;
}

void torture_other(struct member *m)
{
	op_thread_enter(torture.op);
	switch (m->index) {
	case ROLE_WRITER: torture_writer(); break;
	case ROLE_BARRIER: barrier_test(); break;
	case ROLE_EXITS: exit_bursts(); break;
	case ROLE_SIGNALS: signal_storm(); break;
	default: torture_fake_writer((uint64_t)m->index);
	}
	op_thread_exit(torture.op);
}
