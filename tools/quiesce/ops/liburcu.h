/* SPDX-License-Identifier: MIT */
/* liburcu.h - to be included before liburcu's headers: its variables are where a program has them that is linked with it.
 *
 * Such a program has the library's variables in itself, put there by the linker, and the library's inline functions reach
 * them directly.  A module has to fetch each address from a table every time, which would add a third to a section.  So
 * the module has the variables itself (liburcu.c), under a name that nobody outside sees, and under the library's; the
 * library looks them up in the module before it looks into itself, and uses those.
 */
#ifndef QUIESCE_TOOL_LIBURCU_H
#define QUIESCE_TOOL_LIBURCU_H

#include "op.h"

/* raw: a name for the linker, no instruction. */
#define LIBURCU_OWN(name) __asm__("own_" #name) __attribute__((visibility("hidden")))

extern struct urcu_gp urcu_memb_gp LIBURCU_OWN(urcu_memb_gp);
extern struct urcu_bp_gp urcu_bp_gp LIBURCU_OWN(urcu_bp_gp);
extern int urcu_memb_has_sys_membarrier LIBURCU_OWN(urcu_memb_has_sys_membarrier);
extern int urcu_bp_has_sys_membarrier LIBURCU_OWN(urcu_bp_has_sys_membarrier);

/* Of types that use them: 0, or -errno where the library has others, as when it was in the process before. */
int liburcu_memb_init(enum op_fence fence);
int liburcu_bp_init(enum op_fence fence);

#endif
