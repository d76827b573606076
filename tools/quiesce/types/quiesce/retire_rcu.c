/* SPDX-License-Identifier: MIT */
/* retire_rcu.c - RCU of quiesce: call_rcu(), kfree_rcu(). */
#include <quiesce/control.h>
#include <quiesce/rcu.h>

#include "ours.h"
#include "types/registry.h"
#include "types/retire.h"

_Static_assert(sizeof(struct rcu_head) <= sizeof(void *[RETIRE_HEAD_WORDS]), "there is room for the library's head");

static void read_protected(void **where)
{
	rcu_read_lock();
	retire_use(rcu_dereference(*where));
	rcu_read_unlock();
}

static void hold(void **where)
{
	rcu_read_lock();
	retire_use(rcu_dereference(*where));
}

OP_FUNCTION(release, rcu_read_unlock())

static void end_object(struct rcu_head *head)
{
	retire_free(head);
}

struct freed_object {
	struct rcu_head head;
	char rest[RETIRE_MIN_BYTES - sizeof(struct rcu_head)];
};

#define CALL(object) call_rcu_sized((struct rcu_head *)(object), end_object, retire_params.bytes)
#define FREE(object) kfree_rcu((struct freed_object *)(object), head)
RETIRE_PRODUCE(rcu, retire_alloc, CALL)
RETIRE_PRODUCE(rcu_free, retire_alloc, FREE)

OP_FUNCTION(barrier, rcu_barrier())

static uint64_t reclaimed(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof(stats));
	return stats.callbacks_run;
}

#define RETIRE_READERS .read = read_protected, .hold = hold, .release = release
static const struct op_reclaim rcu_reclaim = { RETIRE_PRODUCERS(rcu), RETIRE_READERS, .barrier = barrier };
static const struct op_reclaim rcu_free_reclaim = {
	RETIRE_PRODUCERS(rcu_free), RETIRE_READERS, .barrier = barrier, .freed = reclaimed,
};

TYPE(rcu, .rank = 600, .groups = RUN_TABLE | REPORT,
	.what = "call_rcu() of quiesce",
	OURS, .reclaim = &rcu_reclaim, .thread_enter = rcu_first_section);

TYPE(rcu_free, .rank = 610, .groups = RUN_SIX | RUN_TABLE | REPORT,
	.what = "kfree_rcu() of quiesce; counted by its statistics",
	OURS, .reclaim = &rcu_free_reclaim, .thread_enter = rcu_first_section);
