/* SPDX-License-Identifier: MIT */
/* retire.c - call_rcu() of liburcu's membarrier flavour. */
#include "own.h"

#define _LGPL_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include <urcu/urcu-memb.h>

#include "types/registry.h"
#include "types/retire.h"

_Static_assert(sizeof(struct rcu_head) <= sizeof(void *[RETIRE_HEAD_WORDS]), "there is room for the library's head");

OP_FUNCTION(thread_enter, urcu_memb_register_thread())
OP_FUNCTION(thread_exit, urcu_memb_unregister_thread())

static void hold(void **where)
{
	urcu_memb_read_lock();
	retire_use(rcu_dereference(*where));
}

OP_FUNCTION(release, urcu_memb_read_unlock())

static void read_protected(void **where)
{
	hold(where);
	release();
}

static void end_object(struct rcu_head *head)
{
	retire_free(head);
}

#define CALL(object) urcu_memb_call_rcu((struct rcu_head *)(object), end_object)
RETIRE_PRODUCE(memb, retire_alloc, CALL)

OP_FUNCTION(barrier, urcu_memb_barrier())

static const struct op_reclaim memb_reclaim = {
	RETIRE_PRODUCERS(memb), .read = read_protected, .hold = hold, .release = release, .barrier = barrier,
};

TYPE(liburcu_memb, .rank = 1000, .groups = PEER_RCU | RUN_TABLE | REPORT,
	.what = "call_rcu() of liburcu, membarrier flavour",
	.reclaim = &memb_reclaim,
	.init = liburcu_memb_init,
	.thread_enter = thread_enter,
	.thread_exit = thread_exit);
