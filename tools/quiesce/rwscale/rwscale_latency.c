/* SPDX-License-Identifier: MIT */
/* rwscale_latency.c - how long a writer waits for the lock. */
#include "rwscale.h"
#include "samples.h"

#define CELL_S 0.3
#define STARVED_S 0.5 /* a writer that waits longer is starved, and readers stop */
#define MIN_SAMPLES 3
#define MAX_SAMPLES 5000
#define PAUSE_NS 1000000 /* pause between rare writes, for locks whose readers have one path only */

static void pause_between(const struct contenders *c, int scenario)
{
	if (scenario != SCENARIO_RW_RARE)
		return;
	sleep_ns(PAUSE_NS);
	contenders_wait_until_fast(c);
}

bool rwscale_latency(const struct job *job, int scenario, int readers)
{
	static double kept[MAX_SAMPLES];
	struct samples samples = { .value = kept, .room = MAX_SAMPLES };
	struct contenders *c = contenders_start(job, scenario, readers, STARVED_S);
	uint64_t end = now_ns() + (uint64_t)((job->seconds > 0 ? job->seconds : CELL_S) * 1e9);
	bool cut = false, good;

	if (!c)
		return false;
	c->each_wait = true;
	while (!cut && (samples.seen < MIN_SAMPLES || now_ns() < end)) {
		pause_between(c, scenario);
		samples_add(&samples, (double)contenders_write(c) / 1e3);
		cut = contenders_is_cut(c);
	}
	for (uint64_t i = 0; i < samples.nr; i++)
		job_send(scenario, readers, job->round, kept[i]);
	job_send_metric(scenario, RW_CUT, readers, job->round, cut);
	good = contenders_stop(c, rwscale_command.scenarios[scenario].name, samples.seen);
	job_flush();
	return good;
}
