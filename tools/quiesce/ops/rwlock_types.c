/* SPDX-License-Identifier: MIT */
/* rwlock_types.c - the locks of rwlock.h as types of rwscale. */
#include <stddef.h>

#include "op.h"
#include "rwlock.h"

int op_rcu_init(enum op_fence fence);
void op_rcu_stats(struct op_stats *ret);

#define OURS(lock)                                                                                            \
	static const struct op type_##lock = { .name = #lock, .fence_modes = true, .rwlock = &rwlock_op_##lock, \
					       .init = op_rcu_init, .stats = op_rcu_stats };
#define OTHER(lock) static const struct op type_##lock = { .name = #lock, .rwlock = &rwlock_op_##lock };
RWLOCK_OURS(OURS)
RWLOCK_OTHERS(OTHER)

/* ---- a lock that locks nothing ---- */

static void nothing(void)
{
}

static const struct rwlock_op busted = { .name = "busted", .what = "locks nothing: rwscale must notice", .read_lock = nothing,
					 .read_unlock = nothing, .write_lock = nothing, .write_unlock = nothing };
static const struct op type_busted = { .name = "busted", .broken = true, .rwlock = &busted };

#define ENTRY(lock) &type_##lock,
const struct op *const rwlock_types[] = { RWLOCK_ROWS(ENTRY) &type_busted, NULL };
