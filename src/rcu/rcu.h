/* SPDX-License-Identifier: MIT */
/* rcu.h - the internal interface of RCU, for the other files of the library. */
#ifndef QUIESCE_SRC_RCU_H
#define QUIESCE_SRC_RCU_H

#include <quiesce/rcu.h>

#include "holdouts.h"

/* Readers load this at an outermost unlock while the grace period's word has QUIESCE_RCU_SLOW. */
extern struct quiesce__yield quiesce__rcu_yield;
/* Make readers yield at their outermost unlock, or stop that. */
void quiesce__rcu_force_yield(bool on);
/* True if the reader word of @tls blocks the grace period @number. */
bool quiesce__rcu_blocks(struct quiesce_tls_v1 *tls, uint64_t number);
/* Request that the owner of @tls calls quiesce__holdouts_notify() when it clears its reader word; false if that word blocks @number no
 * longer.  The request may get lost. */
bool quiesce__rcu_request(struct quiesce_tls_v1 *tls, uint64_t number);
/* Announce that the waiter, which is going to sleep, scans again at @when at the latest, provided that it runs. */
void quiesce__rcu_scan_by(uint64_t when);
/* Add to the report of a grace period the callers and objects that wait for it. */
void quiesce__rcu_report_behind(struct quiesce__report *report);
/* Raise the urgency of the grace period in progress to at least @urgency. */
void quiesce__rcu_raise_urgency(enum quiesce__urgency urgency);
/* Wait for a grace period that begins after this call.  @call is the program's call, for reports. */
void quiesce__rcu_wait(enum quiesce__urgency urgency, const char *call);
/* True if @call, made at @caller, would wait for a section of its own thread; that is reported here. */
bool quiesce__rcu_wait_is_misuse(const char *call, const void *caller);
/* The same for a call that would wait for another thread, and delay all grace periods. */
bool quiesce__rcu_sleep_is_misuse(const char *call, const void *caller);
/* Return a cookie for the grace period that would begin now. */
uint64_t quiesce__rcu_cookie(void);
bool quiesce__rcu_cookie_done(uint64_t cookie);
/* Try to complete @cookie without waiting for readers. */
void quiesce__rcu_try_gp(uint64_t cookie);
/* The same without waiting for any thread.  0, or -errno if the kernel refuses the calling thread the fence. */
int quiesce__rcu_help_gp(uint64_t cookie);
void quiesce__rcu_fork_child(void);
/* Register the calling thread if it is not registered; false if it cannot be. */
bool quiesce__reader_ensure(struct quiesce_tls_v1 *self, uint32_t layout);
/* End the calling thread's section as an unregistered reader, if it is in one. */
void quiesce__unregistered_leave(struct quiesce_tls_v1 *self);

#endif
