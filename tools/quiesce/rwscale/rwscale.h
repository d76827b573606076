/* SPDX-License-Identifier: MIT */
/* rwscale.h - the parts of rwscale. */
#ifndef QUIESCE_TOOL_RWSCALE_H
#define QUIESCE_TOOL_RWSCALE_H

#include "emit.h"
#include "types/rwlock.h"
#include "team.h"

#define RW_SECTIONS_DEFAULT 2000

struct rw_options {
	uint64_t sections; /* write sections in a burst; 0: not given */
	int bystanders;
	bool latency;
};
#define RW_WORK_NS 1500 /* work of a write section */

enum { SCENARIO_RW_SPARSE, SCENARIO_RW_DENSE, SCENARIO_RW_RARE, SCENARIO_RW_OFTEN, NR_RW_SCENARIOS };
_Static_assert(NR_RW_SCENARIOS <= MAX_SCENARIOS, "scenarios are bits");

/* Each cell has these metrics besides its time. */
enum rw_metric {
	RW_SECTIONS = 1, /* write sections in a burst */
	RW_QUIET,       /* ns: cost of a read section before the burst */
	RW_WAIT,        /* us: how long readers wait for the lock during the burst, median */
	RW_WORST,       /* us: the longest of these waits */
	RW_BACK,        /* ms: from the end of the burst until readers are fast again */
	RW_GRACE,       /* grace periods of RCU during a burst */
	RW_MEMBARRIERS, /* membarriers during a burst */
	RW_READS,       /* read sections during a burst */
	RW_CUT          /* 1: a time limit ended the burst */
};

/* ---- rwscale_bystanders.c: threads that read under RCU and do not use the lock ---- */

struct bystanders {
	uint32_t stop;
	uint32_t turns; /* turns of a loop in each section */
	struct team team;
};
void bystanders_start(struct bystanders *b, int nr);
void bystanders_stop(struct bystanders *b);

/* ---- rwscale_contenders.c: readers of a lock, and a watcher that ends their reading if the writer starves ---- */

enum { PHASE_QUIET, PHASE_BURST, PHASE_STOP }; /* phases of the readers, which note their waits in BURST */

struct contender {
	uint64_t reads;     /* read sections during bursts */
	uint64_t worst_ns;  /* longest wait for the lock during bursts */
	double quiet_ns;
	struct contenders *contenders;
	struct waits {
		double us[128];
	} *waits;
	uint64_t nr_waits;
} __attribute__((aligned(128)));

struct contenders {
	const struct rwlock_op *lock;
	bool sparse;
	int readers;
	uint32_t turns;    /* turns of a loop in a write section */
	uint64_t limit_ns; /* limit, counted from @since; then readers stop, because the writer may never get the lock */
	uint32_t phase;
	uint32_t broken;   /* readers that saw a half-made change of a writer */
	bool each_wait;    /* true: @since is the begin of the writer's current wait for the lock; false: the caller sets it */
	uint64_t since;    /* 0: there is no limit now */
	uint32_t cut;
	uint32_t over;
	uint64_t first, second; /* guarded by the lock: equal, except while a writer is between the two stores */
	struct contender *reader;
	struct spin_barrier barrier;
	struct team team;
};

/* Starts the readers and lets them measure their cost without a writer; the caller is the writer.  NULL: no memory. */
struct contenders *contenders_start(const struct job *job, int scenario, int readers, double limit_s);
/* One write section; returns how long the caller waited for the lock. */
uint64_t contenders_write(struct contenders *c);
/* Waits until readers are fast.  True: they are, or the lock has no slow path. */
bool contenders_wait_until_fast(const struct contenders *c);
bool contenders_is_cut(const struct contenders *c);
/* Stops the readers.  False, after a note: a reader was inside together with the writer. */
bool contenders_stop(struct contenders *c, const char *where, uint64_t sections);

/* Each returns false if contenders_stop() did. */
bool rwscale_burst(const struct job *job, int scenario, int readers);
bool rwscale_latency(const struct job *job, int scenario, int readers);

extern const struct column rwscale_columns[];
extern const struct table_form rwscale_tables[];
/* Returns the microseconds for each write section. */
double rwscale_section_us(const struct results *results, const struct cell *c);

#endif
