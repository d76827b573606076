/* SPDX-License-Identifier: MIT */
/* holdouts.h - who blocks whom, and sleeping until they do not. */
#ifndef QUIESCE_HOLDOUTS_H
#define QUIESCE_HOLDOUTS_H

#include "runtime/readers.h"
#include "runtime/report.h"
#include "runtime/yield.h"

/* When readers in the way of a wait are forced to yield. */
enum quiesce__urgency {
	QUIESCE_DEFERRED,   /* nobody sleeps until it ends: after 10 ms */
	QUIESCE_NORMAL,     /* after 50 us */
	QUIESCE_EXPEDITED, /* at once */
};

/* Sleep until no thread's mark blocks the grace period @number.  One wait at a time: I5.
 * The caller has executed its heavy fence.  @urgency: its own, others may raise it.  @call: who waits, for reports. */
void quiesce__holdouts_wait(uint64_t number, enum quiesce__urgency urgency, const char *call);
/* The same beside others: look now and then, ask nobody for a wake-up, force nobody to yield.
 * False: @enough(@than) said that it is not needed any more. */
bool quiesce__holdouts_watch(uint64_t number, const char *call, bool (*enough)(uint64_t than), uint64_t than);
/* Look once, without sleeping: does nobody block @number?  @empty is 0 at the first look, and kept for the next. */
bool quiesce__holdouts_try(uint64_t number, uint32_t *empty);
/* The calling thread, owner of @r, has cleared a mark that somebody asked for. */
void quiesce__holdouts_notify(struct quiesce__reader *r);
/* A thread that needs grace period @number wants the wait in progress, for it or for the one before, to have that urgency at least. */
void quiesce__holdouts_raise_urgency(uint64_t number, enum quiesce__urgency urgency);
/* In the child: forget the waits of the parent. */
void quiesce__holdouts_fork_child(void);

/* holdout_hook.c: the wait for grace period @number, which began at @start, lasts: name those in its way to the program's hook, if there is
 * one.  To be called again as long as it lasts.  The other one: it is given up. */
void quiesce__holdout_hook_note(uint64_t number, uint64_t start);
void quiesce__holdout_hook_take_back(uint64_t number);
void quiesce__holdout_hook_fork_child(void);

#endif
