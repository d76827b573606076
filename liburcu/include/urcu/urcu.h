/* SPDX-License-Identifier: MIT */
/* urcu/urcu.h - the flavour that the program has chosen: memb, or mb where it defines RCU_MB.
 *
 * Others that it may choose are memb: RCU_SIGNAL means that in liburcu 0.15, too.
 */
#ifndef URCU_URCU_H
#define URCU_URCU_H

#if !defined(RCU_MEMBARRIER) && !defined(RCU_MB)
#define RCU_MEMBARRIER
#endif

#if defined(RCU_MEMBARRIER)
#include <urcu/urcu-memb.h>
#else
#include <urcu/urcu-mb.h>
#endif

#endif
