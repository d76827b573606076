/* SPDX-License-Identifier: MIT */
/* srcu.c - SRCU of quiesce: one domain, inlined. */
#include <quiesce/rcu.h>
#include <quiesce/srcu.h>

#include "ours.h"
#include "loop.h"
#include "registry.h"

DEFINE_STATIC_SRCU(domain);

OP_SECTION(srcu, int idx = srcu_read_lock(&domain), srcu_dereference(t->ptr, &domain), srcu_read_unlock(&domain, idx))

/* Sections nest: the indices that their ends need. */
#define DEPTH 64
static __thread struct {
	uint32_t depth;
	int idx[DEPTH];
} mine __attribute__((tls_model("initial-exec")));

OP_FUNCTION(section_lock, mine.idx[mine.depth++ % DEPTH] = srcu_read_lock(&domain))
OP_FUNCTION(section_unlock, srcu_read_unlock(&domain, mine.idx[--mine.depth % DEPTH]))

OP_READ_OPS(srcu, section_lock, section_unlock);

static int init(enum op_fence fence)
{
	int err = op_rcu_init(fence);

	return err ? err : init_srcu_struct(&domain);
}

static void stats(struct op_stats *ret)
{
	op_rcu_stats(ret);
	ret->grace_periods = srcu_batches_completed(&domain);
}

OP_FUNCTION(wait_plain, synchronize_srcu(&domain))
OP_FUNCTION(wait_expedited, synchronize_srcu_expedited(&domain))

static void retire(struct op_head *head)
{
	call_srcu(&domain, (struct rcu_head *)head->space, rcu_run_callback);
}

OP_FUNCTION(retire_barrier, srcu_barrier(&domain))

static const struct op_wait srcu_wait = { .wait = wait_plain, .expedited = wait_expedited };
static const struct op_retire srcu_retire = { .call = retire, .barrier = retire_barrier };

TYPE(srcu, .rank = 600, .groups = RUN_READ | RUN_LOCK | REPORT_READ | FAMILY_ALL, .peers = PEER_RCU,
	.what = "quiesce SRCU, one domain; synchronize_srcu(), call_srcu()",
	.fence_modes = true, .read = &srcu_read, .wait = &srcu_wait, .retire = &srcu_retire, .init = init,
	.stats = stats);
