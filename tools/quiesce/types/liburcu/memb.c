/* SPDX-License-Identifier: MIT */
/* memb.c - liburcu's membarrier flavour, its read side inlined: reads and waits, deferred frees, and walks.
 *
 * liburcu's macros and structures have the names of the kernel's, as those of quiesce do; this file uses none of quiesce's. */
#include "own.h"

#define _LGPL_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include <urcu/urcu-memb.h>

#include "loop.h"
#include "registry.h"
#include "types/retire.h"
#define WALK_FOREIGN_RCU
#include "types/walk.h"
#include "types/walk_section.h"

_Static_assert(sizeof(struct rcu_head) <= sizeof(void *[RETIRE_HEAD_WORDS]), "there is room for the library's head");
_Static_assert(sizeof(struct rcu_head) <= sizeof(union walk_head), "there is room for the library's head");

OP_READ(liburcu_memb, urcu_memb_read_lock(), rcu_dereference(t->ptr), urcu_memb_read_unlock());

OP_FUNCTION(thread_enter, urcu_memb_register_thread())
OP_FUNCTION(thread_exit, urcu_memb_unregister_thread())
#define THREADS .init = liburcu_memb_init, .thread_enter = thread_enter, .thread_exit = thread_exit

OP_FUNCTION(wait_plain, urcu_memb_synchronize_rcu())

static void run_callback(struct rcu_head *head)
{
	struct op_head *op_head = (struct op_head *)head;

	op_head->fn(op_head);
}

static void retire(struct op_head *head)
{
	urcu_memb_call_rcu((struct rcu_head *)head->space, run_callback);
}

OP_FUNCTION(retire_barrier, urcu_memb_barrier())

static const struct op_wait liburcu_memb_wait = { .wait = wait_plain };
static const struct op_retire liburcu_memb_retire = { .call = retire, .barrier = retire_barrier };

TYPE(liburcu_memb, .rank = 1000, .groups = PEER_RCU | RUN_READ | RUN_WAITS | REPORT_READ | REPORT_WAIT | FAMILY_ALL,
	.what = "liburcu's membarrier flavour, inlined",
	.reason = "a waiter sleeps until a reader wakes it; ours wakes now and then, to scan for a reader that has stopped or ended",
	.read = &liburcu_memb_read, .wait = &liburcu_memb_wait, .retire = &liburcu_memb_retire, THREADS);

/* ---- deferred frees ---- */

static void hold(void **where)
{
	urcu_memb_read_lock();
	retire_use(rcu_dereference(*where));
}

OP_FUNCTION(release, urcu_memb_read_unlock())
RETIRE_READ

static void end_object(struct rcu_head *head)
{
	retire_free(head);
}

#define CALL(object) urcu_memb_call_rcu((struct rcu_head *)(object), end_object)
RETIRE_PRODUCE(memb, retire_alloc, CALL)

TYPE(liburcu_memb, .rank = 1000, .groups = PEER_RCU | RUN_TABLE | REPORT,
	.what = "call_rcu() of liburcu, membarrier flavour",
	.reason = "behind a reader that stays all garbage waits, and it retires fewer objects in the same time",
	.reclaim = &(const struct op_reclaim){ RETIRE_PRODUCERS(memb), RETIRE_READERS, .barrier = retire_barrier }, THREADS);

/* ---- walks ---- */

#define WALK_SCHEME liburcu
#define WALK_WHAT "liburcu's membarrier flavour, call_rcu()"
#define WALK_RANK 1000
#define WALK_FENCES false

WALK_SECTION(urcu_memb_read_lock(), urcu_memb_read_unlock())

static void end_node(struct rcu_head *head)
{
	walk_free(head);
}

static inline void walk_retire(struct walk_node *node)
{
	retire_note();
	urcu_memb_call_rcu((struct rcu_head *)(void *)&node->head, end_node);
}

OP_FUNCTION(walk_thread_exit, thread_exit(); retire_tally_leave())

#define walk_init liburcu_memb_init
#define walk_thread_enter thread_enter
#define walk_barrier retire_barrier
#define walk_stats NULL
#define walk_waiting retire_waiting
#include "types/walk_types.h"
