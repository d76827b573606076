/* SPDX-License-Identifier: MIT */
/* held_cell.c - a wait for one reader that stays long: the delay between
 * its end and the return, and the cost meanwhile. */
#include <quiesce/atomic.h>

#include "meter.h"
#include "rcuscale.h"
#include "team.h"

#define HELD_NS 100000000
#define POLL_NS 20000

enum phase { PHASE_FREE, PHASE_HELD, PHASE_OVER, PHASE_STOP };

struct hold {
	const struct op *op;
	uint32_t phase;
	uint64_t ended_ns; /* written by the holder, valid in PHASE_OVER */
};

static enum phase phase_of(const struct hold *h)
{
	/* raw: the test's own hand-over; acquire, with the release in set_phase(). */
	return (enum phase)__atomic_load_n(&h->phase, __ATOMIC_ACQUIRE);
}

static void set_phase(struct hold *h, enum phase phase)
{
	/* raw: release, with the acquire in phase_of(). */
	__atomic_store_n(&h->phase, (uint32_t)phase, __ATOMIC_RELEASE);
}

/* Waits for @phase or a later one, if the caller checks so late; returns the phase. */
static enum phase await(const struct hold *h, enum phase phase)
{
	enum phase now;

	while ((now = phase_of(h)) < phase)
		sleep_ns(POLL_NS);
	return now;
}

static void holder(struct member *m)
{
	struct hold *h = m->team->arg;

	op_thread_enter(h->op);
	op_sleep_begin(h->op);
	for (enum phase phase; (phase = phase_of(h)) != PHASE_STOP;) {
		if (phase != PHASE_FREE) {
			sleep_ns(POLL_NS);
			continue;
		}
		op_sleep_end(h->op);
		load_lock(h->op);
		set_phase(h, PHASE_HELD);
		sleep_ns(HELD_NS);
		h->ended_ns = now_ns();
		load_unlock(h->op);
		op_sleep_begin(h->op);
		set_phase(h, PHASE_OVER);
	}
	op_sleep_end(h->op);
	op_thread_exit(h->op);
}

/* Floors wait for no reader and have no row; for other types this is an error. */
static void complain(const struct op *op, uint64_t early_ns)
{
	if (op->pointer || op->object)
		job_send_note("WRONG: a wait returned %.1f ms before the end of a section that it should have waited for",
			      (double)early_ns / 1e6);
}

/* One wait while the holder is inside; false: it returned early. */
static bool wait_held(const struct job *job, struct hold *h, uint64_t *nr)
{
	uint64_t end, cpu;

	if (await(h, PHASE_HELD) != PHASE_HELD)
		return true; /* this thread had no CPU for the whole section: the next section counts */
	cpu = process_cpu_ns();
	job->op->wait->wait();
	cpu = process_cpu_ns() - cpu;
	end = now_ns();
	await(h, PHASE_OVER);
	if (end < h->ended_ns) {
		complain(job->op, h->ended_ns - end);
		return false;
	}
	job_send(SCENARIO_HELD, 1, job->round, (double)(end - h->ended_ns) / 1e3);
	job_send(SCENARIO_HELD_CPU, 1, job->round, (double)cpu / 1e3);
	job_flush();
	++*nr;
	return true;
}

void held_cell(const struct job *job)
{
	struct hold h = { .op = job->op, .phase = PHASE_OVER };
	struct team team = { .nr = 1, .body = holder, .arg = &h };
	uint64_t end = now_ns() + (uint64_t)(job->seconds * 1e9), n = 0;
	struct meter meter;
	struct costs costs;
	bool waits = true;

	team_start(&team);
	meter_read(&meter, job->op);
	op_thread_enter(job->op);
	while (waits && (n < 2 || now_ns() < end)) {
		set_phase(&h, PHASE_FREE);
		waits = wait_held(job, &h, &n);
	}
	op_thread_exit(job->op);
	costs = meter_since(&meter, job->op, (double)n);
	if (n)
		job_send_costs(SCENARIO_HELD, 1, &costs);
	set_phase(&h, PHASE_STOP);
	team_join(&team);
}
