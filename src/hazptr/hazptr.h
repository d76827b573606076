/* SPDX-License-Identifier: MIT */
/* hazptr.h - general hazard pointers, for the files of src/hazptr and src/shazptr. */
#ifndef QUIESCE_SRC_HAZPTR_H
#define QUIESCE_SRC_HAZPTR_H

#include <quiesce/hazptr.h>

#include "hazptr_scan.h"

/* hazptr.c has the slots, in quiesce__hazptr_lines. */
void quiesce__hazptr_init(void);
void quiesce__hazptr_fence_chosen(void); /* the fence mode is chosen, before the first use */
void quiesce__hazptr_fork_child(void);
void quiesce__hazptr_fork_survivor(const struct quiesce_tls_v1 *self);
/* The calling thread exits: its own lines get other owners, and it claims no more slots in them. */
void quiesce__hazptr_thread_end(struct quiesce_tls_v1 *self);

/* hazptr_retire.c has the retired objects, in lists linked by their heads. */

#if defined(QUIESCE_SIM)
#define QUIESCE_HAZPTR_BATCH 2u
#define QUIESCE_COHORT_BATCH 2u
#define QUIESCE_RETIRED_ENTRIES 4u
#else
#define QUIESCE_HAZPTR_BATCH 128u  /* least number of objects that a thread collects before it scans, unless the program sets another */
#define QUIESCE_COHORT_BATCH 1024u /* the same for a cohort */
#define QUIESCE_RETIRED_ENTRIES HAZPTR_BATCH_MAX
#endif

/* Retired objects after a scan: those to reclaim, and those that are protected. */
struct quiesce__reclaim {
	struct hazptr_head *ready, *kept;
};

/* hazptr_batch.c: the least number of objects of a batch, of queue @r; the number for a cohort. */
struct quiesce__retired_queue;
uint32_t quiesce__batch_min(const struct quiesce__retired_queue *r);
uint32_t quiesce__cohort_batch(void);

/* Push to a list to which other threads push, and which they take, concurrently. */
void quiesce__hazptr_push(struct hazptr_head **list, struct hazptr_head *head);
void quiesce__hazptr_push_chain(struct hazptr_head **list, struct hazptr_head *first, struct hazptr_head *last);
void quiesce__hazptr_push_list(struct hazptr_head **list, struct hazptr_head *heads);
struct hazptr_head *quiesce__hazptr_take(struct hazptr_head **list);
/* Count one object that is pushed to a list; returns the new count. */
uint64_t quiesce__hazptr_count_pushed(void);
/* Divide @list into objects that may be reclaimed and objects that are protected, by one fence and one scan. */
void quiesce__hazptr_partition(struct hazptr_head *list, struct quiesce__reclaim *ret_parts);
/* In a run: call the functions of at most @nr objects of @ready, each removed from the list first.  Returns
 * how many were called. */
uint64_t quiesce__hazptr_run_list(struct hazptr_head **ready, uint32_t nr);
/* The thread has ended in a callback of quiesce__hazptr_run_list(): that callback counts as run. */
struct quiesce__run;
void quiesce__hazptr_list_ended(const struct quiesce__run *run);
/* Wait, on behalf of the program's @call, until no slot protects the first object of @kept.  False if the
 * caller itself protects it, which has been reported. */
bool quiesce__hazptr_wait_for(const struct hazptr_head *kept, const char *call);

/* True if retired objects are left to sweep, or a thread sweeps. */
bool quiesce__hazptr_any_left(void);
/* True if no retired object is left and no callback runs, at one moment, cohorts aside; the helper is then
 * woken to find that it has no work.  False at @deadline. */
bool quiesce__hazptr_check_all_done(uint64_t deadline);

void quiesce__hazptr_thread_exit(struct quiesce_tls_v1 *self);
bool quiesce__retired_paused(void); /* no callback runs inside the gate */
void quiesce__retired_fork_prepare(void);
void quiesce__retired_fork_parent(void);
void quiesce__retired_fork_child(void);
void quiesce__retired_fork_survivor(struct quiesce_tls_v1 *self);
void quiesce__hazptr_stats(struct quiesce_stats *stats);
bool quiesce__hazptr_barrier_until(uint64_t deadline);

/* hazptr_debug.c: the calling thread ends, or calls exit(): report the slots that debug builds recorded for
 * it. */
void quiesce__hazptr_thread_report(const struct quiesce_tls_v1 *self);
void quiesce__hazptr_process_report(const struct quiesce_tls_v1 *self);

#endif
