/* SPDX-License-Identifier: MIT */
/* urcu/static/wfqueue.h - liburcu's names for inlined calls, beside those for calls of the library; here both are the
 * same. */
#ifndef URCU_STATIC_WFQUEUE_H
#define URCU_STATIC_WFQUEUE_H

#include <urcu/wfqueue.h>

/* Programs rely on this header to include them. */
#include <poll.h>
#include <urcu/assert.h>
#include <urcu/uatomic.h>

#define _cds_wfq_node_init cds_wfq_node_init
#define _cds_wfq_init cds_wfq_init
#define _cds_wfq_destroy cds_wfq_destroy
#define _cds_wfq_enqueue cds_wfq_enqueue
#define _cds_wfq_dequeue_blocking cds_wfq_dequeue_blocking
#define ___cds_wfq_dequeue_blocking __cds_wfq_dequeue_blocking

#endif
