/* SPDX-License-Identifier: MIT */
/* torture_kinds.c - how types without a torture of their own are tortured: by elements under grace periods, or under guards. */
#include "torture.h"

static const struct torture_role rcu_roles[] = { TORTURE_RCU_ROLES, { NULL, 0 } };

static const struct torture_kind rcu = {
	.section = torture_read_section,
	.begin = torture_read_begin,
	.elements = true,
	.roles = rcu_roles,
	.writers = TORTURE_RCU_WRITERS,
};

#define OBJECT_ROLES { torture_object_writer, NR_POINTERS }, { torture_exits, 1 }, { torture_signals, 1 }, { torture_collector, 1 }, \
	{ torture_object_fake_writer, NR_FAKE_WRITERS }
static const struct torture_role object_roles[] = { OBJECT_ROLES, { NULL, 0 } };
static const struct torture_role retired_object_roles[] = { OBJECT_ROLES, { torture_barriers, 1 }, { NULL, 0 } };

#define OBJECTS(threads)                                                                                              \
	{                                                                                                             \
		.section = torture_object_section, .begin = torture_object_begin, .elements = true, .leaves = true, \
		.roles = (threads), .writers = (1u << PROGRESS_CHURN) - 1,                                            \
	}
static const struct torture_kind object = OBJECTS(object_roles), retired_object = OBJECTS(retired_object_roles);

const struct torture_kind *torture_kind(const struct op *op)
{
	const struct torture_kind *own = op->torture;

	if (own || !op->read || !op->read->lock)
		return own;
	if (op->object)
		return op->retire ? &retired_object : &object;
	return op->retire && op->polled && op->pointer ? &rcu : NULL;
}
