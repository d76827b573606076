/* SPDX-License-Identifier: MIT */
/* costs.h - the basic operations of a machine, one row each. */
#ifndef QUIESCE_TOOL_COSTS_H
#define QUIESCE_TOOL_COSTS_H

#include "emit.h"

struct cost_options {
	bool all_pairs; /* transfer between all pairs of CPUs */
};

enum { SCENARIO_COST };
/* A cell has this metric beside its time: the number of bytes walked over. */
#define COST_BYTES 1
/* For a row about two CPUs this number, which names both, stands in the place of the number of threads. */
#define COST_CPUS 4096
#define COST_PAIR(a, b) (((int)(a) + 1) * COST_CPUS + (int)(b))
#define COST_PAIR_A(pair) ((pair) / COST_CPUS - 1)
#define COST_PAIR_B(pair) ((pair) % COST_CPUS)

struct cost {
	struct op op; /* name and description */
	/* Sends samples of job->round.  Returns 0, or EXIT_UNAVAILABLE after a note. */
	int (*measure)(const struct cost *cost, const struct job *job);
	/* For operations that need only a loop: executes @turns turns of
	 * @per_turn operations; @measure is cost_simple() then. */
	void (*batch)(uint64_t turns);
	double per_turn;
	double article, article_max; /* ns in 2003, on a 700 MHz Pentium III; 0: no figure, or no range of figures */
};

/* Define a cost of @symbol_batch(), whose turns are of @turn operations; and one of a loop around @statement. */
#define COST(symbol, label, text, turn, ...) \
	const struct cost cost_##symbol = { .op = { .name = label, .what = text }, .measure = cost_simple, \
					    .batch = symbol##_batch, .per_turn = turn, ##__VA_ARGS__ }
#define COST_LOOP(symbol, label, text, statement, ...)          \
	static void symbol##_batch(uint64_t turns)              \
	{                                                       \
		while (turns--)                                 \
			statement;                              \
	}                                                       \
	COST(symbol, label, text, 1, ##__VA_ARGS__)

int cost_simple(const struct cost *cost, const struct job *job);
/* Returns the number of turns of @batch that take about @ns. */
uint64_t cost_calibrate(void (*batch)(uint64_t turns), uint64_t ns);
/* True, or false after a note, if there are two CPUs. */
bool cost_two_cpus(void);
/* The number of the @index-th CPU that this process may use. */
int cost_cpu_number(int index);

/* The units of all rows; they are measured whatever --type names. */
extern const struct cost cost_cycle, cost_instruction, cost_l1;
extern const struct cost cost_l2, cost_l2_huge, cost_l3, cost_l3_huge, cost_memory, cost_memory_huge;
extern const struct cost cost_atomic_inc, cost_cmpxchg_inc, cost_spin_lock, cost_mutex;
extern const struct cost cost_transfer, cost_atomic_inc_two;
extern const struct cost cost_fence_light, cost_fence_acq_rel, cost_fence_full, cost_fence_mfence, cost_fence_xchg,
	cost_fence_seq_cst;
extern const struct cost cost_membarrier_idle, cost_membarrier_busy, cost_wake_empty, cost_wake_call, cost_wake_run;
extern const struct cost cost_syscall, cost_yield, cost_clock, cost_tsc;

extern const struct column costs_columns[];
int costs_threads(const struct cell *c);
void costs_print(FILE *out, const struct options *options, const struct results *results);

#endif
