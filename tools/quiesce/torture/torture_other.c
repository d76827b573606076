/* SPDX-License-Identifier: MIT */
/* torture_other.c - threads beside the readers: writers, barriers, exits and signals. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "torture.h"

#define BARRIER_CALLBACKS 16
#define FLOOD_CALLBACKS 30000
#define BURST 16

/* ---- rcu_barrier(): every callback queued before it has run, once, when it returns ---- */

struct counted {
	struct op_head head;
	uint64_t ran; /* number of times that its callback has run */
};

static void barrier_callback(struct op_head *head)
{
	torture_count(((struct counted *)head)->ran);
}

/* Queues @nr callbacks; @in_section: from inside one section, where the library may not throttle the caller. */
static void queue_callbacks(struct counted *c, uint64_t nr, bool in_section)
{
	if (in_section)
		torture.op->read->lock();
	for (uint64_t i = 0; i < nr; i++) {
		c[i].head.fn = barrier_callback;
		quiesce_store_relaxed(&c[i].ran, 0);
		torture.op->retire->call(&c[i].head);
	}
	if (in_section)
		torture.op->read->unlock();
}

/* Each callback must have run once.  After an error, waits for late callbacks before their heads are reused. */
static void check_callbacks(struct counted *c, uint64_t nr)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < nr; i++)
		wrong += quiesce_load_relaxed(&c[i].ran) != 1;
	if (!wrong)
		return;
	quiesce_store_relaxed(&torture.barrier_errors, torture.barrier_errors + wrong);
	torture.op->retire->barrier();
	sleep_ns(100000000);
}

/* Mostly a few callbacks, now and then so many that every queue overflows. */
void torture_barriers(uint32_t index)
{
	struct counted *c = calloc(FLOOD_CALLBACKS, sizeof(*c));
	uint64_t random = 362436069 + index;

	if (!c)
		abort();
	while (!torture_stopped()) {
		uint64_t r = random_next(&random) >> 5;
		bool flood = r % 16 == 0;
		uint64_t nr = flood ? FLOOD_CALLBACKS : BARRIER_CALLBACKS;

		torture_stutter();
		queue_callbacks(c, nr, r / 16 % 2);
		torture.op->retire->barrier();
		check_callbacks(c, nr);
		torture_count(torture.barriers);
		if (flood)
			torture_count(torture.floods);
		sleep_ns(r % 5000000);
	}
	free(c);
}

/* ---- threads that read once and exit, and read again while they exit ---- */

static struct tally burst_tally[BURST];
static __thread int reads_in_exit;
static pthread_key_t exit_key;

/* Some of these run before the library's own exit handler and some after it. */
static void read_in_exit(void *arg)
{
	struct tally *mine = arg;

	torture_once(mine, &mine->random, 500);
	if (reads_in_exit-- > 0)
		pthread_setspecific(exit_key, mine);
}

static void *read_and_exit(void *arg)
{
	struct tally *mine = arg;
	uint64_t random = 521288629u + (uint64_t)(mine - burst_tally) +
			  quiesce_load_relaxed(&torture.exits);

	mine->random = random;
	for (int i = 0; i < 4; i++)
		torture_once(mine, &random, random_next(&random) >> 3 & 2047);
	torture_leave_hold(mine, &random);
	reads_in_exit = 2;
	pthread_setspecific(exit_key, mine);
	return NULL;
}

/* Adds the results of these threads to the tally that no other thread uses. */
static void merge(const struct tally *t)
{
	struct tally *sum = torture_extra(0);

	for (int i = 0; i < NR_TALLY; i++)
		quiesce_store_relaxed(&sum->n[i], sum->n[i] + t->n[i]);
}

void torture_exits(uint32_t index)
{
	uint64_t random = 521288629 + index;

	if (pthread_key_create(&exit_key, read_in_exit))
		abort();
	while (!torture_stopped()) {
		pthread_t thread[BURST];
		int n = 0;

		torture_stutter();
		memset(burst_tally, 0, sizeof(burst_tally));
		while (n < BURST && !pthread_create(&thread[n], NULL, read_and_exit, &burst_tally[n]))
			n++;
		while (n-- > 0) {
			pthread_join(thread[n], NULL);
			merge(&burst_tally[n]);
			torture_count(torture.exits);
		}
		sleep_ns(random_next(&random) % 20000000);
	}
}

/* ---- signals that interrupt readers anywhere, whose handlers read ---- */

void torture_signals(uint32_t index)
{
	uint64_t random = 88675123 + index;

	while (!torture_stopped()) {
		torture_stutter();
		pthread_kill(torture.readers.thread[random_next(&random) % (uint64_t)torture.nr_readers], SIGUSR1);
		torture_count(torture.signals);
		sleep_ns(20000 + random % 200000);
	}
}

/* ---- the roles of threads ---- */

int torture_nr_others(void)
{
	int nr = 0;

	for (const struct torture_role *role = torture.kind->roles; role->nr; role++)
		nr += (int)role->nr;
	return nr;
}

void torture_other(struct member *m)
{
	const struct torture_role *role = torture.kind->roles;
	uint32_t index = (uint32_t)m->index;

	for (; index >= role->nr; role++)
		index -= role->nr;
	op_thread_enter(torture.op);
	role->run(index);
	op_thread_exit(torture.op);
	torture_leave();
}
