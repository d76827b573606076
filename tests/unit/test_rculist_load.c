/* SPDX-License-Identifier: MIT */
/* test_rculist_load.c - walks of lists beside an updater that adds, replaces, moves and removes, and poisons what it frees. */
#include <quiesce/ds/rculist.h>

#include "testing.h"

enum { NR_READERS = 2, NR_ITEMS = 64, NR_WHOLE = 3, RUN_MS = 120 };

#define ALIVE 0x600dull
#define DEAD 0x6b6b6b6b6b6b6b6bull

struct item {
	uint64_t alive, copy; /* equal while a reader can be here */
	struct list_head node;
	struct hlist_node hnode;
	struct rcu_head rcu;
	int listed; /* only the updater accesses this */
};

static LIST_HEAD(list);
static LIST_HEAD(other);
static HLIST_HEAD(chain);
static HLIST_HEAD(whole); /* NR_WHOLE entries, which are replaced all at once */
static struct item first, last; /* these two are always in the list and the chain, and end every walk */
static struct item *held[NR_ITEMS];
static uint64_t nr_seen, nr_walks, nr_wrong, nr_freed;
static uint32_t stop;

static struct item *item_new(void)
{
	struct item *it = calloc(1, sizeof *it);

	if (!it)
		abort();
	/* Relaxed throughout: the test is about their order. */
	quiesce_store_relaxed(&it->alive, ALIVE);
	quiesce_store_relaxed(&it->copy, ALIVE);
	return it;
}

static void item_free(struct rcu_head *rcu)
{
	struct item *it = (struct item *)(void *)((char *)rcu - offsetof(struct item, rcu));

	quiesce_store_relaxed(&it->alive, DEAD); /* Relaxed: no reader can reach it any more. */
	quiesce_store_relaxed(&it->copy, DEAD - 1);
	nr_freed++; /* callbacks run one by one */
	free(it);
}

static bool check_item(struct item *it)
{
	/* Relaxed: the test is about their order. */
	bool right = quiesce_load_relaxed(&it->alive) == ALIVE && quiesce_load_relaxed(&it->copy) == ALIVE;

	if (!right)
		count_up(&nr_wrong);
	count_up(&nr_seen);
	return right;
}

/* ---- readers: every walk visits the two entries that stay, in their order, and ends ---- */

static void judge(int nr_ends)
{
	if (nr_ends != 2)
		count_up(&nr_wrong);
	count_up(&nr_walks);
}

static void walk_list(void)
{
	int ends = 0;
	struct item *it;

	rcu_read_lock();
	list_for_each_entry_rcu(it, &list, node) {
		if (!check_item(it))
			break;
		ends += it == (ends ? &last : &first);
	}
	rcu_read_unlock();
	judge(ends);
}

/* A walk of the list from which splices take nodes must not stray into the other list. */
static void walk_other(void)
{
	struct item *it;

	rcu_read_lock();
	list_for_each_entry_rcu(it, &other, node)
		if (!check_item(it) || it == &first || it == &last)
			break;
	if (it)
		count_up(&nr_wrong);
	rcu_read_unlock();
}

static void walk_chain(void)
{
	int ends = 0;
	struct item *it;

	rcu_read_lock();
	hlist_for_each_entry_rcu(it, &chain, hnode) {
		if (!check_item(it))
			break;
		ends += it == (ends ? &last : &first);
	}
	rcu_read_unlock();
	judge(ends);
}

static void walk_whole(void)
{
	struct item *it;
	int nr = 0;

	rcu_read_lock();
	hlist_for_each_entry_rcu(it, &whole, hnode)
		if (!check_item(it) || ++nr > NR_WHOLE)
			break;
	rcu_read_unlock();
	if (nr != NR_WHOLE)
		count_up(&nr_wrong);
}

static void *reader_main(void *unused)
{
	while (!flag_get(&stop)) {
		walk_list();
		walk_chain();
		walk_other();
		walk_whole();
	}
	return unused;
}

/* ---- the updater ---- */

static void add(struct item *it, unsigned int random)
{
	struct item *near = held[random % NR_ITEMS];

	if (!near || !near->listed)
		near = &first;
	switch (random >> 8 & 3) {
	case 0:
		list_add_rcu(&it->node, &near->node);
		hlist_add_behind_rcu(&it->hnode, &near->hnode);
		break;
	case 1:
		list_add_tail_rcu(&it->node, &near->node);
		hlist_add_before_rcu(&it->hnode, &near->hnode);
		break;
	case 2:
		list_add_rcu(&it->node, &list);
		hlist_add_head_rcu(&it->hnode, &chain);
		break;
	default:
		list_add_tail_rcu(&it->node, &list);
		hlist_add_tail_rcu(&it->hnode, &chain);
	}
	it->listed = 1;
}

static void drop(struct item *it)
{
	list_del_rcu(&it->node);
	hlist_del_init_rcu(&it->hnode);
	call_rcu(&it->rcu, item_free);
}

static struct item *replace(struct item *it)
{
	struct item *fresh = item_new();

	list_replace_rcu(&it->node, &fresh->node);
	hlist_replace_rcu(&it->hnode, &fresh->hnode);
	fresh->listed = 1;
	call_rcu(&it->rcu, item_free);
	return fresh;
}

/* Add a new entry behind an old one, and remove the old one. */
static struct item *succeed(struct item *it)
{
	struct item *fresh = item_new();

	list_add_rcu(&fresh->node, &it->node);
	hlist_add_behind_rcu(&fresh->hnode, &it->hnode);
	fresh->listed = 1;
	drop(it);
	return fresh;
}

/* Add some entries of no chain by a splice of the other list, to the front or the end. */
static void move_some(unsigned int random)
{
	struct item *some[3];

	for (int i = 0; i < 3; i++) {
		some[i] = item_new();
		list_add_tail_rcu(&some[i]->node, &other);
	}
	if (random & 1)
		list_splice_init_rcu(&other, &list, synchronize_rcu);
	else
		list_splice_tail_init_rcu(&other, &list, synchronize_rcu);
	for (int i = 0; i < 3; i++) {
		list_del_rcu(&some[i]->node);
		call_rcu(&some[i]->rcu, item_free);
	}
}

static void build(struct hlist_head *head)
{
	for (int i = 0; i < NR_WHOLE; i++)
		hlist_add_head(&item_new()->hnode, head);
}

/* Retire all nodes of @head, which no reader can find any more. */
static void drop_all(struct hlist_head *head)
{
	struct hlist_node *next;
	struct item *it;

	hlist_for_each_entry_safe(it, next, head, hnode)
		call_rcu(&it->rcu, item_free);
}

static void replace_whole(void)
{
	HLIST_HEAD(aside);

	build(&aside);
	hlists_swap_heads_rcu(&whole, &aside);
	drop_all(&aside);
}

static void update(unsigned int random)
{
	struct item **at = &held[random % NR_ITEMS];

	random /= NR_ITEMS;
	if (!*at) {
		*at = item_new();
		add(*at, random >> 2);
	} else if (random % 64 == 0) {
		move_some(random >> 6);
	} else if (random % 8 == 2) {
		replace_whole();
	} else if (random & 1) {
		*at = random & 2 ? replace(*at) : succeed(*at);
	} else {
		drop(*at);
		*at = NULL;
	}
}

static void walks_meet_only_what_is_there(void **state)
{
	uint64_t until = now_ns() + RUN_MS * 1000000ull, turns = 0;
	pthread_t thread[NR_READERS];
	unsigned int random = 1;

	(void)state;
	first = last = (struct item){ .alive = ALIVE, .copy = ALIVE, .listed = 1 };
	list_add_rcu(&first.node, &list);
	list_add_rcu(&last.node, &first.node);
	hlist_add_head_rcu(&first.hnode, &chain);
	hlist_add_behind_rcu(&last.hnode, &first.hnode);
	build(&whole);
	threads_begin(thread, NR_READERS, reader_main, NULL);
	while (now_ns() < until || flag_get(&nr_walks) < 100 || turns < 1000) {
		update((unsigned int)rand_r(&random));
		turns++;
	}
	flag_set(&stop);
	threads_end(thread, NR_READERS);
	rcu_barrier();
	print_message("# %llu updates, %llu freed, %llu walks, %llu seen\n", (unsigned long long)turns,
		      (unsigned long long)nr_freed, (unsigned long long)nr_walks, (unsigned long long)nr_seen);
	assert_true(nr_freed > 100);
	assert_int_equal(nr_wrong, 0);
	for (int i = 0; i < NR_ITEMS; i++)
		if (held[i])
			drop(held[i]);
	drop_all(&whole);
	rcu_barrier();
	assert_ptr_equal(list.next, &first.node);
	assert_ptr_equal(list.prev, &last.node);
	assert_ptr_equal(chain.first, &first.hnode);
	assert_ptr_equal(first.hnode.next, &last.hnode);
	assert_null(last.hnode.next);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = { TEST(walks_meet_only_what_is_there) };

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
