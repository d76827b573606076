/* SPDX-License-Identifier: MIT */
/* urcu-pointer.h - the former name of urcu/pointer.h. */
#ifndef QUIESCE_URCU_FORMER_POINTER_H
#define QUIESCE_URCU_FORMER_POINTER_H

#include <urcu/pointer.h>

#endif
