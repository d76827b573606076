/* SPDX-License-Identifier: MIT */
/* rcuscale.h - the cells of rcuscale. */
#ifndef QUIESCE_TOOL_RCUSCALE_H
#define QUIESCE_TOOL_RCUSCALE_H

#include "load.h"
#include "tool.h"

enum {
	SCENARIO_IDLE,
	SCENARIO_SAME,
	SCENARIO_OTHERS,
	SCENARIO_DOCUMENT,
	SCENARIO_LONG,
	SCENARIO_HELD,
	SCENARIO_HELD_CPU,
	SCENARIO_CALLERS,
	SCENARIO_CALLERS0,
	SCENARIO_CALLERS2,
	SCENARIO_RATE, /* this and the next five: for CALLERS, CALLERS0, CALLERS2 */
	SCENARIO_RATE0,
	SCENARIO_RATE2,
	SCENARIO_FAIRNESS,
	SCENARIO_FAIRNESS0,
	SCENARIO_FAIRNESS2,
	SCENARIO_ALIVE,
	SCENARIO_HOGS,
	SCENARIO_BESIDE,
	SCENARIO_BESIDE_LONG,
	SCENARIO_RETIRE,
	SCENARIO_GARBAGE,
	NR_WAIT_SCENARIOS
};
_Static_assert(NR_WAIT_SCENARIOS <= MAX_SCENARIOS, "scenarios are bits");

#define CALLERS 8
#define ALIVE 1024
#define HOGS 2

/* wait_cell.c: times waits of @job->op while @readers threads do what @scenario says. */
void wait_cell(const struct job *job, int scenario, int readers);
/* held_cell.c measures the time from the end of one long section to the return of the wait for it. */
void held_cell(const struct job *job);
/* callers_cell.c runs CALLERS callers at once, with their rate and fairness; @scenario selects the readers beside them. */
void callers_cell(const struct job *job, int scenario);
/* reader_cell.c measures the loss of @readers beside an updater. */
void reader_cell(const struct job *job, int scenario, int readers);
/* retire_cell.c measures the throughput of deferred reclamation with @producers threads. */
void retire_cell(const struct job *job, int producers);

#endif
