/* SPDX-License-Identifier: MIT */
/* urcu/map/urcu.h - gives the short names to the flavour that the program has chosen by RCU_MEMBARRIER or RCU_MB. */
#if defined(RCU_MB)
#include <urcu/map/urcu-mb.h>
#else
#include <urcu/map/urcu-memb.h>
#endif
