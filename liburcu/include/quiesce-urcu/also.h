/* SPDX-License-Identifier: MIT */
/* quiesce-urcu/also.h - headers that programs get through liburcu's without including them; private.
 *
 * Those that 0.13 or 0.15 include: programs that rely on them compile.
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
