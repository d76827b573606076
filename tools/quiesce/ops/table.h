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
#define OP_RSEQ(X) X(raw_rseq_counter) X(raw_rseq_slot)
#else
#define OP_RSEQ(X)
#endif

#ifdef HAVE_LIBURCU
#define OP_LIBURCU(X) X(liburcu_memb) X(liburcu_memb_call) X(liburcu_qsbr) X(liburcu_bp)
#else
#define OP_LIBURCU(X)
#endif

#ifdef HAVE_CK
#define OP_CK(X) X(ck_epoch)
#else
#define OP_CK(X)
#endif

#define OP_TYPES(X)                                                                          \
	X(noop) X(raw_load) X(raw_flag) X(raw_nest) X(raw_hp) X(raw_hp_wake) OP_RSEQ(X)      \
	X(raw_fence) X(raw_fence_slot) X(raw_membarrier)                                     \
	X(rcu) X(rcu_expedited) OP_OUTLINE(X) X(busted)                                      \
	X(shazptr) X(shazptr_skip_self_scan) X(shazptr_wildcard)                             \
	X(shazptr_wildcard_skip_self_scan) X(busted_shazptr)                                 \
	OP_LIBURCU(X) OP_CK(X)                                                               \
	X(seqlock) X(refcnt) X(pthread_spinlock) X(pthread_mutex) X(pthread_rwlock)

#define OP_DECLARE(name) extern const struct op op_##name;
OP_TYPES(OP_DECLARE)

#endif
