/* SPDX-License-Identifier: MIT */
/* urcu.h - the flavour memb, or what RCU_MB chooses, under the short names. */
#ifndef URCU_H
#define URCU_H

#ifndef URCU_API_MAP
#define URCU_API_MAP
#endif
#include <urcu/urcu.h>

#endif
