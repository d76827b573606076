/* SPDX-License-Identifier: MIT */
/* rwlock_busted.c - the locks of rwlock.h as types of rwscale. */
#include <stddef.h>

#include "types/op.h"
#include "types/rwlock.h"

int op_rcu_init(enum op_fence fence);
void op_rcu_stats(struct op_stats *ret);

#define OURS(lock)                                                                                     \
	&(const struct op){ .name = #lock, .fence_modes = true, .rwlock = &rwlock_op_##lock,           \
			    .init = op_rcu_init, .stats = op_rcu_stats },

/* ---- a lock that locks nothing ---- */

static void nothing(void)
{
}

static const struct rwlock_op busted = { .name = "busted", .what = "locks nothing: rwscale must notice", .read_lock = nothing,
					 .read_unlock = nothing, .write_lock = nothing, .write_unlock = nothing };
static const struct op type_busted = { .name = "busted", .broken = true, .rwlock = &busted };

const struct op *rwlock_types[] = { RWLOCK_OURS(OURS) RWLOCK_OTHERS(RWLOCK_HERE, OP_ABSENT) &type_busted, NULL };
