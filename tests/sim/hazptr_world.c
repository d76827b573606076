/* SPDX-License-Identifier: MIT */
#include "hazptr_world.h"
#include "items.h"

#include <string.h>

#define LAST_WORDS 500
#define LAST_WORDS_OF(id) (SIM_MAX_OBJECTS / 2 + (int)(id)) /* a word beside the item that no reader loads */

int world_nr_retired, world_nr_freed;
bool world_short_of_slots, world_inline, world_hands_over;

void world_begin(void)
{
	items_begin();
}

/* The library must not use the heads any more: they are poisoned, so that a later access goes astray. */
void world_free(struct item *item)
{
	uint64_t id = quiesce_load_relaxed(&item->id);

	world_nr_freed++;
	sim_assert(sim_data_read(LAST_WORDS_OF(id)) == LAST_WORDS);
	sim_obj_free(id);
	memset(&item->head, 0xa5, sizeof item->head);
	memset(&item->field, 0xa5, sizeof item->field);
}

void world_free_head(struct hazptr_head *head)
{
	world_free((struct item *)head);
}

void world_free_field(struct hazptr_head *field)
{
	world_free((struct item *)((char *)field - offsetof(struct item, field)));
}

void world_last_words(struct item *item)
{
	sim_data_write(LAST_WORDS_OF(quiesce_load_relaxed(&item->id)), LAST_WORDS);
}

void world_retire_large(struct item *item, void (*callback)(struct hazptr_head *head), size_t bytes)
{
	world_last_words(item);
	world_nr_retired++;
	call_hazptr_inline_sized(&item->head, callback, bytes);
}

void world_retire(struct item *item, void (*callback)(struct hazptr_head *head))
{
	world_last_words(item);
	world_nr_retired++;
	if (world_inline || (!world_hands_over && sim_random(2)))
		call_hazptr_inline(&item->head, callback);
	else
		call_hazptr(&item->head, callback);
}

void world_update(int index)
{
	world_retire(world_replace(index), world_free_head);
}

void world_check(const struct item *item)
{
	uint64_t id = quiesce_load_relaxed(&item->id);

	sim_obj_read(id);
	sim_assert(sim_data_read(id) == 100 + id);
	sim_obj_read(id);
}

struct item *world_protect(hazptr_t *slot, int index)
{
	struct item *item = hazptr_protect(slot, &world_pointer[index]);

	world_check(item);
	return item;
}

void world_read(int index)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	if (!slot && world_short_of_slots)
		return;
	sim_assert(slot);
	world_protect(slot, index);
	hazptr_clear(slot);
	hazptr_free(NULL, slot);
}

void world_reader(void *index)
{
	world_read((intptr_t)index);
	world_read((intptr_t)index);
}

void world_readers(int nr)
{
	spawn_each(nr, world_reader, "reader");
}

void world_updater(void *index)
{
	for (int i = 0; i < 3; i++)
		world_update((intptr_t)index);
}

void world_finish(void)
{
	struct quiesce_stats stats;

	if (world_nr_freed != world_nr_retired)
		sim_fail("%d objects retired, %d reclaimed, and all threads are idle", world_nr_retired, world_nr_freed);
	quiesce_get_stats(&stats, sizeof stats);
	if (stats.hazptr_retired != stats.hazptr_reclaimed || stats.hazptr_retired < (uint64_t)world_nr_retired)
		sim_fail("counted %llu retired and %llu reclaimed of %d", (unsigned long long)stats.hazptr_retired,
			 (unsigned long long)stats.hazptr_reclaimed, world_nr_retired);
}
