/* SPDX-License-Identifier: MIT */
/* urcu/urcu-futex.h - the former name of urcu/futex.h. */
#ifndef QUIESCE_URCU_URCU_FUTEX_H
#define QUIESCE_URCU_URCU_FUTEX_H

#include <urcu/futex.h>

#endif
