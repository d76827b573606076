/* SPDX-License-Identifier: MIT */
/* torture_types.c - the types that torture takes, and the kinds of torture. */
#include "ops/table.h"
#include "ops/torture_ops.h"

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

static const struct torture_role rcu_roles[] = { TORTURE_RCU_ROLES, { NULL, 0 } };

static const struct torture_kind rcu = {
	.section = torture_read_section,
	.begin = torture_read_begin,
	.elements = true,
	.roles = rcu_roles,
	.writers = TORTURE_RCU_WRITERS,
};

#define OBJECT_ROLES { torture_object_writer, NR_POINTERS }, { torture_exits, 1 }, { torture_signals, 1 }, { torture_postman, 1 }, \
	{ torture_object_fake_writer, NR_FAKE_WRITERS }
static const struct torture_role object_roles[] = { OBJECT_ROLES, { NULL, 0 } };
static const struct torture_role retired_object_roles[] = { OBJECT_ROLES, { torture_barriers, 1 }, { NULL, 0 } };

#define OBJECTS(threads)                                                                                              \
	{                                                                                                             \
		.section = torture_object_section, .begin = torture_object_begin, .elements = true, .leaves = true, \
		.roles = (threads), .writers = (1u << PROGRESS_CHURN) - 1,                                            \
	}
static const struct torture_kind object = OBJECTS(object_roles), retired_object = OBJECTS(retired_object_roles);

static const struct {
	const struct op *op;
	const struct torture_kind *kind;
	const void *calls;
} table[] = {
	{ &torture_op_srcu, &torture_srcu, NULL },
	{ &torture_op_busted_srcu, &torture_srcu, NULL },
	{ &torture_op_percpu_rwsem, &torture_rwsem, &torture_rwsem_ops },
	{ &torture_op_busted_percpu_rwsem, &torture_rwsem, &torture_busted_rwsem_ops },
	{ &torture_op_percpu_ref, &torture_ref, &torture_ref_ops },
	{ &torture_op_busted_percpu_ref, &torture_ref, &torture_busted_ref_ops },
};

const struct torture_kind *torture_kind_of(const struct op *op, const void **ret_calls)
{
	*ret_calls = NULL;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].op == op) {
			*ret_calls = table[i].calls;
			return table[i].kind;
		}
	if (!op->read || !op->read->lock)
		return NULL;
	if (op->object)
		return op->retire ? &retired_object : &object;
	return op->retire && op->polled && op->pointer ? &rcu : NULL;
}
