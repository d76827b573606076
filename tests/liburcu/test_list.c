/* SPDX-License-Identifier: MIT */
/* test_list.c - the face's lists and hlists, each operation at each place, by one thread: plain and _rcu alike. */
#define _GNU_SOURCE
#include <urcu/rcuhlist.h>
#include <urcu/rculist.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define NR 8

struct item {
	char before; /* the node is not the first member */
	char id;
	struct cds_list_head node;
	struct cds_hlist_node hnode;
};

static struct item item[NR];
static struct cds_list_head list = CDS_LIST_HEAD_INIT(list);
static CDS_LIST_HEAD(other);
static CDS_HLIST_HEAD(chain);

static int begin(void **state)
{
	(void)state;
	memset(item, 0, sizeof item);
	for (int i = 0; i < NR; i++)
		item[i].id = (char)('0' + i);
	CDS_INIT_LIST_HEAD(&list);
	CDS_INIT_LIST_HEAD(&other);
	CDS_INIT_HLIST_HEAD(&chain);
	return 0;
}

/* Append the items that @loop visits to @text. */
#define COLLECT(text, it, loop)                                                                                        \
	do {                                                                                                           \
		size_t n = 0;                                                                                          \
		loop                                                                                                   \
		{                                                                                                      \
			assert_true(n < NR);                                                                           \
			(text)[n++] = (it)->id;                                                                        \
		}                                                                                                      \
		(text)[n] = 0;                                                                                         \
	} while (0)

static void reverse(char *text)
{
	for (size_t i = 0, n = strlen(text); i < n / 2; i++) {
		char c = text[i];

		text[i] = text[n - 1 - i];
		text[n - 1 - i] = c;
	}
}

/* Check that every walk along @head sees @want. */
static void assert_list(struct cds_list_head *head, const char *want)
{
	char text[10][NR + 1];
	struct cds_list_head *pos, *p;
	struct item *it, *next;

	COLLECT(text[0], cds_list_entry(pos, struct item, node), cds_list_for_each(pos, head));
	COLLECT(text[1], cds_list_entry(pos, struct item, node), cds_list_for_each_safe(pos, p, head));
	COLLECT(text[2], cds_list_entry(pos, struct item, node), cds_list_for_each_rcu(pos, head));
	COLLECT(text[3], it, cds_list_for_each_entry(it, head, node));
	COLLECT(text[4], it, cds_list_for_each_entry_safe(it, next, head, node));
	COLLECT(text[5], it, cds_list_for_each_entry_rcu(it, head, node));
	COLLECT(text[6], cds_list_entry(pos, struct item, node), cds_list_for_each_prev(pos, head));
	COLLECT(text[7], cds_list_entry(pos, struct item, node), cds_list_for_each_prev_safe(pos, p, head));
	COLLECT(text[8], it, cds_list_for_each_entry_reverse(it, head, node));
	it = cds_list_first_entry(head, struct item, node);
	COLLECT(text[9], it, cds_list_for_each_entry_safe_from(it, next, head, node));
	for (int i = 0; i < 10; i++) {
		if (i >= 6 && i <= 8)
			reverse(text[i]);
		assert_string_equal(text[i], want);
	}
	assert_int_equal(cds_list_empty(head), !*want);
	if (*want)
		assert_int_equal(cds_list_first_entry(head, struct item, node)->id, *want);
}

static void fill(struct cds_list_head *head, int first, int last)
{
	for (int i = first; i <= last; i++)
		cds_list_add_tail(&item[i].node, head);
}

static void an_empty_list_has_no_entry(void **state)
{
	(void)state;
	assert_list(&list, "");
	assert_list(&other, "");
}

static void entries_come_where_they_are_added(void **state)
{
	void (*const add[])(struct cds_list_head *, struct cds_list_head *) = { cds_list_add, cds_list_add_rcu };
	void (*const add_tail[])(struct cds_list_head *, struct cds_list_head *) = { cds_list_add_tail, cds_list_add_tail_rcu };

	for (int i = 0; i < 2; i++) {
		begin(state);
		add[i](&item[1].node, &list);
		add[i](&item[2].node, &list);
		assert_list(&list, "21");
		add_tail[i](&item[3].node, &list);
		assert_list(&list, "213");
		add[i](&item[4].node, &item[1].node);
		add_tail[i](&item[5].node, &item[1].node);
		assert_list(&list, "25143");
	}
}

static void entries_go_from_any_place(void **state)
{
	void (*const del[])(struct cds_list_head *) = { cds_list_del, cds_list_del_rcu, cds_list_del_init };

	for (int i = 0; i < 3; i++) {
		begin(state);
		fill(&list, 0, 4);
		del[i](&item[0].node);
		assert_list(&list, "1234");
		del[i](&item[2].node);
		assert_list(&list, "134");
		del[i](&item[4].node);
		assert_list(&list, "13");
		if (i == 1) /* the removed node still leads on */
			assert_ptr_equal(item[2].node.next, &item[3].node);
		if (i == 2)
			assert_list(&item[2].node, "");
		del[i](&item[1].node);
		del[i](&item[3].node);
		assert_list(&list, "");
	}
	begin(state);
	fill(&list, 0, 4);
	__cds_list_del(&item[0].node, &item[4].node);
	assert_list(&list, "04");
}

static void an_entry_is_replaced_in_its_place(void **state)
{
	(void)state;
	fill(&list, 0, 2);
	cds_list_replace(&item[1].node, &item[3].node);
	assert_list(&list, "032");
	assert_ptr_equal(item[1].node.next, &item[2].node);
	cds_list_replace_rcu(&item[0].node, &item[4].node);
	assert_list(&list, "432");
	cds_list_replace_init(&item[2].node, &item[5].node);
	assert_list(&list, "435");
	assert_list(&item[2].node, "");
	cds_list_replace_init(&list, &other); /* heads too */
	assert_list(&other, "435");
	assert_list(&list, "");
	cds_list_replace_init(&list, &other);
	assert_list(&other, "");
	assert_list(&list, "");
}

static void entries_move_to_another_list(void **state)
{
	(void)state;
	fill(&list, 0, 2);
	fill(&other, 3, 4);
	cds_list_move(&item[1].node, &other);
	assert_list(&list, "02");
	assert_list(&other, "134");
	cds_list_splice(&other, &list);
	assert_list(&list, "13402");
	CDS_INIT_LIST_HEAD(&other);
	cds_list_splice(&other, &list);
	assert_list(&list, "13402");
	cds_list_splice(&list, &other);
	assert_list(&other, "13402");
}

static void a_safe_walk_removes_what_it_stands_on(void **state)
{
	struct cds_list_head *pos, *p;
	struct item *it, *next;

	(void)state;
	fill(&list, 0, 5);
	cds_list_for_each_entry_safe(it, next, &list, node) {
		cds_list_del(&it->node);
		if (it->id == '3')
			break;
		it->node.next = it->node.prev = NULL;
	}
	assert_list(&list, "45");
	cds_list_for_each_safe(pos, p, &list) {
		cds_list_del(pos);
		pos->next = pos->prev = NULL;
	}
	assert_list(&list, "");
	fill(&list, 0, 3);
	cds_list_for_each_prev_safe(pos, p, &list) {
		cds_list_del(pos);
		pos->next = pos->prev = NULL;
	}
	assert_list(&list, "");
}

/* ---- hlists ---- */

static void assert_chain(const char *want)
{
	char text[8][NR + 1];
	struct cds_hlist_node *pos, *p;
	struct item *it, *next;

	COLLECT(text[0], cds_hlist_entry(pos, struct item, hnode), cds_hlist_for_each(pos, &chain));
	COLLECT(text[1], cds_hlist_entry(pos, struct item, hnode), cds_hlist_for_each_safe(pos, p, &chain));
	COLLECT(text[2], cds_hlist_entry(pos, struct item, hnode), cds_hlist_for_each_rcu(pos, &chain));
	COLLECT(text[3], it, cds_hlist_for_each_entry(it, pos, &chain, hnode));
	assert_null(pos);
	COLLECT(text[4], it, cds_hlist_for_each_entry_safe(it, pos, p, &chain, hnode));
	COLLECT(text[5], it, cds_hlist_for_each_entry_rcu(it, pos, &chain, hnode));
	COLLECT(text[6], it, cds_hlist_for_each_entry_2(it, &chain, hnode));
	assert_null(it);
	COLLECT(text[7], it, cds_hlist_for_each_entry_rcu_2(it, &chain, hnode));
	assert_null(it);
	for (int i = 0; i < 8; i++)
		assert_string_equal(text[i], want);
	COLLECT(text[0], it, cds_hlist_for_each_entry_safe_2(it, next, &chain, hnode));
	assert_null(it);
	assert_string_equal(text[0], want);
	assert_int_equal(!chain.next, !*want);
	assert_ptr_equal(cds_hlist_entry_safe(chain.next, struct item, hnode), *want ? &item[*want - '0'] : NULL);
}

static void a_chain_grows_in_front_and_shrinks_anywhere(void **state)
{
	void (*const add[])(struct cds_hlist_node *, struct cds_hlist_head *) = { cds_hlist_add_head, cds_hlist_add_head_rcu };
	void (*const del[])(struct cds_hlist_node *) = { cds_hlist_del, cds_hlist_del_rcu };

	for (int i = 0; i < 2; i++) {
		begin(state);
		assert_chain("");
		for (int k = 0; k < 5; k++)
			add[i](&item[k].hnode, &chain);
		assert_chain("43210");
		del[i](&item[4].hnode);
		assert_chain("3210");
		del[i](&item[2].hnode);
		assert_chain("310");
		assert_ptr_equal(item[2].hnode.next, &item[1].hnode); /* the removed node still leads on */
		del[i](&item[0].hnode);
		assert_chain("31");
		del[i](&item[3].hnode);
		del[i](&item[1].hnode);
		assert_chain("");
	}
}

static void a_safe_walk_of_a_chain_removes_what_it_stands_on(void **state)
{
	struct cds_hlist_node *pos, *p;
	struct item *it, *next;

	for (int how = 0; how < 3; how++) {
		begin(state);
		for (int k = 0; k < 5; k++)
			cds_hlist_add_head(&item[k].hnode, &chain);
		if (how == 0) {
			cds_hlist_for_each_safe(pos, p, &chain) {
				cds_hlist_del(pos);
				pos->next = NULL;
			}
		} else if (how == 1) {
			cds_hlist_for_each_entry_safe(it, pos, p, &chain, hnode) {
				cds_hlist_del(&it->hnode);
				it->hnode.next = NULL;
			}
		} else {
			cds_hlist_for_each_entry_safe_2(it, next, &chain, hnode) {
				cds_hlist_del(&it->hnode);
				it->hnode.next = NULL;
			}
		}
		assert_chain("");
	}
}

#define ITEM_TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ITEM_TEST(an_empty_list_has_no_entry),
		ITEM_TEST(entries_come_where_they_are_added),
		ITEM_TEST(entries_go_from_any_place),
		ITEM_TEST(an_entry_is_replaced_in_its_place),
		ITEM_TEST(entries_move_to_another_list),
		ITEM_TEST(a_safe_walk_removes_what_it_stands_on),
		ITEM_TEST(a_chain_grows_in_front_and_shrinks_anywhere),
		ITEM_TEST(a_safe_walk_of_a_chain_removes_what_it_stands_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
