/* SPDX-License-Identifier: MIT */
/* urcu/static/rculfqueue.h - liburcu's names for inlined calls, beside those for calls of the library; here both are
 * the same. */
#ifndef URCU_STATIC_RCULFQUEUE_H
#define URCU_STATIC_RCULFQUEUE_H

#include <urcu/rculfqueue.h>

/* Programs rely on this header to include them. */
#include <errno.h>
#include <urcu-call-rcu.h>
#include <urcu-pointer.h>
#include <urcu/assert.h>
#include <urcu/uatomic.h>

#define _cds_lfq_node_init_rcu cds_lfq_node_init_rcu
#define _cds_lfq_init_rcu cds_lfq_init_rcu
#define _cds_lfq_destroy_rcu cds_lfq_destroy_rcu
#define _cds_lfq_enqueue_rcu cds_lfq_enqueue_rcu
#define _cds_lfq_dequeue_rcu cds_lfq_dequeue_rcu

#endif
