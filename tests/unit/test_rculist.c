/* SPDX-License-Identifier: MIT */
/* test_rculist.c - lists and hlists: each operation at each place, by one thread; test_rculist_load.c has many. */
#include <quiesce/ds/rculist.h>

#include "testing.h"

#define NR 8

struct item {
	char before; /* the node is not the first member */
	int id;
	struct list_head node;
	struct hlist_node hnode;
};

static struct item item[NR];
static struct list_head list = LIST_HEAD_INIT(list);
static LIST_HEAD(other);
static HLIST_HEAD(chain);

static int begin(void **state)
{
	testing_setup(state);
	memset(item, 0, sizeof item);
	for (int i = 0; i < NR; i++)
		item[i].id = i;
	INIT_LIST_HEAD(&list);
	INIT_LIST_HEAD(&other);
	INIT_HLIST_HEAD(&chain);
	return 0;
}

#define ITEM_TEST(f) cmocka_unit_test_prestate_setup_teardown(f, begin, testing_teardown, (void *)(uintptr_t)#f)

/* Return the list as a reader sees it, as digits, after checking that an updater sees the same in both directions. */
static const char *seen(const struct list_head *head)
{
	static char text[NR + 1], back[NR + 1];
	const struct item *it;
	int n = 0, m = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(it, head, node)
		text[n++] = (char)('0' + it->id);
	rcu_read_unlock();
	text[n] = '\0';
	assert_null(it);
	list_for_each_entry(it, head, node)
		assert_int_equal(text[m++], '0' + it->id);
	assert_int_equal(m, n);
	list_for_each_entry_reverse(it, head, node)
		back[--m] = (char)('0' + it->id);
	assert_int_equal(m, 0);
	assert_memory_equal(back, text, (size_t)n);
	return text;
}

/* Return the chain as a reader sees it, as digits; each back pointer must lead to the link that leads to its node. */
static const char *hseen(void)
{
	struct hlist_node **link = &chain.first;
	static char text[NR + 1];
	struct item *it;
	int n = 0;

	rcu_read_lock();
	hlist_for_each_entry_rcu(it, &chain, hnode)
		text[n++] = (char)('0' + it->id);
	rcu_read_unlock();
	text[n] = '\0';
	assert_null(it);
	hlist_for_each_entry(it, &chain, hnode) {
		assert_ptr_equal(it->hnode.pprev, link);
		link = &it->hnode.next;
	}
	return text;
}

static void fill(int nr)
{
	for (int i = 0; i < nr; i++) {
		list_add_tail_rcu(&item[i].node, &list);
		hlist_add_tail_rcu(&item[i].hnode, &chain);
	}
}

/* ---- list_head ---- */

static void an_empty_list_has_no_entry(void **state)
{
	struct item *it = item, *n;
	struct list_head *at;

	(void)state;
	assert_true(list_empty(&list));
	assert_string_equal(seen(&list), "");
	assert_null(list_first_or_null_rcu(&list, struct item, node));
	list_for_each_entry_safe(it, n, &list, node)
		fail();
	assert_null(it);
	list_for_each_rcu(at, &list)
		fail();
	assert_ptr_equal(at, &list);
}

static void entries_come_where_they_are_added(void **state)
{
	(void)state;
	list_add_rcu(&item[1].node, &list);
	assert_string_equal(seen(&list), "1");
	assert_false(list_empty(&list));
	list_add_rcu(&item[0].node, &list);
	list_add_tail_rcu(&item[4].node, &list);
	assert_string_equal(seen(&list), "014");
	list_add_rcu(&item[2].node, &item[1].node);
	list_add_tail_rcu(&item[3].node, &item[4].node);
	assert_string_equal(seen(&list), "01234");
}

static void entries_go_from_any_place(void **state)
{
	(void)state;
	fill(4);
	list_del_rcu(&item[1].node);
	assert_string_equal(seen(&list), "023");
	list_del_rcu(&item[0].node);
	list_del_rcu(&item[3].node);
	assert_string_equal(seen(&list), "2");
	list_del_rcu(&item[2].node);
	assert_string_equal(seen(&list), "");
	assert_true(list_empty(&list));
}

/* The next pointer stays, the previous one is poisoned. */
static void a_removed_entry_leads_on(void **state)
{
	struct item *it;
	int n = 0;

	(void)state;
	fill(4);
	list_for_each_entry_rcu(it, &list, node) {
		n++;
		list_del_rcu(&it->node);
		assert_int_equal((uintptr_t)it->node.prev, QUIESCE_LIST_POISON);
	}
	assert_int_equal(n, 4);
	assert_true(list_empty(&list));
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(item[i].node.next, &item[i + 1].node);
	assert_ptr_equal(item[3].node.next, &list);
}

/* A walk at a removed node goes on, also when the nodes behind it are removed, too, or are new. */
static void a_walk_survives_what_happens_around_it(void **state)
{
	struct item *it;
	char text[NR + 1];
	int n = 0;

	(void)state;
	fill(5);
	rcu_read_lock();
	list_for_each_entry_rcu(it, &list, node) {
		text[n++] = (char)('0' + it->id);
		if (it->id == 1) {
			list_del_rcu(&item[2].node);
			list_del_rcu(&item[1].node);
			list_del_rcu(&item[0].node);
		}
		if (it->id == 3)
			list_add_rcu(&item[6].node, &it->node);
	}
	rcu_read_unlock();
	text[n] = '\0';
	/* Node 1 was removed after 2, so it leads on to 3. */
	assert_string_equal(text, "01364");
	assert_string_equal(seen(&list), "364");
}

static void an_entry_is_replaced_in_its_place(void **state)
{
	(void)state;
	fill(3);
	for (int i = 0; i < 3; i++) {
		list_replace_rcu(&item[i].node, &item[i + 4].node);
		assert_int_equal((uintptr_t)item[i].node.prev, QUIESCE_LIST_POISON);
	}
	assert_string_equal(seen(&list), "456");
	list_del_rcu(&item[4].node);
	list_del_rcu(&item[6].node);
	list_replace_rcu(&item[5].node, &item[7].node);
	assert_string_equal(seen(&list), "7");
	assert_ptr_equal(item[5].node.next, &list);
}

static int nr_syncs;

static void sync_counted(void)
{
	nr_syncs++;
	assert_true(list_empty(&other));
	synchronize_rcu();
}

static void a_splice_moves_all_and_waits_once(void **state)
{
	(void)state;
	nr_syncs = 0;
	list_splice_init_rcu(&other, &list, sync_counted);
	list_splice_tail_init_rcu(&other, &list, sync_counted);
	assert_int_equal(nr_syncs, 0); /* there was nothing to move */
	list_add_rcu(&item[0].node, &other);
	list_splice_init_rcu(&other, &list, sync_counted);
	assert_string_equal(seen(&list), "0");
	assert_string_equal(seen(&other), "");
	list_add_tail_rcu(&item[1].node, &other);
	list_add_tail_rcu(&item[2].node, &other);
	list_splice_init_rcu(&other, &list, sync_counted);
	assert_string_equal(seen(&list), "120");
	list_add_tail_rcu(&item[3].node, &other);
	list_add_tail_rcu(&item[4].node, &other);
	list_splice_tail_init_rcu(&other, &list, sync_counted);
	assert_string_equal(seen(&list), "12034");
	assert_string_equal(seen(&other), "");
	assert_int_equal(nr_syncs, 3);
	INIT_LIST_HEAD(&other);
	list_splice_init_rcu(&list, &other, synchronize_rcu);
	assert_true(list_empty(&list));
	assert_string_equal(seen(&other), "12034");
}

static void a_walk_can_be_continued(void **state)
{
	char text[NR + 1];
	struct item *it;
	int n = 0;

	(void)state;
	fill(5);
	list_for_each_entry_rcu(it, &list, node)
		if (it->id == 2)
			break;
	assert_ptr_equal(it, &item[2]);
	list_for_each_entry_continue_rcu(it, &list, node)
		text[n++] = (char)('0' + it->id);
	assert_null(it);
	it = &item[2];
	list_for_each_entry_from_rcu(it, &list, node)
		text[n++] = (char)('0' + it->id);
	assert_null(it);
	list_for_each_entry_from_rcu(it, &list, node)
		fail();
	it = &item[4];
	list_for_each_entry_continue_rcu(it, &list, node)
		fail();
	text[n] = '\0';
	assert_string_equal(text, "34234");
}

static void single_entries_are_found(void **state)
{
	struct list_head *at;
	int n = 0;

	(void)state;
	fill(3);
	assert_ptr_equal(list_entry(&item[1].node, struct item, node), &item[1]);
	assert_ptr_equal(list_entry_rcu(list.next, struct item, node), &item[0]);
	assert_ptr_equal(list_first_entry(&list, struct item, node), &item[0]);
	assert_ptr_equal(list_first_or_null_rcu(&list, struct item, node), &item[0]);
	assert_ptr_equal(list_first_entry_or_null(&list, struct item, node), &item[0]);
	assert_null(list_first_entry_or_null(&other, struct item, node));
	assert_ptr_equal(list_last_entry(&list, struct item, node), &item[2]);
	assert_ptr_equal(list_next_entry(&item[1], node), &item[2]);
	assert_ptr_equal(list_prev_entry(&item[1], node), &item[0]);
	assert_ptr_equal(list_next_or_null_rcu(&list, &item[0].node, struct item, node), &item[1]);
	assert_null(list_next_or_null_rcu(&list, &item[2].node, struct item, node));
	list_for_each_rcu(at, &list)
		assert_ptr_equal(at, &item[n++].node);
	assert_int_equal(n, 3);
}

static void ends_are_known(void **state)
{
	(void)state;
	assert_false(list_is_singular(&list));
	fill(1);
	assert_true(list_is_singular(&list) && list_is_first(&item[0].node, &list) && list_is_last(&item[0].node, &list));
	list_add_tail_rcu(&item[1].node, &list);
	assert_false(list_is_singular(&list) || list_is_last(&item[0].node, &list) || list_is_first(&item[1].node, &list));
	assert_true(list_is_first(&item[0].node, &list) && list_is_last(&item[1].node, &list));
}

/* Operations for lists without readers work as those for shared ones. */
static void lists_of_ones_own(void **state)
{
	struct item *it, *n;
	int nr = 0;

	(void)state;
	list_add(&item[1].node, &list);
	list_add(&item[0].node, &list);
	list_add_tail(&item[2].node, &list);
	assert_string_equal(seen(&list), "012");
	list_del_init(&item[1].node);
	assert_true(list_empty(&item[1].node));
	list_del_init(&item[1].node);
	assert_string_equal(seen(&list), "02");
	list_for_each_entry_safe(it, n, &list, node) {
		nr++;
		list_del(&it->node);
		assert_int_equal((uintptr_t)it->node.prev, QUIESCE_LIST_POISON);
		assert_int_equal((uintptr_t)it->node.next, QUIESCE_LIST_POISON);
		memset(it, 0x6b, sizeof *it);
	}
	assert_int_equal(nr, 2);
	assert_true(list_empty(&list));
}

/* ---- hlist ---- */

static void an_empty_chain_has_no_entry(void **state)
{
	struct hlist_head zeroed;
	struct hlist_node *n;
	struct item *it;

	(void)state;
	memset(&zeroed, 0, sizeof zeroed);
	assert_true(hlist_empty(&chain) && hlist_empty(&zeroed));
	assert_string_equal(hseen(), "");
	hlist_for_each_entry_safe(it, n, &chain, hnode)
		fail();
	assert_null(it);
	assert_null(hlist_entry_safe(chain.first, struct item, hnode));
	assert_ptr_equal(hlist_entry_safe(&item[1].hnode, struct item, hnode), &item[1]);
	assert_ptr_equal(hlist_entry(&item[1].hnode, struct item, hnode), &item[1]);
}

static void chained_entries_come_where_they_are_added(void **state)
{
	(void)state;
	hlist_add_tail_rcu(&item[2].hnode, &chain);
	assert_string_equal(hseen(), "2");
	assert_false(hlist_empty(&chain));
	hlist_add_before_rcu(&item[1].hnode, &item[2].hnode);
	hlist_add_behind_rcu(&item[5].hnode, &item[2].hnode);
	assert_string_equal(hseen(), "125");
	hlist_add_head_rcu(&item[0].hnode, &chain);
	hlist_add_before_rcu(&item[4].hnode, &item[5].hnode);
	hlist_add_behind_rcu(&item[3].hnode, &item[2].hnode);
	hlist_add_tail_rcu(&item[6].hnode, &chain);
	assert_string_equal(hseen(), "0123456");
}

static void chained_entries_go_from_any_place(void **state)
{
	(void)state;
	fill(4);
	hlist_del_rcu(&item[1].hnode);
	assert_string_equal(hseen(), "023");
	hlist_del_rcu(&item[3].hnode);
	hlist_del_rcu(&item[0].hnode);
	assert_string_equal(hseen(), "2");
	hlist_del_rcu(&item[2].hnode);
	assert_true(hlist_empty(&chain));
	assert_false(hlist_unhashed(&item[2].hnode));
	assert_int_equal((uintptr_t)item[2].hnode.pprev, QUIESCE_LIST_POISON);
	assert_ptr_equal(item[1].hnode.next, &item[2].hnode);
}

static void an_entry_knows_whether_it_is_chained(void **state)
{
	(void)state;
	fill(2);
	memset(&item[5], 0x6b, sizeof item[5]);
	INIT_HLIST_NODE(&item[5].hnode);
	assert_null(item[5].hnode.next);
	assert_true(hlist_unhashed(&item[5].hnode) && hlist_unhashed_lockless(&item[5].hnode));
	hlist_del_init_rcu(&item[5].hnode); /* the node is in no chain */
	assert_false(hlist_unhashed(&item[0].hnode) || hlist_unhashed_lockless(&item[0].hnode));
	for (int i = 0; i < 2; i++)
		hlist_del_init_rcu(&item[0].hnode);
	assert_true(hlist_unhashed(&item[0].hnode) && hlist_unhashed_lockless(&item[0].hnode));
	assert_ptr_equal(item[0].hnode.next, &item[1].hnode); /* a reader that is at the node finds its way on */
	assert_string_equal(hseen(), "1");
}

static void an_entry_can_seem_to_be_chained(void **state)
{
	(void)state;
	memset(&item[5], 0x6b, sizeof item[5]);
	hlist_add_fake(&item[5].hnode);
	assert_true(hlist_fake(&item[5].hnode));
	assert_false(hlist_unhashed(&item[5].hnode));
	hlist_del_init_rcu(&item[5].hnode);
	assert_true(hlist_unhashed(&item[5].hnode));
	assert_false(hlist_fake(&item[5].hnode));
	hlist_add_fake(&item[5].hnode);
	hlist_del_rcu(&item[5].hnode);
	assert_int_equal((uintptr_t)item[5].hnode.pprev, QUIESCE_LIST_POISON);
	fill(1);
	assert_false(hlist_fake(&item[0].hnode));
}

/* A walk that has begun stays in its list. */
static void all_entries_are_replaced_at_once(void **state)
{
	HLIST_HEAD(aside);
	struct item *it;

	(void)state;
	fill(2);
	hlist_add_head_rcu(&item[6].hnode, &aside);
	hlist_add_head_rcu(&item[5].hnode, &aside);
	hlist_add_head_rcu(&item[4].hnode, &aside);
	hlist_for_each_entry_rcu(it, &chain, hnode)
		if (it->id == 0)
			hlists_swap_heads_rcu(&chain, &aside);
		else
			assert_ptr_equal(it, &item[1]);
	assert_string_equal(hseen(), "456");
	assert_ptr_equal(aside.first, &item[0].hnode);
	assert_ptr_equal(item[0].hnode.pprev, &aside.first);
	INIT_HLIST_HEAD(&aside);
	hlists_swap_heads_rcu(&aside, &chain);
	assert_string_equal(hseen(), "");
	hlists_swap_heads_rcu(&aside, &chain);
	assert_string_equal(hseen(), "456");
	assert_true(hlist_empty(&aside));
	hlists_swap_heads_rcu(&chain, &chain);
	assert_string_equal(hseen(), "456");
}

/* Operations for chains without readers work as those for shared ones. */
static void chains_of_ones_own(void **state)
{
	struct hlist_node *next;
	struct item *it;

	(void)state;
	hlist_add_head(&item[1].hnode, &chain);
	hlist_add_before(&item[0].hnode, &item[1].hnode);
	hlist_add_behind(&item[2].hnode, &item[1].hnode);
	assert_string_equal(hseen(), "012");
	for (int i = 0; i < 2; i++) {
		hlist_del_init(&item[1].hnode);
		assert_true(hlist_unhashed(&item[1].hnode));
		assert_null(item[1].hnode.next);
	}
	assert_string_equal(hseen(), "02");
	hlist_for_each_entry_safe(it, next, &chain, hnode) {
		hlist_del(&it->hnode);
		assert_int_equal((uintptr_t)it->hnode.next, QUIESCE_LIST_POISON);
		assert_int_equal((uintptr_t)it->hnode.pprev, QUIESCE_LIST_POISON);
		memset(it, 0x6b, sizeof *it);
	}
	assert_true(hlist_empty(&chain));
}

static void a_chained_entry_is_replaced_in_its_place(void **state)
{
	(void)state;
	fill(3);
	for (int i = 0; i < 3; i++) {
		hlist_replace_rcu(&item[i].hnode, &item[i + 4].hnode);
		assert_int_equal((uintptr_t)item[i].hnode.pprev, QUIESCE_LIST_POISON);
	}
	assert_string_equal(hseen(), "456");
	assert_ptr_equal(item[0].hnode.next, &item[1].hnode);
	hlist_del_rcu(&item[5].hnode);
	hlist_del_rcu(&item[6].hnode);
	hlist_replace_rcu(&item[4].hnode, &item[7].hnode);
	assert_string_equal(hseen(), "7");
}

static void a_walk_of_a_chain_removes_and_continues(void **state)
{
	char text[NR + 1];
	struct hlist_node *next;
	struct item *it;
	int n = 0;

	(void)state;
	fill(6);
	hlist_for_each_entry_rcu(it, &chain, hnode) {
		if (it->id == 1)
			hlist_del_rcu(&it->hnode);
		if (it->id == 3)
			break;
	}
	hlist_for_each_entry_continue_rcu(it, hnode)
		text[n++] = (char)('0' + it->id);
	assert_null(it);
	it = &item[3];
	hlist_for_each_entry_from_rcu(it, hnode)
		text[n++] = (char)('0' + it->id);
	hlist_for_each_entry_from_rcu(it, hnode)
		fail();
	text[n] = '\0';
	assert_string_equal(text, "45345");
	hlist_for_each_entry_safe(it, next, &chain, hnode) {
		hlist_del_rcu(&it->hnode);
		memset(it, 0x6b, sizeof *it);
	}
	assert_true(hlist_empty(&chain));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		ITEM_TEST(an_empty_list_has_no_entry),
		ITEM_TEST(entries_come_where_they_are_added),
		ITEM_TEST(entries_go_from_any_place),
		ITEM_TEST(a_removed_entry_leads_on),
		ITEM_TEST(a_walk_survives_what_happens_around_it),
		ITEM_TEST(an_entry_is_replaced_in_its_place),
		ITEM_TEST(a_splice_moves_all_and_waits_once),
		ITEM_TEST(a_walk_can_be_continued),
		ITEM_TEST(single_entries_are_found),
		ITEM_TEST(ends_are_known),
		ITEM_TEST(lists_of_ones_own),
		ITEM_TEST(an_empty_chain_has_no_entry),
		ITEM_TEST(chained_entries_come_where_they_are_added),
		ITEM_TEST(chained_entries_go_from_any_place),
		ITEM_TEST(an_entry_knows_whether_it_is_chained),
		ITEM_TEST(a_chained_entry_is_replaced_in_its_place),
		ITEM_TEST(a_walk_of_a_chain_removes_and_continues),
		ITEM_TEST(an_entry_can_seem_to_be_chained),
		ITEM_TEST(all_entries_are_replaced_at_once),
		ITEM_TEST(chains_of_ones_own),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
