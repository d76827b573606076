/* SPDX-License-Identifier: MIT */
/* test_xarray.cpp - quiesce::xarray and quiesce::ida: types, exceptions, ranges, objects that readers see until they are retired. */
#include <quiesce/ds/ida.hpp>
#include <quiesce/ds/xarray.hpp>
#include <quiesce/rcu.hpp>

#include "tap.hpp"

#include <algorithm>
#include <climits>
#include <iterator>
#include <memory>
#include <mutex>
#include <ranges>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <vector>

using quiesce::xa_mark;

struct page : quiesce::rcu_obj_base<page> {
	explicit page(unsigned long n) : number(n) {}
	unsigned long number;
};

using pages = quiesce::xarray<page>;

/* ---- what the compiler knows ---- */

static_assert(std::is_nothrow_default_constructible_v<pages> && std::is_nothrow_default_constructible_v<quiesce::ida>);
static_assert(!std::is_copy_constructible_v<pages> && !std::is_move_constructible_v<pages>);
static_assert(!std::is_copy_assignable_v<pages> && !std::is_move_assignable_v<pages>);
static_assert(!std::is_copy_constructible_v<quiesce::ida> && !std::is_copy_assignable_v<quiesce::ida>);
static_assert(noexcept(std::declval<const pages &>().load(1)) && noexcept(std::declval<pages &>().erase(1)));
static_assert(noexcept(std::declval<pages &>().release(1)) && noexcept(std::declval<pages &>().clear()));
static_assert(!noexcept(std::declval<pages &>().store(1, nullptr)) && !noexcept(std::declval<pages &>().insert(1, nullptr)));
static_assert(!noexcept(std::declval<quiesce::ida &>().alloc()) && noexcept(std::declval<quiesce::ida &>().free(1)));
static_assert(std::is_same_v<decltype(std::declval<pages &>().load(1)), page *>);
static_assert(std::is_same_v<decltype(std::declval<quiesce::xarray<const int> &>().erase(1)), const int *>);
static_assert(std::input_iterator<pages::iterator> && std::input_iterator<pages::reverse_iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, pages::iterator>);
static_assert(std::ranges::input_range<const pages &> && std::ranges::input_range<pages::basic_range<true>>);
static_assert(!std::is_convertible_v<int, xa_mark>);

/* The object is usable before any constructor runs. */
static int zero;
static const bool used_early = [] {
	extern quiesce::xarray<int> early;
	extern quiesce::ida early_numbers;

	return early.empty() && !early.store(ULONG_MAX, &zero) && early.load(ULONG_MAX) == &zero && early_numbers.alloc(7) == 7;
}();
constinit quiesce::xarray<int> early;
constinit quiesce::ida early_numbers;

/* ---- one thread ---- */

static void one_index()
{
	int object[3] = { 0, 1, 2 }, *expected = nullptr;
	quiesce::xarray<int> xa;

	CHECK(used_early && early.size() == 1 && early.erase(ULONG_MAX) == &zero);
	CHECK(xa.empty() && xa.size() == 0 && !xa.load(0) && !xa.erase(0));
	CHECK(xa.store(5, &object[0]) == nullptr && xa.store(5, &object[1]) == &object[0] && xa.load(5) == &object[1]);
	CHECK(!xa.insert(5, &object[2]) && xa.insert(6, &object[2]) && xa.load(6) == &object[2]);
	CHECK(!xa.compare_exchange(5, expected, &object[0]) && expected == &object[1]);
	CHECK(xa.compare_exchange(5, expected, &object[0]) && expected == &object[1] && xa.load(5) == &object[0]);
	expected = nullptr;
	CHECK(xa.compare_exchange(7, expected, &object[1]) && expected == nullptr && xa.load(7) == &object[1]);
	expected = &object[1];
	CHECK(xa.compare_exchange(7, expected, nullptr) && !xa.load(7) && xa.size() == 2);
	CHECK(xa.store(6, nullptr) == &object[2] && xa.size() == 1);
	xa.reserve(100);
	CHECK(xa.size() == 2 && !xa.load(100) && !xa.insert(100, &object[1]) && !xa.store(100, &object[1]));
	xa.release(100);
	CHECK(xa.load(100) == &object[1] && xa.erase(100) == &object[1] && xa.erase(100) == nullptr);
	CHECK(::xa_load(xa.native_handle(), 5) == &object[0]);
	xa.clear();
	CHECK(xa.empty());
}

static void indices_are_given_out()
{
	std::uint32_t next = 8;
	quiesce::xarray<int> xa;

	CHECK(xa.alloc(&zero) == 0u && xa.alloc(&zero, 5) == 5u && xa.alloc(&zero, 5, 6) == 6u);
	CHECK(!xa.alloc(&zero, 5, 6) && xa.alloc(&zero) == 1u && xa.alloc(&zero, UINT32_MAX) == UINT32_MAX);
	CHECK(!xa.alloc(&zero, UINT32_MAX) && xa.load(UINT32_MAX) == &zero && xa.size() == 5);
	CHECK(xa.alloc_cyclic(&zero, next, 0, 8) == 8u && next == 9 && xa.alloc_cyclic(&zero, next, 0, 8) == 2u && next == 3);
	CHECK(!xa.alloc_cyclic(&zero, next, 5, 6) && next == 3);
}

static void marks()
{
	quiesce::xarray<int> xa;

	xa.store(70, &zero);
	xa.set_mark(70, xa_mark::mark_2);
	xa.set_mark(71, xa_mark::mark_1);
	CHECK(xa.get_mark(70, xa_mark::mark_2) && !xa.get_mark(70, xa_mark::mark_0) && !xa.get_mark(71, xa_mark::mark_1));
	CHECK(xa.any_marked(xa_mark::mark_2) && !xa.any_marked(xa_mark::mark_1) && xa.any_marked(xa_mark::present));
	xa.clear_mark(70, xa_mark::mark_2);
	CHECK(!xa.get_mark(70, xa_mark::mark_2) && !xa.any_marked(xa_mark::mark_2));
}

static const unsigned long at[] = { 0, 63, 64, 4096, 1ul << 60, ULONG_MAX };
constexpr int nr_at = 6;

static void fill(quiesce::xarray<const unsigned long> &xa)
{
	for (const unsigned long &index : at)
		CHECK(xa.insert(index, &index));
	xa.reserve(70);
}

static void neighbours()
{
	quiesce::xarray<const unsigned long> xa;

	CHECK(!xa.find(0) && !xa.find_reverse(ULONG_MAX) && !xa.find_after(0) && !xa.find_before(ULONG_MAX));
	fill(xa);
	for (int i = 0; i < nr_at; i++) {
		auto here = xa.find(at[i]), next = xa.find_after(at[i]), back = xa.find_reverse(at[i]), previous = xa.find_before(at[i]);

		CHECK(here && here->first == at[i] && here->second == &at[i] && here == back);
		CHECK(i + 1 < nr_at ? next && next->first == at[i + 1] && next->second == &at[i + 1] : !next);
		CHECK(i ? previous && previous->first == at[i - 1] && previous->second == &at[i - 1] : !previous);
	}
	CHECK(!xa.find(65, 4095) && xa.find(65, 4096)->second == &at[3] && !xa.find_after(64, 4095));
	CHECK(!xa.find_reverse(4095, 65) && xa.find_reverse(4095, 64)->second == &at[2] && !xa.find_before(4096, 65));
	xa.set_mark(64, xa_mark::mark_1);
	CHECK(xa.find(0, ULONG_MAX, xa_mark::mark_1)->second == &at[2] && !xa.find(0, 63, xa_mark::mark_1));
	CHECK(!xa.find_after(64, ULONG_MAX, xa_mark::mark_1) && !xa.find_before(64, 0, xa_mark::mark_1));
	CHECK(xa.find_reverse(ULONG_MAX, 0, xa_mark::mark_1)->second == &at[2] && !xa.find(0, ULONG_MAX, xa_mark::mark_0));
}

static void ranges()
{
	quiesce::xarray<const unsigned long> xa;
	int n = 0;

	for (auto [index, p] : xa)
		CHECK(index > 0 && !p);
	fill(xa);
	for (auto [index, p] : xa)
		CHECK(index == at[n] && p == &at[n++]);
	CHECK(n == nr_at);
	for (auto [index, p] : xa.reverse())
		CHECK(index == at[--n] && p == &at[n]);
	CHECK(n == 0);
	for (auto [index, p] : xa.range(64, 4096))
		CHECK(index == at[2 + n++] && *p == index);
	CHECK(n == 2);
	for (auto [index, p] : xa.reverse(64, 4096))
		CHECK(index == at[2 + --n] && *p == index);
	CHECK(n == 0);
	for (auto [index, p] : xa.range(65, 64))
		CHECK(index > 0 && !p);
	for (unsigned long index : { 63ul, 4096ul, ULONG_MAX })
		xa.set_mark(index, xa_mark::mark_0);
	for (auto [index, p] : xa.marked(xa_mark::mark_0))
		CHECK(index == at[1 + 2 * n++] && *p == index);
	CHECK(n == 3);
	for (auto [index, p] : xa.marked(xa_mark::mark_0, 64, ULONG_MAX - 1))
		CHECK(index == 4096 && p == &at[3] && n-- == 3);
	CHECK(n == 2);
	auto i = xa.begin();
	CHECK(i->first == 0 && (i++)->first == 0 && i->first == 63 && *i == *xa.range(1).begin() && i != xa.begin());
	CHECK(std::ranges::all_of(xa.range(), [](const auto &entry) { return *entry.second == entry.first; }));
	for (auto [index, p] : xa)
		CHECK(xa.erase(index) == p);
	CHECK(xa.size() == 1);
}

static void numbers()
{
	quiesce::ida ids;
	int caught = 0;

	CHECK(early_numbers.find_first() == 7 && early_numbers.exists(7));
	CHECK(ids.empty() && !ids.find_first() && ids.alloc() == 0 && ids.alloc() == 1 && ids.alloc(100, 101) == 100);
	CHECK(ids.alloc(100, 101) == 101 && !ids.alloc(100, 101) && !ids.empty());
	CHECK(ids.exists(1) && !ids.exists(2) && ids.find_first(2) == 100 && !ids.find_first(2, 99));
	ids.free(0);
	CHECK(ids.find_first() == 1 && ids.alloc() == 0 && ::ida_exists(ids.native_handle(), 101));
	try {
		(void)ids.find_first(UINT_MAX, UINT_MAX);
	} catch (const std::invalid_argument &) {
		caught++;
	}
	CHECK(caught == 1 && !ids.alloc(INT_MAX + 1u, UINT_MAX));
	ids.clear();
	CHECK(ids.empty() && ids.alloc(INT_MAX) == INT_MAX && !ids.alloc(INT_MAX));
}

/* ---- readers ---- */

static void readers_see_whole_pages()
{
	pages table;
	bool stop = false;
	int found = 0, wrong = 0;
	std::vector<std::thread> readers;

	for (int t = 0; t < 2; t++)
		readers.emplace_back([&] {
			while (!quiesce_load_relaxed(&stop)) {
				std::scoped_lock section(quiesce::rcu_default_domain());
				unsigned long last = 0;

				for (auto [index, p] : table.range(1)) {
					const page *again = table.load(index);

					if (p->number % 100 != index % 100 || (again && again->number % 100 != index % 100) ||
					    index <= last)
						quiesce_fetch_add_relaxed(&wrong, 1);
					quiesce_fetch_add_relaxed(&found, 1);
					last = index;
				}
				for (auto [index, p] : table.reverse())
					if (p->number % 100 != index % 100)
						quiesce_fetch_add_relaxed(&wrong, 1);
			}
		});
	for (unsigned long i = 0; i < 3000 || quiesce_load_relaxed(&found) < 1000; i++) {
		unsigned long index = i * 7 % 100 + 100 * (i % 60);
		page *old = table.erase(index);

		if (old)
			old->retire();
		CHECK(!table.store(index, std::make_unique<page>(index % 100 + 100 * i).release()));
	}
	quiesce_store_relaxed(&stop, true);
	for (auto &t : readers)
		t.join();
	CHECK(wrong == 0 && found >= 1000);
	for (auto [index, p] : table) {
		table.erase(index);
		p->retire();
	}
	CHECK(table.empty());
	quiesce::rcu_barrier();
}

int main()
{
	return run_tests({
		TEST(one_index), TEST(indices_are_given_out), TEST(marks), TEST(neighbours), TEST(ranges), TEST(numbers),
		TEST(readers_see_whole_pages),
	});
}
