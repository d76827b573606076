/* SPDX-License-Identifier: MIT */
/* memb.c - liburcu's membarrier flavour, its read side inlined. */
#include "own.h"

#define _LGPL_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include <urcu/urcu-memb.h>

#include "types/loop.h"
#include "types/registry.h"

OP_READ(liburcu_memb, urcu_memb_read_lock(), rcu_dereference(t->ptr), urcu_memb_read_unlock());

OP_FUNCTION(thread_enter, urcu_memb_register_thread())
OP_FUNCTION(thread_exit, urcu_memb_unregister_thread())
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

static void *pointer_fetch(void **where)
{
	return rcu_dereference(*where);
}

static void pointer_publish(void **where, void *object)
{
	rcu_assign_pointer(*where, object);
}

static const struct op_wait liburcu_memb_wait = { .wait = wait_plain };
static const struct op_retire liburcu_memb_retire = { .call = retire, .barrier = retire_barrier };
static const struct op_pointer liburcu_memb_pointer = { pointer_fetch, pointer_publish };

TYPE(liburcu_memb, .rank = 1000, .groups = PEER_RCU | RUN_READ | RUN_WAITS | REPORT_READ | REPORT_WAIT | FAMILY_ALL,
	.what = "liburcu's membarrier flavour, inlined",
	.read = &liburcu_memb_read,
	.wait = &liburcu_memb_wait,
	.retire = &liburcu_memb_retire,
	.pointer = &liburcu_memb_pointer,
	.init = liburcu_memb_init,
	.thread_enter = thread_enter,
	.thread_exit = thread_exit);
