/* SPDX-License-Identifier: MIT */
/* hash_table.h - the list of hashscale's types, in the order in which results are shown; row X is hash_op_X. */
#ifndef QUIESCE_TOOL_HASH_TABLE_H
#define QUIESCE_TOOL_HASH_TABLE_H

#include "hash.h"

#define HASH_TYPES(X)                                                                                     \
	X(raw_open_addressing) X(raw_chained) X(busted)                                                   \
	X(rcu) X(hazptr) X(seqlock) X(spinlock) X(refcnt) X(rwlock) X(brlock) X(brlock_atomic)

#define HASH_DECLARE(name) extern const struct op hash_op_##name;
#ifdef __cplusplus
extern "C" {
#endif
HASH_TYPES(HASH_DECLARE)
#ifdef __cplusplus
}
#endif

#endif
