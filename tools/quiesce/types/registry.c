/* SPDX-License-Identifier: MIT */
/* registry.c - the types in this build; those of peers if their modules can be loaded. */
#include <string.h>

#include "table.h"

static struct op_item item = { 1 };
struct op_target op_target = { &item };

const struct op *op_table[] = { OP_TYPES(OP_HERE, OP_ABSENT) NULL };

const struct op *op_find(const char *name)
{
	for (const struct op *const *op = op_table; *op; op++)
		if (!strcmp((*op)->name, name))
			return *op;
	return NULL;
}
