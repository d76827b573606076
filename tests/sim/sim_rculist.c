/* SPDX-License-Identifier: MIT */
/* sim_rculist.c - lists on the simulated machine: list_head and hlist here, nulls in rculist_nulls.c. */
#include "rculist_world.h"

struct entry world_entry[NR_ENTRIES];
static int nr_entries;

struct entry *world_new(void)
{
	struct entry *entry = &world_entry[nr_entries];

	if (nr_entries >= NR_ENTRIES) {
		sim_fail("scenario: more than %d entries", NR_ENTRIES);
		return NULL;
	}
	entry->id = nr_entries++;
	sim_obj_init(entry->id);
	sim_data_write(entry->id, 100 + (uint64_t)entry->id);
	return entry;
}

bool world_visit(const struct entry *entry)
{
	if (entry < world_entry || entry >= world_entry + NR_ENTRIES) {
		sim_fail("a walk arrived where there is no entry");
		return false;
	}
	sim_obj_read(entry->id);
	sim_assert(sim_data_read(entry->id) == 100 + (uint64_t)entry->id);
	return true;
}

void world_free(struct entry *entry)
{
	sim_obj_free(entry->id);
}

void world_free_head(struct rcu_head *rcu)
{
	world_free((struct entry *)rcu);
}

static void twice(void *body)
{
	for (int i = 0; i < 2; i++)
		((void (*)(void))body)();
}

void world_readers(void (*body)(void))
{
	for (int i = 0; i < driver_readers; i++)
		sim_spawn(twice, (void *)body, "reader");
}

/* ---- list_head ---- */

static LIST_HEAD(list);
static LIST_HEAD(other);
static struct entry *always; /* stays in the list from beginning to end */
static struct quiesce__lock updaters;

/* Walk, check that the entry that stays is seen once, and return the number of entries. */
static int walk(const struct list_head *head)
{
	int entries = 0, seen = 0;
	struct entry *e;

	rcu_read_lock();
	list_for_each_entry_rcu(e, head, node) {
		if (!world_visit(e) || entries++ > NR_ENTRIES)
			break;
		seen += e == always;
	}
	rcu_read_unlock();
	sim_assert(seen == (head == &list));
	return entries;
}

static void walk_list(void)
{
	walk(&list);
}

static void remove_and_wait(struct entry *e)
{
	list_del_rcu(&e->node);
	synchronize_rcu();
	world_free(e);
}

static void begin_list(void)
{
	always = world_new();
	list_add_rcu(&always->node, &list);
}

static void updater(void *unused)
{
	struct entry *first = world_new(), *last = world_new(), *before = world_new();

	(void)unused;
	list_add_rcu(&first->node, &list);
	list_add_tail_rcu(&last->node, &list);
	remove_and_wait(first);
	list_add_tail_rcu(&before->node, &always->node);
	list_del_rcu(&last->node);
	call_rcu(&last->rcu, world_free_head);
	remove_and_wait(before);
}

static void setup_list(void)
{
	begin_list();
	world_readers(walk_list);
	sim_spawn(updater, NULL, "updater");
}

/* The new entry is reached over the old one first, then past it. */
static void adds_behind_and_removes(void *unused)
{
	struct entry *old = always, *fresh;

	(void)unused;
	for (int i = 0; i < 2; i++) {
		fresh = world_new();
		list_add_rcu(&fresh->node, &old->node);
		if (i)
			remove_and_wait(old);
		old = fresh;
	}
}

static void setup_behind(void)
{
	begin_list();
	world_readers(walk_list);
	sim_spawn(adds_behind_and_removes, NULL, "updater");
}

/* One updater adds an entry, another removes the one before it, and so publishes an entry that it has not written. */
static void adds_locked(void *unused)
{
	struct entry *fresh = world_new();

	(void)unused;
	quiesce__lock(&updaters);
	list_add_tail_rcu(&fresh->node, &always->node);
	quiesce__unlock(&updaters);
}

static void removes_locked(void *old)
{
	struct entry *e = old;

	quiesce__lock(&updaters);
	list_del_rcu(&e->node);
	quiesce__unlock(&updaters);
	synchronize_rcu();
	world_free(e);
}

static void setup_two_updaters(void)
{
	struct entry *old = world_new();

	begin_list();
	list_add_rcu(&old->node, &list);
	world_readers(walk_list);
	sim_spawn(adds_locked, NULL, "adds");
	sim_spawn(removes_locked, old, "removes");
}

static void walk_two(void)
{
	sim_assert(walk(&list) == 2);
}

static void replaces(void *old)
{
	struct entry *e = old, *fresh;

	for (int i = 0; i < 2; i++, e = fresh) {
		fresh = world_new();
		list_replace_rcu(&e->node, &fresh->node);
		synchronize_rcu();
		world_free(e);
	}
}

static void setup_replace(void)
{
	struct entry *old = world_new();

	begin_list();
	list_add_rcu(&old->node, &list);
	world_readers(walk_two);
	sim_spawn(replaces, old, "updater");
}

static void walk_both(void)
{
	int moved;

	walk(&other);
	moved = walk(&list) - 1;
	sim_assert(moved == 0 || moved == 3 || moved == 5);
}

static void splices(void *unused)
{
	(void)unused;
	list_splice_init_rcu(&other, &list, synchronize_rcu);
	list_splice_init_rcu(&other, &list, synchronize_rcu);
	sim_assert(list_empty(&other));
	for (int i = 0; i < 2; i++)
		list_add_rcu(&world_new()->node, &other);
	list_splice_tail_init_rcu(&other, &list, synchronize_rcu);
}

static void setup_splice(void)
{
	begin_list();
	for (int i = 0; i < 3; i++)
		list_add_rcu(&world_new()->node, &other);
	world_readers(walk_both);
	sim_spawn(splices, NULL, "updater");
}

/* A reader loads the first entry only, or follows the links by itself. */
static void takes_one_by_one(void)
{
	struct entry *e;
	int seen = 0;

	rcu_read_lock();
	e = list_first_or_null_rcu(&list, struct entry, node);
	for (int i = 0; e && world_visit(e) && i < NR_ENTRIES; i++) {
		seen += e == always;
		e = list_next_or_null_rcu(&list, &e->node, struct entry, node);
	}
	rcu_read_unlock();
	sim_assert(seen == 1);
}

static void setup_one_by_one(void)
{
	begin_list();
	world_readers(takes_one_by_one);
	sim_spawn(updater, NULL, "updater");
}

/* ---- hlist ---- */

static HLIST_HEAD(chain);

static int hwalk(void)
{
	int entries = 0, seen = 0;
	struct entry *e;

	rcu_read_lock();
	hlist_for_each_entry_rcu(e, &chain, hnode) {
		if (!world_visit(e) || entries++ > NR_ENTRIES)
			break;
		seen += e == always;
	}
	rcu_read_unlock();
	sim_assert(seen == 1);
	return entries;
}

static void walk_chain(void)
{
	hwalk();
}

static void begin_chain(void)
{
	always = world_new();
	hlist_add_head_rcu(&always->hnode, &chain);
}

static void hremove_and_wait(struct entry *e)
{
	hlist_del_rcu(&e->hnode);
	synchronize_rcu();
	world_free(e);
}

static void hupdater(void *unused)
{
	struct entry *first = world_new(), *before = world_new(), *behind = world_new(), *last = world_new();

	(void)unused;
	hlist_add_head_rcu(&first->hnode, &chain);
	hlist_add_before_rcu(&before->hnode, &always->hnode);
	hlist_add_tail_rcu(&last->hnode, &chain);
	hremove_and_wait(first);
	hlist_add_behind_rcu(&behind->hnode, &always->hnode);
	hlist_del_init_rcu(&before->hnode);
	hlist_del_init_rcu(&before->hnode);
	call_rcu(&before->rcu, world_free_head);
	hremove_and_wait(last);
}

static void setup_hlist(void)
{
	begin_chain();
	world_readers(walk_chain);
	sim_spawn(hupdater, NULL, "updater");
}

static void hadds_behind_and_removes(void *unused)
{
	struct entry *old = world_new(), *fresh = world_new();

	(void)unused;
	hlist_add_head_rcu(&old->hnode, &chain);
	hlist_add_behind_rcu(&fresh->hnode, &old->hnode);
	hremove_and_wait(old);
}

static void setup_hlist_behind(void)
{
	begin_chain();
	world_readers(walk_chain);
	sim_spawn(hadds_behind_and_removes, NULL, "updater");
}

static void hwalk_two(void)
{
	sim_assert(hwalk() == 2);
}

static void hreplaces(void *old)
{
	struct entry *e = old, *fresh;

	for (int i = 0; i < 2; i++, e = fresh) {
		fresh = world_new();
		hlist_replace_rcu(&e->hnode, &fresh->hnode);
		synchronize_rcu();
		world_free(e);
	}
}

static void setup_hlist_replace(void)
{
	struct entry *old = world_new();

	begin_chain();
	hlist_add_head_rcu(&old->hnode, &chain);
	world_readers(hwalk_two);
	sim_spawn(hreplaces, old, "updater");
}

/* Each walk finds two entries of one generation. */
static void walk_generation(void)
{
	uint64_t generation = 0;
	struct entry *e;
	int entries = 0;

	rcu_read_lock();
	hlist_for_each_entry_rcu(e, &chain, hnode) {
		if (!world_visit(e) || entries > 2)
			break;
		if (entries++ == 0)
			generation = e->generation;
		sim_assert(e->generation == generation);
	}
	rcu_read_unlock();
	sim_assert(entries == 2);
}

static void add_generation(struct hlist_head *to, uint64_t generation)
{
	for (int i = 0; i < 2; i++) {
		struct entry *fresh = world_new();

		fresh->generation = generation;
		hlist_add_head_rcu(&fresh->hnode, to);
	}
}

static void swaps(void *unused)
{
	static HLIST_HEAD(aside); /* static, because words of the stack had other uses */
	struct hlist_node *n;
	struct entry *e;

	(void)unused;
	for (uint64_t generation = 1; generation < 3; generation++) {
		add_generation(&aside, generation);
		hlists_swap_heads_rcu(&chain, &aside);
		synchronize_rcu();
		hlist_for_each_entry_safe(e, n, &aside, hnode) {
			hlist_del_rcu(&e->hnode);
			world_free(e);
		}
	}
}

static void setup_hlist_swap(void)
{
	add_generation(&chain, 0);
	world_readers(walk_generation);
	sim_spawn(swaps, NULL, "updater");
}

const struct sim_scenario rculist_scenarios[] = {
	{ .name = "list", .what = "walks beside additions and removals", .setup = setup_list },
	{ .name = "behind", .what = "an entry added behind one that is then removed", .setup = setup_behind },
	{ .name = "two_updaters", .what = "... by another updater", .setup = setup_two_updaters },
	{ .name = "replace", .what = "an entry replaced", .setup = setup_replace },
	{ .name = "splice", .what = "a list moved into another, walks of both", .setup = setup_splice },
	{ .name = "one_by_one", .what = "a reader that asks for the next one by itself", .setup = setup_one_by_one },
	{ .name = "hlist", .what = "walks beside additions and removals", .setup = setup_hlist },
	{ .name = "hlist_behind", .what = "an entry added behind one that is then removed", .setup = setup_hlist_behind },
	{ .name = "hlist_replace", .what = "an entry replaced", .setup = setup_hlist_replace },
	{ .name = "hlist_swap", .what = "all entries replaced at once", .setup = setup_hlist_swap },
	{ .name = NULL },
};

int main(int argc, char **argv)
{
	static const struct sim_scenario *const tables[] = {
		rculist_scenarios, rculist_nulls_scenarios, NULL,
	};

	return driver_main(argc, argv, tables);
}
