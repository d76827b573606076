/* SPDX-License-Identifier: MIT */
/* torture_types.c - the types that torture takes, and the kinds of those that need a torture of their own. */
#include "types/table.h"
#include "types/quiesce/torture_ops.h"

#include "torture.h"

const struct op *const torture_types[] = {
	&op_rcu, &op_busted,
	&op_shazptr, &op_shazptr_skip_self_scan, &op_shazptr_wildcard, &op_shazptr_wildcard_skip_self_scan, &op_busted_shazptr,
	&op_hazptr, &op_busted_hazptr,
	&torture_op_srcu, &torture_op_busted_srcu,
	&torture_op_percpu_rwsem, &torture_op_busted_percpu_rwsem,
	&torture_op_percpu_ref, &torture_op_busted_percpu_ref,
	NULL,
};

static const struct {
	const struct op *op;
	const struct torture_kind *kind;
} table[] = {
	{ &torture_op_srcu, &torture_srcu },
	{ &torture_op_busted_srcu, &torture_srcu },
	{ &torture_op_percpu_rwsem, &torture_rwsem },
	{ &torture_op_busted_percpu_rwsem, &torture_busted_rwsem },
	{ &torture_op_percpu_ref, &torture_ref },
	{ &torture_op_busted_percpu_ref, &torture_busted_ref },
};

const struct torture_kind *torture_kind_of(const struct op *op)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].op == op)
			return table[i].kind;
	return NULL;
}
