/* SPDX-License-Identifier: MIT */
/* urcu/urcu-bp.h - liburcu's flavour bp, which is memb here: see urcu/urcu-memb.h.
 *
 * In liburcu bp is the flavour that needs no registration, at a cost for readers; here no flavour of this RCU needs
 * one.  Fork needs no calls either.
 */
#ifndef URCU_URCU_BP_H
#define URCU_URCU_BP_H

#include <pthread.h>
#include <stdlib.h>
#include <urcu/config.h>
#include <urcu/defer.h>
#include <urcu/pointer.h>
#include <urcu/map/urcu-bp.h>
#include <quiesce-urcu/also.h>
#include <quiesce-urcu/flavor.h>
#include <quiesce-urcu/rcu.h>

QUIESCE_URCU_BEGIN

QUIESCE_URCU_CALLS(bp)
QUIESCE_URCU_TABLE(bp)
QUIESCE_URCU_READERS(bp)

#define urcu_bp_dereference(p) rcu_dereference(p)
#define urcu_bp_cmpxchg_pointer(p, old, _new) rcu_cmpxchg_pointer(p, old, _new)
#define urcu_bp_xchg_pointer(p, v) rcu_xchg_pointer(p, v)
#define urcu_bp_set_pointer(p, v) rcu_set_pointer(p, v)

QUIESCE_FAST void urcu_bp_before_fork(void) {}
QUIESCE_FAST void urcu_bp_after_fork_parent(void) {}
QUIESCE_FAST void urcu_bp_after_fork_child(void) {}

QUIESCE_URCU_END

/* Their layout is not that of liburcu; an error message about a use contains the reason. */
#define urcu_bp_gp quiesce_has_no_urcu_gp_its_counters_are_private
#define urcu_bp_reader quiesce_has_no_urcu_reader_its_readers_are_private

#ifndef URCU_API_MAP
#include <urcu/map/clear.h>
#endif

#endif
