/* SPDX-License-Identifier: MIT */
/* callers_cell.c - several callers at once: the waits of each, and whether all of them get the same share. */
#include <stdlib.h>

#include "meter.h"
#include "rcuscale.h"
#include "samples.h"
#include "team.h"

#define SAMPLES 1000 /* samples kept for each caller */

/* These objects are for callers that wait for an object of their own. */
static struct op_item own[CALLERS];

struct callers {
	const struct op *op;
	bool own; /* true: each caller waits for its own object */
	uint64_t end_ns;
	struct spin_barrier barrier;
	struct samples samples[CALLERS]; /* each is written by its caller, and read after all callers have been joined */
	double kept[CALLERS][SAMPLES];
};

static void wait_once(const struct callers *c, int index)
{
	if (c->own && c->op->object)
		c->op->object->wait(&own[index]);
	else
		c->op->wait->wait();
}

static void caller(struct member *m)
{
	struct callers *c = m->team->arg;
	struct samples samples = { .value = c->kept[m->index], .room = SAMPLES };

	op_thread_enter(c->op);
	spin_barrier_wait(&c->barrier);
	while (!samples.seen || now_ns() < c->end_ns) {
		uint64_t begin = now_ns();

		wait_once(c, m->index);
		samples_add(&samples, (double)(now_ns() - begin) / 1e3);
	}
	c->samples[m->index] = samples;
	op_thread_exit(c->op);
}

/* The metrics that a scenario sends, and the number of readers beside the callers. */
static const struct variety {
	int scenario, rate, fairness;
	enum load_kind load;
	int readers;
} varieties[] = {
	{ SCENARIO_CALLERS, SCENARIO_RATE, SCENARIO_FAIRNESS, LOAD_SAME, 1 },
	{ SCENARIO_CALLERS0, SCENARIO_RATE0, SCENARIO_FAIRNESS0, LOAD_OTHERS, 0 },
	{ SCENARIO_CALLERS2, SCENARIO_RATE2, SCENARIO_FAIRNESS2, LOAD_OTHERS, 2 },
};

static const struct variety *variety_of(int scenario)
{
	size_t i = 0;

	while (varieties[i].scenario != scenario)
		i++;
	return &varieties[i];
}

static void send_callers(const struct job *job, const struct variety *v, const struct callers *c, const struct meter *meter)
{
	uint64_t sum = 0, least = UINT64_MAX;
	struct costs costs;

	for (int i = 0; i < CALLERS; i++) {
		const struct samples *mine = &c->samples[i];

		sum += mine->seen;
		least = mine->seen < least ? mine->seen : least;
		for (uint64_t n = 0; n < mine->nr; n++)
			job_send(v->scenario, CALLERS, job->round, mine->value[n]);
	}
	costs = meter_since(meter, job->op, (double)sum);
	job_send_costs(v->scenario, CALLERS, &costs);
	job_send(v->rate, CALLERS, job->round, (double)sum / costs.seconds);
	job_send(v->fairness, CALLERS, job->round, (double)least * CALLERS / (double)sum);
	job_flush();
}

void callers_cell(const struct job *job, int scenario)
{
	const struct variety *v = variety_of(scenario);
	struct callers *c = calloc(1, sizeof(*c));
	struct team team = { .nr = CALLERS, .body = caller, .arg = c };
	struct load *load = load_start(job->op, v->load, v->readers, false, 0);
	struct meter meter;

	if (!c)
		abort();
	c->op = job->op;
	c->own = scenario != SCENARIO_CALLERS;
	c->end_ns = now_ns() + (uint64_t)(job->seconds * 1e9);
	spin_barrier_init(&c->barrier, CALLERS);
	meter_read(&meter, job->op);
	team_start(&team);
	team_join(&team);
	send_callers(job, v, c, &meter);
	load_stop(load);
	free(c);
}
