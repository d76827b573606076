/* SPDX-License-Identifier: MIT */
/* urcu/static/rculfstack.h - liburcu's names for inlined calls, beside those for calls of the library; here both are
 * the same. */
#ifndef URCU_STATIC_RCULFSTACK_H
#define URCU_STATIC_RCULFSTACK_H

#include <urcu/rculfstack.h>

/* Programs rely on this header to include them. */
#include <urcu-pointer.h>
#include <urcu/uatomic.h>

#define _cds_lfs_node_init_rcu cds_lfs_node_init_rcu
#define _cds_lfs_init_rcu cds_lfs_init_rcu
#define _cds_lfs_push_rcu cds_lfs_push_rcu
#define _cds_lfs_pop_rcu cds_lfs_pop_rcu

#endif
