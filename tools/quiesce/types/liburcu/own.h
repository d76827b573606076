/* SPDX-License-Identifier: MIT */
/* own.h - include it before liburcu's headers: it puts liburcu's variables where a program linked with liburcu
 * has them.
 *
 * The linker copies the library's variables into such a program, and the library's inline functions access them
 * directly.  A module would load each address from a table every time, which would add a third to a section.  So the
 * module defines the variables itself (liburcu.c), under a hidden name and under the library's; the dynamic linker
 * finds the module's definitions before the library's own, and the library uses those.
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

/* For types that use them.  Returns 0, or -errno if the library uses other variables, as when it was loaded before. */
int liburcu_memb_init(enum op_fence fence);
int liburcu_bp_init(enum op_fence fence);

#endif
