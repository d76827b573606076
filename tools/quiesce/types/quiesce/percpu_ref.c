/* SPDX-License-Identifier: MIT */
/* percpu_ref.c - quiesce's reference count per CPU: a get and a put for each section. */
#include <quiesce/percpu_ref.h>

#include "ours.h"
#include "loop.h"
#include "registry.h"

static struct percpu_ref ref __attribute__((aligned(128)));

OP_READ(percpu_ref, percpu_ref_get(&ref), OP_LOAD, percpu_ref_put(&ref));

static void never(struct percpu_ref *unused)
{
	(void)unused; /* the first reference is never put */
}

static int init(enum op_fence fence)
{
	int err = op_rcu_init(fence);

	return err ? err : percpu_ref_init(&ref, never, 0);
}

TYPE(percpu_ref, .rank = 620, .groups = RUN_SIX | RUN_LOCK | REPORT_READ | FAMILY_OBJECT, .peers = PEER_COUNT,
	.what = "quiesce's reference count per CPU, up and down",
	.fence_modes = true, .read = &percpu_ref_read, .init = init, .stats = op_rcu_stats);
