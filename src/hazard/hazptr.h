/* SPDX-License-Identifier: MIT */
/* hazptr.h - general hazard pointers, for the files of this room. */
#ifndef QUIESCE_SRC_HAZPTR_H
#define QUIESCE_SRC_HAZPTR_H

#include <quiesce/hazptr.h>

#include "hazptr_scan.h"

/* hazptr.c: slots */
extern struct quiesce__lines quiesce__hazptr_lines;
void quiesce__hazptr_init(void);
void quiesce__hazptr_choose(void); /* when a fence mode is chosen before first use */
void quiesce__hazptr_fork_child(void);
void quiesce__hazptr_fork_survivor(const struct quiesce_tls_v1 *self);
/* The calling thread exits: it claims in no line of its own any more. */
void quiesce__hazptr_thread_end(struct quiesce_tls_v1 *self);

/* Bits of quiesce_shazptr_v1.hazptr, next to QUIESCE_SLOTS_WAIT and QUIESCE_SLOTS_YIELD. */
#define QUIESCE_HAZPTR_FULL 4ull /* full fences */

/* hazptr_retire.c: objects, in lists linked by their heads */

#if defined(QUIESCE_SIM)
#define QUIESCE_HAZPTR_BATCH 2u
#define QUIESCE_RETIRED_SLOTS 4u
#else
#define QUIESCE_HAZPTR_BATCH 1024u  /* objects of one thread, before it reclaims, at least, unless the program chooses */
#define QUIESCE_RETIRED_SLOTS HAZPTR_BATCH_MAX
#endif

/* Objects on their way: those to run, and those that something protects. */
struct quiesce__reclaim {
	struct hazptr_head *ready, *kept;
};

/* hazptr_batch.c: so many objects at least, of a thread's queue, or NULL. */
struct quiesce__retired;
uint32_t quiesce__batch_least(const struct quiesce__retired *r);

/* Push to a list that others push to and take at the same time. */
void quiesce__hazptr_push(struct hazptr_head **list, struct hazptr_head *head);
void quiesce__hazptr_push_chain(struct hazptr_head **list, struct hazptr_head *first, struct hazptr_head *last);
void quiesce__hazptr_push_list(struct hazptr_head **list, struct hazptr_head *heads);
struct hazptr_head *quiesce__hazptr_take(struct hazptr_head **list);
/* Returns how many there were. */
uint64_t quiesce__hazptr_count_pushed(void);
/* Part @list into what may run and what may not; one fence and one look. */
void quiesce__hazptr_part(struct hazptr_head *list, struct quiesce__reclaim *ret_parts);
/* In a run: call at most @nr of what is ready, taking each off the list before.  Returns how many there were. */
uint64_t quiesce__hazptr_run_list(struct hazptr_head **ready, uint32_t nr);
/* The thread has ended in that: what was being called counts as run. */
struct quiesce__run;
void quiesce__hazptr_list_ended(const struct quiesce__run *run);
/* Wait, in @call of the program, until whoever protects the first of @kept has gone.
 * False if that would be for ever, and has been reported. */
bool quiesce__hazptr_wait_for(const struct hazptr_head *kept, const char *call);

/* Is anything left behind, or does anybody sweep? */
bool quiesce__hazptr_left(void);
/* Is nothing, and does nobody run a callback either?  Of one moment, but for cohorts; then the helper learns
 * that it has nothing to come back for.  False at @deadline. */
bool quiesce__hazptr_all_done(uint64_t deadline);

void quiesce__hazptr_thread_exit(struct quiesce_tls_v1 *self);
bool quiesce__retired_paused(void); /* no callback runs */
void quiesce__retired_fork_prepare(void);
void quiesce__retired_fork_parent(void);
void quiesce__retired_fork_child(void);
void quiesce__retired_fork_survivor(struct quiesce_tls_v1 *self);
void quiesce__hazptr_stats(struct quiesce_stats *stats);
bool quiesce__hazptr_barrier_until(uint64_t deadline);

/* hazptr_debug.c: the calling thread ends, or the process in it: report the slots that it has, as far as a debug build knows. */
void quiesce__hazptr_thread_report(const struct quiesce_tls_v1 *self);
void quiesce__hazptr_process_report(const struct quiesce_tls_v1 *self);

#endif
