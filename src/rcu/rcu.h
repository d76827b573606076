/* SPDX-License-Identifier: MIT */
/* rcu.h - RCU, for the rooms above. */
#ifndef QUIESCE_SRC_RCU_H
#define QUIESCE_SRC_RCU_H

#include <quiesce/rcu.h>

#include "holdouts.h"

/* Readers look here at an outermost unlock while the grace period's word has QUIESCE_RCU_SLOW. */
extern struct quiesce__yield quiesce__rcu_yield;
/* Let them, or stop that. */
void quiesce__rcu_force_yield(bool on);
/* Does the mark of @tls block the grace period @number? */
bool quiesce__rcu_blocks(struct quiesce_tls_v1 *tls, uint64_t number);
/* Ask its owner, if it still does, to call quiesce__holdouts_notify() when it clears it; false if it does no longer.  The request may
 * get lost. */
bool quiesce__rcu_ask(struct quiesce_tls_v1 *tls, uint64_t number);
/* The waiter, which is going to sleep, scans again before @when at the latest, if it runs. */
void quiesce__rcu_scan_by(uint64_t when);
/* Add what waits behind a grace period, to its report. */
void quiesce__rcu_report_behind(struct quiesce__report *report);
/* Somebody wants the grace period in progress to have at least this urgency. */
void quiesce__rcu_raise_urgency(enum quiesce__urgency urgency);
/* Wait for a grace period that begins after this call.  @call: of the program, for reports. */
void quiesce__rcu_wait(enum quiesce__urgency urgency, const char *call);
/* Would @call, made at @caller, wait for a section of its own thread?  Then it is reported. */
bool quiesce__rcu_wait_is_misuse(const char *call, const void *caller);
/* A cookie for the grace period that would begin now. */
uint64_t quiesce__rcu_cookie(void);
bool quiesce__rcu_cookie_done(uint64_t cookie);
/* Try to complete @cookie without waiting for readers. */
void quiesce__rcu_try(uint64_t cookie);
void quiesce__rcu_fork_child(void);
/* Register the calling thread unless it is; false if that cannot be. */
bool quiesce__reader_ensure(struct quiesce_tls_v1 *self, uint32_t layout);
/* End the calling thread's section without an entry, if it is in one. */
void quiesce__unregistered_leave(struct quiesce_tls_v1 *self);

#endif
