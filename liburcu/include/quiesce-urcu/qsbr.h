/* SPDX-License-Identifier: MIT */
/* quiesce-urcu/qsbr.h - readers of the flavour qsbr; private. */
#ifndef QUIESCE_URCU_QSBR_H
#define QUIESCE_URCU_QSBR_H

#include <quiesce/detail/qsbr.h>
#include <urcu/assert.h>

#define QUIESCE_URCU_QSBR_READERS(f)                                                                                      \
	QUIESCE_FAST void urcu_##f##_read_lock(void) { urcu_assert_debug(quiesce__qsbr_ongoing()); }                 \
	QUIESCE_FAST void urcu_##f##_read_unlock(void) { urcu_assert_debug(quiesce__qsbr_ongoing()); }               \
	QUIESCE_FAST int urcu_##f##_read_ongoing(void) { return quiesce__qsbr_ongoing(); }                           \
	QUIESCE_FAST void urcu_##f##_quiescent_state(void) { quiesce__qsbr_quiescent_state(); }                      \
	QUIESCE_FAST void urcu_##f##_thread_offline(void) { quiesce__qsbr_offline(); }                               \
	QUIESCE_FAST void urcu_##f##_thread_online(void) { quiesce__qsbr_online(); }                                 \
	QUIESCE_FAST void _urcu_##f##_read_lock(void) { urcu_##f##_read_lock(); }                                    \
	QUIESCE_FAST void _urcu_##f##_read_unlock(void) { urcu_##f##_read_unlock(); }                                \
	QUIESCE_FAST int _urcu_##f##_read_ongoing(void) { return quiesce__qsbr_ongoing(); }                          \
	QUIESCE_FAST void _urcu_##f##_quiescent_state(void) { quiesce__qsbr_quiescent_state(); }                     \
	QUIESCE_FAST void _urcu_##f##_thread_offline(void) { quiesce__qsbr_offline(); }                              \
	QUIESCE_FAST void _urcu_##f##_thread_online(void) { quiesce__qsbr_online(); }

#endif
