/* SPDX-License-Identifier: MIT */
/* rwscale_burst.c - many write sections in a row, and their effect on readers. */
#include <math.h>
#include <stdlib.h>

#include <quiesce/atomic.h>

#include "meter.h"
#include "rwscale.h"

#define BURSTS 5      /* bursts in one round, if there is time */
#define LIMIT_S 1.0   /* limit of a burst; no burst begins later either */
#define SETTLE_NS 2000000 /* pause before a burst */

/* These counters are read before and after a burst. */
struct readings {
	struct meter meter;
	struct op_stats stats;
};

static void read_all(const struct op *op, struct readings *ret)
{
	if (op->stats)
		op->stats(&ret->stats);
	meter_read(&ret->meter, op);
}

/* The median wait of all readers; each has kept its last waits. */
static double median_wait(const struct contenders *c)
{
	size_t room = sizeof(struct waits) / sizeof(double), nr = 0;
	double *all = malloc(((size_t)c->readers + 1) * sizeof(struct waits)), median = NAN;

	for (int i = 0; all && i < c->readers; i++)
		for (size_t k = 0; k < room && k < c->reader[i].nr_waits; k++)
			all[nr++] = c->reader[i].waits->us[k];
	if (nr) {
		sort_values(all, nr);
		median = all[nr / 2];
	}
	free(all);
	return median;
}

static void send_metric(const struct job *job, const struct contenders *c, int scenario, enum rw_metric metric, double value)
{
	if (isfinite(value))
		job_send_metric(scenario, metric, c->readers, job->round, value);
}

/* Sends the waits of the readers over all bursts of the cell. */
static void report_readers(const struct job *job, const struct contenders *c, int scenario, int bursts)
{
	double quiet = 0, worst = 0, reads = 0;

	for (int i = 0; i < c->readers; i++) {
		const struct contender *r = &c->reader[i];

		quiet += r->quiet_ns / c->readers;
		worst = (double)r->worst_ns > worst ? (double)r->worst_ns : worst;
		reads += (double)r->reads;
	}
	if (!c->readers)
		return;
	send_metric(job, c, scenario, RW_QUIET, quiet);
	send_metric(job, c, scenario, RW_READS, reads / bursts);
	send_metric(job, c, scenario, RW_WAIT, median_wait(c));
	send_metric(job, c, scenario, RW_WORST, reads > 0 ? worst / 1e3 : NAN);
}

/* The writes of one burst; returns how many there were, at most @sections. */
static uint64_t write_all(struct contenders *c, uint64_t sections)
{
	uint64_t n = 0;

	do
		contenders_write(c);
	while (++n < sections && !contenders_is_cut(c));
	return n;
}

static uint64_t burst(const struct job *job, struct contenders *c, int scenario)
{
	struct readings before = { .stats = { 0 } }, after = { .stats = { 0 } };
	struct costs costs;
	uint64_t begin, end, n, sections = OWN(const struct rw_options, job)->sections;

	contenders_wait_until_fast(c);
	sleep_ns(SETTLE_NS);
	read_all(job->op, &before);
	quiesce_store_relaxed(&c->phase, (uint32_t)PHASE_BURST);
	begin = now_ns();
	quiesce_store_relaxed(&c->since, begin);
	n = write_all(c, sections ? sections : RW_SECTIONS_DEFAULT);
	end = now_ns();
	quiesce_store_relaxed(&c->since, (uint64_t)0);
	if (!contenders_is_cut(c))
		quiesce_store_relaxed(&c->phase, (uint32_t)PHASE_QUIET);
	costs = meter_since(&before.meter, job->op, (double)n);
	read_all(job->op, &after);
	job_send(scenario, c->readers, job->round, (double)(end - begin) / 1e6);
	send_metric(job, c, scenario, RW_SECTIONS, (double)n);
	send_metric(job, c, scenario, RW_CUT, contenders_is_cut(c));
	if (job->op->stats) {
		send_metric(job, c, scenario, RW_GRACE, (double)(after.stats.grace_periods - before.stats.grace_periods));
		send_metric(job, c, scenario, RW_MEMBARRIERS, (double)(after.stats.membarriers - before.stats.membarriers));
	}
	job_send_costs(scenario, c->readers, &costs);
	if (c->lock->fast && contenders_wait_until_fast(c))
		send_metric(job, c, scenario, RW_BACK, (double)(now_ns() - end) / 1e6);
	return n;
}

bool rwscale_burst(const struct job *job, int scenario, int readers)
{
	double limit = job->seconds > 0 ? job->seconds : LIMIT_S;
	struct contenders *c = contenders_start(job, scenario, readers, limit);
	struct bystanders bystanders;
	uint64_t begin = now_ns(), n = 0;
	int bursts = 0;
	bool good;

	if (!c)
		return false;
	bystanders_start(&bystanders, OWN(const struct rw_options, job)->bystanders);
	do
		n += burst(job, c, scenario);
	while (++bursts < BURSTS && !contenders_is_cut(c) && now_ns() - begin < (uint64_t)(limit * 1e9));
	bystanders_stop(&bystanders);
	report_readers(job, c, scenario, bursts);
	good = contenders_stop(c, rwscale_command.scenarios[scenario].name, n);
	job_flush();
	return good;
}
