/* SPDX-License-Identifier: MIT */
/* urcu/static/lfstack.h - liburcu's names for inlined calls, beside those for calls of the library; here both are the
 * same. */
#ifndef URCU_STATIC_LFSTACK_H
#define URCU_STATIC_LFSTACK_H

#include <urcu/lfstack.h>

/* Programs rely on this header to include them. */
#include <urcu-pointer.h>
#include <urcu/assert.h>
#include <urcu/uatomic.h>

#define _cds_lfs_node_init cds_lfs_node_init
#define _cds_lfs_init cds_lfs_init
#define _cds_lfs_destroy cds_lfs_destroy
#define _cds_lfs_empty cds_lfs_empty
#define _cds_lfs_push cds_lfs_push
#define _cds_lfs_pop_blocking cds_lfs_pop_blocking
#define _cds_lfs_pop_all_blocking cds_lfs_pop_all_blocking
#define _cds_lfs_pop_lock cds_lfs_pop_lock
#define _cds_lfs_pop_unlock cds_lfs_pop_unlock
#define ___cds_lfs_init __cds_lfs_init
#define ___cds_lfs_pop __cds_lfs_pop
#define ___cds_lfs_pop_all __cds_lfs_pop_all

#endif
