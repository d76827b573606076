/* SPDX-License-Identifier: MIT */
/* items.h - the items of a world of hazard pointers and the pointers to them, for the file that defines that world. */
#ifndef QUIESCE_TESTS_SIM_ITEMS_H
#define QUIESCE_TESTS_SIM_ITEMS_H

static struct item items[NR_ITEMS];
struct item *world_pointer[NR_POINTERS];
static int nr_items, nr_objects;

struct item *world_new(struct item *item)
{
	int id = nr_objects++;

	if (!item && nr_items == NR_ITEMS) {
		sim_fail("scenario: more than %d items", NR_ITEMS);
		return NULL;
	}
	if (!item)
		item = &items[nr_items++];
	sim_obj_init(id);
	sim_data_write(id, 100 + id);
	quiesce_store_relaxed(&item->id, id);
	return item;
}

struct item *world_replace(int index)
{
	struct item *item = world_new(NULL);

	return rcu_xchg_pointer(&world_pointer[index], item);
}

/* A computer of two CPUs, and an item at each pointer. */
static inline void items_begin(void)
{
	sim_config()->nr_cpus = 2;
	sim_config()->rseq_kind = PLATFORM_RSEQ_MM_CID;
	for (int i = 0; i < NR_POINTERS; i++)
		world_pointer[i] = world_new(NULL);
}

#endif
