/* SPDX-License-Identifier: MIT */
/* urcu/urcu-memb.h - liburcu's flavour memb: RCU by membarrier, for whole programs.
 *
 * Readers cost a few instructions and no fence, updaters a membarrier.  Where the kernel has none, or the program asks for it
 * (QUIESCE_FENCE=full), readers have a full fence; nothing else changes, and nothing has to be registered.
 *
 * rcu_read_lock(), rcu_read_unlock()  bracket a section.  They nest, in signal handlers, too.  synchronize_rcu() in a section is
 *                                     reported, and aborts: it would wait for its own thread.
 * rcu_register_thread(), ...          are accepted, and not needed: a thread is known from its first section on.
 * synchronize_rcu()                   waits for the sections that are open.  Ordering as in quiesce/rcu.h.
 * start_poll_synchronize_rcu()        begins a grace period without waiting; poll_state_synchronize_rcu() checks whether it has ended.
 *
 * memb, bp and quiesce/rcu.h are one RCU: each waits for the readers of all three.  So a section of one of them must not call
 * synchronize_rcu() of another, which in liburcu it may.
 */
#ifndef URCU_URCU_MEMB_H
#define URCU_URCU_MEMB_H

#include <pthread.h>
#include <stdlib.h>
#include <urcu/config.h>
#include <urcu/defer.h>
#include <urcu/pointer.h>
#include <urcu/map/urcu-memb.h>
#include <quiesce-urcu/also.h>
#include <quiesce-urcu/flavor.h>
#include <quiesce-urcu/rcu.h>

QUIESCE_URCU_BEGIN

QUIESCE_URCU_CALLS(memb)
QUIESCE_URCU_TABLE(memb)
QUIESCE_URCU_READERS(memb)

#define urcu_memb_dereference(p) rcu_dereference(p)
#define urcu_memb_cmpxchg_pointer(p, old, _new) rcu_cmpxchg_pointer(p, old, _new)
#define urcu_memb_xchg_pointer(p, v) rcu_xchg_pointer(p, v)
#define urcu_memb_set_pointer(p, v) rcu_set_pointer(p, v)

QUIESCE_URCU_END

/* Their layout is not that of liburcu; an error message about a use contains the reason. */
#define urcu_memb_gp quiesce_has_no_urcu_gp_its_counters_are_private
#define urcu_memb_reader quiesce_has_no_urcu_reader_its_readers_are_private

#ifndef URCU_API_MAP
#include <urcu/map/clear.h>
#endif

#endif
