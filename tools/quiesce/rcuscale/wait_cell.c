/* SPDX-License-Identifier: MIT */
/* wait_cell.c - the duration of one wait, and its cost. */
#include "meter.h"
#include "rcuscale.h"
#include "samples.h"
#include "team.h"

#define MIN_SAMPLES 3
#define MAX_SAMPLES 5000 /* samples kept of one cell in one round; all waits are counted */
#define BURST 16
#define BURST_NS 200000 /* a burst of longer waits ends after this time */

struct burst {
	uint64_t begin;
	int nr;
	uint64_t random;
};

static double time_wait_us(const struct op *op)
{
	uint64_t begin = now_ns();

	op->wait->wait();
	return (double)(now_ns() - begin) / 1e3;
}

/* Beside running readers there is a random pause between waits: a caller that continues at once finds the readers
 * where its last wait left them, outside their sections.  Short waits come in bursts, because with a pause before
 * each the caches would be cold, and the result would be a measure of the pause. */
static void pause_between(int scenario, struct burst *b)
{
	if (scenario == SCENARIO_IDLE || scenario == SCENARIO_ALIVE)
		return;
	if (++b->nr < BURST && now_ns() - b->begin < BURST_NS)
		return;
	sleep_ns(50000 + random_next(&b->random) % 200000);
	b->nr = 0;
	b->begin = now_ns();
}

/* One caller waits until the budget is used up and there are enough samples. */
static void call(const struct job *job, int scenario, int readers)
{
	static double kept[MAX_SAMPLES];
	struct samples samples = { .value = kept, .room = MAX_SAMPLES };
	uint64_t end = now_ns() + (uint64_t)(job->seconds * 1e9);
	struct meter meter;
	struct burst burst = { .begin = now_ns(), .random = 88172645463325252u + job->round };
	struct costs costs;

	meter_read(&meter, job->op);
	while (samples.seen < MIN_SAMPLES || now_ns() < end) {
		samples_add(&samples, time_wait_us(job->op));
		pause_between(scenario, &burst);
	}
	costs = meter_since(&meter, job->op, (double)samples.seen);
	for (uint64_t i = 0; i < samples.nr; i++)
		job_send(scenario, readers, job->round, kept[i]);
	job_send_costs(scenario, readers, &costs);
	job_flush();
}

static enum load_kind kind_of(int scenario)
{
	switch (scenario) {
	case SCENARIO_IDLE:
	case SCENARIO_ALIVE: return LOAD_ASLEEP;
	case SCENARIO_OTHERS: return LOAD_OTHERS;
	case SCENARIO_DOCUMENT: return LOAD_OWN;
	case SCENARIO_LONG: return LOAD_LONG;
	default: return LOAD_SAME;
	}
}

/* If there are enough CPUs, each thread is bound to one; the caller has the first. */
void wait_cell(const struct job *job, int scenario, int readers)
{
	bool running = scenario == SCENARIO_SAME || scenario == SCENARIO_OTHERS || scenario == SCENARIO_DOCUMENT;
	bool pinned = running && readers < cpus_online();
	struct load *load = load_start(job->op, kind_of(scenario), readers, pinned, scenario == SCENARIO_HOGS ? HOGS : 0);

	if (pinned)
		bind_cpu(0);
	op_thread_enter(job->op);
	call(job, scenario, readers);
	op_thread_exit(job->op);
	bind_cpu(-1);
	load_stop(load);
}
