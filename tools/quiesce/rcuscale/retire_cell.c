/* SPDX-License-Identifier: MIT */
/* retire_cell.c - deferred reclamation from end to end: malloc, call_rcu, grace period, free, barrier. */
#include <stdlib.h>

#include <quiesce/atomic.h>

#include "meter.h"
#include "rcuscale.h"
#include "team.h"

#define MAX_PRODUCERS 64
#define CLOCK_EVERY 256 /* objects between two reads of the clock */
#define POLL_NS 500000  /* pause between two samples of the garbage */

struct object {
	struct op_head head;
	char payload[64 - sizeof(struct op_head)];
};
_Static_assert(sizeof(struct object) == 64, "64-byte objects");

struct producer {
	uint64_t retired; /* written by its thread, read by the thread that samples the garbage */
} __attribute__((aligned(128)));

struct retirement {
	const struct op *op;
	uint64_t end_ns;
	uint32_t finished;
	struct spin_barrier barrier;
	struct producer producer[MAX_PRODUCERS];
};

static uint64_t freed __attribute__((aligned(128)));

static void free_object(struct op_head *head)
{
	free(head);
	(void)quiesce_fetch_add_relaxed(&freed, (uint64_t)1);
}

static void retire_one(const struct op *op)
{
	struct object *o = malloc(sizeof(*o));

	if (!o)
		abort();
	o->head.fn = free_object;
	op->retire->call(&o->head);
}

static void producer(struct member *m)
{
	struct retirement *r = m->team->arg;
	uint64_t n = 0;

	op_thread_enter(r->op);
	spin_barrier_wait(&r->barrier);
	do {
		for (int i = 0; i < CLOCK_EVERY; i++)
			retire_one(r->op);
		n += CLOCK_EVERY;
		quiesce_store_relaxed(&r->producer[m->index].retired, n);
	} while (now_ns() < r->end_ns);
	op_thread_exit(r->op);
	(void)quiesce_fetch_add_relaxed(&r->finished, (uint32_t)1);
}

static uint64_t retired(const struct retirement *r, int producers)
{
	uint64_t sum = 0;

	for (int i = 0; i < producers; i++)
		sum += quiesce_load_relaxed(&r->producer[i].retired);
	return sum;
}

/* The most garbage seen while the producers run. */
static uint64_t watch_garbage(struct retirement *r, int producers)
{
	uint64_t most = 0;

	while (quiesce_load_relaxed(&r->finished) < (uint32_t)producers) {
		uint64_t gone = quiesce_load_relaxed(&freed), made = retired(r, producers);

		if (made > gone && made - gone > most)
			most = made - gone;
		sleep_ns(POLL_NS);
	}
	return most;
}

void retire_cell(const struct job *job, int producers)
{
	struct retirement r = { .op = job->op, .end_ns = now_ns() + (uint64_t)(job->seconds * 1e9) };
	struct team team = { .nr = producers, .body = producer, .arg = &r };
	uint64_t begin, most;

	spin_barrier_init(&r.barrier, (uint32_t)producers);
	quiesce_store_relaxed(&freed, 0);
	begin = now_ns();
	team_start(&team);
	most = watch_garbage(&r, producers);
	team_join(&team);
	op_thread_enter(job->op);
	job->op->retire->barrier();
	op_thread_exit(job->op);
	begin = now_ns() - begin;
	if (quiesce_load_relaxed(&freed) != retired(&r, producers))
		job_send_note("LOST: %llu objects retired, %llu freed after the barrier",
			      (unsigned long long)retired(&r, producers), (unsigned long long)quiesce_load_relaxed(&freed));
	job_send(SCENARIO_RETIRE, producers, job->round, (double)retired(&r, producers) * 1e9 / (double)begin);
	job_send(SCENARIO_GARBAGE, producers, job->round, (double)most);
	job_flush();
}
