/* SPDX-License-Identifier: MIT */
/* hash_plan.h - what a run of hashscale is about: keys, their distribution, updates. */
#ifndef QUIESCE_TOOL_HASH_PLAN_H
#define QUIESCE_TOOL_HASH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define HASH_MAX_SETS 4
#define HASH_MAX_UPDATES 6
#define HASH_MIN_KEYS 64
#define HASH_MAX_KEYS (1 << 28)
#define HASH_MAX_LINE 4096 /* characters of a key in a file */
#define HASH_CELL_THREADS 1024
#define HASH_MAX_TURNOVERS 1000000

enum hash_distribution { HASH_UNIFORM, HASH_ZIPF, HASH_HOT, HASH_NR_DISTRIBUTIONS };

/* Keys from a generator (@nr of them), or from the lines of a file. */
struct hash_set {
	char name[48]; /* as asked for */
	char path[208]; /* empty: generated */
	uint64_t nr;
	bool dense; /* the numbers from 1 on, not scattered */
};

struct hash_plan {
	struct hash_set set[HASH_MAX_SETS];
	int nr_sets;
	double updates[HASH_MAX_UPDATES]; /* percent */
	int nr_updates;
	enum hash_distribution distribution;
	uint64_t turnovers; /* how often each element was removed and inserted again, in the mean, before a cell is measured */
	bool resize;
	bool stall; /* of walkscale: one reader more stays inside */
};

const char *hash_distribution_name(enum hash_distribution distribution);
/* What --keys, --distribution say; a mistake is told of, and ends the program. */
void hash_plan_add_set(struct hash_plan *plan, const char *item);
enum hash_distribution hash_plan_distribution(const char *item);

#endif
