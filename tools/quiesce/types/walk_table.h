/* SPDX-License-Identifier: MIT */
/* walk_table.h - the list of walkscale's types, in the order in which results are shown; row X is walk_op_X. */
#ifndef QUIESCE_TOOL_WALK_TABLE_H
#define QUIESCE_TOOL_WALK_TABLE_H

#include "walk.h"

#define WALK_OF(M, scheme) M(scheme##_list) M(scheme##_map) M(scheme##_tree) M(scheme##_skip)
/* These lists name the types of each peer library, as table.h does. */
#define WALK_LIBURCU(P) WALK_OF(P, liburcu)
#define WALK_CK(P) WALK_OF(P, ck_hp) WALK_OF(P, ck_epoch)
#define WALK_LIBCDS(P) WALK_OF(P, libcds_hp) WALK_OF(P, libcds_dhp)
#define WALK_TBB(P)

#define WALK_TYPES(X, P)                                                                                \
	WALK_OF(X, none) X(busted_map) WALK_OF(X, rcu) WALK_OF(X, hazptr) WALK_OF(X, exchange) WALK_OF(X, asymmetric) \
	WALK_LIBURCU(P) WALK_CK(P) WALK_LIBCDS(P)

#define WALK_HERE(name) &walk_op_##name,
#define WALK_DECLARE(name) extern const struct op walk_op_##name;
#ifdef __cplusplus
extern "C" {
#endif
WALK_TYPES(WALK_DECLARE, WALK_DECLARE)
#ifdef __cplusplus
}
#endif

#endif
