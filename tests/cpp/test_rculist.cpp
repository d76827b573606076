/* SPDX-License-Identifier: MIT */
/* test_rculist.cpp - lists as ranges, and the macros of the C headers as C++ code uses them. */
#include <quiesce/ds/rculist.hpp>
#include <quiesce/ds/rculist_nulls.h>
#include <quiesce/rcu.hpp>

#include "tap.hpp"

#include <algorithm>
#include <mutex>
#include <ranges>
#include <string>
#include <thread>
#include <vector>

using quiesce::rcu_hlist_range;
using quiesce::rcu_list_range;

/* The struct has no standard layout, so offsetof() would not work. */
struct item {
	explicit item(int i) : id(i) {}
	virtual ~item() = default;
	int id;
	list_head node;
	hlist_node hnode;
	hlist_nulls_node nnode;
};

struct special : item {
	explicit special(int i) : item(i), twice(2 * i) {}
	int twice;
};

class hidden {
public:
	explicit hidden(int i) : id(i) {}
	void add_to(list_head &head) { list_add_tail_rcu(&node_, &head); }
	static auto all(const list_head &head) { return rcu_list_range<&hidden::node_>(head); }
	int id;

private:
	list_head node_;
};

using range = decltype(rcu_list_range<&item::node>(std::declval<const list_head &>()));
using hrange = decltype(rcu_hlist_range<&item::hnode>(std::declval<const hlist_head &>()));

/* ---- what the compiler knows ---- */

static_assert(std::ranges::forward_range<range> && std::ranges::view<range> && std::ranges::borrowed_range<range>);
static_assert(std::ranges::forward_range<hrange> && std::ranges::view<hrange> && std::ranges::borrowed_range<hrange>);
static_assert(!std::ranges::bidirectional_range<range>); /* there is no way back */
static_assert(std::is_same_v<std::ranges::range_reference_t<range>, item &>);
static_assert(std::is_same_v<std::ranges::range_reference_t<decltype(rcu_list_range<&item::node, const item>(list_head()))>, const item &>);
static_assert(sizeof(range) == 2 * sizeof(void *) && std::is_trivially_copyable_v<range>);
static_assert(noexcept(++std::declval<range>().begin()) && noexcept(*std::declval<range>().begin()));

template <auto Member> concept is_list = requires(const list_head &head) { rcu_list_range<Member>(head); };
template <auto Member> concept is_hlist = requires(const hlist_head &head) { rcu_hlist_range<Member>(head); };
static_assert(is_list<&item::node> && !is_list<&item::hnode> && !is_list<&item::id>);
static_assert(is_hlist<&item::hnode> && !is_hlist<&item::node>);

/* ---- */

template <class Range> std::string seen(Range &&r)
{
	std::scoped_lock section(quiesce::rcu_default_domain());
	std::string text;

	for (const auto &i : r)
		text += static_cast<char>('0' + i.id);
	return text;
}

static void a_list_is_a_range()
{
	list_head head = LIST_HEAD_INIT(head);
	item a(1), b(2), c(3);
	auto all = rcu_list_range<&item::node>(head);

	CHECK(all.empty() && all.begin() == all.end() && seen(all) == "");
	list_add_tail_rcu(&a.node, &head);
	CHECK(seen(all) == "1" && !all.empty());
	list_add_tail_rcu(&b.node, &head);
	list_add_tail_rcu(&c.node, &head);
	CHECK(seen(all) == "123");
	for (item &i : all)
		if (i.id == 2)
			list_del_rcu(&i.node);
	CHECK(seen(all) == "13");
	CHECK(seen(rcu_list_range<&item::node, const item>(head)) == "13");
	CHECK(range().empty() && range().begin() == range().end());
}

static void an_hlist_is_a_range()
{
	hlist_head head = HLIST_HEAD_INIT;
	item a(1), b(2);
	auto all = rcu_hlist_range<&item::hnode>(head);

	CHECK(all.empty() && seen(all) == "");
	hlist_add_head_rcu(&b.hnode, &head);
	hlist_add_before_rcu(&a.hnode, &b.hnode);
	CHECK(seen(all) == "12" && !all.empty());
	for (item &i : all)
		hlist_del_rcu(&i.hnode);
	CHECK(all.empty());
}

static void iterators_are_forward_iterators()
{
	list_head head = LIST_HEAD_INIT(head);
	std::vector<item> items;

	items.reserve(6);
	for (int i = 0; i < 6; i++)
		list_add_tail_rcu(&items.emplace_back(i).node, &head);
	auto all = rcu_list_range<&item::node>(head);
	auto at = all.begin(), before = at++;
	CHECK(before == all.begin() && at != before && before->id == 0 && (*at).id == 1);
	CHECK(++before == at);
	CHECK(std::ranges::distance(all) == 6);
	auto found = std::ranges::find(rcu_list_range<&item::node>(head), 4, &item::id); /* an iterator that outlives its range */
	CHECK(found->id == 4 && std::ranges::distance(found, all.end()) == 2);
	CHECK(std::ranges::count_if(all, [](const item &i) { return i.id % 2 == 1; }) == 3);
	std::string odd;
	for (const item &i : rcu_list_range<&item::node>(head) | std::views::filter([](const item &x) { return x.id % 2 == 1; }))
		odd += static_cast<char>('0' + i.id);
	CHECK(odd == "135");
}

static void any_class_may_hold_a_node()
{
	list_head head = LIST_HEAD_INIT(head), private_head = LIST_HEAD_INIT(private_head);
	special a(3), b(4);
	hidden c(7);
	int sum = 0;

	list_add_rcu(&a.node, &head);
	list_add_rcu(&b.node, &head);
	for (special &s : rcu_list_range<&item::node, special>(head))
		sum += s.twice;
	CHECK(sum == 14);
	c.add_to(private_head);
	CHECK(seen(hidden::all(private_head)) == "7");
}

/* ---- the macros ---- */

struct plain {
	int id;
	list_head node;
	hlist_node hnode;
	hlist_nulls_node nnode;
};

static void the_macros_of_lists_are_cpp_too()
{
	plain p[3] = {};
	LIST_HEAD(head);
	LIST_HEAD(other);
	plain *at, *n;
	const plain *c;
	list_head *node;
	int sum = 0;

	for (int i = 0; i < 3; i++) {
		p[i].id = i + 1;
		list_add_tail_rcu(&p[i].node, &other);
	}
	list_splice_init_rcu(&other, &head, synchronize_rcu);
	list_for_each_entry_rcu(c, &head, node)
		sum += c->id;
	list_for_each_rcu(node, &head)
		sum += list_entry(node, plain, node)->id;
	CHECK(sum == 12 && !c);
	at = list_first_or_null_rcu(&head, plain, node);
	CHECK(at == p && list_next_or_null_rcu(&head, &at->node, plain, node) == p + 1);
	CHECK(list_entry_rcu(head.next, plain, node) == p && list_first_entry(&head, plain, node) == p);
	CHECK(list_last_entry(&head, plain, node) == p + 2 && list_next_entry(at, node) == p + 1 && list_prev_entry(p + 1, node) == p);
	CHECK(list_first_entry_or_null(&head, plain, node) == p);
	list_for_each_entry_continue_rcu(at, &head, node)
		sum += at->id;
	at = &p[1];
	list_for_each_entry_from_rcu(at, &head, node)
		sum += at->id;
	list_for_each_entry(at, &head, node)
		sum += at->id;
	list_for_each_entry_reverse(at, &head, node)
		sum += at->id;
	CHECK(sum == 12 + 5 + 5 + 6 + 6);
	list_for_each_entry_safe(at, n, &head, node)
		list_del(&at->node);
	CHECK(list_empty(&head) && !list_first_or_null_rcu(&head, plain, node));
}

static void the_macros_of_chains_are_cpp_too()
{
	plain p[3] = {}, *at;
	HLIST_HEAD(head);
	hlist_nulls_head nulls = HLIST_NULLS_HEAD_INIT(5);
	hlist_nulls_node *pos;
	hlist_node *n;
	int sum = 0;

	for (int i = 0; i < 3; i++) {
		p[i].id = i + 1;
		hlist_add_tail_rcu(&p[i].hnode, &head);
		hlist_nulls_add_head_rcu(&p[i].nnode, &nulls);
	}
	hlist_for_each_entry_rcu(at, &head, hnode)
		sum += at->id;
	hlist_for_each_entry(at, &head, hnode)
		sum += at->id;
	at = p;
	hlist_for_each_entry_continue_rcu(at, hnode)
		sum += at->id;
	at = p;
	hlist_for_each_entry_from_rcu(at, hnode)
		sum += at->id;
	hlist_nulls_for_each_entry_rcu(at, pos, &nulls, nnode)
		sum += at->id;
	CHECK(sum == 6 + 6 + 5 + 6 + 6 && get_nulls_value(pos) == 5 && hlist_nulls_strayed(pos, 4));
	hlist_nulls_for_each_entry(at, pos, &nulls, nnode)
		sum += at->id;
	CHECK(sum == 35 && hlist_nulls_entry(nulls.first, plain, nnode) == p + 2);
	hlist_nulls_for_each_entry_from(at, pos, nnode)
		sum++;
	hlist_nulls_for_each_entry_safe(at, pos, &nulls, nnode)
		hlist_nulls_del_rcu(&at->nnode);
	hlist_nulls_add_fake(&p[0].nnode);
	CHECK(sum == 35 && hlist_nulls_empty(&nulls) && get_nulls_value(p[0].nnode.next) == QUIESCE_NULLS_NOBODY);
	CHECK(hlist_entry_safe(head.first, plain, hnode) == p && hlist_entry(head.first, plain, hnode) == p);
	hlist_for_each_entry_safe(at, n, &head, hnode)
		hlist_del_init_rcu(&at->hnode);
	CHECK(hlist_empty(&head) && !hlist_entry_safe(head.first, plain, hnode));
	hlist_add_fake(&p[0].hnode);
	CHECK(hlist_fake(&p[0].hnode));
}

/* ---- beside an updater ---- */

struct counted_item : quiesce::rcu_obj_base<counted_item> {
	explicit counted_item(int v) : value(v), again(v) {}
	~counted_item() { value = -1; }
	int value, again;
	list_head node;
};

static void walks_run_beside_an_updater()
{
	list_head head = LIST_HEAD_INIT(head);
	bool stop = false;
	long walks = 0, wrong = 0;

	for (int i = 0; i < 8; i++)
		list_add_rcu(&(new counted_item(i))->node, &head);
	std::thread reader([&] {
		while (!quiesce_load_relaxed(&stop)) {
			std::scoped_lock section(quiesce::rcu_default_domain());
			long length = 0;
			for (const counted_item &i : rcu_list_range<&counted_item::node>(head)) {
				wrong += i.value != i.again || i.value < 0;
				length++;
			}
			wrong += length < 8;
			quiesce_fetch_add_relaxed(&walks, 1L);
		}
	});
	for (int i = 0; i < 3000 || quiesce_load_relaxed(&walks) < 20; i++) {
		counted_item &old = *rcu_list_range<&counted_item::node>(head).begin();

		list_add_tail_rcu(&(new counted_item(i))->node, &head);
		list_del_rcu(&old.node);
		old.retire();
	}
	quiesce_store_relaxed(&stop, true);
	reader.join();
	CHECK(wrong == 0 && walks >= 20);
	{
		std::scoped_lock section(quiesce::rcu_default_domain()); /* the walk goes on from what is retired */
		for (counted_item &i : rcu_list_range<&counted_item::node>(head)) {
			list_del_rcu(&i.node);
			i.retire();
		}
	}
	CHECK(list_empty(&head));
	quiesce::rcu_barrier();
}

int main()
{
	return run_tests({
		TEST(a_list_is_a_range),
		TEST(an_hlist_is_a_range),
		TEST(iterators_are_forward_iterators),
		TEST(any_class_may_hold_a_node),
		TEST(the_macros_of_lists_are_cpp_too),
		TEST(the_macros_of_chains_are_cpp_too),
		TEST(walks_run_beside_an_updater),
	});
}
