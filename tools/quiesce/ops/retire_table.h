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

#ifdef HAVE_LIBURCU
#define RETIRE_LIBURCU(X) X(liburcu_memb)
#else
#define RETIRE_LIBURCU(X)
#endif

#ifdef HAVE_CK
#define RETIRE_CK(X) X(ck_hp) X(ck_epoch)
#else
#define RETIRE_CK(X)
#endif

#ifdef HAVE_LIBCDS
#define RETIRE_LIBCDS(X) X(libcds_hp) X(libcds_dhp)
#else
#define RETIRE_LIBCDS(X)
#endif

#define RETIRE_TYPES(X)                                                                            \
	X(raw_malloc_free) X(raw_asym_hp_batch)                                                    \
	X(hazptr) X(hazptr_inline) X(hazptr_free) X(hazptr_cohort) X(hazptr_list) RETIRE_CPP(X)    \
	X(busted_hazptr) X(busted_hoard) X(busted_stall)                                           \
	X(rcu) X(rcu_free) RETIRE_LIBURCU(X) RETIRE_CK(X) RETIRE_LIBCDS(X)

#define RETIRE_DECLARE(name) extern const struct op retire_op_##name;
#ifdef __cplusplus
extern "C" {
#endif
RETIRE_TYPES(RETIRE_DECLARE)
#ifdef __cplusplus
}
#endif

#endif
