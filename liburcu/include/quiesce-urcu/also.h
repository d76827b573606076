/* SPDX-License-Identifier: MIT */
/* quiesce-urcu/also.h - what programs get from liburcu's headers without asking for it, and use; private.
 *
 * What 0.13 or 0.15 include: programs that say nothing of their own compile with those.
 */
#ifndef QUIESCE_URCU_ALSO_H
#define QUIESCE_URCU_ALSO_H

#include <assert.h>

#ifdef _LGPL_SOURCE
#include <errno.h>
#include <limits.h>
#include <unistd.h>
#include <urcu/debug.h>
#include <urcu/futex.h>
#include <urcu/list.h>
#include <urcu/tls-compat.h>
#endif

#endif
