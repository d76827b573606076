/* SPDX-License-Identifier: MIT */
/* urcu/urcu.h - the flavour that the program has chosen: memb, or mb where it defines RCU_MB. */
#ifndef URCU_URCU_H
#define URCU_URCU_H

#if !defined(RCU_MEMBARRIER) && !defined(RCU_MB)
#define RCU_MEMBARRIER
#endif

#if defined(RCU_SIGNAL)
#error "the flavour signal is gone, in liburcu since 0.15, too: use memb"
#elif defined(RCU_MEMBARRIER)
#include <urcu/urcu-memb.h>
#else
#include <urcu/urcu-mb.h>
#endif

#endif
