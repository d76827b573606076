/* SPDX-License-Identifier: MIT */
/* test_idr.cpp - quiesce::idr: types, exceptions, range-for, objects that readers see until they are retired. */
#include <quiesce/ds/idr.hpp>
#include <quiesce/rcu.hpp>

#include "tap.hpp"

#include <climits>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

struct session : quiesce::rcu_obj_base<session> {
	explicit session(int n) : number(n) {}
	int number;
};

using sessions = quiesce::idr<session>;

/* ---- what the compiler knows ---- */

static_assert(std::is_nothrow_default_constructible_v<sessions>);
static_assert(!std::is_copy_constructible_v<sessions> && !std::is_move_constructible_v<sessions>);
static_assert(!std::is_copy_assignable_v<sessions> && !std::is_move_assignable_v<sessions>);
static_assert(!std::is_copy_constructible_v<quiesce::idr_nodes> && !std::is_copy_assignable_v<quiesce::idr_nodes>);
static_assert(noexcept(std::declval<const sessions &>().find(1)) && noexcept(std::declval<sessions &>().remove(1)));
static_assert(noexcept(std::declval<sessions &>().replace(nullptr, 1)) && noexcept(std::declval<sessions &>().clear()));
static_assert(!noexcept(std::declval<sessions &>().alloc(nullptr)));
static_assert(std::is_same_v<decltype(std::declval<sessions &>().find(1)), session *>);
static_assert(std::is_same_v<decltype(std::declval<quiesce::idr<const int> &>().find(1)), const int *>);
static_assert(std::input_iterator<sessions::iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, sessions::iterator>);

/* The object is usable before any constructor runs. */
static int zero;
static const bool used_early = [] {
	extern quiesce::idr<int> early;

	return early.empty() && early.alloc(&zero) == 0 && early.find(0) == &zero;
}();
constinit quiesce::idr<int> early;

/* ---- one thread ---- */

static void ids_are_given_out_and_back()
{
	int object[4] = { 0, 1, 2, 3 };
	quiesce::idr<int> ids;

	CHECK(used_early && early.size() == 1 && early.remove(0) == &zero);
	CHECK(ids.empty() && ids.size() == 0 && !ids.find(0));
	CHECK(ids.alloc(&object[0]) == 0 && ids.alloc(&object[1], 5) == 5 && ids.alloc(&object[2], 5, 7) == 6);
	CHECK(ids.alloc(&object[3], 5, 7) == std::nullopt);
	CHECK(ids.size() == 3 && ids.find(5) == &object[1] && !ids.find(4));
	CHECK(ids.alloc_cyclic(&object[3]) == 1 && ids.alloc_cyclic(&object[3]) == 2);
	CHECK(ids.remove(1) == &object[3] && ids.alloc_cyclic(&object[3]) == 3);
	CHECK(ids.alloc(nullptr, 100) == 100 && !ids.find(100));
	CHECK(ids.replace(&object[0], 100) == nullptr && ids.find(100) == &object[0]);
	CHECK(ids.replace(&object[1], 100) == &object[0] && !ids.replace(&object[1], 101));
	CHECK(ids.remove(100) == &object[1] && ids.remove(100) == nullptr);
	CHECK(::idr_find(ids.native_handle(), 6) == &object[2]);
	ids.clear();
	CHECK(ids.empty() && ids.alloc(&object[0], INT_MAX) == INT_MAX && !ids.alloc(&object[0], INT_MAX));
}

static void ranges_are_in_the_order_of_ids()
{
	static const int at[] = { 0, 63, 64, 4096, INT_MAX };
	quiesce::idr<const int> ids;
	int n = 0;

	for (auto [id, p] : ids)
		CHECK(id < 0 && p);
	for (const int &id : at)
		CHECK(ids.alloc(&id, id) == id);
	CHECK(ids.alloc(nullptr, 70) == 70);
	for (auto [id, p] : ids)
		CHECK(id == at[n] && p == &at[n++]);
	CHECK(n == 5);
	auto i = ids.lower_bound(64);
	CHECK(i->first == 64 && (i++)->first == 64 && i->first == 4096 && *i == *ids.lower_bound(65));
	CHECK(i == ids.lower_bound(100) && i != ids.begin());
	CHECK(++i != ids.end() && ++i == ids.end());
	CHECK(ids.lower_bound(-1) == ids.end());
	for (auto [id, p] : ids)
		CHECK(ids.remove(static_cast<unsigned long>(id)) == p);
	CHECK(ids.size() == 1);
}

static void ids_have_32_bits()
{
	struct numbered {
		std::uint32_t id;
	} a{ 0 }, b{ 0 }, c{ 0 };
	quiesce::idr<numbered> ids;

	CHECK(ids.alloc_u32(&a) == 0u && ids.alloc_u32(&a, 7) == 7u);
	CHECK(ids.alloc_u32(&b, UINT32_MAX - 1, UINT32_MAX, &b.id) == UINT32_MAX - 1 && b.id == UINT32_MAX - 1);
	CHECK(ids.alloc_u32(&c, UINT32_MAX - 1, UINT32_MAX, &c.id) == UINT32_MAX && c.id == UINT32_MAX);
	CHECK(!ids.alloc_u32(&a, UINT32_MAX - 1) && !ids.alloc_u32(&a, 7, 7, &a.id) && a.id == 7 && ids.size() == 4);
	CHECK(ids.find(UINT32_MAX) == &c && ids.remove(UINT32_MAX) == &c && ids.remove(b.id) == &b);
	int seen = 0;
	for (auto [id, p] : ids)
		seen += p == &a && (id == 0 || id == 7);
	CHECK(seen == 2);
}

static void memory_comes_before()
{
	quiesce::idr_nodes nodes;
	quiesce::idr<int> ids;
	int caught = 0;

	try {
		(void)ids.alloc(nodes, &zero);
	} catch (const std::bad_alloc &) {
		caught++;
	}
	CHECK(caught == 1 && ids.empty());
	nodes.preload();
	CHECK(ids.alloc(nodes, &zero, 5000) == 5000 && ids.find(5000) == &zero);
	for (int i = 0; i < 3; i++) {
		try {
			(void)(i == 0 ? ids.alloc(&zero, -1) : i == 1 ? ids.alloc_cyclic(&zero, -1) : ids.alloc(nodes, &zero, -1));
		} catch (const std::invalid_argument &) {
			caught++;
		}
	}
	CHECK(caught == 4 && ids.size() == 1);
}

/* ---- readers ---- */

static void readers_see_whole_sessions()
{
	sessions table;
	bool stop = false;
	int found = 0, wrong = 0;
	std::vector<std::thread> readers;

	for (int t = 0; t < 2; t++)
		readers.emplace_back([&] {
			while (!quiesce_load_relaxed(&stop)) {
				std::scoped_lock section(quiesce::rcu_default_domain());

				for (auto [id, s] : table) {
					const session *again = table.find(static_cast<unsigned long>(id));

					if (s->number % 100 != id || (again && again->number % 100 != id))
						quiesce_fetch_add_relaxed(&wrong, 1);
					quiesce_fetch_add_relaxed(&found, 1);
				}
			}
		});
	for (int i = 0; i < 3000 || quiesce_load_relaxed(&found) < 1000; i++) {
		const int id = i * 7 % 100;

		if (session *old = table.remove(static_cast<unsigned long>(id)))
			old->retire();
		CHECK(table.alloc(std::make_unique<session>(id + 100 * (i % 50)).release(), id, id + 1) == id);
	}
	quiesce_store_relaxed(&stop, true);
	for (auto &t : readers)
		t.join();
	CHECK(wrong == 0 && found >= 1000);
	for (auto [id, s] : table) {
		table.remove(static_cast<unsigned long>(id));
		s->retire();
	}
	CHECK(table.empty());
	quiesce::rcu_barrier();
}

int main()
{
	return run_tests({
		TEST(ids_are_given_out_and_back), TEST(ranges_are_in_the_order_of_ids), TEST(memory_comes_before),
		TEST(ids_have_32_bits),
		TEST(readers_see_whole_sessions),
	});
}
