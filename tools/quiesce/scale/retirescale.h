/* SPDX-License-Identifier: MIT */
/* retirescale.h - the parts of retirescale. */
#ifndef QUIESCE_TOOL_RETIRESCALE_H
#define QUIESCE_TOOL_RETIRESCALE_H

#include "types/retire.h"
#include "tool.h"

#define NR_RETIRE_SCENARIOS (SCENARIO_RETIRE_END - SCENARIO_RETIRE_IDLE)
#define NR_SCAN_SIZES 4 /* 1e3, 1e4, 1e5 and 1e6 objects */

/* Each cell has these metrics besides its rate. */
enum retire_metric {
	RETIRE_GARBAGE_FIRST,  /* most objects retired and not yet freed, in the first half of the window */
	RETIRE_GARBAGE_SECOND, /* most garbage in the second half */
	RETIRE_DRAIN,          /* ms from the end of the window until all objects are freed */
	RETIRE_CAPPED,         /* 1: the window ended early, because there was too much garbage */
	RETIRE_CALLS,          /* number of calls timed, in a window of their own; the following metrics are ns */
	RETIRE_CALL_MEAN,
	RETIRE_CALL_P50,
	RETIRE_CALL_P99,
	RETIRE_CALL_P999,
	RETIRE_CALL_MAX,
	RETIRE_CALL_CAPPED,    /* as RETIRE_CAPPED, for the window of timed calls */
	RETIRE_CLOCK,          /* median duration of an empty measurement */
	NR_RETIRE_METRICS
};
_Static_assert(NR_RETIRE_METRICS * NR_RETIRE_SCENARIOS + NR_SCAN_SIZES <= NR_SCENARIOS - SCENARIO_MORE,
	       "numbers of scenarios");

static inline enum scenario retire_more(enum retire_metric metric, enum scenario scenario)
{
	return (enum scenario)(SCENARIO_MORE + (int)metric * NR_RETIRE_SCENARIOS + (int)scenario - SCENARIO_RETIRE_IDLE);
}

/* Cells of --scan; their number of threads is the number of slots in use. */
static inline enum scenario scan_scenario(int size)
{
	return (enum scenario)(SCENARIO_MORE + NR_RETIRE_METRICS * NR_RETIRE_SCENARIOS + size);
}

static inline uint64_t scan_objects(int size)
{
	static const uint64_t objects[NR_SCAN_SIZES] = { 1000, 10000, 100000, 1000000 };

	return objects[size];
}

/* Each returns false after a loss, with a note.  @timed: the window is for single calls, else for the rate. */
bool retirescale_cell(const struct job *job, enum scenario scenario, int producers, bool timed);
bool retirescale_scan(const struct job *job);
/* True if all @retired objects are among @freed; if not, sends a note. */
bool retirescale_all_freed(uint64_t retired, uint64_t freed, const char *where);
uint64_t retirescale_freed(const struct op *op);
/* @nr empty histograms, which the caller frees with free(); NULL: out of memory. */
struct histogram *retirescale_histograms(int nr);
/* Sends the percentiles of all of them together. */
void retirescale_report_calls(const struct job *job, enum scenario scenario, int producers, struct histogram *ticks, double tick_ns);

bool retirescale_is_row(const struct cell *c);
void retirescale_columns(struct json_t *row, const struct results *results, const struct cell *c);
/* Returns the most garbage of any round, in objects; NAN: unknown. */
double retirescale_peak(const struct results *results, const struct cell *c);
void retirescale_emit(FILE *out, const struct options *options, const struct job *base, const struct results *results);

#endif
