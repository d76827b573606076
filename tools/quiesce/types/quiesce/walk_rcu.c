/* SPDX-License-Identifier: MIT */
/* walk_rcu.c - RCU of quiesce: a section for each operation, kfree_rcu(). */
#include "ours.h"
#include "types/walk.h"
#include "types/walk_section.h"

#define WALK_SCHEME rcu
#define WALK_WHAT "RCU of quiesce, kfree_rcu()"
#define WALK_RANK 300
#define WALK_FENCES true

WALK_SECTION(rcu_read_lock(), rcu_read_unlock())

static inline void walk_retire(struct walk_node *node)
{
	kfree_rcu(&node->head, rcu);
}

OP_FUNCTION(walk_thread_enter, rcu_read_lock(); rcu_read_unlock())
OP_FUNCTION(walk_barrier, rcu_barrier())

static uint64_t walk_waiting(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof(stats));
	return stats.garbage_objects;
}

#define walk_init op_rcu_init
#define walk_thread_exit NULL
#define walk_stats op_rcu_stats
#include "types/walk_types.h"
