/* SPDX-License-Identifier: MIT */
/* rcu.c - RCU of quiesce: inlined, expedited, and the deliberately broken type; deferred frees; walks. */
#include <quiesce/control.h>
#include <quiesce/rcu.h>

#include "ours.h"
#include "types/busted.h"
#include "loop.h"
#include "registry.h"
#include "types/retire.h"
#include "types/walk.h"
#include "types/walk_section.h"

_Static_assert(sizeof(struct rcu_head) <= sizeof(((struct op_head *)0)->space), "op_head has room for the library's head");
_Static_assert(sizeof(struct rcu_head) <= sizeof(void *[RETIRE_HEAD_WORDS]), "there is room for the library's head");

OP_READ(rcu, rcu_read_lock(), rcu_dereference(t->ptr), rcu_read_unlock());

int op_rcu_init(enum op_fence fence)
{
	return quiesce_set_fence(fence == OP_FENCE_FULL    ? QUIESCE_FENCE_FULL
				 : fence == OP_FENCE_LIGHT ? QUIESCE_FENCE_LIGHT
							   : QUIESCE_FENCE_AUTO);
}

void op_rcu_stats(struct op_stats *ret)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof(stats));
	ret->grace_periods = stats.grace_periods;
	ret->membarriers = stats.membarriers;
	ret->wakeups = stats.wakeups;
	ret->yields = stats.yields;
	ret->scans = stats.scans;
	ret->blocked = stats.shazptr_blocked;
}

uint64_t op_rcu_waiting(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof(stats));
	return stats.garbage_objects;
}

uint64_t op_hazptr_waiting(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof(stats));
	return stats.hazptr_retired - stats.hazptr_reclaimed;
}

uint64_t op_rcu_freed(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof(stats));
	return stats.callbacks_run;
}

uint64_t op_hazptr_freed(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof(stats));
	return stats.hazptr_reclaimed;
}

OP_FUNCTION(wait_plain, synchronize_rcu())
OP_FUNCTION(wait_expedited, synchronize_rcu_expedited())

static void retire(struct op_head *head)
{
	call_rcu((struct rcu_head *)head->space, rcu_run_callback);
}

OP_FUNCTION(retire_barrier, rcu_barrier())

static uint64_t polled_get(void)
{
	return get_state_synchronize_rcu().value;
}

static uint64_t polled_start(void)
{
	return start_poll_synchronize_rcu().value;
}

static int polled_poll(uint64_t cookie)
{
	return poll_state_synchronize_rcu((struct rcu_gp_seq){ cookie });
}

static void polled_cond(uint64_t cookie)
{
	cond_synchronize_rcu((struct rcu_gp_seq){ cookie });
}

static void *pointer_fetch(void **where)
{
	return rcu_dereference(*where);
}

static void pointer_publish(void **where, void *object)
{
	rcu_assign_pointer(*where, object);
}

static const struct op_wait rcu_wait = { .wait = wait_plain, .expedited = wait_expedited };
static const struct op_wait rcu_expedited_wait = { .wait = wait_expedited };
static const struct op_retire rcu_retire = { .call = retire, .barrier = retire_barrier };
static const struct op_polled rcu_polled = { polled_get, polled_start, polled_poll, polled_cond };
static const struct op_pointer rcu_pointer = { pointer_fetch, pointer_publish };

TYPE(rcu, .rank = 300, .groups = RUN_SIX | RUN_SIX_WAIT | RUN_READ | RUN_WAITS | REPORT_READ | REPORT_WAIT | FAMILY_ALL,
	.peers = PEER_RCU,
	.what = "quiesce RCU, inlined; synchronize_rcu(), call_rcu()",
	OURS, .read = &rcu_read, .wait = &rcu_wait, .retire = &rcu_retire, .polled = &rcu_polled,
	.pointer = &rcu_pointer, .thread_enter = rcu_first_section);

TYPE(rcu_expedited, .rank = 310, .groups = RUN_WAIT_SAME | RUN_WAIT | REPORT_WAIT, .peers = PEER_RCU,
	.what = "quiesce RCU; synchronize_rcu_expedited()",
	OURS, .wait_only = true, .read = &rcu_read, .wait = &rcu_expedited_wait, .thread_enter = rcu_first_section);

/* ---- busted: RCU whose updaters do not wait ---- */

TYPE(busted, .rank = 330,
	.what = "quiesce RCU whose updaters do not wait: torture must notice",
	.broken = true, .wait_only = true, .read = &rcu_read, .wait = &busted_wait, .retire = &busted_retire,
	.polled = &busted_polled, .pointer = &rcu_pointer, .init = op_rcu_init, .thread_enter = rcu_first_section,
	.stats = op_rcu_stats);

/* ---- deferred frees ---- */

static void hold(void **where)
{
	rcu_read_lock();
	retire_use(rcu_dereference(*where));
}

OP_FUNCTION(release, rcu_read_unlock())
RETIRE_READ

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

static const struct op_reclaim rcu_call_reclaim = { RETIRE_PRODUCERS(rcu), RETIRE_READERS, .barrier = retire_barrier };
static const struct op_reclaim rcu_free_reclaim = {
	RETIRE_PRODUCERS(rcu_free), RETIRE_READERS, .barrier = retire_barrier, .freed = op_rcu_freed,
};

TYPE(rcu, .rank = 600, .groups = RUN_TABLE | REPORT, .peers = PEER_RCU,
	.what = "call_rcu() of quiesce",
	OURS, .reclaim = &rcu_call_reclaim, .thread_enter = rcu_first_section);

TYPE(rcu_free, .rank = 610, .groups = RUN_SIX | RUN_TABLE | REPORT, .peers = PEER_RCU,
	.what = "kfree_rcu() of quiesce; counted by its statistics",
	OURS, .reclaim = &rcu_free_reclaim, .thread_enter = rcu_first_section);

/* ---- walks ---- */

#define WALK_SCHEME rcu
#define WALK_WHAT "RCU of quiesce, kfree_rcu()"
#define WALK_RANK 300
#define WALK_FENCES true

WALK_SECTION(rcu_read_lock(), rcu_read_unlock())

static inline void walk_retire(struct walk_node *node)
{
	kfree_rcu(&node->head, rcu);
}

#define walk_waiting op_rcu_waiting
#define walk_init op_rcu_init
#define walk_thread_enter rcu_first_section
#define walk_barrier retire_barrier
#define walk_thread_exit NULL
#define walk_stats op_rcu_stats
#include "types/walk_types.h"
