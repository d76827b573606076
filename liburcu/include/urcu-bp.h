/* SPDX-License-Identifier: MIT */
/* urcu-bp.h - the flavour bp under the short names. */
#ifndef URCU_BP_H
#define URCU_BP_H

#ifndef URCU_API_MAP
#define URCU_API_MAP
#endif
#include <urcu/urcu-bp.h>

#endif
