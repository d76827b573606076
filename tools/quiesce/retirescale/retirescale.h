/* SPDX-License-Identifier: MIT */
/* retirescale.h - the parts of retirescale. */
#ifndef QUIESCE_TOOL_RETIRESCALE_H
#define QUIESCE_TOOL_RETIRESCALE_H

#include "emit.h"
#include "types/retire.h"

#define MAX_RETIRING 64 /* most threads */
#define MAX_BATCH (1 << 20)
#define MAX_BYTES 4096 /* most bytes of an object */

struct retire_options {
	uint64_t batch, bytes; /* 0: not given */
	bool scan;
	bool rates; /* only rates: single calls are not timed */
};

#define NR_SCAN_SIZES 4 /* 1e3, 1e4, 1e5 and 1e6 objects */
enum {
	SCENARIO_RETIRE_IDLE,
	SCENARIO_RETIRE_PUBLISHED,
	SCENARIO_RETIRE_BUSY,
	SCENARIO_RETIRE_GAP,
	SCENARIO_RETIRE_STALLED,
	NR_RETIRE_SCENARIOS,
	SCENARIO_RETIRE_SCAN = NR_RETIRE_SCENARIOS, /* cells of --scan, one for each size; the number of threads is that of slots in use */
	SCENARIO_RETIRE_END = SCENARIO_RETIRE_SCAN + NR_SCAN_SIZES
};
_Static_assert(SCENARIO_RETIRE_END <= MAX_SCENARIOS, "scenarios are bits");

/* Each cell has these metrics besides its rate. */
enum retire_metric {
	RETIRE_GARBAGE_FIRST = 1, /* most objects retired and not yet freed, in the first half of the window */
	RETIRE_GARBAGE_SECOND, /* most garbage in the second half */
	RETIRE_GARBAGE_MEAN,   /* mean garbage of all samples */
	RETIRE_DRAIN,          /* ms from the end of the window until all objects are freed */
	RETIRE_CAPPED,         /* 1: the window ended early, because there was too much garbage */
	RETIRE_CALLS,          /* number of calls timed, in a window of their own; the following metrics are ns */
	RETIRE_CALL_MEAN,
	RETIRE_CALL_P50,
	RETIRE_CALL_P99,
	RETIRE_CALL_P999,
	RETIRE_CALL_MAX,
	RETIRE_CALL_CAPPED,    /* as RETIRE_CAPPED, for the window of timed calls */
	RETIRE_CLOCK           /* median duration of an empty measurement */
};

static inline uint64_t scan_objects(int size)
{
	static const uint64_t objects[NR_SCAN_SIZES] = { 1000, 10000, 100000, 1000000 };

	return objects[size];
}

/* Each returns false after a loss, with a note.  @timed: the window is for single calls, else for the rate. */
bool retirescale_cell(const struct job *job, int scenario, int producers, bool timed);
bool retirescale_scan(const struct job *job);
/* True if all @retired objects are among @freed; if not, sends a note. */
bool retirescale_all_freed(uint64_t retired, uint64_t freed, const char *where);
uint64_t retirescale_freed(const struct op *op);
/* @nr empty histograms, which the caller frees with free(); NULL: out of memory. */
struct histogram *retirescale_histograms(int nr);
/* Sends the percentiles of all of them together. */
void retirescale_report_calls(const struct job *job, int scenario, int producers, struct histogram *ticks, double tick_ns);

extern const struct column retirescale_columns[];
extern const struct table_form retirescale_tables[];
int retirescale_threads(const struct cell *c);
void retirescale_print(FILE *out, const struct options *options, const struct results *results);

#endif
