/* SPDX-License-Identifier: MIT */
/* holdouts.h - who blocks whom, and sleeping until they do not. */
#ifndef QUIESCE_HOLDOUTS_H
#define QUIESCE_HOLDOUTS_H

#include "runtime/readers.h"
#include "runtime/report.h"
#include "runtime/yield.h"

/* What a primitive tells the scan about its marks. */
struct quiesce__holdouts_ops {
	/* Does the mark of @tls block a wait with argument @arg? */
	bool (*blocks)(struct quiesce_tls_v1 *tls, uint64_t arg);
	/* Ask the owner of the mark, if it still blocks, to call quiesce__holdouts_notify()
	 * when it clears it; false if it blocks no longer.  The request may get lost. */
	bool (*ask)(struct quiesce_tls_v1 *tls, uint64_t arg);
	/* Let readers look at @yield at each outermost unlock, or stop that. */
	void (*force_yield)(bool on);
	struct quiesce__yield *yield;
	/* The waiter looks again before @when at the latest, if it runs; it is going to sleep. */
	void (*scan_by)(uint64_t when);
	/* Add what waits behind a wait, to its report. */
	void (*report_behind)(struct quiesce__report *report);
};

/* When readers in the way of a wait are forced to yield. */
enum quiesce__urgency {
	QUIESCE_DEFERRED,   /* nobody sleeps until it ends: after 10 ms */
	QUIESCE_NORMAL,     /* after 50 us */
	QUIESCE_EXPEDITED, /* at once */
};

/* Sleep until no registered thread's mark blocks @arg.  One wait at a time per
 * @ops.  The caller has executed its heavy fence.  @call: who waits, for reports. */
void quiesce__holdouts_wait(const struct quiesce__holdouts_ops *ops, uint64_t arg, const char *call);
/* The same beside others: look now and then, ask nobody for a wake-up, force nobody to yield.
 * False: @enough(@than) said that it is not needed any more. */
bool quiesce__holdouts_watch(const struct quiesce__holdouts_ops *ops, uint64_t arg, const char *call, bool (*enough)(uint64_t than),
			     uint64_t than);
/* Look once, without sleeping: does nobody block @arg?  @empty is 0 at the first look, and kept for the next. */
bool quiesce__holdouts_try(const struct quiesce__holdouts_ops *ops, uint64_t arg, uint32_t *empty);
/* The calling thread, owner of @r, has cleared a mark that somebody asked for. */
void quiesce__holdouts_notify(struct quiesce__reader *r);
/* A wait is going to begin; forget who raised the one before. */
void quiesce__holdouts_calm(void);
/* It has at least that urgency. */
void quiesce__holdouts_set_urgency(enum quiesce__urgency urgency);
/* Somebody wants the wait in progress to have at least this urgency. */
void quiesce__holdouts_raise_urgency(enum quiesce__urgency urgency);
/* In the child: forget the waits of the parent. */
void quiesce__holdouts_fork_child(void);

#endif
