/* SPDX-License-Identifier: MIT */
/* test_rculist.cpp - list and hlist against a vector, with a reader inside that goes on while the list changes. */
#include "property.hpp"

#include <quiesce/ds/rculist.h>
#include <quiesce/rcu.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <set>

namespace {

enum verbs { ADD, ADD_TAIL, ADD_AT, DELETE, REPLACE, SPLICE, WALK, STEP };
const std::vector<properties::verb> list_verbs = {
	{ "add", 4 }, { "add_tail", 4 }, { "add_at", 3 }, { "delete", 5 }, { "replace", 2 }, { "splice", 1 }, { "walk", 1 }, { "step", 6 },
};

template<class Node> struct item {
	int id;
	Node node;
	struct rcu_head rcu;
};

/* These structs give list and hlist one interface, with a flag for each difference. */
struct circular {
	using item = ::item<struct list_head>;
	struct list_head head;

	circular() { INIT_LIST_HEAD(&head); }
	void add(item *fresh) { list_add_rcu(&fresh->node, &head); }
	void add_tail(item *fresh) { list_add_tail_rcu(&fresh->node, &head); }
	void add_before(item *fresh, item *next) { list_add_tail_rcu(&fresh->node, &next->node); }
	void remove(item *gone) { list_del_rcu(&gone->node); }
	void replace(item *old, item *fresh) { list_replace_rcu(&old->node, &fresh->node); }
	void splice(const std::vector<item *> &front)
	{
		struct list_head more;

		INIT_LIST_HEAD(&more);
		for (item *i : front)
			list_add_tail_rcu(&i->node, &more);
		list_splice_init_rcu(&more, &head, synchronize_rcu);
		SAME(list_empty(&more));
	}
	bool empty() const { return list_empty(&head); }
	item *first() { return list_first_or_null_rcu(&head, item, node); }
	item *next(item *from)
	{
		item *at = from;

		list_for_each_entry_continue_rcu(at, &head, node)
			return at;
		return nullptr;
	}
	std::vector<int> ids()
	{
		std::vector<int> found;
		item *at;

		list_for_each_entry_rcu(at, &head, node)
			found.push_back(at->id);
		return found;
	}
	/* The updater's way back. */
	std::vector<int> reversed()
	{
		std::vector<int> found;

		for (struct list_head *at = head.prev; at != &head; at = at->prev)
			found.push_back(list_entry(at, item, node)->id);
		return found;
	}
};

struct hashed {
	using item = ::item<struct hlist_node>;
	struct hlist_head head;

	hashed() { INIT_HLIST_HEAD(&head); }
	void add(item *fresh) { hlist_add_head_rcu(&fresh->node, &head); }
	void add_tail(item *fresh) { hlist_add_tail_rcu(&fresh->node, &head); }
	void add_before(item *fresh, item *next) { hlist_add_before_rcu(&fresh->node, &next->node); }
	void remove(item *gone) { hlist_del_rcu(&gone->node); }
	void replace(item *old, item *fresh) { hlist_replace_rcu(&old->node, &fresh->node); }
	void splice(const std::vector<item *> &front)
	{
		for (std::size_t i = front.size(); i--;)
			add(front[i]);
	}
	bool empty() const { return hlist_empty(&head); }
	item *first()
	{
		item *at;

		hlist_for_each_entry_rcu(at, &head, node)
			return at;
		return nullptr;
	}
	item *next(item *from)
	{
		item *at = from;

		hlist_for_each_entry_continue_rcu(at, node)
			return at;
		return nullptr;
	}
	std::vector<int> ids()
	{
		std::vector<int> found;
		item *at;

		hlist_for_each_entry_rcu(at, &head, node)
			found.push_back(at->id);
		return found;
	}
	std::vector<int> reversed() /* there is no way back: that the pointers to pointers are right */
	{
		std::vector<int> found;
		struct hlist_node **from = &head.first;

		for (struct hlist_node *at = head.first; at; from = &at->next, at = at->next) {
			SAME(at->pprev == from);
			found.insert(found.begin(), hlist_entry(at, item, node)->id);
		}
		return found;
	}
};

/* A fault: an addition before an element that is not the first one adds behind it. */
struct misplacing : circular {
	void add_before(item *fresh, item *next)
	{
		if (next->node.prev == &head)
			circular::add_before(fresh, next);
		else
			list_add_rcu(&fresh->node, &next->node);
	}
};

int nr_steps, nr_replaced_under_reader;

template<class List> class pair : public properties::subject {
public:
	using item = typename List::item;

	~pair() override
	{
		end_walk();
		while (!model.empty())
			remove(0);
	}

	void apply(const properties::op &o) override
	{
		std::size_t at = model.empty() ? 0 : o.a % model.size();

		switch (o.verb) {
		case ADD:
			model.push_front(make());
			list.add(model.front());
			break;
		case ADD_TAIL:
			model.push_back(make());
			list.add_tail(model.back());
			break;
		case ADD_AT:
			if (!model.empty()) {
				item *fresh = make();

				list.add_before(fresh, model[at]);
				model.insert(model.begin() + static_cast<std::ptrdiff_t>(at), fresh);
			}
			break;
		case DELETE:
			if (!model.empty())
				remove(at);
			break;
		case REPLACE:
			if (!model.empty())
				replace(at);
			break;
		case SPLICE:
			end_walk(); /* a splice waits for readers */
			splice(o.b % 5);
			break;
		case WALK:
			end_walk();
			begin_walk();
			break;
		case STEP:
			for (std::uint32_t n = o.a % 8 + 1; walking && n; n--)
				step();
			break;
		}
	}

	void compare(bool) override
	{
		std::vector<int> expected;

		for (item *i : model)
			expected.push_back(i->id);
		rcu_read_lock();
		auto found = list.ids(), back = list.reversed();
		rcu_read_unlock();
		SAME(found == expected);
		std::reverse(back.begin(), back.end());
		SAME(back == expected);
		SAME(list.empty() == expected.empty());
	}

private:
	item *make()
	{
		auto *fresh = static_cast<item *>(std::calloc(1, sizeof(item)));

		fresh->id = next_id++;
		return fresh;
	}

	void remove(std::size_t at)
	{
		item *gone = model[at];

		list.remove(gone);
		model.erase(model.begin() + static_cast<std::ptrdiff_t>(at));
		to_come.erase(std::remove(to_come.begin(), to_come.end(), gone->id), to_come.end());
		kfree_rcu(gone, rcu);
	}

	void replace(std::size_t at)
	{
		item *old = model[at], *fresh = make();

		nr_replaced_under_reader += walking;
		list.replace(old, fresh);
		model[at] = fresh;
		to_come.erase(std::remove(to_come.begin(), to_come.end(), old->id), to_come.end());
		kfree_rcu(old, rcu);
	}

	void splice(std::size_t n)
	{
		std::vector<item *> front(n);

		for (item *&i : front)
			i = make();
		list.splice(front);
		model.insert(model.begin(), front.begin(), front.end());
	}

	/* A reader: what was there when it began and is there still comes, in this order and once; other things may. */
	void begin_walk()
	{
		rcu_read_lock();
		walking = true;
		for (item *i : model)
			to_come.push_back(i->id);
		begun = false;
		cursor = nullptr;
	}

	void step()
	{
		cursor = begun ? list.next(cursor) : list.first();
		begun = true;
		nr_steps++;
		if (!cursor) {
			bool missed = !to_come.empty();

			end_walk();
			SAME(!missed);
			return;
		}
		SAME(seen.insert(cursor->id).second);
		auto found = std::find(to_come.begin(), to_come.end(), cursor->id);

		if (found != to_come.end()) {
			SAME(found == to_come.begin());
			to_come.pop_front();
		}
	}

	void end_walk()
	{
		if (walking)
			rcu_read_unlock();
		walking = false;
		to_come.clear();
		seen.clear();
	}

	List list;
	std::deque<item *> model;
	int next_id = 1;

	bool walking = false, begun = false;
	item *cursor = nullptr;
	std::deque<int> to_come;
	std::set<int> seen;
};

template<class List> properties::property of(const char *name)
{
	properties::property p{ name, list_verbs, [] { return std::make_unique<pair<List>>(); } };

	p.unreached = [] {
		std::string why;

		if (nr_steps < 100 || nr_replaced_under_reader < 10)
			why = "readers hardly moved";
		if (why.empty())
			nr_steps = nr_replaced_under_reader = 0;
		return why;
	};
	return p;
}

} // namespace

int main()
{
	return properties::run({ of<circular>("list"), of<hashed>("hlist"),
			       properties::planted(of<misplacing>("a list that adds at the wrong place is found out, "
								  "by five operations or fewer"), 5) });
}
