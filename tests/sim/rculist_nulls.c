/* SPDX-License-Identifier: MIT */
/* rculist_nulls.c - scenarios: entries that are used again at once, in another chain or with another key. */
#include "rculist_world.h"

static struct entry *always, *rover; /* one stays in chain 0; the other is reused repeatedly */

static struct entry *entry_of(struct nulls_entry *in)
{
	return (struct entry *)(void *)((char *)in - offsetof(struct entry, nulls));
}

static bool visit(struct nulls_entry *in)
{
	return world_visit(entry_of(in));
}

static void put(struct nulls_entry *in)
{
	nulls_drop(in);
}

static void not_seen(void)
{
}

static const struct nulls_world world = { visit, put, sim_saw, not_seen };

/* Begin a life of an entry: set the key and the first reference, add it to the chain. */
static void enter(struct entry *e, uint64_t key)
{
	nulls_begin_life(&e->nulls, key);
	hlist_nulls_add_head_rcu(&e->nulls.node, nulls_chain_of(key));
}

/* End a life: there is no reference any more, but readers may still visit the entry. */
static void leave(struct entry *e)
{
	hlist_nulls_del_rcu(&e->nulls.node);
	put(&e->nulls);
	while (quiesce_load_acquire(RU3, &e->nulls.refs))
		platform_yield();
}

static struct entry *find(uint64_t key)
{
	struct nulls_entry *in = nulls_find(&world, key);

	return in ? entry_of(in) : NULL;
}

static void begin(void)
{
	nulls_begin();
	enter(always = world_new(), 0);
	enter(rover = world_new(), 2);
}

/* ---- an entry that stays is found ---- */

static void find_always(void)
{
	struct entry *e = find(0);

	sim_assert(e == always);
	if (e)
		put(&e->nulls);
}

static void moves(void *unused)
{
	(void)unused;
	for (uint64_t key = 3; key < 7; key++) {
		leave(rover);
		enter(rover, key);
	}
}

static void setup_moved(void)
{
	begin();
	world_readers(find_always);
	sim_spawn(moves, NULL, "updater");
}

/* Move an entry from a chain to none. */
static void leaves_for_none(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		leave(rover);
		hlist_nulls_add_fake(&rover->nulls.node);
		sim_point("in no chain");
		hlist_nulls_del_rcu(&rover->nulls.node);
		enter(rover, 2);
	}
}

static void setup_fake(void)
{
	begin();
	world_readers(find_always);
	sim_spawn(leaves_for_none, NULL, "updater");
}

/* The entry moves within its chain, to the head, so that it leads a walk back and not past the others to the end. */
static void moves_within(void *unused)
{
	(void)unused;
	for (uint64_t key = 4; key < 8; key += 2) {
		leave(rover);
		enter(rover, key);
	}
}

/* At the beginning the rover is at the head. */
static void setup_within(void)
{
	begin();
	if (QUIESCE_MUTANT(nulls_at_tail)) {
		leave(always);
		enter(always, 0);
	}
	world_readers(find_always);
	sim_spawn(moves_within, NULL, "updater");
}

/* ---- a found entry keeps its key ---- */

static void find_rover(void)
{
	struct entry *e = find(4);

	if (!e)
		return;
	for (int i = 0; i < 3; i++) {
		sim_point("uses it");
		sim_assert(nulls_key_of(&e->nulls) == 4);
	}
	put(&e->nulls);
}

static void setup_renamed(void)
{
	begin();
	world_readers(find_rover);
	sim_spawn(moves, NULL, "updater");
}

/* ---- a walk that went astray finds entries of the other chain complete ---- */

/* The new entry is added after the last full fence, which is that of the put. */
static void moves_before_a_new_one(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		leave(rover);
		enter(world_new(), 1);
		enter(rover, 3);
		leave(rover);
		enter(rover, 2);
	}
}

static void setup_astray(void)
{
	begin();
	world_readers(find_always);
	sim_spawn(moves_before_a_new_one, NULL, "updater");
}

/* The walk reaches a new entry past a removed one. */
static void passes_a_new_one(void *unused)
{
	(void)unused;
	hlist_nulls_add_tail_rcu(&world_new()->nulls.node, &nulls_chain[0]);
	hlist_nulls_del_init_rcu(&always->nulls.node);
	hlist_nulls_del_init_rcu(&always->nulls.node);
	enter(world_new(), 4);
	leave(rover);
}

static void find_nothing(void)
{
	sim_assert(!find(8));
}

static void setup_passed(void)
{
	begin();
	world_readers(find_nothing);
	sim_spawn(passes_a_new_one, NULL, "updater");
}

const struct sim_scenario rculist_nulls_scenarios[] = {
	{ .name = "nulls_moved", .what = "what stays is found while another moves", .setup = setup_moved,
	  .must_see = "a walk that ended in another chain" },
	{ .name = "nulls_fake", .what = "... or is in no chain", .setup = setup_fake,
	  .must_see = "a walk that ended in another chain" },
	{ .name = "nulls_within", .what = "... or moves within its chain", .setup = setup_within },
	{ .name = "nulls_renamed", .what = "a reference is of the object with the key", .setup = setup_renamed },
	{ .name = "nulls_astray", .what = "a walk that goes astray finds complete entries", .setup = setup_astray,
	  .must_see = "a walk that ended in another chain" },
	{ .name = "nulls_passed", .what = "... and so past a removed one", .setup = setup_passed },
	{ .name = NULL },
};
