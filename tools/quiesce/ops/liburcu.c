/* SPDX-License-Identifier: MIT */
/* liburcu.c - variables of liburcu that its inline functions use: liburcu.h says why they are here. */
#include "liburcu.h"

#define _LGPL_SOURCE
#include <urcu/urcu-bp.h>
#include <urcu/urcu-memb.h>

#include <errno.h>

/* As the library has it, under the library's name; and under ours. */
/* raw: a name for the linker, no instruction. */
#define OWN(type, name, ...)                                                                          \
	__attribute__((visibility("default"))) type shown_##name __asm__(#name) = __VA_ARGS__;        \
	extern __attribute__((alias(#name))) type name;

OWN(struct urcu_gp, urcu_memb_gp, { .ctr = URCU_GP_COUNT })
OWN(struct urcu_bp_gp, urcu_bp_gp, { .ctr = URCU_BP_GP_COUNT })
#ifndef CONFIG_RCU_FORCE_SYS_MEMBARRIER /* else they are constants */
OWN(int, urcu_memb_has_sys_membarrier, 0)
OWN(int, urcu_bp_has_sys_membarrier, 0)
#endif

/* A grace period changes the counter if there is a reader. */
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
