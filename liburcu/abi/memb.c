/* SPDX-License-Identifier: MIT */
/* memb.c - liburcu.so.8 and liburcu-memb.so.8. */
#include "words.h"

#include <errno.h>

QUIESCE_URCU_CALLS(memb)

/* Programs read it to decide whether they may leave their fences out. */
extern QUIESCE_DATA int urcu_memb_has_sys_membarrier;
int urcu_memb_has_sys_membarrier;

#define F(name) urcu_memb_##name
#define FLAVOR_NAME "memb"
#define KIND QUIESCE_URCU_LIGHT
#define LIGHT (urcu_memb_has_sys_membarrier != 0)
#define BEGUN(light) (urcu_memb_has_sys_membarrier = (light))
#include "nesting.h"
