/* SPDX-License-Identifier: MIT */
#include "rcu_world.h"

struct item world_item[NR_ITEMS];
struct item *world_current;
int world_nr_freed;
static int nr_items;

struct item *world_new(void)
{
	struct item *item = &world_item[nr_items];

	if (nr_items >= NR_ITEMS) {
		sim_fail("scenario: more than %d items", NR_ITEMS);
		return NULL;
	}
	item->id = nr_items++;
	sim_obj_init(item->id);
	sim_data_write(item->id, 100 + item->id);
	return item;
}

void world_begin(void)
{
	world_current = world_new();
}

struct item *world_replace(void)
{
	struct item *item = world_new();

	return rcu_xchg_pointer(&world_current, item);
}

void world_free(struct item *item)
{
	world_nr_freed++;
	sim_obj_free(item->id);
}

void world_free_head(struct rcu_head *head)
{
	world_free((struct item *)head);
}

void world_check(void)
{
	struct item *item = rcu_dereference(world_current);

	sim_obj_read(item->id);
	sim_assert(sim_data_read(item->id) == 100 + (uint64_t)item->id);
	sim_obj_read(item->id);
}

void world_section(int depth)
{
	rcu_read_lock();
	if (depth > 1)
		world_section(depth - 1);
	world_check();
	rcu_read_unlock();
}

void world_reader(void *unused)
{
	(void)unused;
	world_section(1);
	world_section(1);
}

void world_readers(int nr)
{
	spawn_each(nr, world_reader, "reader");
}

void world_updater(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++) {
		struct item *old = world_replace();

		synchronize_rcu();
		world_free(old);
	}
}

uint64_t world_wait_change(uint64_t *word, uint64_t old)
{
	uint64_t now;

	while ((now = quiesce_load_relaxed(word)) == old)
		platform_yield();
	return now;
}
