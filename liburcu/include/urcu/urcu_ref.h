/* SPDX-License-Identifier: MIT */
/* urcu/urcu_ref.h - the former name of urcu/ref.h. */
#ifndef QUIESCE_URCU_URCU_REF_H
#define QUIESCE_URCU_URCU_REF_H

#include <urcu/ref.h>

#endif
