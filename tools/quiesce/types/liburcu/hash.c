/* SPDX-License-Identifier: MIT */
/* hash.c - liburcu's table under its membarrier flavour. */
#include "own.h"

#define _LGPL_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include <urcu/urcu-memb.h>

#define FLAVOUR(name) urcu_memb_##name
#include "hash_lfht.h"

static const struct hash_op growing = {
	.create = lfht_create, .settle = lfht_settle, LFHT_OPS, .resize = lfht_resize_to, .grows = true,
};
static const struct hash_op fixed = { .create = lfht_create_fixed, LFHT_OPS };

TYPE(liburcu_lfht, .rank = 1000, .groups = PEER_TABLE | RUN_TABLE | REPORT,
	.what = "liburcu's cds_lfht, membarrier flavour, sized by itself, and by hand while it is filled; call_rcu()",
	.hash = &growing, .init = liburcu_memb_init, LFHT_THREADS);
TYPE(liburcu_lfht_fixed, .rank = 1010,
	.what = "liburcu's cds_lfht, membarrier flavour, of a fixed size, a bucket for each element",
	.hash = &fixed, .init = liburcu_memb_init, LFHT_THREADS);
