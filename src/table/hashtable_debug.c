/* SPDX-License-Identifier: MIT */
/* hashtable_debug.c - insertions of programs built with QUIESCE_DEBUG: a second insertion of an object is reported. */
#include <quiesce/ds/hashtable.h>

#include "hashtable.h"
#include "runtime/core.h"

#include <errno.h>

int quiesce__hashtable_insert_debug(struct hashtable *ht, void *object)
{
	const void *site = quiesce__caller();
	struct platform_location here;

	/* The call itself reports objects that cannot be inserted, and a table that was not initialised. */
	if (quiesce_likely(!object || ((uintptr_t)object & QUIESCE_TABLE_LINK) || !ht->table.kind || !quiesce__hashtable_holds(ht, object)))
		return quiesce_hashtable_insert(ht, object);
	quiesce__misuse(QUIESCE_MISUSE_TWICE, "hashtable_insert() at %s of %p, which is in the table already",
			platform_location(site, &here),
			object);
	return -EINVAL;
}
