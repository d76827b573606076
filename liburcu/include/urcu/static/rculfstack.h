/* SPDX-License-Identifier: MIT */
/* urcu/static/rculfstack.h - the names by which liburcu has inlined calls beside those of the library; here they are the same. */
#ifndef URCU_STATIC_RCULFSTACK_H
#define URCU_STATIC_RCULFSTACK_H

#include <urcu/rculfstack.h>

/* Programs have got these from here. */
#include <urcu-pointer.h>
#include <urcu/uatomic.h>

#define _cds_lfs_node_init_rcu cds_lfs_node_init_rcu
#define _cds_lfs_init_rcu cds_lfs_init_rcu
#define _cds_lfs_push_rcu cds_lfs_push_rcu
#define _cds_lfs_pop_rcu cds_lfs_pop_rcu

#endif
