/* SPDX-License-Identifier: MIT */
/* hash_plan.h - the configuration of hashscale: keys, their distribution, updates. */
#ifndef QUIESCE_TOOL_HASH_PLAN_H
#define QUIESCE_TOOL_HASH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "tool.h"

#define HASH_MAX_SETS 4
#define HASH_MAX_UPDATES 6
#define HASH_MIN_KEYS 64
#define HASH_MAX_KEYS (1 << 28)
#define HASH_MAX_LINE 4096 /* longest line of a file of keys */
#define HASH_CELL_THREADS 1024
#define HASH_MAX_TURNOVERS 1000000

enum hash_distribution { HASH_UNIFORM, HASH_ZIPF, HASH_HOT, HASH_NR_DISTRIBUTIONS };

/* The set of keys is the first @nr of a generator, or the lines of a file. */
struct hash_set {
	char name[48]; /* as the user wrote it */
	char path[208]; /* empty: the keys are generated */
	uint64_t nr;
	bool dense; /* true: the keys are the numbers from 1 on, not scattered */
};

struct hash_plan {
	struct hash_set set[HASH_MAX_SETS];
	int nr_sets;
	double updates[HASH_MAX_UPDATES]; /* percent of updates */
	int nr_updates;
	enum hash_distribution distribution;
	uint64_t turnovers; /* times that each element is removed and inserted again, on average, before a cell is measured */
	bool resize;
	bool stall; /* walkscale: one more reader stays inside a lookup */
};

const char *hash_distribution_name(enum hash_distribution distribution);
/* Takes a value of --keys; a mistake is reported, and ends the program. */
void hash_plan_add_set(struct hash_plan *plan, const char *item);

/* The options of hashscale and walkscale. */
struct hash_options {
	struct hash_plan plan;
	uint64_t batch;        /* for walkscale */
	const struct op *base; /* for hashscale: the type that ratios are to */
	const char *figure;
};
extern const struct option_row hash_options_keys[], hash_options_figure[]; /* those that both have */

#endif
