/* SPDX-License-Identifier: MIT */
/* callers_cell.c - several callers at once: what each waits, and whether they are treated alike. */
#include <stdlib.h>

#include "costs.h"
#include "rcuscale.h"
#include "team.h"

#define SAMPLES 1000 /* kept of each caller */

struct crowd {
	const struct op *op;
	uint64_t end_ns;
	struct gate gate;
	uint64_t nr[CALLERS]; /* each written by its caller, read after all have been joined */
	double sample[CALLERS][SAMPLES];
};

static void caller(struct member *m)
{
	struct crowd *c = m->team->arg;
	uint64_t n = 0;

	op_thread_enter(c->op);
	gate_pass(&c->gate);
	while (!n || now_ns() < c->end_ns) {
		uint64_t begin = now_ns();

		c->op->wait->wait();
		if (n < SAMPLES)
			c->sample[m->index][n] = (double)(now_ns() - begin) / 1e3;
		n++;
	}
	c->nr[m->index] = n;
	op_thread_exit(c->op);
}

static void send_crowd(const struct job *job, const struct crowd *c, const struct meter *meter)
{
	uint64_t sum = 0, least = UINT64_MAX;
	struct costs costs;

	for (int i = 0; i < CALLERS; i++) {
		sum += c->nr[i];
		least = c->nr[i] < least ? c->nr[i] : least;
		for (uint64_t n = 0; n < c->nr[i] && n < SAMPLES; n++)
			job_send(SCENARIO_CALLERS, CALLERS, job->round, c->sample[i][n]);
	}
	costs = meter_since(meter, job->op, (double)sum);
	job_send_costs(SCENARIO_CALLERS, CALLERS, &costs);
	job_send(SCENARIO_FAIRNESS, CALLERS, job->round, (double)least * CALLERS / (double)sum);
	job_flush();
}

void callers_cell(const struct job *job)
{
	struct crowd *c = calloc(1, sizeof(*c));
	struct team team = { .nr = CALLERS, .body = caller, .arg = c };
	struct load *load = load_start(job->op, SCENARIO_SAME, 1, false);
	struct meter meter;

	if (!c)
		abort();
	c->op = job->op;
	c->end_ns = now_ns() + (uint64_t)(job->seconds * 1e9);
	gate_init(&c->gate, CALLERS);
	meter_read(&meter, job->op);
	team_start(&team);
	team_join(&team);
	send_crowd(job, c, &meter);
	load_stop(load);
	free(c);
}
