/* SPDX-License-Identifier: MIT */
/* hash_objects.h - a hashtable of pairs that are objects, looked up under RCU; shared by types that differ in the objects' memory. */
#ifndef QUIESCE_TOOL_HASH_OBJECTS_H
#define QUIESCE_TOOL_HASH_OBJECTS_H

#include <quiesce/ds/hashtable.h>
#include <quiesce/rcu.h>

#include "types/hash.h"

struct object {
	uint64_t key, value;
};

/* All types of hashscale use this hash function. */
HASHTABLE_TYPE_HASHED(object, struct object, key, hash_mix(*(const uint64_t *)key ^ seed));

static inline __attribute__((always_inline)) uint64_t hash_objects_lookup(struct hashtable *t, uint64_t key)
{
	const struct object *o;
	uint64_t value;

	rcu_read_lock();
	o = object_lookup(t, &key);
	value = o ? o->value : 0;
	rcu_read_unlock();
	return value;
}

/* Insert @o, which may be NULL; if that fails, give it to @end(). */
static inline bool hash_objects_insert(struct hashtable *t, struct object *o, uint64_t key, uint64_t value, void (*end)(void *object))
{
	if (!o)
		return false;
	o->key = key;
	o->value = value;
	if (!hashtable_insert_unique(t, o, NULL))
		return true;
	end(o);
	return false;
}

/* The caller of an update is not in a section, so an object needs no rcu_head: the remove may sleep. */
static inline bool hash_objects_remove(struct hashtable *t, uint64_t key)
{
	struct object *o = hashtable_remove_key(t, &key);

	kfree_rcu_mightsleep(o);
	return o;
}

#endif
