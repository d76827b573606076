/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * hazptr_scan.h - interface between the scan, the walk over slots and the
 * reports of stalls, private to hazptr.ko.
 */
#ifndef QUIESCE_HAZPTR_SCAN_H
#define QUIESCE_HAZPTR_SCAN_H

#include <linux/mutex.h>
#include <linux/types.h>

/* A report names this of a context, which may be gone by then. */
struct hazptr_owner {
	const void *ctx;
	unsigned long caller;
	pid_t pid;
	int cpu;
};

/* hazptr_work() scans, and returns the number of ticks until the next scan. */
unsigned long hazptr_work(void);
void hazptr_wake(void);
void hazptr_wake_later(unsigned long ticks);
bool hazptr_in_worker(void);
int hazptr_start_worker(void);
void hazptr_stop_worker(void);

/* A walk calls this for each slot that protects an object: @value, in a context of @owner. */
typedef void hazptr_found_t(unsigned long value, const struct hazptr_owner *owner);

/* One walk at a time: guards what a walk uses. */
extern struct mutex hazptr_walking;
void hazptr_scan(hazptr_found_t *found);
unsigned int hazptr_nr_waiting(void);

u64 hazptr_walk(hazptr_found_t *found);
u64 hazptr_nr_contexts(void);
void hazptr_contexts_init(void);

/* Time of the next report of a stall, in jiffies, and the context that was seen to cause it. */
struct stall {
	unsigned long start;
	unsigned long after;			/* 0: never report */
	struct hazptr_owner owner;
};

void stall_start(struct stall *stall);
/* Returns true after the timeout, and then after twice as long each time. */
bool stall_report_due(struct stall *stall);
void stall_blame(struct stall *stall, const struct hazptr_owner *owner);
/* stall_owner() has the arguments of a format that ends in STALL_OWNER. */
#define STALL_OWNER "by context %p of CPU %d, registered by %pS in task %d\n"
#define stall_owner(stall) \
	(stall)->owner.ctx, (stall)->owner.cpu, (void *)(stall)->owner.caller, (stall)->owner.pid

/* debugfs shows the counters between these calls. */
void hazptr_show_stats(void);
void hazptr_hide_stats(void);

#endif /* QUIESCE_HAZPTR_SCAN_H */
