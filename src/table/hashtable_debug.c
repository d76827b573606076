/* SPDX-License-Identifier: MIT */
/* hashtable_debug.c - insertions of programs built with QUIESCE_DEBUG: a second insertion of an object is reported. */
#include <quiesce/ds/hashtable.h>

#include "hashtable.h"
#include "runtime/core.h"

#include <errno.h>

/* Valid beside other updates, because the inserter of an object knows that no other thread inserts or removes it. */
static bool is_in(const struct hashtable *ht, const void *object)
{
	const void *key = type_of(&ht->table)->key(object), *found;
	struct hashtable_iter it;

	rcu_read_lock();
	quiesce__iter_begin(&it.iter);
	do
		found = quiesce_hashtable_next_match(ht, &it, key);
	while (found && found != object);
	rcu_read_unlock();
	return found != NULL;
}

int quiesce__hashtable_insert_debug(struct hashtable *ht, void *object)
{
	const void *site = quiesce__caller();
	struct platform_location here;

	/* The call itself reports objects that cannot be inserted, and a table that was not initialised. */
	if (quiesce_likely(!object || ((uintptr_t)object & QUIESCE_TABLE_LINK) || !ht->table.kind || !is_in(ht, object)))
		return quiesce_hashtable_insert(ht, object);
	quiesce__misuse(QUIESCE_MISUSE_TWICE, "hashtable_insert() at %s of %p, which is in the table already",
			platform_location(site, &here),
			object);
	return -EINVAL;
}
