/* SPDX-License-Identifier: MIT */
/* hash_table.h - the list of hashscale's types, in the order in which results are shown; row X is hash_op_X. */
#ifndef QUIESCE_TOOL_HASH_TABLE_H
#define QUIESCE_TOOL_HASH_TABLE_H

#include "hash.h"

#ifdef HAVE_LIBURCU_CDS
#define HASH_LIBURCU(X) X(liburcu_lfht) X(liburcu_lfht_fixed) X(liburcu_lfht_qsbr) X(liburcu_lfht_qsbr_fixed)
#else
#define HASH_LIBURCU(X)
#endif

#ifdef HAVE_CK
#define HASH_CK(X) X(ck_ht)
#else
#define HASH_CK(X)
#endif

#ifdef HAVE_LIBCDS
#define HASH_LIBCDS(X) X(libcds_michael_hp) X(libcds_split_rcu)
#else
#define HASH_LIBCDS(X)
#endif

#ifdef HAVE_TBB
#define HASH_TBB(X) X(tbb_hash_map) X(tbb_unordered_map)
#else
#define HASH_TBB(X)
#endif

#ifdef HAVE_LIBCUCKOO
#define HASH_LIBCUCKOO(X) X(libcuckoo)
#else
#define HASH_LIBCUCKOO(X)
#endif

#ifdef HAVE_STD_SHARED_MUTEX
#define HASH_STD(X) X(std_mutex) X(std_shared_mutex)
#else
#define HASH_STD(X)
#endif

#define HASH_TYPES(X)                                                                                     \
	X(raw_open_addressing) X(raw_chained) X(busted) X(busted_rcu) X(hashmap) X(hashtable) X(hashtable_hazptr) \
	X(rcu) X(hazptr) X(seqlock) X(spinlock) X(refcnt) X(rwlock) X(brlock) X(brlock_atomic)            \
	HASH_LIBURCU(X) HASH_CK(X) HASH_LIBCDS(X) HASH_TBB(X) HASH_LIBCUCKOO(X) HASH_STD(X)

#define HASH_DECLARE(name) extern const struct op hash_op_##name;
#ifdef __cplusplus
extern "C" {
#endif
HASH_TYPES(HASH_DECLARE)
#ifdef __cplusplus
}
#endif

#endif
