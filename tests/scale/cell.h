/* SPDX-License-Identifier: MIT */
/* cell.h - one measurement: a workload on a number of CPUs, by a number of threads. */
#ifndef SCALE_CELL_H
#define SCALE_CELL_H

#include "workload.h"

struct cell {
	const struct workload *workload;
	int cpus, callers, threads, cpus_of_socket;
	enum reader reader;
	uint64_t seed;
	/* results */
	uint64_t ops, total_ps; /* those of all callers together */
	uint64_t counts[SCALE_NR_GROUPS][SCALE_NR_COUNTS];
	uint64_t freed_ps;         /* from the first call until all objects are freed */
	uint64_t most_waiting;     /* objects that were retired and not freed */
};

const struct workload *cell_workload(const char *name); /* "group/name" */
int cell_list(void);
void cell_run(struct cell *cell); /* once in a process */
bool cell_run_apart(struct cell *cell); /* in a child; false: it has failed */
void cell_print(const struct cell *cell);
double cell_per_op(const struct cell *cell, enum scale_group group, enum scale_count count);
double cell_whole(const struct cell *cell, enum scale_count count); /* with the library's threads, and the wait at the end */
int cell_check_pins(uint64_t seed, bool all); /* else without those that depend on the stay of lines */
int cell_check_shows(const char *name, uint64_t seed);

#endif
