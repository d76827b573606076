/* SPDX-License-Identifier: MIT */
/* retirescale_latency.c - the duration of single calls that retire an object.
 *
 * They are timed in windows of their own, after those for the rate: the clock would reduce the rate.
 */
#include <stdlib.h>
#include <string.h>

#include "retirescale.h"

struct histogram *retirescale_histograms(int nr)
{
	size_t size = (size_t)nr * sizeof(struct histogram);
	struct histogram *h = aligned_alloc(_Alignof(struct histogram), size);

	if (h)
		memset(h, 0, size); /* makes the kernel allocate the pages, too */
	return h;
}

void retirescale_report_calls(const struct job *job, int scenario, int producers, struct histogram *ticks, double tick_ns)
{
	static const struct {
		enum retire_metric metric;
		double p;
	} quantiles[] = { { RETIRE_CALL_P50, 0.5 }, { RETIRE_CALL_P99, 0.99 }, { RETIRE_CALL_P999, 0.999 } };
	struct histogram *all = &ticks[0];

	for (int i = 1; i < producers; i++)
		histogram_merge(all, &ticks[i]);
	if (!all->nr)
		return;
	job_send_metric(scenario, RETIRE_CALLS, producers, job->round, (double)all->nr);
	job_send_metric(scenario, RETIRE_CALL_MEAN, producers, job->round, (double)all->sum / (double)all->nr * tick_ns);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		job_send_metric(scenario, quantiles[i].metric, producers, job->round,
			 (double)histogram_quantile(all, quantiles[i].p) * tick_ns);
	job_send_metric(scenario, RETIRE_CALL_MAX, producers, job->round, (double)all->max * tick_ns);
	job_send_metric(scenario, RETIRE_CLOCK, producers, job->round, (double)stopwatch_cost() * tick_ns);
}
