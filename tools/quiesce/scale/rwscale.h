/* SPDX-License-Identifier: MIT */
/* rwscale.h - the parts of rwscale. */
#ifndef QUIESCE_TOOL_RWSCALE_H
#define QUIESCE_TOOL_RWSCALE_H

#include "ops/rwlock.h"
#include "team.h"
#include "tool.h"

#define RW_SECTIONS_DEFAULT 2000
#define RW_WORK_NS 1500 /* of a write section */

/* What is measured of each cell besides its time. */
enum rw_metric {
	RW_SECTIONS,    /* write sections in a burst */
	RW_QUIET,       /* ns: what a read section costs before the burst */
	RW_WAIT,        /* us: how long readers wait for the lock during the burst, median, */
	RW_WORST,       /* and the longest */
	RW_BACK,        /* ms: from the end of the burst until readers are fast again */
	RW_GRACE,       /* grace periods of RCU during a burst */
	RW_MEMBARRIERS, /* the same of membarriers */
	RW_READS,       /* read sections during a burst */
	RW_CUT,         /* 1: a time limit ended it */
	NR_RW_METRICS
};
#define NR_RW_SCENARIOS (SCENARIO_RW_END - SCENARIO_RW_SPARSE)
_Static_assert(NR_RW_METRICS * NR_RW_SCENARIOS <= NR_SCENARIOS - SCENARIO_MORE, "numbers of scenarios");
_Static_assert(SCENARIO_RW_END <= 32, "scenarios are bits");

static inline enum scenario rw_more(enum rw_metric metric, enum scenario scenario)
{
	return (enum scenario)(SCENARIO_MORE + (int)metric * NR_RW_SCENARIOS + (int)scenario - SCENARIO_RW_SPARSE);
}

/* ---- rwscale_bystanders.c: threads that read under RCU, and have nothing to do with the lock ---- */

struct bystanders {
	uint32_t stop;
	uint32_t turns; /* of a section */
	struct team team;
};
void bystanders_start(struct bystanders *b, int nr);
void bystanders_stop(struct bystanders *b);

/* ---- rwscale_crowd.c: readers of a lock, and somebody who sees to it that the writer gets it ---- */

enum { CROWD_QUIET, CROWD_BURST, CROWD_STOP }; /* what readers are told: their waits are noted in BURST */

struct crowd_reader {
	uint64_t reads;     /* in bursts */
	uint64_t worst_ns;  /* wait for the lock, in bursts */
	double quiet_ns;
	struct crowd *crowd;
	struct waits {
		double us[128];
	} *waits;
	uint64_t nr_waits;
} __attribute__((aligned(128)));

struct crowd {
	const struct rwlock_op *lock;
	bool sparse;
	int readers;
	uint32_t turns;    /* the work of a write section */
	uint64_t limit_ns; /* from @since on; then readers stop, because the writer may never get in */
	uint32_t phase;
	uint32_t broken;   /* readers that saw half of what a writer did */
	bool each_wait;    /* @since is when the writer began to wait for the lock, else what the caller says */
	uint64_t since;    /* 0: the limit is not on */
	uint32_t cut;
	uint32_t over;
	uint64_t first, second; /* under the lock: the same, except while a writer is between them */
	struct crowd_reader *reader;
	struct gate gate;
	struct team team;
};

/* Readers are there, and have told what they pay while nobody writes; the caller is the writer.  NULL: no memory. */
struct crowd *crowd_start(const struct job *job, enum scenario scenario, int readers, double limit_s);
/* One write section; how long the caller waited for the lock. */
uint64_t crowd_write(struct crowd *c);
/* Wait until readers are fast; true: they are, or the lock has no such thing. */
bool crowd_wait_until_fast(const struct crowd *c);
bool crowd_is_cut(const struct crowd *c);
/* Readers go.  False, with a note, if anybody was inside together with the writer. */
bool crowd_stop(struct crowd *c, const char *where, uint64_t sections);

/* Each false after that. */
bool rwscale_burst(const struct job *job, enum scenario scenario, int readers);
bool rwscale_latency(const struct job *job, enum scenario scenario, int readers);

bool rwscale_is_row(const struct cell *c);
void rwscale_columns(struct json_t *row, const struct results *results, const struct cell *c);
void rwscale_emit(FILE *out, const struct options *options, const struct results *results);
/* The median of @metric; NAN: there is none. */
double rwscale_metric(const struct results *results, const struct cell *c, enum rw_metric metric);
/* Microseconds for each section. */
double rwscale_section_us(const struct results *results, const struct cell *c);

#endif
