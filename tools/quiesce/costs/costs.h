/* SPDX-License-Identifier: MIT */
/* costs.h - the basic operations of a machine, one row each. */
#ifndef QUIESCE_TOOL_COSTS_H
#define QUIESCE_TOOL_COSTS_H

#include "tool.h"

/* Beside the time of one operation: the bytes that it walked over. */
#define SCENARIO_COST_BYTES SCENARIO_MORE
/* In the place of the number of threads, of a row about two CPUs: which. */
#define COST_CPUS 4096
#define COST_PAIR(a, b) (((int)(a) + 1) * COST_CPUS + (int)(b))
#define COST_PAIR_A(pair) ((pair) / COST_CPUS - 1)
#define COST_PAIR_B(pair) ((pair) % COST_CPUS)

struct cost {
	struct op op; /* name and what it is */
	/* Send samples of job->round; 0, or EXIT_UNAVAILABLE with a note. */
	int (*measure)(const struct cost *cost, const struct job *job);
	/* Those that need nothing but a loop: do it @turns times, with @per_turn operations in each; measure is cost_simple(). */
	void (*batch)(uint64_t turns);
	double per_turn;
	double article, article_max; /* ns in 2003, of a 700 MHz Pentium III; 0: not given, or no range */
};

int cost_simple(const struct cost *cost, const struct job *job);
/* How many turns of @batch take about @ns. */
uint64_t cost_calibrate(void (*batch)(uint64_t turns), uint64_t ns);
/* The number of the @index-th CPU that this process may use. */
int cost_cpu_number(int index);

/* What it is measured in; they are measured whatever is asked for. */
extern const struct cost cost_cycle, cost_instruction, cost_l1;
extern const struct cost cost_l2, cost_l2_huge, cost_l3, cost_l3_huge, cost_memory, cost_memory_huge;
extern const struct cost cost_atomic_inc, cost_cmpxchg_inc, cost_spin_lock, cost_mutex;
extern const struct cost cost_transfer, cost_atomic_inc_two;
extern const struct cost cost_fence_light, cost_fence_acq_rel, cost_fence_full, cost_fence_mfence, cost_fence_xchg,
	cost_fence_seq_cst;
extern const struct cost cost_membarrier_idle, cost_membarrier_busy, cost_wake_nobody, cost_wake_call, cost_wake_run;
extern const struct cost cost_syscall, cost_yield, cost_clock, cost_tsc;

bool costs_is_row(const struct cell *c);
void costs_columns(struct json_t *row, const struct results *results, const struct cell *c);
void costs_emit(FILE *out, const struct options *options, const struct results *results);

#endif
