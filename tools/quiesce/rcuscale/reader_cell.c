/* SPDX-License-Identifier: MIT */
/* reader_cell.c - what readers lose by waits for others: their rate beside an updater, divided by their rate without. */
#include <quiesce/atomic.h>
#include <stdlib.h>

#include "rcuscale.h"
#include "team.h"

#define LONG_NS 20000000u /* length of a section; each piece of a cell has time for two waits for it */
#define GAP_NS 2000000u
#define PIECES 6          /* pieces with an updater and without, in turn */

struct count {
	uint64_t nr __attribute__((aligned(128)));
};

struct readers {
	const struct op *op;
	bool long_one; /* true: the sections of the last thread are long */
	int nr;        /* threads whose sections are counted */
	uint32_t stop;
	uint64_t sum;
	struct spin_barrier barrier;
	struct count *count;
};

/* Relaxed throughout: readers share nothing with the thread that starts and stops them. */
static void sections(struct readers *r, struct count *count)
{
	uint64_t sum = 0;

	while (!quiesce_load_relaxed(&r->stop)) {
		sum += load_sections(r->op);
		quiesce_store_relaxed(&count->nr, count->nr + LOAD_SECTIONS);
	}
	(void)quiesce_fetch_add_relaxed(&r->sum, sum); /* keeps the compiler from removing the loop */
}

static void long_sections(struct readers *r)
{
	while (!quiesce_load_relaxed(&r->stop)) {
		uint64_t end = now_ns() + LONG_NS;

		load_lock(r->op);
		while (now_ns() < end)
			;
		load_unlock(r->op);
		op_sleep_begin(r->op);
		sleep_ns(GAP_NS);
		op_sleep_end(r->op);
	}
}

/* The reader with long sections and the updater share the first CPU. */
static void reader(struct member *m)
{
	struct readers *r = m->team->arg;

	if (r->long_one)
		bind_cpu(m->index == r->nr ? 0 : 1 % cpus_online());
	op_thread_enter(r->op);
	spin_barrier_wait(&r->barrier);
	if (m->index == r->nr)
		long_sections(r);
	else
		sections(r, &r->count[m->index]);
	op_thread_exit(r->op);
}

static uint64_t done(const struct readers *r)
{
	uint64_t sum = 0;

	for (int i = 0; i < r->nr; i++)
		sum += quiesce_load_relaxed(&r->count[i].nr);
	return sum;
}

/* Sections per second; @waits: beside an updater that waits back to back. */
static double rate(const struct job *job, const struct readers *r, bool waits)
{
	uint64_t begin = now_ns(), end = begin + (uint64_t)(job->seconds * 1e9 / PIECES), before = done(r);

	if (end < begin + 2 * LONG_NS && r->long_one)
		end = begin + 2 * LONG_NS;
	do
		if (waits)
			job->op->wait->wait();
		else
			sleep_ns(end - now_ns() < GAP_NS ? end - now_ns() : GAP_NS);
	while (now_ns() < end);
	return (double)(done(r) - before) * 1e9 / (double)(now_ns() - begin);
}

void reader_cell(const struct job *job, int scenario, int readers)
{
	struct readers r = { .op = job->op, .long_one = scenario == SCENARIO_BESIDE_LONG, .nr = readers };
	struct team team = { .nr = readers + r.long_one, .body = reader, .arg = &r };
	double with = 0, without = 0;

	r.count = aligned_alloc(128, (size_t)readers * sizeof(*r.count));
	if (!r.count)
		abort();
	for (int i = 0; i < readers; i++)
		r.count[i].nr = 0;
	spin_barrier_init(&r.barrier, (uint32_t)team.nr + 1);
	if (r.long_one)
		bind_cpu(0);
	if (team_start(&team)) {
		op_thread_enter(job->op);
		spin_barrier_wait(&r.barrier);
		for (int i = 0; i < PIECES; i++)
			*(i % 2 ? &with : &without) += rate(job, &r, i % 2);
		op_thread_exit(job->op);
		job_send(scenario, readers, job->round, with / without);
		job_flush();
	}
	quiesce_store_relaxed(&r.stop, 1);
	team_join(&team);
	bind_cpu(-1);
	free(r.count);
}
