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
void torture_barriers(void)
{
	struct counted *c = calloc(FLOOD_CALLBACKS, sizeof(*c));
	uint64_t random = 362436069;

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

/* ---- sections of signal handlers and of threads that exit ---- */

void torture_once(struct tally *t, uint64_t *random, uint64_t spins)
{
	if (torture.kind && torture.kind->once)
		torture.kind->once(t, random, spins);
	else if (torture.op->object)
		torture_object_once(t, random, spins);
	else
		torture_read_once(t, spins);
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
	/* Leaves a guard or lock that outlives its thread. */
	if (torture.kind && torture.kind->leave)
		torture.kind->leave(mine, &random);
	else if (torture.op->object)
		torture_object_leave(mine, &random);
	reads_in_exit = 2;
	pthread_setspecific(exit_key, mine);
	return NULL;
}

/* Adds the results of these threads to the last tally, which no other thread uses. */
static void merge(const struct tally *t)
{
	struct tally *sum = &torture.tally[torture.nr_readers];

	quiesce_store_relaxed(&sum->reads, sum->reads + t->reads);
	quiesce_store_relaxed(&sum->handed_over, sum->handed_over + t->handed_over);
	quiesce_store_relaxed(&sum->canary_errors, sum->canary_errors + t->canary_errors);
	quiesce_store_relaxed(&sum->magic_errors, sum->magic_errors + t->magic_errors);
	quiesce_store_relaxed(&sum->reuse_errors, sum->reuse_errors + t->reuse_errors);
	for (int i = 0; i <= PIPE_LENGTH; i++) {
		quiesce_store_relaxed(&sum->pipe[i], sum->pipe[i] + t->pipe[i]);
		quiesce_store_relaxed(&sum->batch[i], sum->batch[i] + t->batch[i]);
	}
}

void torture_exits(void)
{
	uint64_t random = 521288629;

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

void torture_signals(void)
{
	uint64_t random = 88675123;

	while (!torture_stopped()) {
		torture_stutter();
		pthread_kill(torture.readers.thread[random_next(&random) % (uint64_t)torture.nr_readers], SIGUSR1);
		torture_count(torture.signals);
		sleep_ns(20000 + random % 200000);
	}
}

/* ---- the roles of threads ---- */

static const struct torture_role rcu_roles[] = {
	{ torture_writer, NULL, 0 }, { torture_barriers, NULL, 0 }, { torture_exits, NULL, 0 }, { torture_signals, NULL, 0 },
	{ NULL, torture_fake_writer, 0 }, { NULL, torture_fake_writer, 1 },
};

static const struct torture_role object_roles[] = {
	{ NULL, torture_object_writer, 0 }, { NULL, torture_object_writer, 1 }, { NULL, torture_object_writer, 2 },
	{ torture_exits, NULL, 0 }, { torture_signals, NULL, 0 }, { torture_postman, NULL, 0 },
	{ NULL, torture_object_fake_writer, 0 }, { NULL, torture_object_fake_writer, 1 },
};

static const struct torture_role retired_object_roles[] = {
	{ NULL, torture_object_writer, 0 }, { NULL, torture_object_writer, 1 }, { NULL, torture_object_writer, 2 },
	{ torture_exits, NULL, 0 }, { torture_signals, NULL, 0 }, { torture_postman, NULL, 0 },
	{ NULL, torture_object_fake_writer, 0 }, { NULL, torture_object_fake_writer, 1 }, { torture_barriers, NULL, 0 },
};

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const struct torture_role *roles(int *ret_nr)
{
	const struct op *op = torture.op;

	if (torture.kind) {
		*ret_nr = torture.kind->nr_roles;
		return torture.kind->roles;
	}
	*ret_nr = !op->object ? COUNT(rcu_roles) : op->retire ? COUNT(retired_object_roles) : COUNT(object_roles);
	return !op->object ? rcu_roles : op->retire ? retired_object_roles : object_roles;
}

int torture_nr_others(void)
{
	int nr;

	roles(&nr);
	return nr;
}

bool torture_has_writer(int index)
{
	if (torture.kind)
		return torture.kind->writers >> index & 1;
	if (index == PROGRESS_CHURN)
		return false;
	return torture.op->object || index == 0 || index >= NR_POINTERS;
}

void torture_other(struct member *m)
{
	int nr;
	const struct torture_role *role = &roles(&nr)[m->index];

	op_thread_enter(torture.op);
	if (role->run)
		role->run();
	else
		role->run_one(role->index);
	op_thread_exit(torture.op);
	torture_leave();
}
