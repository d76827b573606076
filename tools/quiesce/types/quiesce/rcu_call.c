/* SPDX-License-Identifier: MIT */
/* rcu_call.c - RCU of quiesce through the exported functions, as language bindings use it. */
#include <quiesce/rcu.h>

#include "ours.h"
#include "loop.h"
#include "registry.h"

QUIESCE_API void quiesce_rcu_read_lock(void);
QUIESCE_API void quiesce_rcu_read_unlock(void);
OP_READ(rcu_call, quiesce_rcu_read_lock(), rcu_dereference(t->ptr), quiesce_rcu_read_unlock());

TYPE(rcu_call, .rank = 320,
	.what = "quiesce RCU through exported functions, not inlined",
	.fence_modes = true, .read = &rcu_call_read, .init = op_rcu_init);
