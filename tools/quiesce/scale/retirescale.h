/* SPDX-License-Identifier: MIT */
/* retirescale.h - the parts of retirescale. */
#ifndef QUIESCE_TOOL_RETIRESCALE_H
#define QUIESCE_TOOL_RETIRESCALE_H

#include "ops/retire.h"
#include "tool.h"

#define NR_RETIRE_SCENARIOS (SCENARIO_RETIRE_END - SCENARIO_RETIRE_IDLE)
#define NR_SCAN_SIZES 4 /* 1e3 .. 1e6 objects */

/* What is measured of each cell besides its rate. */
enum retire_metric {
	RETIRE_GARBAGE_FIRST,  /* most objects retired and not yet freed, in the first half of the window, */
	RETIRE_GARBAGE_SECOND, /* and in the second */
	RETIRE_DRAIN,          /* ms from the end of the window to the end of everything */
	RETIRE_CAPPED,         /* 1: the window ended early, there was too much garbage */
	RETIRE_CALLS,          /* how many were timed, in a window of their own; what follows is ns */
	RETIRE_CALL_MEAN,
	RETIRE_CALL_P50,
	RETIRE_CALL_P99,
	RETIRE_CALL_P999,
	RETIRE_CALL_MAX,
	RETIRE_CALL_CAPPED,    /* as RETIRE_CAPPED, of that window */
	RETIRE_CLOCK,          /* of a measurement with nothing in it, median */
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

/* Each false after a loss, with a note.  With @timed the window is for single calls, else for the rate. */
bool retirescale_cell(const struct job *job, enum scenario scenario, int producers, bool timed);
bool retirescale_scan(const struct job *job);
/* Did all @retired end in @freed?  False, with a note, if not. */
bool retirescale_all_freed(uint64_t retired, uint64_t freed, const char *where);
uint64_t retirescale_freed(const struct op *op);
/* @nr empty ones, to be freed with free(); NULL: out of memory. */
struct histogram *retirescale_histograms(int nr);
/* Send what they say, in one. */
void retirescale_tell_calls(const struct job *job, enum scenario scenario, int producers, struct histogram *ticks, double tick_ns);

bool retirescale_is_row(const struct cell *c);
void retirescale_columns(struct json_t *row, const struct results *results, const struct cell *c);
/* The most garbage of any round, in objects; NAN: not known. */
double retirescale_peak(const struct results *results, const struct cell *c);
void retirescale_emit(FILE *out, const struct options *options, const struct job *base, const struct results *results);

#endif
