/* SPDX-License-Identifier: MIT */
/* urcu/uatomic_arch.h - the former name of urcu/uatomic.h. */
#ifndef QUIESCE_URCU_UATOMIC_ARCH_H
#define QUIESCE_URCU_UATOMIC_ARCH_H

#include <urcu/uatomic.h>

#endif
