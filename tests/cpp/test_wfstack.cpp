/* SPDX-License-Identifier: MIT */
/* test_wfstack.cpp - quiesce::wfstack: types, ranges whose objects are pushed again or deleted, many threads. */
#include <quiesce/ds/wfstack.hpp>

#include "tap.hpp"

#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

struct base {
	virtual ~base() = default;
	int number = 0;
	wfs_node node;
};

struct item : base {
	explicit item(int n) { number = n; }
};

using stack = quiesce::wfstack<&base::node, item>;

static_assert(std::is_nothrow_default_constructible_v<stack> && !std::is_copy_constructible_v<stack> && !std::is_copy_assignable_v<stack>);
static_assert(std::input_iterator<std::ranges::iterator_t<stack::range>> && std::ranges::view<stack::range>);
static_assert(std::ranges::borrowed_range<stack::range> && sizeof(stack) == sizeof(void *));
static_assert(noexcept(std::declval<stack &>().push(std::declval<item &>())) && noexcept(std::declval<stack &>().pop_all()));
static_assert(std::is_same_v<decltype(std::declval<stack &>().pop()), item *>);

static constinit stack early; /* ready before any constructor runs */

static void newest_first()
{
	item i[3] = { item(1), item(2), item(3) };
	item *got = &i[2];

	CHECK(early.empty() && !early.pop() && early.try_pop(got) && !got);
	CHECK(!early.push(i[0]) && early.push(i[1]) && early.push(i[2]));
	CHECK(early.pop() == &i[2] && early.try_pop(got) && got == &i[1] && !early.empty());
	early.native_handle()->head->node.next = reinterpret_cast<wfs_node *>(1); /* as if its push had not stored the link */
	CHECK(!early.try_pop(got) && got == &i[1]);
	early.native_handle()->head->node.next = nullptr;
	CHECK(early.pop() == &i[0] && early.empty());
}

static void popped_objects_are_a_range()
{
	stack s;
	int sum = 0, last = 6;

	for (const item &i : s.pop_all())
		sum += i.number;
	CHECK(sum == 0 && s.pop_all().empty());
	for (int n = 1; n <= 5; n++)
		s.push(*new item(n));
	for (item &i : s.pop_all()) {
		CHECK(i.number == --last);
		s.push(i); /* again, the other way round */
	}
	CHECK(last == 1);
	for (item &i : s.pop_all()) {
		CHECK(i.number == last++);
		delete &i;
	}
	CHECK(last == 6 && s.empty());
}

static void threads_push_and_pop()
{
	constexpr int each = 20000, pushers = 2;
	stack s;
	std::mutex pops;
	std::vector<std::thread> threads;
	long sum = 0, nr = 0;

	for (int t = 0; t < pushers; t++)
		threads.emplace_back([&] {
			for (int n = 1; n <= each; n++)
				s.push(*new item(n));
		});
	threads.emplace_back([&] {
		while (quiesce_load_relaxed(&nr) < pushers * each) {
			std::unique_ptr<item> i;
			{
				std::scoped_lock lock(pops);
				i.reset(s.pop());
			}
			if (!i)
				continue;
			quiesce_fetch_add_relaxed(&sum, long(i->number));
			quiesce_fetch_add_relaxed(&nr, 1L);
		}
	});
	while (quiesce_load_relaxed(&nr) < pushers * each) {
		stack::range all;
		{
			std::scoped_lock lock(pops);
			if (item *one = s.pop()) {
				quiesce_fetch_add_relaxed(&sum, long(one->number));
				quiesce_fetch_add_relaxed(&nr, 1L);
				delete one;
			}
			if (quiesce_load_relaxed(&nr) > each / 2 + each)
				all = s.pop_all();
		}
		for (item &i : all) {
			quiesce_fetch_add_relaxed(&sum, long(i.number));
			quiesce_fetch_add_relaxed(&nr, 1L);
			delete &i;
		}
	}
	for (std::thread &t : threads)
		t.join();
	CHECK(nr == pushers * each && sum == long(pushers) * each * (each + 1) / 2 && s.empty());
}

int main()
{
	return run_tests({ TEST(newest_first), TEST(popped_objects_are_a_range), TEST(threads_push_and_pop) });
}
