/* SPDX-License-Identifier: MIT */
/* test_hashmap.cpp - rcu_hash_map: types, results, exceptions, readers beside updaters. */
#include <quiesce/ds/hashmap.hpp>
#include <quiesce/ds/hashtable.hpp>

#include <quiesce/control.h>

#include "tap.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

using quiesce::rcu_hash_map;

/* ---- what the compiler knows ---- */

struct padded {
	char a;
	int b;
};
struct wide {
	std::uint64_t a, b;
};
struct point {
	std::int16_t x, y;
	bool operator==(const point &) const = default;
};
struct owner {
	~owner() {}
	int x;
};
enum class colour : unsigned char { red, green };

template<class K, class V> concept mappable = requires { typename rcu_hash_map<K, V>; };
template<class M> concept comparable = requires(M &m) { m.compare_exchange(1, 0.0, 1.0); };

static_assert(mappable<int, int> && mappable<colour, point> && mappable<point, double> && mappable<const char *, padded>);
static_assert(mappable<std::array<char, 5>, bool> && mappable<bool, std::array<char, 7>>);
static_assert(!mappable<double, int> && !mappable<padded, int>); /* equal keys with different bytes */
static_assert(!mappable<std::string, int> && !mappable<int, std::string> && !mappable<wide, int> && !mappable<int, wide>);
static_assert(!mappable<int, owner>);
static_assert(!comparable<rcu_hash_map<int, double>>); /* values must be equality comparable, too */
static_assert(!std::is_copy_constructible_v<rcu_hash_map<int, int>> && !std::is_move_constructible_v<rcu_hash_map<int, int>>);
static_assert(!std::is_copy_assignable_v<rcu_hash_map<int, int>> && std::is_nothrow_default_constructible_v<rcu_hash_map<int, int>>);
static_assert(!std::is_convertible_v<std::uint64_t, rcu_hash_map<int, int>>);
static_assert(!std::is_convertible_v<quiesce::rcu_hash_seed, rcu_hash_map<int, int>>);
static constinit rcu_hash_map<int, int> static_map;
static_assert(sizeof(rcu_hash_map<int, int>) == sizeof(struct hashmap));
static_assert(std::input_iterator<rcu_hash_map<int, int>::iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, rcu_hash_map<int, int>::iterator>);
static_assert(noexcept(std::declval<rcu_hash_map<int, int> &>().find(1)) && noexcept(std::declval<rcu_hash_map<int, int> &>().erase(1)));
static_assert(noexcept(std::declval<rcu_hash_map<int, int> &>().try_insert(1, 1)));
static_assert(!noexcept(std::declval<rcu_hash_map<int, int> &>().insert(1, 1)));

/* ---- answers ---- */

static void a_map_is_empty_and_fills()
{
	rcu_hash_map<int, int> map;

	CHECK(map.empty() && map.size() == 0 && !map.find(1) && !map.contains(1) && !map.erase(1) && !map.extract(1));
	CHECK(map.insert(1, 10) && map.insert(2, 20) && !map.insert(1, 11));
	CHECK(map.size() == 2 && !map.empty() && map.find(1) == 10 && map.find(2) == 20 && map.contains(2));
	CHECK(!map.insert_or_assign(1, 12) && map.insert_or_assign(3, 30));
	CHECK(map.find(1) == 12 && map.exchange(1, 13) == 12 && !map.exchange(4, 40) && map.find(4) == 40);
	CHECK(map.compare_exchange(1, 13, 14) && !map.compare_exchange(1, 13, 15) && !map.compare_exchange(9, 0, 1));
	CHECK(map.find(1) == 14 && map.extract(1) == 14 && map.erase(2) && !map.find(1) && !map.erase(2));
	CHECK(map.size() == 2);
}

static void a_number_makes_room()
{
	struct quiesce_table_stats stats;
	rcu_hash_map<int, int> map(1000);

	for (int i = 0; i < 1000; i++)
		map.insert(i, i);
	hashmap_stats(map.native_handle(), &stats);
	CHECK(stats.resizes == 0 && map.size() == 1000);
	CHECK(static_map.empty() && static_map.insert(1, 2) && static_map.find(1) == 2);
}

static void errors_say_what_is_there()
{
	rcu_hash_map<int, int> map;
	int existing = 5;

	CHECK(map.try_insert(1, 10, &existing) == std::errc{} && existing == 5);
	CHECK(map.try_insert(1, 11, &existing) == std::errc::file_exists && existing == 10);
	CHECK(map.try_insert(1, 12) == std::errc::file_exists && map.find(1) == 10);
	CHECK(map.try_insert_or_assign(1, 13) == std::errc{} && map.find(1) == 13);
	CHECK(map.try_reserve(100) == std::errc{} && map.find(1) == 13);
}

/* All values of a small type, and all but one of a large one, can be stored, including 0. */
template<class V> static void stores(std::initializer_list<V> values)
{
	rcu_hash_map<V *, V> map; /* a key that is a pointer, too */
	V *key = nullptr;

	for (const V &value : values) {
		map.insert_or_assign(key, value);
		auto found = map.find(key);
		CHECK(found && std::memcmp(&*found, &value, sizeof(V)) == 0);
		key++;
	}
	CHECK(map.size() == values.size());
}

static void zero_is_a_value_like_others()
{
	stores<bool>({ false, true });
	stores<char>({ 0, 1, -1, 127, -128 });
	stores<int>({ 0, -1, 1, std::numeric_limits<int>::min(), std::numeric_limits<int>::max() });
	stores<unsigned>({ 0, 1, ~0u, 1u << 31 });
	stores<float>({ 0.0f, -0.0f, 1.5f, std::numeric_limits<float>::infinity() });
	stores<colour>({ colour::red, colour::green });
	stores<point>({ { 0, 0 }, { -1, -1 }, { 3, -4 } });
	stores<std::array<char, 7>>({ {}, { 'a', 0, 'b' } });
	stores<long>({ 0, -1, 1, std::numeric_limits<long>::max(), std::numeric_limits<long>::min() + 1 });
	stores<unsigned long>({ 0, 1, ~0ul - 1, 1ul << 63 });
	stores<double>({ 0.0, -0.0, 1.5, -std::numeric_limits<double>::infinity() });
	stores<std::array<int, 2>>({ { 0, 0 }, { -1, 0 }, { 0, -1 } });
}

static void keys_are_their_bytes()
{
	rcu_hash_map<std::int64_t, int> longs;
	rcu_hash_map<point, int> points;
	rcu_hash_map<signed char, int> chars;

	for (std::int64_t key : { std::int64_t{ 0 }, std::int64_t{ -1 }, std::numeric_limits<std::int64_t>::min() })
		CHECK(longs.insert(key, static_cast<int>(key % 7)) && longs.find(key) == static_cast<int>(key % 7));
	CHECK(points.insert({ 1, 2 }, 12) && points.insert({ 2, 1 }, 21) && points.find({ 1, 2 }) == 12 && !points.find({ 1, 1 }));
	CHECK(chars.insert(-1, 1) && chars.insert(1, 2) && chars.find(-1) == 1 && chars.size() == 2);
}

/* ---- what throws ---- */

template<class E, class Fn> static bool throws(Fn fn)
{
	try {
		fn();
	} catch (const E &) {
		return true;
	}
	return false;
}

enum class wild : std::uint64_t {};
template<> inline constexpr std::uint64_t quiesce::rcu_hash_map_absent<wild> = 77;

static void one_value_of_eight_bytes_cannot_be_stored()
{
	rcu_hash_map<int, long> longs;
	rcu_hash_map<int, unsigned long> unsigneds;
	rcu_hash_map<int, const char *> pointers;
	rcu_hash_map<int, wild> wilds;
	constexpr long least = std::numeric_limits<long>::min();

	CHECK(longs.insert(1, 2));
	CHECK(throws<std::invalid_argument>([&] { longs.insert(2, least); }));
	CHECK(throws<std::invalid_argument>([&] { longs.insert_or_assign(1, least); }));
	CHECK(throws<std::invalid_argument>([&] { longs.exchange(1, least); }));
	CHECK(throws<std::invalid_argument>([&] { longs.compare_exchange(1, 2, least); }));
	CHECK(longs.try_insert(2, least) == std::errc::invalid_argument && longs.find(1) == 2 && longs.size() == 1);
	CHECK(unsigneds.try_insert(1, ~0ul) == std::errc::invalid_argument && unsigneds.try_insert(1, 1ul << 63) == std::errc{});
	CHECK(pointers.try_insert(1, nullptr) == std::errc::invalid_argument && pointers.insert(1, "x") && **pointers.find(1) == 'x');
	CHECK(wilds.try_insert(1, wild{ 77 }) == std::errc::invalid_argument && wilds.insert(1, wild{ ~0ul }));
	CHECK(wilds.find(1) == wild{ ~0ul } && wilds.insert(2, wild{ 0 }) && wilds.find(2) == wild{ 0 });
}

static void too_much_throws()
{
	rcu_hash_map<int, int> map;

	CHECK(map.insert(1, 1));
	CHECK(throws<std::bad_alloc>([&] { map.reserve(~std::size_t{ 0 }); }));
	CHECK(map.try_reserve(~std::size_t{ 0 }) == std::errc::not_enough_memory && map.find(1) == 1);
}

/* ---- going over a map ---- */

static void iteration_sees_all_once()
{
	rcu_hash_map<unsigned, unsigned> map;
	std::vector<unsigned> seen;
	unsigned sum = 0;

	{
		quiesce::rcu_reader section;
		CHECK(map.begin() == map.end());
	}
	for (unsigned i = 0; i < 1000; i++)
		map.insert(i, i * 3);
	{
		std::scoped_lock section(quiesce::rcu_default_domain());

		for (auto [key, value] : map) {
			CHECK(value == key * 3);
			seen.push_back(key);
			if (key % 2)
				map.erase(key); /* allowed */
		}
	}
	std::sort(seen.begin(), seen.end());
	CHECK(seen.size() == 1000 && std::unique(seen.begin(), seen.end()) == seen.end() && seen.back() == 999);
	map.for_each([&](unsigned, unsigned value) { sum += value; });
	CHECK(map.size() == 500 && sum == 3 * 499 * 500);
}

static void an_update_sees_what_is_there()
{
	rcu_hash_map<int, int> map;
	auto one_more = [](std::optional<int> n) noexcept -> std::optional<int> { return n.value_or(0) + 1; };
	auto at_most_two = [](std::optional<int> n) noexcept { return n && *n < 3 ? n : std::nullopt; };
	std::optional<int> old;

	CHECK(map.update(7, one_more) == std::nullopt && map.find(7) == 1);
	CHECK(map.update(7, one_more) == 1 && map.find(7) == 2);
	CHECK(map.update(7, at_most_two) == 2 && map.find(7) == 2);
	CHECK(map.try_update(7, one_more, &old) == std::errc{} && old == 2);
	CHECK(map.update(7, at_most_two) == 3 && !map.contains(7));
	map.insert(1, 1);
	map.clear();
	CHECK(map.empty());

	rcu_hash_map<int, std::int64_t> wide;
	auto lowest = [](std::optional<std::int64_t>) noexcept { return std::optional(std::numeric_limits<std::int64_t>::min()); };
	wide.insert(1, 5);
	CHECK(wide.try_update(1, lowest) == std::errc::invalid_argument && wide.find(1) == 5); /* that one cannot be stored */
}

static void a_predicate_erases()
{
	rcu_hash_map<int, int> map;
	int judged = 0;
	bool caught = false;

	for (int i = 0; i < 1000; i++)
		map.insert(i, 3 * i);
	auto odd = [&](int key, int value) { return judged++, key % 2 == 1 && value == 3 * key; };
	CHECK(map.erase_if(odd) == 500 && judged == 1000 && map.size() == 500 && !map.contains(501) && map.find(500) == 1500);
	try {
		map.erase_if([&](int, int) { return ++judged <= 1010 ? true : throw 1; });
	} catch (int) {
		caught = true;
	}
	CHECK(caught && judged == 1011 && map.size() == 490);
	CHECK(map.erase_if([](int, int) noexcept { return true; }) == 490 && map.empty());
}

static void an_exception_changes_nothing()
{
	rcu_hash_map<int, int> map;
	auto one_more = [](std::optional<int> n) { return std::optional(n.value_or(0) + 1); };
	auto throws = [](std::optional<int>) -> std::optional<int> { throw 1; };
	int thrown = 0;

	map.insert(1, 10);
	for (int key : { 1, 2 })
		try {
			map.update(key, throws);
		} catch (int) {
			thrown++;
		}
	CHECK(thrown == 2 && map.find(1) == 10 && !map.contains(2) && map.size() == 1);
	CHECK(map.update(1, one_more) == 10 && map.find(1) == 11 && !map.update(2, one_more) && map.find(2) == 1);
}

static void steps_see_all_once()
{
	rcu_hash_map<int, int> map;
	std::vector<int> seen(1000);
	int wrong = 0;

	for (int i = 0; i < 1000; i++)
		map.insert(i, i);
	map.for_each_in_steps([&](int key, int value) {
		seen[static_cast<std::size_t>(key)]++;
		wrong += key != value || !rcu_read_lock_held();
	});
	CHECK(wrong == 0 && std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
	try {
		map.for_each_in_steps([](int, int) { throw 1; });
		CHECK(false);
	} catch (int) {
		CHECK(!rcu_read_lock_held());
	}
}

static void many_lookups_share_a_section()
{
	rcu_hash_map<int, int> map;
	int found = 0;

	for (int i = 0; i < 100; i++)
		map.insert(i, -i);
	{
		quiesce::rcu_reader section;

		for (int i = 0; i < 200; i++)
			if (auto value = map.find(i, section))
				found += *value == -i;
	}
	CHECK(found == 100);
}

/* C code accesses the map through the C functions. */
/* More keys than one step takes, and fewer results than keys. */
static void many_keys_are_found_at_once()
{
	rcu_hash_map<int, short> map;
	std::vector<int> keys;
	std::vector<std::optional<short>> values(200);

	for (int i = 0; i < 200; i++) {
		keys.push_back(i * 3);
		map.insert_or_assign(i * 2, static_cast<short>(i));
	}
	quiesce::rcu_reader section;
	for (std::size_t nr : { 0, 1, 16, 63, 64, 65, 130, 150 }) {
		std::size_t found = 0;

		std::fill(values.begin(), values.end(), short{ -1 });
		CHECK(map.find_many(std::span(keys).first(nr), values) == map.find_many(keys, std::span(values).first(nr), section));
		for (std::size_t i = 0; i < values.size(); i++) {
			CHECK(values[i] == (i < nr ? map.find(keys[i]) : short{ -1 }));
			found += i < nr && values[i];
		}
		CHECK(map.find_many(keys, std::span(values).first(nr)) == found);
	}
	std::array<std::optional<short>, 3> some;
	CHECK(map.find_many(std::array{ 4, 5, 6 }, some) == 2 && some[0] == 2 && !some[1] && some[2] == 3);
}

struct person {
	std::string name;
	char initial;
};

static void many_objects_are_found_at_once()
{
	quiesce::rcu_hash_table<person, &person::name> by_name;
	quiesce::rcu_hash_table<person, &person::initial> by_initial;
	std::vector<person> people(200);
	std::vector<std::string> names;
	std::vector<std::string_view> keys;
	std::vector<person *> found(300);
	person ada{ "ada", 'a' }, bob{ "bob", 'b' };

	for (std::size_t i = 0; i < 300; i++)
		names.push_back("number " + std::to_string(i));
	keys.assign(names.begin(), names.end());
	for (std::size_t i = 0; i < people.size(); i++) {
		people[i].name = names[i];
		by_name.insert(&people[i]);
	}
	by_initial.insert(&ada);
	by_initial.insert(&bob);
	quiesce::rcu_reader section;
	CHECK(by_name.find_many(keys, found) == 200 && by_name.find_many(std::span(keys).first(7), found) == 7);
	for (std::size_t i = 0; i < found.size(); i++)
		CHECK(found[i] == (i < people.size() ? &people[i] : nullptr));
	CHECK(by_name.find_many(keys, std::span(found).first(0)) == 0);
	std::array<person *, 3> some;
	CHECK(by_initial.find_many(std::array{ 'b', 'c', 'a' }, some) == 2 && some[0] == &bob && !some[1] && some[2] == &ada);
}

static void c_code_sees_the_same()
{
	rcu_hash_map<int, const char *> names;
	rcu_hash_map<int, int> numbers(quiesce::rcu_hash_seed{ 7 });
	const char *ada = "ada";

	names.insert(1, ada);
	numbers.insert(1, 0);
	rcu_read_lock();
	CHECK(hashmap_lookup(names.native_handle(), names.word_of_key(1)) == reinterpret_cast<std::uintptr_t>(ada));
	CHECK(hashmap_lookup(numbers.native_handle(), 1) == numbers.word_of(0));
	rcu_read_unlock();
	CHECK(hashmap_remove(names.native_handle(), 1) == names.word_of(ada) && names.empty());
}

/* ---- readers and updaters ---- */

struct object : quiesce::rcu_obj_base<object> {
	explicit object(int k) : key(k) {}
	~object() { quiesce_store_relaxed(&key, -1); }
	int key;
};

static void readers_find_what_is_alive()
{
	constexpr int keys = 512, rounds = 40;
	rcu_hash_map<int, object *> map;
	std::vector<std::thread> threads;
	int wrong = 0, found = 0, left = 2;

	for (int t = 0; t < 2; t++)
		threads.emplace_back([&, t] {
			for (int n = 0; n < rounds; n++) {
				for (int key = t; key < keys; key += 2)
					if (auto old = map.exchange(key, new object(key)))
						(*old)->retire();
				for (int key = t; n % 2 && key < keys; key += 2)
					if (auto old = map.extract(key))
						(*old)->retire();
			}
			quiesce_fetch_add_relaxed(&left, -1);
		});
	for (int t = 0; t < 2; t++)
		threads.emplace_back([&] {
			int bad = 0, good = 0;

			for (int n = 0; quiesce_load_relaxed(&left) || !good; n++) {
				quiesce::rcu_reader section;

				if (auto o = map.find(n % keys, section))
					++(quiesce_load_relaxed(&(*o)->key) == n % keys ? good : bad);
			}
			quiesce_fetch_add_relaxed(&wrong, bad);
			quiesce_fetch_add_relaxed(&found, good);
		});
	for (int key = keys; key < keys + 8; key++) /* every reader finds some of these */
		map.insert(key, new object(key));
	for (int i = 0; i < 2; i++)
		threads[static_cast<std::size_t>(i)].join();
	for (int key = 0; key < keys; key++)
		if (map.try_insert(key, new object(key)) != std::errc{})
			CHECK(false);
	for (std::size_t i = 2; i < threads.size(); i++)
		threads[i].join();
	CHECK(found > 0 && wrong == 0 && map.size() == keys + 8);
	map.for_each([&](int key, object *o) {
		CHECK(o->key == key);
		o->retire();
	});
}

/* Each element that was inserted has been erased by one thread, or is there. */
struct element : quiesce::rcu_obj_base<element> {
	explicit element(int i) : id(i) {}
	int id;
};

static void erasures_beside_insertions()
{
	quiesce::rcu_owning_hash_table<element, &element::id> table;
	rcu_hash_map<int, int> map;
	std::vector<std::thread> threads;
	std::size_t in = 0, in_map = 0, out = 0, out_map = 0, walked = 0;
	int left = 2;

	for (int t = 0; t < 2; t++)
		threads.emplace_back([&, t] {
			std::size_t mine = 0;

			for (int i = 0; i < 30000; i++) {
				table.insert(std::make_unique<element>(i % 500));
				mine += map.insert(i % 900 + t * 1000, i);
			}
			quiesce_fetch_add_relaxed(&in, std::size_t{ 30000 });
			quiesce_fetch_add_relaxed(&in_map, mine);
			quiesce_fetch_add_relaxed(&left, -1);
		});
	for (int t = 0; t < 2; t++)
		threads.emplace_back([&, t] {
			std::size_t mine = 0, of_map = 0;

			do {
				if (t)
					mine += table.erase_if([](const element &e) { return e.id % 3 == 0; });
				for (int i = 1; !t && i < 500; i += 3)
					mine += table.erase(i);
				of_map += map.erase_if([t](int key, int) { return key % 2 == t; });
			} while (quiesce_load_relaxed(&left));
			quiesce_fetch_add_relaxed(&out, mine);
			quiesce_fetch_add_relaxed(&out_map, of_map);
		});
	for (auto &thread : threads)
		thread.join();
	table.for_each_in_steps([&](const element &) { walked++; });
	CHECK(out > 0 && out_map > 0 && in == out + table.size() && walked == table.size() && in_map == out_map + map.size());
}

int main()
{
	const test tests[] = {
		TEST(a_map_is_empty_and_fills),
		TEST(a_number_makes_room),
		TEST(errors_say_what_is_there),
		TEST(zero_is_a_value_like_others),
		TEST(keys_are_their_bytes),
		TEST(one_value_of_eight_bytes_cannot_be_stored),
		TEST(too_much_throws),
		TEST(iteration_sees_all_once),
		TEST(an_update_sees_what_is_there),
		TEST(a_predicate_erases),
		TEST(an_exception_changes_nothing),
		TEST(steps_see_all_once),
		TEST(many_lookups_share_a_section),
		TEST(many_keys_are_found_at_once),
		TEST(many_objects_are_found_at_once),
		TEST(c_code_sees_the_same),
		TEST(erasures_beside_insertions),
		TEST(readers_find_what_is_alive),
	};
	int status = run_tests(tests);

	quiesce_shutdown(0);
	return status;
}
