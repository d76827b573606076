/* SPDX-License-Identifier: MIT */
/* quiesce-urcu/rcu.h - readers of the flavours memb and bp, which are both the RCU of quiesce/rcu.h; private.
 *
 * They are inlined whether the program defines _LGPL_SOURCE or not.
 */
#ifndef QUIESCE_URCU_RCU_H
#define QUIESCE_URCU_RCU_H

#include <quiesce/detail/rcu_read.h>

QUIESCE_FAST void quiesce__urcu_read_lock(void)
{
#ifdef QUIESCE_DEBUG
	quiesce__rcu_lock_debug(QUIESCE_LAYOUT);
#else
	quiesce__rcu_read_lock();
#endif
}

QUIESCE_FAST void quiesce__urcu_read_unlock(void)
{
#ifdef QUIESCE_DEBUG
	quiesce__rcu_unlock_debug();
#else
	quiesce__rcu_read_unlock();
#endif
}

QUIESCE_FAST int quiesce__urcu_read_ongoing(void)
{
	struct quiesce__own_block self = quiesce__own();

	return (quiesce_own_load_relaxed(self, rcu_word) & QUIESCE_RCU_DEPTH) != 0 || quiesce_own_load_u32(self, unregistered) != 0;
}

/* The inline functions of flavour @f. */
#define QUIESCE_URCU_READERS(f)                                                               \
	QUIESCE_FAST void urcu_##f##_read_lock(void) { quiesce__urcu_read_lock(); }           \
	QUIESCE_FAST void urcu_##f##_read_unlock(void) { quiesce__urcu_read_unlock(); }       \
	QUIESCE_FAST int urcu_##f##_read_ongoing(void) { return quiesce__urcu_read_ongoing(); } \
	QUIESCE_FAST void _urcu_##f##_read_lock(void) { quiesce__urcu_read_lock(); }          \
	QUIESCE_FAST void _urcu_##f##_read_unlock(void) { quiesce__urcu_read_unlock(); }      \
	QUIESCE_FAST int _urcu_##f##_read_ongoing(void) { return quiesce__urcu_read_ongoing(); } \
	QUIESCE_FAST void urcu_##f##_quiescent_state(void) {}                                 \
	QUIESCE_FAST void urcu_##f##_thread_offline(void) {}                                  \
	QUIESCE_FAST void urcu_##f##_thread_online(void) {}

#endif
