/* SPDX-License-Identifier: MIT */
/* urcu/rculfstack.h - the predecessor of urcu/lfstack.h; deprecated in liburcu, and so here.
 *
 * Any thread may push.  A pop is called inside a section of RCU, and a popped node is freed or pushed again after a
 * grace period.
 * A program that defines CDS_LFS_RCU_DEPRECATED, as nothing, before it includes this header gets no warnings.
 */
#ifndef URCU_RCULFSTACK_H
#define URCU_RCULFSTACK_H

#include <quiesce/detail/lfstack.h>
#include <urcu/compiler.h>

#ifndef CDS_LFS_RCU_DEPRECATED
#define CDS_LFS_RCU_DEPRECATED CDS_DEPRECATED("urcu/rculfstack.h is deprecated: use urcu/lfstack.h")
#endif

QUIESCE_BEGIN_DECLS

struct cds_lfs_node_rcu {
	__extension__ union {
		struct cds_lfs_node_rcu *next;
		struct lfs_node quiesce;
	};
};

struct cds_lfs_stack_rcu {
	__extension__ union {
		struct cds_lfs_node_rcu *head;
		struct lfs_stack quiesce;
	};
};

static inline CDS_LFS_RCU_DEPRECATED void cds_lfs_node_init_rcu(struct cds_lfs_node_rcu *node) { (void)node; }

static inline CDS_LFS_RCU_DEPRECATED void cds_lfs_init_rcu(struct cds_lfs_stack_rcu *s) { quiesce__lfs_init(&s->quiesce); }

/* A full fence.  Returns true if the stack was not empty. */
static inline CDS_LFS_RCU_DEPRECATED int cds_lfs_push_rcu(struct cds_lfs_stack_rcu *s, struct cds_lfs_node_rcu *node)
{
	return quiesce__lfs_push(&s->quiesce, &node->quiesce);
}

static inline CDS_LFS_RCU_DEPRECATED struct cds_lfs_node_rcu *cds_lfs_pop_rcu(struct cds_lfs_stack_rcu *s)
{
	return (struct cds_lfs_node_rcu *)quiesce__lfs_pop(&s->quiesce);
}

QUIESCE_END_DECLS

#ifdef _LGPL_SOURCE
#include <urcu/static/rculfstack.h>
#endif

#endif
