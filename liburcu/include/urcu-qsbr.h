/* SPDX-License-Identifier: MIT */
/* urcu-qsbr.h - the flavour qsbr under the short names. */
#ifndef URCU_QSBR_H
#define URCU_QSBR_H

#ifndef URCU_API_MAP
#define URCU_API_MAP
#endif
#include <urcu/urcu-qsbr.h>

#endif
