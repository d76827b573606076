/* SPDX-License-Identifier: MIT */
/* urcu/assert.h - assertions. */
#ifndef QUIESCE_URCU_ASSERT_H
#define QUIESCE_URCU_ASSERT_H

#include <quiesce/base.h>
#include <urcu/config.h>

/* Checked by the compiler, never evaluated. */
#define _urcu_use_expression(expr) QUIESCE_CAST(void, sizeof(QUIESCE_CAST(void, (expr)), 0))

/* As assert(), but its variables count as used with NDEBUG, too. */
#ifdef NDEBUG
#define urcu_posix_assert(cond) _urcu_use_expression(cond)
#else
#include <assert.h>
#define urcu_posix_assert(cond) assert(cond)
#endif

/* For expensive assertions: active only where DEBUG_RCU is defined. */
#if defined(DEBUG_RCU) || defined(CONFIG_RCU_DEBUG)
#define urcu_assert_debug(cond) urcu_posix_assert(cond)
#else
#define urcu_assert_debug(cond) _urcu_use_expression(cond)
#endif

#endif
