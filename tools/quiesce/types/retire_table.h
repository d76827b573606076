/* SPDX-License-Identifier: MIT */
/* retire_table.h - the list of retirescale's types. */
#ifndef QUIESCE_TOOL_RETIRE_TABLE_H
#define QUIESCE_TOOL_RETIRE_TABLE_H

#include "retire.h"

#ifdef HAVE_HAZARD_POINTER
#define RETIRE_CPP(X) X(hazard_pointer)
#else
#define RETIRE_CPP(X)
#endif

/* These lists name the types of each peer library, as table.h does. */
#define RETIRE_LIBURCU(P) P(liburcu_memb)
#define RETIRE_CK(P) P(ck_hp) P(ck_epoch)
#define RETIRE_LIBCDS(P) P(libcds_hp) P(libcds_dhp)
#define RETIRE_TBB(P)

#define RETIRE_TYPES(X, P)                                                                         \
	X(raw_malloc_free) X(raw_asym_hp_batch)                                                    \
	X(hazptr) X(hazptr_inline) X(hazptr_free) X(hazptr_cohort) X(hazptr_list) RETIRE_CPP(X)    \
	X(busted_hazptr) X(busted_hoard) X(busted_stall)                                           \
	X(rcu) X(rcu_free) RETIRE_LIBURCU(P) RETIRE_CK(P) RETIRE_LIBCDS(P)

#define RETIRE_HERE(name) &retire_op_##name,
#define RETIRE_DECLARE(name) extern const struct op retire_op_##name;
#ifdef __cplusplus
extern "C" {
#endif
RETIRE_TYPES(RETIRE_DECLARE, RETIRE_DECLARE)
#ifdef __cplusplus
}
#endif

#endif
