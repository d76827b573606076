/* SPDX-License-Identifier: MIT */
/* urcu/debug.h - the former name of urcu_assert_debug(). */
#ifndef QUIESCE_URCU_DEBUG_H
#define QUIESCE_URCU_DEBUG_H

#include <urcu/assert.h>

#define urcu_assert(cond) urcu_assert_debug(cond)

#endif
