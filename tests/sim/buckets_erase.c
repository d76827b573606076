/* SPDX-License-Identifier: MIT */
/* buckets_erase.c - removals of several elements by one call: all, those that a function chooses, and those with one key. */
#include "buckets_world.h"

static bool is_chosen[NR_KEYS];
static size_t nr_removed;

static void drop(void *object, void *unused)
{
	(void)unused;
	nr_removed++;
	world_item_retire(object);
}

static void clear(void)
{
	if (world_kind == MAP)
		hashmap_clear(&world_table->map);
	else
		hashtable_clear(&world_table->ht, drop, NULL);
}

void world_clear(void)
{
	for (int i = 0; i < NR_KEYS; i++)
		is_chosen[i] = true;
	world_removals(is_chosen, clear);
}

static bool chosen_item(void *item, void *unused)
{
	(void)unused;
	return is_chosen[world_key_index(((struct item *)item)->key)];
}

static bool chosen_pair(uint64_t key, uint64_t value, void *unused)
{
	(void)unused;
	return value && is_chosen[world_key_index(key)];
}

static void remove_chosen(void)
{
	if (world_kind == MAP)
		hashmap_remove_if(&world_table->map, chosen_pair, NULL);
	else
		sim_assert(hashtable_remove_if(&world_table->ht, chosen_item, drop, NULL) == nr_removed);
}

static void remove_key(void)
{
	sim_assert(hashtable_remove_all(&world_table->ht, &world_key_of[0], drop, NULL) == nr_removed);
}

void world_erase(void)
{
	int watched = (int)sim_random(3); /* readers ask for the first three keys, and may see the removals of one call in any order */

	for (int i = 0; i < NR_KEYS; i++)
		is_chosen[i] = sim_random(4) && (i > 2 || i == watched);
	nr_removed = 0;
	world_removals(is_chosen, remove_chosen);
	if (world_kind == MAP)
		return;
	for (int i = 0; i < NR_KEYS; i++)
		is_chosen[i] = i == 0;
	nr_removed = 0;
	world_removals(is_chosen, remove_key);
}
