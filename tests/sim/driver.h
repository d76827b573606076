/* SPDX-License-Identifier: MIT */
/* driver.h - the command line that all simulator programs share. */
#ifndef QUIESCE_TESTS_SIM_DRIVER_H
#define QUIESCE_TESTS_SIM_DRIVER_H

#include "platform/sim/sim.h"

struct sim_search {
	uint64_t first, seeds;
	double seconds;        /* 0: no limit */
	/* results */
	uint64_t runs, steps, unfinished, saw, failing_seed;
	double elapsed;
	bool failed;
	char failure[512];
};

/* Number of readers that a scenario starts: --readers. */
extern int driver_readers;

/* Start @nr threads that call @fn. */
static inline void spawn_each(int nr, void (*fn)(void *), const char *name)
{
	while (nr-- > 0)
		sim_spawn(fn, NULL, name);
}

/* Differences between scenarios. */
void without_membarrier(void);
void without_rseq(void);
void without_threads(void); /* no further thread can be started */
void with_many_cpus(void);  /* one for every thread */

/* Run @search->seeds seeds or until one fails; @options->length adapts as runs show how long they are. */
void driver_search(const struct sim_scenario *scenario, struct sim_options *options, struct sim_search *search);

/* main() of a program with the scenarios of @tables: NULL ends the tables, a scenario without a name each of them. */
int driver_main(int argc, char **argv, const struct sim_scenario *const *tables);

extern const char *const driver_model_name[SIM_NR_MODELS];
extern const char *const driver_sched_name[SIM_NR_SCHEDS];

#endif
