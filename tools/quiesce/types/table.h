/* SPDX-License-Identifier: MIT */
/* table.h - the list of types, in the order in which results are shown. */
#ifndef QUIESCE_TOOL_TABLE_H
#define QUIESCE_TOOL_TABLE_H

#include "op.h"

#ifdef HAVE_OUTLINE
#define OP_OUTLINE(X) X(rcu_call)
#else
#define OP_OUTLINE(X)
#endif

#ifdef HAVE_RSEQ
#define OP_RSEQ(X) X(raw_rseq_counter) X(raw_rseq_bare) X(raw_rseq_slot)
#else
#define OP_RSEQ(X)
#endif

/* Types of peers; the name of each begins with the name of the peer whose module has it. */
#define OP_LIBURCU(P) P(liburcu_memb) P(liburcu_memb_call) P(liburcu_qsbr) P(liburcu_bp)
#define OP_CK_RECLAIM(P) P(ck_epoch) P(ck_hp)
#define OP_CK_LOCKS(P) P(ck_brlock) P(ck_rwlock) P(ck_pflock) P(ck_swlock) P(ck_bytelock)
#define OP_CK(P) OP_CK_RECLAIM(P) OP_CK_LOCKS(P)
#define OP_LIBCDS(P) P(libcds_hp) P(libcds_hp_reused) P(libcds_dhp) P(libcds_dhp_reused)
#define OP_TBB(P) P(tbb_spin_rw_mutex) P(tbb_rw_mutex) P(tbb_queuing_rw_mutex)

#ifdef HAVE_HAZARD_POINTER
#define OP_HAZARD_POINTER(X) X(hazard_pointer) X(hazard_pointer_reused)
#else
#define OP_HAZARD_POINTER(X)
#endif

#ifdef HAVE_STD_ATOMIC_SHARED_PTR
#define OP_STD_SHARED_PTR(X) X(std_atomic_shared_ptr)
#else
#define OP_STD_SHARED_PTR(X)
#endif

#ifdef HAVE_STD_SHARED_MUTEX
#define OP_STD_SHARED_MUTEX(X) X(std_shared_mutex)
#else
#define OP_STD_SHARED_MUTEX(X)
#endif

/* X: types that are compiled in; P: types of peers. */
#define OP_TYPES(X, P)                                                                       \
	X(noop) X(raw_load) X(raw_flag) X(raw_nest) X(raw_hp) X(raw_hp_bitmask) X(raw_hp_wake)                \
	OP_RSEQ(X) X(raw_fence) X(raw_fence_slot) X(raw_membarrier)                       \
	X(rcu) X(rcu_expedited) OP_OUTLINE(X) X(busted)                                      \
	X(shazptr) X(shazptr_skip_self_scan) X(shazptr_wildcard)                             \
	X(shazptr_wildcard_skip_self_scan) X(busted_shazptr)                                 \
	X(hazptr) X(hazptr_tryprotect) X(hazptr_alloc) X(hazptr_context)                     \
	OP_HAZARD_POINTER(X) X(counted_ptr) X(busted_hazptr) X(srcu) X(percpu_rwsem) X(percpu_ref)                   \
	OP_LIBURCU(P) OP_CK_RECLAIM(P) OP_LIBCDS(P)                                          \
	X(seqlock) OP_STD_SHARED_PTR(X) X(refcnt) X(pthread_spinlock) X(pthread_mutex) X(pthread_rwlock)    \
	X(pthread_rwlock_writer) OP_STD_SHARED_MUTEX(X) OP_CK_LOCKS(P) OP_TBB(P)

#define OP_DECLARE(name) extern const struct op op_##name;
OP_TYPES(OP_DECLARE, OP_DECLARE)

#endif
