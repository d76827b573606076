/* SPDX-License-Identifier: MIT */
/* test_unordered_map.cpp - rcu_unordered_map: keys and values of any type, lookups by other types, exceptions, what is reclaimed,
 * and readers beside updaters. */
#include <quiesce/ds/unordered_map.hpp>

#include "tap.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace std::string_view_literals;
using quiesce::rcu_reader;
using quiesce::rcu_unordered_map;

/* ---- types ---- */

static int nr_live;

/* Counts its objects; copies of it throw on request. */
struct counted {
	explicit counted(int v = 0) : value(v), text(std::to_string(v)) { quiesce_fetch_add_relaxed(&nr_live, 1); }
	counted(const counted &from) : value(from.value), text(from.text)
	{
		if (from.value == -666)
			throw 1;
		quiesce_fetch_add_relaxed(&nr_live, 1);
	}
	~counted()
	{
		quiesce_store_relaxed(&value, -1);
		quiesce_fetch_add_relaxed(&nr_live, -1);
	}
	int value;
	std::string text;
};

static int live()
{
	quiesce::rcu_barrier();
	return quiesce_load_relaxed(&nr_live);
}

struct point {
	int x, y;
	bool operator==(const point &) const = default;
};
struct floating {
	double d;
	bool operator==(const floating &) const = default;
};
struct floating_hash {
	std::size_t operator()(const floating &f) const noexcept { return std::hash<double>()(f.d); }
};

/* A path is found by its parts, from which no path is made. */
struct path {
	std::string dir, file;
};
struct parts {
	std::string_view dir, file;
};
struct path_hash {
	using is_transparent = void;
	template<class P> std::uint64_t operator()(const P &p, std::uint64_t seed) const noexcept
	{
		return quiesce_hash_bytes(p.dir.data(), p.dir.size(), quiesce_hash_bytes(p.file.data(), p.file.size(), seed));
	}
};
struct path_equal {
	using is_transparent = void;
	template<class A, class B> bool operator()(const A &a, const B &b) const noexcept { return a.dir == b.dir && a.file == b.file; }
};

using strings = rcu_unordered_map<std::string, std::string>;
using numbers = rcu_unordered_map<std::string, counted>;
using owners = rcu_unordered_map<int, std::unique_ptr<counted>>;

/* ---- what the compiler knows ---- */

template<class Map, class Key> concept finds = requires(const Map &m, const Key &key) { m.find(key); };
template<class Map> concept updates = requires(Map &m) { m.update("", [](auto &) {}); };
template<class Map> concept copies = requires(Map &m) { m.get(""); };

static_assert(finds<strings, std::string> && finds<strings, char[4]> && finds<strings, const char *> && finds<strings, std::string_view>);
static_assert(!finds<strings, int> && finds<owners, short> && !finds<owners, std::string>);
/* Pointers to texts are keys only where they are hashed and compared as pointers. */
static_assert(finds<rcu_unordered_map<const char *, int, std::hash<const char *>, std::equal_to<const char *>>, const char *>);
static_assert(updates<strings> && !updates<rcu_unordered_map<std::string, std::unique_ptr<int>>>);
static_assert(copies<strings> && !copies<rcu_unordered_map<std::string, std::unique_ptr<int>>>);
static_assert(noexcept(std::declval<const strings &>().find("")) && noexcept(std::declval<strings &>().erase("")));
static_assert(!noexcept(std::declval<const rcu_unordered_map<std::string, int, std::hash<std::string>> &>().find("")));
static_assert(!noexcept(std::declval<const strings &>().get("")) && !noexcept(std::declval<strings &>().insert("", "")));
static_assert(!std::is_copy_constructible_v<strings> && !std::is_move_constructible_v<strings>);
static_assert(std::is_nothrow_default_constructible_v<strings> && sizeof(strings) == sizeof(struct hashtable));
static_assert(std::ranges::input_range<strings> && std::is_same_v<std::ranges::range_reference_t<strings>, const strings::value_type &>);

static constinit strings early;

/* ---- one thread ---- */

static void values_are_found_read_and_replaced()
{
	std::string key = "ada", seen;
	strings map;

	CHECK(map.empty() && !map.contains("ada") && !map.get("ada") && !map.erase("ada"));
	CHECK(map.insert("ada", "first") && !map.insert(key, "second") && map.size() == 1 && map.get("ada") == "first");
	CHECK(!map.insert_or_assign("ada"sv, "third") && map.get(key) == "third" && map.insert_or_assign("bob", std::string("b")));
	CHECK(map.try_emplace("eve", 3u, 'e') && map.get("eve") == "eee" && !map.try_emplace("eve", "other") && map.size() == 3);
	CHECK(map.visit("bob", [&](const std::string &value) { seen = value; }) && seen == "b");
	CHECK(!map.visit("nobody", [&](const std::string &) { seen = "x"; }) && seen == "b");
	CHECK(map.update("bob", [](std::string &value) { value += "ob"; }) && map.get("bob") == "bob");
	CHECK(!map.update("nobody", [&](std::string &) { seen = "x"; }) && seen == "b" && !map.contains("nobody"));
	{
		rcu_reader section;
		const std::string *value = map.find("adamant"sv.substr(0, 3));

		CHECK(value && *value == "third" && !map.find("") && map.erase("ada") && *value == "third" && !map.find("ada"));
	}
	CHECK(map.size() == 2 && map.insert("", "empty") && map.get("") == "empty");
	map.clear();
	CHECK(map.empty());
	CHECK(early.insert("x", "y") && early.get("x") == "y");
}

static void keys_have_any_type()
{
	rcu_unordered_map<point, point> points;
	rcu_unordered_map<floating, int, floating_hash> floats;
	rcu_unordered_map<std::string, int, std::hash<std::string>, std::equal_to<std::string>> plain;
	rcu_unordered_map<path, int, path_hash, path_equal> paths;
	rcu_unordered_map<std::int64_t, std::vector<int>> vectors;

	CHECK(points.insert(point{ 1, 2 }, point{ 3, 4 }) && points.get({ 1, 2 })->y == 4 && !points.contains(point{ 2, 1 }));
	CHECK(floats.insert(floating{ 0.0 }, 1) && floats.get(floating{ -0.0 }) == 1 && !floats.contains(floating{ 1.0 }));
	CHECK(plain.insert("one", 1) && plain.get("one") == 1 && plain.contains(std::string("one")) && plain.erase("one"));
	for (int i = 0; i < 300; i++)
		CHECK(paths.insert(path{ "/dir" + std::to_string(i % 7), std::to_string(i) }, i));
	CHECK(paths.get(parts{ "/dir0", "7" }) == 7 && !paths.contains(parts{ "/dir1", "7" }) && paths.get(path{ "/dir1", "8" }) == 8);
	CHECK(paths.erase(parts{ "/dir0", "7" }) && !paths.contains(path{ "/dir0", "7" }) && paths.size() == 299);
	CHECK(paths.update(parts{ "/dir1", "8" }, [](int &n) { n = 80; }) && paths.get(parts{ "/dir1", "8" }) == 80);
	CHECK(vectors.try_emplace(7, 3u, 1) && vectors.get(7)->size() == 3 && vectors.contains(short{ 7 }));
}

static void values_may_be_moved_only()
{
	int before = live();
	{
		owners map;
		auto value = std::make_unique<counted>(7);

		CHECK(map.insert(1, std::move(value)) && !value);
		value = std::make_unique<counted>(8);
		CHECK(!map.insert(1, std::move(value)) && value && value->value == 8); /* not moved from */
		CHECK(!map.insert_or_assign(1, std::move(value)) && !value && map.visit(1, [](const auto &p) { CHECK(p->value == 8); }));
		CHECK(live() == before + 1);
	}
	CHECK(live() == before);
}

static void nodes_go_when_they_are_replaced()
{
	int before = live();
	{
		numbers map(1000), seeded(quiesce::rcu_hash_seed{ 1 });

		for (int i = 0; i < 1000; i++)
			CHECK(map.try_emplace(std::to_string(i), i) && seeded.try_emplace(std::to_string(i), i));
		CHECK(live() == before + 2000);
		for (int i = 0; i < 1000; i += 2)
			CHECK(map.update(std::to_string(i), [](counted &c) { c.value++; }) && map.erase(std::to_string(i + 1)));
		CHECK(live() == before + 1500 && map.size() == 500 && map.get("998")->value == 999);
		CHECK(map.erase_if([](const std::string &key, const counted &c) { return key.size() == 3 && c.value % 4 == 1; }) == 225);
		CHECK(live() == before + 1275);
		seeded.clear();
		CHECK(live() == before + 275);
	}
	CHECK(live() == before);
}

static void an_exception_changes_nothing()
{
	int before = live(), caught = 0, calls = 0;
	{
		numbers map;

		for (int i : { 1, 2, -666 })
			map.try_emplace(std::to_string(i), i);
		auto attempt = [&](auto fn) {
			try {
				fn();
			} catch (int) {
				caught++;
			}
		};
		attempt([&] { map.update("1", [](counted &c) { c.value = 100, throw 1; }); });
		attempt([&] { map.update("-666", [](counted &) {}); });
		attempt([&] { (void)map.get("-666"); });
		attempt([&] { map.insert("3", counted(-666)); });
		attempt([&] { map.insert_or_assign("1", counted(-666)); });
		attempt([&] { map.visit("1", [](const counted &) { throw 1; }); });
		attempt([&] { map.for_each([](const std::string &, const counted &) { throw 1; }); });
		attempt([&] { map.erase_if([&](const std::string &, const counted &) { return calls++ ? throw 1 : false; }); });
		CHECK(caught == 8 && calls == 2 && map.size() == 3 && live() == before + 3 && map.get("1")->value == 1);
		try {
			map.reserve(~std::size_t{ 0 });
		} catch (const std::bad_alloc &) {
			caught++;
		}
		CHECK(caught == 9 && map.try_reserve(100) == std::errc{});
	}
	CHECK(live() == before);
}

static void iterations_see_all_once()
{
	rcu_unordered_map<std::string, int> map;
	std::map<std::string, int> expected, seen;
	int nr = 0;

	for (int i = 0; i < 1000; i++)
		map.insert(expected.emplace("key " + std::to_string(i), i).first->first, i);
	{
		rcu_reader section;

		for (const auto &[key, value] : map)
			nr += seen.emplace(key, value).second;
		CHECK(nr == 1000 && seen == expected);
		CHECK(std::ranges::distance(map | std::views::filter([](const auto &pair) { return pair.second < 10; })) == 10);
	}
	seen.clear();
	map.for_each([&](const std::string &key, int value) { seen.emplace(key, value); });
	CHECK(seen == expected);
	seen.clear();
	map.for_each_in_steps([&](const std::string &key, int value) { seen.emplace(key, value); });
	CHECK(seen == expected);
	rcu_reader section;
	for (const auto &[key, value] : map)
		map.erase(key);
	CHECK(map.empty());
}

/* ---- several threads ---- */

/* A reader finds each key that is never removed, with a value that is whole and never goes back. */
static void readers_see_whole_values()
{
	constexpr int keys = 64, rounds = 2000;
	numbers map;
	std::vector<std::thread> threads;
	int wrong = 0, found = 0, left = 2;

	for (int i = 0; i < keys; i++)
		map.try_emplace(std::to_string(i), 0);
	for (int t = 0; t < 2; t++)
		threads.emplace_back([&] {
			int last[keys] = { 0 }, bad = 0, good = 0;

			for (int n = 0; quiesce_load_relaxed(&left) || !good; n++) {
				int k = n % keys, value = -2;
				bool there = map.visit(std::to_string(k), [&](const counted &c) {
					value = std::to_string(quiesce_load_relaxed(&c.value)) == c.text ? c.value : -3;
				});

				if (there)
					++(value >= last[k] ? good : bad);
				else
					bad += k % 2 == 0; /* even keys stay */
				if (there)
					last[k] = k % 2 ? 0 : value;
				quiesce_fetch_add_relaxed(&found, good > 0);
			}
			quiesce_fetch_add_relaxed(&wrong, bad);
		});
	for (int t = 0; t < 2; t++)
		threads.emplace_back([&] {
			for (int n = 0; n < rounds; n++)
				for (int k = 0; k < keys; k += 8) {
					map.update(std::to_string(k), [](counted &c) { c.text = std::to_string(++c.value); });
					if (n % 2)
						map.erase(std::to_string(k + 1));
					else
						map.insert_or_assign(std::to_string(k + 1), counted(n));
				}
			quiesce_fetch_add_relaxed(&left, -1);
		});
	for (auto &thread : threads)
		thread.join();
	CHECK(wrong == 0 && found > 0);
	for (int k = 0; k < keys; k += 8) /* no update was lost */
		CHECK(map.get(std::to_string(k))->value == 2 * rounds);
	map.clear();
	CHECK(live() == 0);
}

/* Of several threads that insert, or remove, a key, one does. */
static void several_keys_are_found_together()
{
	rcu_unordered_map<std::string, std::string> map;
	std::vector<std::string> names;
	std::vector<std::string_view> keys;
	std::vector<const std::string *> values(300);

	for (int i = 0; i < 300; i++)
		names.push_back("key " + std::to_string(i));
	for (int i = 0; i < 300; i += 3)
		map.insert(names[i], std::to_string(i));
	keys.assign(names.begin(), names.end());
	rcu_reader section;
	CHECK(map.find_many(keys, values) == 100u);
	for (int i = 0; i < 300; i++)
		CHECK(i % 3 ? !values[i] : values[i] && *values[i] == std::to_string(i));
	CHECK(map.find_many(keys, std::span(values).first(1)) == 1u);
	CHECK(map.find_many({}, values) == 0u);
}

template<class F> static bool thrown(F fn)
{
	try {
		fn();
	} catch (int) {
		return true;
	}
	return false;
}

static void upsert_inserts_or_updates()
{
	int before = live();
	rcu_unordered_map<std::string, counted> map;
	auto add = [](counted &c) { c.value += 10; };

	CHECK(map.upsert("a", add, 1));
	CHECK(map.get("a")->value == 1);
	CHECK(!map.upsert(std::string("a"), add, 1));
	CHECK(map.get("a"sv)->value == 11);
	CHECK(thrown([&] { map.upsert("a", [](counted &) { throw 1; }, 1); }));
	CHECK(map.get("a")->value == 11);
	CHECK(map.upsert("b", [](counted &) { throw 1; }, 7));
	CHECK(map.get("b")->value == 7);
	map.clear();
	CHECK(live() == before);
}

static void an_extracted_value_is_a_copy()
{
	int before = live();
	rcu_unordered_map<std::string, counted> map;

	map.try_emplace("a", 1);
	map.try_emplace("bad", -666);
	{
		auto value = map.extract("a"sv);

		CHECK(value && value->value == 1 && value->text == "1");
		CHECK(!map.contains("a") && !map.extract("a"));
	}
	CHECK(thrown([&] { map.extract("bad"); }) && map.contains("bad"));
	map.clear();
	CHECK(live() == before);
}

/* Counts of keys by several threads, of which each inserts, adds and extracts: what is extracted and what is left is what was put in. */
static void upserts_and_extractions_lose_nothing()
{
	rcu_unordered_map<int, int> map;
	int out = 0;
	std::vector<std::thread> threads;
	int left = 0;

	for (int t = 0; t < 4; t++)
		threads.emplace_back([&, t] {
			for (int i = 0; i < 4000; i++) {
				map.upsert(i % 5, [](int &n) { n++; }, 1);
				if (i % 4 == t)
					if (auto n = map.extract((i + t) % 5))
						quiesce_fetch_add_relaxed(&out, *n);
			}
		});
	for (auto &thread : threads)
		thread.join();
	map.for_each([&](int, int n) { left += n; });
	CHECK(out + left == 16000);
}

static void one_thread_wins()
{
	constexpr int keys = 2000;
	strings map;
	std::vector<std::thread> threads;
	int inserted = 0, removed = 0;

	for (int t = 0; t < 3; t++)
		threads.emplace_back([&] {
			int mine = 0;

			for (int k = 0; k < keys; k++)
				mine += map.insert(std::to_string(k), "value");
			quiesce_fetch_add_relaxed(&inserted, mine);
		});
	for (auto &thread : threads)
		thread.join();
	CHECK(inserted == keys && map.size() == keys);
	threads.clear();
	for (int t = 0; t < 3; t++)
		threads.emplace_back([&] {
			int mine = 0;

			for (int k = 0; k < keys; k++)
				mine += map.erase(std::to_string(k));
			quiesce_fetch_add_relaxed(&removed, mine);
		});
	for (auto &thread : threads)
		thread.join();
	CHECK(removed == keys && map.empty());
}

int main()
{
	return run_tests({
		TEST(values_are_found_read_and_replaced),
		TEST(keys_have_any_type),
		TEST(values_may_be_moved_only),
		TEST(nodes_go_when_they_are_replaced),
		TEST(an_exception_changes_nothing),
		TEST(iterations_see_all_once),
		TEST(readers_see_whole_values),
		TEST(several_keys_are_found_together),
		TEST(upsert_inserts_or_updates),
		TEST(an_extracted_value_is_a_copy),
		TEST(upserts_and_extractions_lose_nothing),
		TEST(one_thread_wins),
	});
}
