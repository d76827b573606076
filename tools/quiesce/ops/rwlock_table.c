/* SPDX-License-Identifier: MIT */
/* rwlock_table.c - the reader-writer locks that this build can measure. */
#include <stddef.h>
#include <string.h>

#include "rwlock.h"

#define RWLOCK_ENTRY(name) &rwlock_op_##name,
const struct rwlock_op *const rwlock_table[] = { RWLOCK_ROWS(RWLOCK_ENTRY) NULL };

const struct rwlock_op *rwlock_find(const char *name)
{
	for (const struct rwlock_op *const *op = rwlock_table; *op; op++)
		if (!strcmp((*op)->name, name))
			return *op;
	return NULL;
}
