/* SPDX-License-Identifier: MIT */
/* hash_table.h - the list of hashscale's types, in the order in which results are shown; row X is hash_op_X. */
#ifndef QUIESCE_TOOL_HASH_TABLE_H
#define QUIESCE_TOOL_HASH_TABLE_H

#include "hash.h"

/* These lists name the types of each peer library, as table.h does. */
#define HASH_LIBURCU(P) P(liburcu_lfht) P(liburcu_lfht_fixed) P(liburcu_lfht_qsbr) P(liburcu_lfht_qsbr_fixed)
#define HASH_CK(P) P(ck_ht)
#define HASH_LIBCDS(P) P(libcds_michael_hp) P(libcds_split_rcu)
#define HASH_TBB(P) P(tbb_hash_map) P(tbb_unordered_map)

#ifdef HAVE_LIBCUCKOO
#define HASH_LIBCUCKOO(X) X(libcuckoo)
#else
#define HASH_LIBCUCKOO(X)
#endif

#ifdef HAVE_STD_SHARED_MUTEX
#define HASH_STD(X) X(std_mutex) X(std_shared_mutex) X(std_map_shared_mutex)
#else
#define HASH_STD(X)
#endif

#define HASH_TYPES(X, P)                                                                                  \
	X(raw_open_addressing) X(raw_chained) X(busted) X(busted_rcu) X(hashmap) X(hashmap_update) X(hashtable) \
	X(hashtable_update) X(hashtable_hazptr) X(xarray) \
	X(rcu) X(hazptr) X(seqlock) X(spinlock) X(refcnt) X(rwlock) X(brlock) X(brlock_atomic)            \
	HASH_LIBURCU(P) HASH_CK(P) HASH_LIBCDS(P) HASH_TBB(P) HASH_LIBCUCKOO(X) HASH_STD(X)

#define HASH_HERE(name) &hash_op_##name,
#define HASH_DECLARE(name) extern const struct op hash_op_##name;
#ifdef __cplusplus
extern "C" {
#endif
HASH_TYPES(HASH_DECLARE, HASH_DECLARE)
#ifdef __cplusplus
}
#endif

#endif
