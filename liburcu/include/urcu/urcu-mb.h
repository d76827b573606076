/* SPDX-License-Identifier: MIT */
/* urcu/urcu-mb.h - liburcu's flavour mb: RCU whose readers have full fences, so that updaters interrupt no CPU.
 *
 * For programs whose CPUs must not be interrupted, at the price of two fences in each section.  It is an RCU of its own: no other
 * flavour waits for its readers.
 *
 * rcu_register_thread()       is needed before a thread's first section, as in liburcu; no updater waits for a section of a thread
 *                             that is not registered.
 * synchronize_rcu()           in a section aborts: it would wait for its own thread.
 * For the rest see urcu/urcu-memb.h.
 */
#ifndef URCU_URCU_MB_H
#define URCU_URCU_MB_H

#include <pthread.h>
#include <stdlib.h>
#include <urcu/config.h>
#include <urcu/defer.h>
#include <urcu/pointer.h>
#include <urcu/map/urcu-mb.h>
#include <quiesce-urcu/also.h>
#include <quiesce-urcu/flavor.h>
#include <quiesce-urcu/mb.h>

QUIESCE_URCU_BEGIN

QUIESCE_URCU_CALLS(mb)
QUIESCE_URCU_TABLE(mb)
QUIESCE_URCU_MB_READERS(mb)

#define urcu_mb_dereference(p) rcu_dereference(p)
#define urcu_mb_cmpxchg_pointer(p, old, _new) rcu_cmpxchg_pointer(p, old, _new)
#define urcu_mb_xchg_pointer(p, v) rcu_xchg_pointer(p, v)
#define urcu_mb_set_pointer(p, v) rcu_set_pointer(p, v)

QUIESCE_URCU_END

/* Their layout is not that of liburcu; an error message about a use contains the reason. */
#define urcu_mb_gp quiesce_has_no_urcu_gp_its_counters_are_private
#define urcu_mb_reader quiesce_has_no_urcu_reader_its_readers_are_private

#ifndef URCU_API_MAP
#include <urcu/map/clear.h>
#endif

#endif
