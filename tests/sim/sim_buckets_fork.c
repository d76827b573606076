/* SPDX-License-Identifier: MIT */
/* sim_buckets_fork.c - scenarios: the child of a process whose other threads were updating a table looks keys up in it. */
#include "sim_buckets.h"

#include "core.h"

static int key[4];

static void reserves(void *nr)
{
	sim_assert(quiesce__table_reserve(&world_table->table, (uintptr_t)nr) == 0);
}

static void updates(void *first)
{
	int i = (intptr_t)first;

	world_set(key[i]);
	world_remove(key[i + 1]);
	world_insert(key[i + 1]);
}

static void child_of_fork(void)
{
	size_t nr = quiesce__table_count(&world_table->table);

	rcu_read_lock();
	if (quiesce_load_relaxed(&quiesce_load_relaxed(&world_table->table.array)->next))
		sim_saw();
	for (int i = 0; i < 4; i++)
		world_lookup(key[i]);
	rcu_read_unlock();
	rcu_barrier();
	synchronize_rcu();
	sim_assert(quiesce__table_count(&world_table->table) == nr);
}

static void forks(void *unused)
{
	(void)unused;
	for (uint32_t k = sim_random(300); k; k--)
		platform_yield();
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	child_of_fork();
}

static void setup(enum world_kind kind)
{
	size_t for_each_line = kind == MAP ? 2 : 4;

	world_begin(kind, 8 * for_each_line);
	for (int i = 0; i < 4; i++) {
		key[i] = world_key(i / 2, (unsigned int)i, -1);
		world_insert(key[i]);
	}
	sim_spawn(reserves, (void *)(16 * for_each_line), "reserver");
	sim_spawn(updates, (void *)0, "owner 0");
	sim_spawn(updates, (void *)2, "owner 1");
	sim_spawn(forks, NULL, "forker");
}

static void setup_table(void) { setup(TABLE); }
static void setup_map(void) { setup(MAP); }

const struct sim_scenario buckets_fork_scenarios[] = {
	{ .name = "table_fork", .what = "the child of a process that was resizing a table", .setup = setup_table,
	  .must_see = "a table that is being resized" },
	{ .name = "map_fork", .what = "the same with a map", .setup = setup_map, .must_see = "a map that is being resized" },
	{ .name = NULL },
};
