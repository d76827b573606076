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

#ifdef HAVE_LIBURCU
#define OP_LIBURCU(X) X(liburcu_memb) X(liburcu_memb_call) X(liburcu_qsbr) X(liburcu_bp)
#else
#define OP_LIBURCU(X)
#endif

#ifdef HAVE_CK
#define OP_CK(X) X(ck_epoch) X(ck_hp)
#define OP_CK_LOCKS(X) X(ck_brlock) X(ck_rwlock) X(ck_pflock) X(ck_swlock) X(ck_bytelock)
#else
#define OP_CK(X)
#define OP_CK_LOCKS(X)
#endif

#ifdef HAVE_LIBCDS
#define OP_LIBCDS(X) X(libcds_hp) X(libcds_hp_reused) X(libcds_dhp) X(libcds_dhp_reused)
#else
#define OP_LIBCDS(X)
#endif

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

#ifdef HAVE_TBB
#define OP_TBB(X) X(tbb_spin_rw_mutex) X(tbb_rw_mutex) X(tbb_queuing_rw_mutex)
#else
#define OP_TBB(X)
#endif

#define OP_TYPES(X)                                                                          \
	X(noop) X(raw_load) X(raw_flag) X(raw_nest) X(raw_hp) X(raw_hp_bitmask) X(raw_hp_wake)                \
	OP_RSEQ(X) X(raw_fence) X(raw_fence_slot) X(raw_membarrier)                       \
	X(rcu) X(rcu_expedited) OP_OUTLINE(X) X(busted)                                      \
	X(shazptr) X(shazptr_skip_self_scan) X(shazptr_wildcard)                             \
	X(shazptr_wildcard_skip_self_scan) X(busted_shazptr)                                 \
	X(hazptr) X(hazptr_tryprotect) X(hazptr_alloc) X(hazptr_context)                     \
	OP_HAZARD_POINTER(X) X(counted_ptr) X(busted_hazptr) X(srcu) X(percpu_rwsem) X(percpu_ref)                   \
	OP_LIBURCU(X) OP_CK(X) OP_LIBCDS(X)                                                  \
	X(seqlock) OP_STD_SHARED_PTR(X) X(refcnt) X(pthread_spinlock) X(pthread_mutex) X(pthread_rwlock)    \
	X(pthread_rwlock_writer) OP_STD_SHARED_MUTEX(X) OP_CK_LOCKS(X) OP_TBB(X)

#define OP_DECLARE(name) extern const struct op op_##name;
OP_TYPES(OP_DECLARE)

#endif
