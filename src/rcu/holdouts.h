/* SPDX-License-Identifier: MIT */
/* holdouts.h - find the holdouts of a grace period, which are the readers that it waits for, and sleep until none is left. */
#ifndef QUIESCE_HOLDOUTS_H
#define QUIESCE_HOLDOUTS_H

#include "runtime/readers.h"
#include "runtime/report.h"
#include "runtime/yield.h"

/* The urgency of a wait decides from when on readers are forced to yield. */
enum quiesce__urgency {
	QUIESCE_DEFERRED,   /* after 10 ms: no caller sleeps until the wait ends */
	QUIESCE_NORMAL,     /* after 50 us */
	QUIESCE_EXPEDITED, /* at once */
};

/* Sleep until no reader blocks the grace period @number.  There is one such wait at a time (I5 in holdouts.c).  The caller has executed
 * its heavy fence.  @urgency is the caller's; followers may raise it.  @call names the call in reports. */
void quiesce__holdouts_wait(uint64_t number, enum quiesce__urgency urgency, const char *call);
/* Wait for the holdouts, also while another thread does: scan at intervals, without requests for wake-ups and without forced
 * yields.  False: @stop(@cookie) has returned true, so the wait is not needed any more. */
bool quiesce__holdouts_watch(uint64_t number, const char *call, bool (*stop)(uint64_t cookie), uint64_t cookie);
/* Scan once, without sleeping; true if no reader blocks @number.  @empty is 0 for the first scan, and kept for the next ones. */
bool quiesce__holdouts_try(uint64_t number, uint32_t *empty);
/* The calling thread, the owner of @r, has cleared its reader word, whose SLOW bit was set: wake the waiter if it requested that. */
void quiesce__holdouts_notify(struct quiesce__reader *r);
/* Raise the urgency of the wait in progress, for grace period @number or the one before, to at least @urgency; called by threads that
 * need @number. */
void quiesce__holdouts_raise_urgency(uint64_t number, enum quiesce__urgency urgency);
/* Forget the parent's waits, in the child of a fork. */
void quiesce__holdouts_fork_child(void);

/* Post a notice that the wait for grace period @number, which began at @start, is not over: the program's hook, if there is one, gets its
 * holdouts.  The waiter repeats this while it waits.  See holdout_hook.c. */
void quiesce__holdout_hook_post(uint64_t number, uint64_t start);
/* Withdraw the notice of a wait that is given up before it is over. */
void quiesce__holdout_hook_withdraw(uint64_t number);
void quiesce__holdout_hook_fork_child(void);

#endif
