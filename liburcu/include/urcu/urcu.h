/* SPDX-License-Identifier: MIT */
/* urcu/urcu.h - the flavour that the program has chosen: memb, or mb where it defines RCU_MB.
 *
 * Other choices are memb, too: RCU_SIGNAL means memb in liburcu 0.15 as well.
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
