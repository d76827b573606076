/* SPDX-License-Identifier: MIT */
/* buckets_walk.c - the kinds of iteration over a table. */
#include "buckets_world.h"

/* Walk in several sections. */
static void walk_in_steps(visit_func *visit, const int *low, int *visits)
{
	struct hashtable_walk table;
	struct hashmap_walk map;
	struct item *found;
	uint64_t key, value;

	if (world_kind != MAP) {
		for (hashtable_walk_enter(&world_table->ht, &table); hashtable_walk_start(&table); hashtable_walk_stop(&table))
			while ((found = hashtable_walk_next(&table)))
				visit(found, low, visits);
		return;
	}
	for (hashmap_walk_enter(&world_table->map, &map); hashmap_walk_start(&map); hashmap_walk_stop(&map))
		while (hashmap_walk_next(&map, &key, &value)) {
			found = (struct item *)(uintptr_t)value;
			sim_assert(found->key == key);
			visit(found, low, visits);
		}
}

static void walk(visit_func *visit, const int *low, int *visits)
{
	struct hashtable_iter it;
	struct hashmap_iter map_it;
	struct item *found;
	uint64_t key, value;

	if (world_kind != MAP) {
		hashtable_for_each(found, &it, &world_table->ht)
			visit(found, low, visits);
		return;
	}
	hashmap_for_each(key, value, &map_it, &world_table->map) {
		found = (struct item *)(uintptr_t)value;
		sim_assert(found->key == key);
		visit(found, low, visits);
	}
}

void world_walk(bool in_steps, visit_func *visit, const int *low, int *visits)
{
	if (in_steps)
		walk_in_steps(visit, low, visits);
	else
		walk(visit, low, visits);
}
