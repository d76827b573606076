/* SPDX-License-Identifier: MIT */
/* walk.c - liburcu's membarrier flavour: a section for each operation, call_rcu(). */
#include "own.h"

#define _LGPL_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include <urcu/urcu-memb.h>

/* liburcu's macros and structures have the names of the kernel's, as those of
 * quiesce do; this file uses none of quiesce's. */
#define WALK_FOREIGN_RCU
#include "types/walk.h"
#include "types/walk_section.h"

_Static_assert(sizeof(struct rcu_head) <= sizeof(union walk_head), "there is room for the library's head");

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
	walk_note_retired();
	urcu_memb_call_rcu((struct rcu_head *)(void *)&node->head, end_node);
}

OP_FUNCTION(walk_thread_enter, urcu_memb_register_thread())
OP_FUNCTION(walk_thread_exit, urcu_memb_unregister_thread(); retire_tally_leave())
OP_FUNCTION(walk_barrier, urcu_memb_barrier())

#define walk_init liburcu_memb_init
#define walk_stats NULL
#define walk_waiting walk_tally_waiting
#include "types/walk_types.h"
