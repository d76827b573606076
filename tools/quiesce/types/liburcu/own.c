/* SPDX-License-Identifier: MIT */
/* own.c - variables of liburcu that its inline functions use; liburcu.h explains why they are here. */
#include "own.h"

#define _LGPL_SOURCE
#include <urcu/urcu-bp.h>
#include <urcu/urcu-memb.h>

#include <errno.h>

/* Each variable has the library's type and two names: the library's and ours. */
/* raw: a name for the linker, no instruction. */
#define OWN(type, name, ...)                                                                          \
	__attribute__((visibility("default"))) type shown_##name __asm__(#name) = __VA_ARGS__;        \
	extern __attribute__((alias(#name))) type name;

OWN(struct urcu_gp, urcu_memb_gp, { .ctr = URCU_GP_COUNT })
OWN(struct urcu_bp_gp, urcu_bp_gp, { .ctr = URCU_BP_GP_COUNT })
#ifndef CONFIG_RCU_FORCE_SYS_MEMBARRIER /* otherwise they are constants */
OWN(int, urcu_memb_has_sys_membarrier, 0)
OWN(int, urcu_bp_has_sys_membarrier, 0)
#endif

/* Checks that the library uses this module's variables: a grace period with a registered reader changes the counter. */
int liburcu_memb_init(enum op_fence fence)
{
	unsigned long before = urcu_memb_gp.ctr;

	(void)fence;
	urcu_memb_register_thread();
	urcu_memb_synchronize_rcu();
	urcu_memb_unregister_thread();
	return CMM_LOAD_SHARED(urcu_memb_gp.ctr) == before ? -ENOTSUP : 0;
}

int liburcu_bp_init(enum op_fence fence)
{
	unsigned long before = urcu_bp_gp.ctr;

	(void)fence;
	urcu_bp_register_thread();
	urcu_bp_synchronize_rcu();
	return CMM_LOAD_SHARED(urcu_bp_gp.ctr) == before ? -ENOTSUP : 0;
}
