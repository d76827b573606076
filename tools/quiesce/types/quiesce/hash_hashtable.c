/* SPDX-License-Identifier: MIT */
/* hash_hashtable.c - hashtable of quiesce: objects from malloc(), looked
 * up under RCU or protected by a hazard pointer. */
#include <quiesce/hazptr.h>

#include "ours.h"
#include "hash_objects.h"
#include "hash_ours.h"
#include "types/hash.h"
#include "registry.h"

struct protected_object {
	struct object object;
	struct hazptr_head hazptr;
};

static void drop(void *object, void *arg)
{
	(void)arg;
	free(object); /* no other thread uses the table */
}

HASH_OURS(struct hashtable, hashtable_init(t, &object_type), hashtable_destroy(t, drop, NULL))

HASH_LOOKUP hashtable_rcu_lookup(struct hashtable *t, uint64_t key)
{
	return hash_objects_lookup(t, key);
}

static bool hashtable_rcu_insert(struct hashtable *t, uint64_t key, uint64_t value)
{
	return hash_objects_insert(t, malloc(sizeof(struct object)), key, value, free);
}

static bool hashtable_rcu_remove(struct hashtable *t, uint64_t key)
{
	return hash_objects_remove(t, key);
}

HASH_RUN(hashtable_rcu, struct hashtable)

OP_FUNCTION(rcu_end, rcu_barrier())

#define TABLE .create = create, .destroy = destroy, .mapped = mapped, .grows = true

static const struct hash_op hashtable_hash = { TABLE, .run = hashtable_rcu_run, .barrier = rcu_end, .resize = resize,
	.waiting = op_rcu_waiting };
TYPE(hashtable, .rank = 320, .groups = RUN_SIX | RUN_TABLE | REPORT, .peers = PEER_TABLE,
	.what = "hashtable of quiesce, grown by itself: objects without an rcu_head, RCU, kfree_rcu_mightsleep()",
	OURS, .hash = &hashtable_hash, .thread_enter = rcu_first_section);

/* ---- hashtable with lookups in batches ---- */

static inline void hashtable_rcu_lookup_many(struct hashtable *t, const uint64_t *key, size_t nr, uint64_t *ret_value)
{
	const void *address[HASH_BATCH];
	void *found[HASH_BATCH];

	for (size_t i = 0; i < nr; i++)
		address[i] = key + i;
	rcu_read_lock();
	hashtable_lookup_many(t, &object_type, address, nr, found);
	for (size_t i = 0; i < nr; i++)
		ret_value[i] = found[i] ? ((const struct object *)found[i])->value : 0;
	rcu_read_unlock();
}

HASH_RUN_MANY(hashtable_many, hashtable_rcu, struct hashtable)

static const struct hash_op hashtable_many_hash = { TABLE, .run = hashtable_many_run, .barrier = rcu_end, .waiting = op_rcu_waiting };
TYPE(hashtable_many, .rank = 325,
	.what = "hashtable of quiesce, up to 32 lookups at once: hashtable_lookup_many()",
	OURS, .hash = &hashtable_many_hash, .thread_enter = rcu_first_section);

/* ---- hashtable updated by functions ---- */

struct offer {
	struct object *object;
	bool taken;
};

static void *put(void *there, void *arg)
{
	struct offer *offer = arg;

	offer->taken = !there;
	return there ? there : offer->object;
}

static void *take(void *there, void *unused)
{
	(void)there;
	(void)unused;
	return NULL;
}

HASH_LOOKUP hashtable_update_lookup(struct hashtable *t, uint64_t key)
{
	return hashtable_rcu_lookup(t, key);
}

static bool hashtable_update_insert(struct hashtable *t, uint64_t key, uint64_t value)
{
	struct offer offer = { malloc(sizeof(struct object)), false };

	if (!offer.object)
		return false;
	*offer.object = (struct object){ key, value };
	if (hashtable_update(t, &key, put, &offer, NULL) == 0 && offer.taken)
		return true;
	free(offer.object);
	return false;
}

static bool hashtable_update_remove(struct hashtable *t, uint64_t key)
{
	void *old = NULL;
	struct object *o;

	if (hashtable_update(t, &key, take, NULL, &old))
		return false;
	o = old;
	kfree_rcu_mightsleep(o);
	return o;
}

HASH_RUN(hashtable_update, struct hashtable)

static const struct hash_op hashtable_update_hash = { TABLE, .run = hashtable_update_run, .barrier = rcu_end,
	.waiting = op_rcu_waiting };
TYPE(hashtable_update, .rank = 330,
	.what = "hashtable of quiesce, inserts and removes by functions: hashtable_update()",
	OURS, .hash = &hashtable_update_hash, .thread_enter = rcu_first_section);

/* ---- hashtable with a hazard pointer for the object ---- */

static __thread hazptr_t *slot;

HASH_LOOKUP hashtable_hazptr_lookup(struct hashtable *t, uint64_t key)
{
	const struct object *o = hashtable_lookup_hazptr(t, &object_type, &key, slot, offsetof(struct protected_object, hazptr));
	uint64_t value = 0;

	if (o) {
		value = o->value;
		hazptr_clear(slot);
	}
	return value;
}

static bool hashtable_hazptr_insert(struct hashtable *t, uint64_t key, uint64_t value)
{
	struct protected_object *o = malloc(sizeof(*o));

	return hash_objects_insert(t, o ? &o->object : NULL, key, value, free);
}

static bool hashtable_hazptr_remove(struct hashtable *t, uint64_t key)
{
	struct protected_object *o = hashtable_remove_key(t, &key);

	if (o)
		kfree_hazptr(o, hazptr);
	return o;
}

HASH_RUN(hashtable_hazptr, struct hashtable)

static void slot_enter(void)
{
	rcu_first_section();
	slot = hazptr_alloc(NULL);
	if (!slot)
		abort();
}

OP_FUNCTION(slot_exit, hazptr_free(NULL, slot))
OP_FUNCTION(both_end, hazptr_barrier(); rcu_barrier())

static const struct hash_op hashtable_hazptr_hash = { TABLE, .run = hashtable_hazptr_run, .barrier = both_end, .resize = resize,
	.waiting = op_hazptr_waiting };
TYPE(hashtable_hazptr, .rank = 340,
	.what = "hashtable of quiesce, objects with a hazptr_head, protected by a hazard pointer, kfree_hazptr()",
	OURS, .hash = &hashtable_hazptr_hash, .thread_enter = slot_enter, .thread_exit = slot_exit);
