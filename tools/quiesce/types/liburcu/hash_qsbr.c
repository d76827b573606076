/* SPDX-License-Identifier: MIT */
/* hash_qsbr.c - liburcu's table under its quiescent-state flavour:
 * a quiescent state after each run of lookups. */
#define _LGPL_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include <urcu/urcu-qsbr.h>

#define FLAVOUR(name) urcu_qsbr_##name
#include "hash_lfht.h"

OP_FUNCTION(quiescent, urcu_qsbr_quiescent_state())
OP_FUNCTION(sleep_begin, urcu_qsbr_thread_offline())
OP_FUNCTION(sleep_end, urcu_qsbr_thread_online())

static const struct hash_op growing = {
	.create = lfht_create, .settle = lfht_settle, LFHT_OPS, .between = quiescent, .resize = lfht_resize_to, .grows = true,
};
static const struct hash_op fixed = { .create = lfht_create_fixed, LFHT_OPS, .between = quiescent };

TYPE(liburcu_lfht_qsbr, .rank = 1020,
	.what = "liburcu's cds_lfht, quiescent-state flavour, sized by itself, and by hand while it is filled; call_rcu()",
	.hash = &growing, LFHT_THREADS, .sleep_begin = sleep_begin, .sleep_end = sleep_end);
TYPE(liburcu_lfht_qsbr_fixed, .rank = 1030,
	.what = "liburcu's cds_lfht, quiescent-state flavour, of a fixed size, a bucket for each element",
	.hash = &fixed, LFHT_THREADS, .sleep_begin = sleep_begin, .sleep_end = sleep_end);
