/* SPDX-License-Identifier: MIT */
#include "shazptr_world.h"
#include "items.h"

#include "slots/slots.h"

void world_begin(void)
{
	items_begin();
	sim_config()->idle_limit_ns = 200000000;
}

void world_free(struct item *item)
{
	sim_obj_free(quiesce_load_relaxed(&item->id));
}

void world_check(const struct item *item)
{
	uint64_t id = quiesce_load_relaxed(&item->id);

	sim_obj_read(id);
	sim_assert(sim_data_read(id) == 100 + id);
	sim_obj_read(id);
}

void world_read(int index)
{
	struct shazptr_guard guard = shazptr_protect(&world_pointer[index]);

	world_check(shazptr_ptr(guard));
	shazptr_clear(guard);
}

void world_read_known(int index, bool wild)
{
	struct item *item = rcu_access_pointer(world_pointer[index]);
	struct shazptr_guard guard = shazptr_acquire(wild ? SHAZPTR_WILDCARD : (void *)item);
	struct item *again = rcu_dereference(world_pointer[index]);

	if (wild || again == item)
		world_check(again);
	shazptr_clear(guard);
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

void world_reader_of_pointers(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++)
		world_read(i);
}

void world_updater(void *index)
{
	for (int i = 0; i < 2; i++) {
		struct item *old = world_replace((intptr_t)index);

		synchronize_shazptr(old);
		world_free(old);
	}
}

void world_updaters(int nr)
{
	spawn_each(nr, world_updater, "updater");
}

void world_await_tag(const struct shazptr_guard *guard, const uint32_t *done)
{
	while (!(quiesce_load_acquire(RU3, guard->slot) & QUIESCE_SLOT_TAG) && !(done && quiesce_load_relaxed(done)))
		platform_yield();
}
