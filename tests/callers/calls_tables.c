/* SPDX-License-Identifier: MIT */
/* calls_tables.c - hash tables and maps. */
#include "world.h"

static bool call_table_find(struct world *w)
{
	struct hashtable_iter it;
	struct object *o;
	uint64_t key = 3, none = NR_KEYS + 1000000;
	const void *both[2] = { &none, &key };
	void *found[2];
	int nr = 0;

	rcu_read_lock();
	o = object_lookup(&w->table, &key);
	hashtable_for_each(o, &it, &w->table)
		nr += object_is_fixed(w, o);
	hashtable_for_each_match(o, &it, &w->table, &key)
		nr += o == w->fixed[3];
	o = hashtable_lookup(&w->table, &object_type, &key);
	nr += hashtable_lookup_many(&w->table, &object_type, both, 2, found) == 1 && !found[0] && found[1] == o;
	rcu_read_unlock();
	return nr == NR_KEYS + 2 && o == w->fixed[3] && hashtable_count(&w->table) == NR_KEYS &&
	       quiesce_hash_bytes(w->fixed[0], 9, 1) != quiesce_hash_bytes(w->fixed[0], 9, 2);
}

static bool call_table_hazptr(struct world *w)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	uint64_t key = 5, none = NR_KEYS + 1000000;
	bool ok;

	if (!slot)
		return done(w, -ENOMEM);
	ok = hashtable_lookup_hazptr(&w->table, &object_type, &key, slot, 0) == w->fixed[5] &&
	     !hashtable_lookup_hazptr(&w->table, &object_type, &none, slot, 0);
	hazptr_free(NULL, slot);
	return ok;
}

static void end_later(void *object, void *unused)
{
	(void)unused;
	call_rcu(&((struct object *)object)->rcu, object_rcu);
}

static void *same(void *object, void *unused)
{
	(void)unused;
	return object;
}

/* Insert each of @o, and replace one by another. */
static bool change_table(struct world *w, struct hashtable *t, struct object *const *o, int nr)
{
	struct object *old = NULL, *fresh = object_owed(w);
	void *found = NULL;
	bool ok = true;

	for (int i = 0; i < nr; i++)
		ok = ok && done(w, object_insert(t, o[i]));
	if (!ok || w->memory_fails) {
		object_end(fresh);
		return ok;
	}
	ok = object_insert_unique(t, o[0], &old) == -EEXIST && old == o[0];
	fresh->key = o[1]->key;
	ok = ok && object_set(t, fresh, &old) == 0 && old == o[1] && hashtable_replace(t, fresh, o[1]) == 0;
	ok = ok && hashtable_update(t, &o[1]->key, same, NULL, &found) == 0 && !found;
	ok = ok && object_remove(t, o[2]) == 0 && object_remove(t, o[2]) == -ENOENT && object_remove_key(t, &o[3]->key) == o[3];
	call_rcu(&fresh->rcu, object_rcu);
	end_later(o[2], NULL);
	end_later(o[3], NULL);
	return ok;
}

static bool is_odd(void *object, void *unused)
{
	(void)unused;
	return ((struct object *)object)->key % 2;
}

static bool call_table_change(struct world *w)
{
	enum { NR = 200 };
	struct quiesce_table_stats stats;
	struct object *o[NR];
	struct hashtable own;
	bool ok = hashtable_init(&own, &object_type) == 0;

	for (int i = 0; i < NR; i++)
		o[i] = object_owed(w);
	ok = change_table(w, &own, o, NR) && ok;
	hashtable_stats(&own, &stats);
	if (w->memory_fails) { /* whatever the table contains */
		hashtable_destroy(&own, NULL, NULL);
		for (int i = 0; i < NR; i++)
			end_later(o[i], NULL);
		return ok;
	}
	ok = ok && hashtable_remove_all(&own, &o[4]->key, end_later, NULL) == 1;
	ok = ok && hashtable_remove_if(&own, is_odd, end_later, NULL) > 0 && hashtable_remove_if(&own, is_odd, end_later, NULL) == 0;
	hashtable_clear(&own, end_later, NULL);
	ok = ok && hashtable_count(&own) == 0;
	hashtable_destroy(&own, end_later, NULL);
	ok = ok && hashtable_init_seeded(&own, &object_type, 7) == 0;
	hashtable_destroy(&own, end_later, NULL);
	return ok;
}

static bool call_table_walk(struct world *w)
{
	struct hashtable_walk walk;
	int nr = 0;

	for (hashtable_walk_enter(&w->table, &walk); hashtable_walk_start(&walk); hashtable_walk_stop(&walk))
		while (hashtable_walk_next(&walk))
			nr++;
	return nr == NR_KEYS;
}

static bool call_table_reserve(struct world *w)
{
	struct hashtable own;
	struct hashmap map = HASHMAP_INIT;
	bool ok = hashtable_init(&own, &object_type) == 0;

	ok = ok && done(w, hashtable_reserve(&own, 3000)) && done(w, hashmap_reserve(&map, 3000));
	hashtable_destroy(&own, NULL, NULL);
	hashmap_destroy(&map);
	return ok;
}

/* ---- maps ---- */

static bool call_map_find(struct world *w)
{
	struct hashmap_iter it;
	uint64_t key, value, sum = 0, both[2] = { NR_KEYS + 1, 4 }, values[2];
	bool ok;

	rcu_read_lock();
	ok = hashmap_lookup(&w->map, 4) == (uintptr_t)w->fixed[4] && !hashmap_lookup(&w->map, NR_KEYS + 1);
	ok = ok && hashmap_lookup_many(&w->map, both, 2, values) == 1 && !values[0] && values[1] == (uintptr_t)w->fixed[4];
	hashmap_for_each(key, value, &it, &w->map)
		sum += key + (value == (uintptr_t)w->fixed[key]);
	rcu_read_unlock();
	return ok && sum == NR_KEYS * (NR_KEYS - 1) / 2 + NR_KEYS && hashmap_count(&w->map) == NR_KEYS;
}

static uint64_t one_more(uint64_t value, void *unused)
{
	(void)unused;
	return value + 1;
}

static bool change_map(struct world *w, struct hashmap *m)
{
	uint64_t old = 0;
	bool ok = true;

	for (uint64_t key = 0; key < 300; key++)
		ok = ok && done(w, hashmap_insert(m, key, key + 1, NULL));
	if (!ok || w->memory_fails)
		return ok;
	ok = hashmap_insert(m, 7, 1, &old) == -EEXIST && old == 8 && hashmap_set(m, 7, 70, &old) == 0 && old == 8;
	ok = ok && hashmap_replace(m, 7, 70, 71) == 0 && hashmap_replace(m, 7, 70, 72) == -ENOENT;
	ok = ok && hashmap_update(m, 7, one_more, NULL, &old) == 0 && old == 71 && hashmap_remove(m, 7) == 72 && !hashmap_remove(m, 7);
	return ok && hashmap_remove_value(m, 8, 1) == -ENOENT && hashmap_remove_value(m, 8, 9) == 0 && hashmap_count(m) == 298;
}

static bool is_even_key(uint64_t key, uint64_t value, void *unused)
{
	(void)unused;
	return key % 2 == 0 && value;
}

static bool call_map_change(struct world *w)
{
	struct quiesce_table_stats stats;
	struct hashmap own;
	bool ok = hashmap_init_seeded(&own, 3) == 0 && hashmap_init(&own) == 0;

	ok = ok && change_map(w, &own);
	hashmap_stats(&own, &stats);
	ok = ok && (w->memory_fails || hashmap_remove_if(&own, is_even_key, NULL) == 149);
	hashmap_clear(&own);
	ok = ok && hashmap_count(&own) == 0;
	hashmap_destroy(&own);
	return ok;
}

static bool call_map_walk(struct world *w)
{
	struct hashmap_walk walk;
	uint64_t key, value;
	int nr = 0;

	for (hashmap_walk_enter(&w->map, &walk); hashmap_walk_start(&walk); hashmap_walk_stop(&walk))
		while (hashmap_walk_next(&walk, &key, &value))
			nr += value == (uintptr_t)w->fixed[key];
	return nr == NR_KEYS;
}

enum { ANYWHERE = IN_READER | IN_CALLBACK | AT_THREAD_END };

const struct call calls_tables[] = {
	CALL(table_find, "hashtable_lookup hashtable_lookup_many hashtable_for_each hashtable_for_each_match hashtable_count"
	     " quiesce_hash_bytes", NEVER_WAITS | ANYWHERE),
	CALL(table_hazptr, "hashtable_lookup_hazptr", ANYWHERE | MAY_FAIL),
	CALL(table_change, "hashtable_init hashtable_init_seeded hashtable_insert hashtable_insert_unique hashtable_set hashtable_remove"
	     " hashtable_remove_key hashtable_replace hashtable_update hashtable_stats hashtable_clear"
	     " hashtable_remove_all hashtable_remove_if"
	     " hashtable_destroy", ANYWHERE | MAY_FAIL),
	CALL(table_walk, "hashtable_walk_enter hashtable_walk_start hashtable_walk_next hashtable_walk_stop", IN_CALLBACK | AT_THREAD_END),
	CALL(table_reserve, "hashtable_reserve hashmap_reserve", IN_CALLBACK | AT_THREAD_END | MAY_FAIL),
	CALL(map_find, "hashmap_lookup hashmap_lookup_many hashmap_for_each hashmap_count", NEVER_WAITS | ANYWHERE),
	CALL(map_change, "hashmap_init hashmap_init_seeded hashmap_insert hashmap_set hashmap_replace hashmap_update hashmap_remove"
	     " hashmap_remove_value hashmap_stats hashmap_clear hashmap_remove_if hashmap_destroy", ANYWHERE | MAY_FAIL),
	CALL(map_walk, "hashmap_walk_enter hashmap_walk_start hashmap_walk_next hashmap_walk_stop", IN_CALLBACK | AT_THREAD_END),
	END_OF_CALLS,
};
