/* SPDX-License-Identifier: MIT */
/* test_hashtable.cpp - rcu_hash_table: keys of any kind, ownership of removed objects, exceptions, readers beside updaters. */
#include <quiesce/ds/hashtable_hazptr.hpp>

#include <quiesce/control.h>

#include "tap.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace std::string_view_literals;
using quiesce::rcu_hash_table;
using quiesce::rcu_owning_hash_table;
using quiesce::rcu_reader;

/* ---- objects ---- */

static int nr_live;

struct user : quiesce::rcu_obj_base<user> {
	user(std::string n, int i) : name(std::move(n)), id(i) { quiesce_fetch_add_relaxed(&nr_live, 1); }
	~user()
	{
		quiesce_store_relaxed(&id, -1);
		quiesce_fetch_add_relaxed(&nr_live, -1);
	}
	std::string name;
	int id;
};
using users_by_name = rcu_owning_hash_table<user, &user::name>;
using users_by_id = rcu_hash_table<user, &user::id>;

struct tagged {
	char tag[4]; /* all four may be used */
	int x;
};
struct named {
	const char *name;
};

/* A version is a key with a hash and a comparison of its own. */
struct version {
	int major, minor;
	char note; /* no part of the comparison */
	bool operator==(const version &) const = delete;
};
struct release {
	version v;
};
struct version_hash {
	std::size_t operator()(const version &v) const noexcept { return static_cast<std::size_t>(v.major * 1000 + v.minor); }
};
struct seeded_version_hash {
	std::uint64_t operator()(const version &v, std::uint64_t seed) const noexcept
	{
		return quiesce_hash_u64(static_cast<std::uint64_t>(v.major * 1000 + v.minor), seed);
	}
};
struct version_equal {
	bool operator()(const version &a, const version &b) const noexcept { return a.major == b.major && a.minor == b.minor; }
};

/* Upper and lower case are the same. */
static char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
struct caseless_hash {
	std::uint64_t operator()(std::string_view key, std::uint64_t seed) const noexcept
	{
		std::uint64_t h = seed;

		for (char c : key)
			h = quiesce_hash_u64(static_cast<unsigned char>(lower(c)), h);
		return h;
	}
};
struct caseless_equal {
	bool operator()(std::string_view a, std::string_view b) const noexcept
	{
		return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
	}
};

/* ---- what the compiler knows ---- */

template<class Table, class Key> concept finds = requires(Table &t, Key key) { t.find(key); };
struct nothing {};

static_assert(finds<users_by_name, const char *> && finds<users_by_name, std::string> && finds<users_by_name, std::string_view>);
static_assert(!finds<users_by_name, int> && finds<users_by_id, int> && !finds<users_by_id, nothing>);
static_assert(!std::is_copy_constructible_v<users_by_id> && !std::is_move_constructible_v<users_by_id>);
static_assert(std::is_nothrow_default_constructible_v<users_by_id> && sizeof(users_by_id) == sizeof(struct hashtable));
static_assert(std::ranges::input_range<users_by_id> && std::ranges::view<decltype(std::declval<users_by_id &>().range())> &&
	      std::ranges::borrowed_range<decltype(std::declval<users_by_id &>().range())> &&
	      std::ranges::view<decltype(std::declval<users_by_name &>().equal_range(""))>);
static_assert(std::input_iterator<users_by_id::iterator> && std::sentinel_for<std::default_sentinel_t, users_by_id::iterator>);
static_assert(noexcept(std::declval<users_by_id &>().find(1)) && !noexcept(std::declval<users_by_id &>().insert(nullptr)));

/* Return the number of live objects after all retired ones have been reclaimed. */
static int live()
{
	quiesce::rcu_barrier();
	return quiesce_load_relaxed(&nr_live);
}

/* ---- keys ---- */

static void strings_of_all_kinds_find_strings()
{
	users_by_name users;
	std::string ada = "ada", bob = "bob";

	CHECK(users.insert_unique(std::make_unique<user>(ada, 1)) && users.insert_unique(std::make_unique<user>(bob, 2)));
	CHECK(users.size() == 2 && users.contains("ada") && !users.contains("eve") && !users.contains(""));
	rcu_reader section;
	user *found = users.find("ada");
	CHECK(found && found->id == 1 && users.find(ada) == found && users.find("adamant"sv.substr(0, 3)) == found);
	CHECK(users.find(bob)->id == 2);
	CHECK(users.erase("adamant"sv.substr(0, 3)) && !users.find("ada") && users.size() == 1 && !users.erase("ada"));
}

static void strings_in_arrays_end_where_they_end()
{
	tagged a = { { 'a', 'b', 'c', 'd' }, 1 }, b = { "ab", 2 }, c = { "", 3 };
	rcu_hash_table<tagged, &tagged::tag> table;
	named n = { "a constant" }, m = { "another" };
	rcu_hash_table<named, &named::name> names;

	a.x = 0x41414141; /* bytes behind the array are no part of the key */
	for (tagged *t : { &a, &b, &c })
		CHECK(table.insert_unique(t));
	table.reserve(1000); /* hashes them again */
	rcu_reader section;
	CHECK(table.find("abcd") == &a && table.find("ab") == &b && table.find("") == &c && !table.find("abc") && !table.find("abcdA"));
	CHECK(table.erase(b) && !table.find("ab") && table.extract("abcd") == &a && table.size() == 1);
	CHECK(names.insert_unique(&n) && names.insert_unique(&m) && !names.insert_unique(&n));
	CHECK(names.find(std::string("a constant")) == &n && names.extract("another") == &m);
}

template<class Hash> static void has_a_hash_of_its_own()
{
	std::vector<release> releases; /* outlives the table, which is resized in another thread */
	rcu_hash_table<release, &release::v, Hash, version_equal> table;

	for (int i = 0; i < 300; i++)
		releases.push_back({ { i / 10, i % 10, 'x' } });
	for (release &r : releases)
		table.insert(&r);
	rcu_reader section;
	CHECK(table.find(version{ 7, 3, 'y' }) == &releases[73] && !table.find(version{ 30, 0, 'x' }));
	CHECK(table.erase(version{ 7, 3, 'z' }));
	CHECK(!table.find(version{ 7, 3, 'x' }));
	CHECK(table.size() == 299); /* exact, though the worker may be moving buckets */
}

static void a_hash_may_be_ones_own()
{
	has_a_hash_of_its_own<version_hash>();
	has_a_hash_of_its_own<seeded_version_hash>();
	rcu_owning_hash_table<user, &user::name, caseless_hash, caseless_equal> users;

	CHECK(users.insert_unique(std::make_unique<user>("Ada", 1)) && !users.insert_unique(std::make_unique<user>("aDA", 2)));
	CHECK(users.contains("ADA") && !users.contains("ad") && users.erase("ada"));
}

/* Keys that no member has: a part of one, a function's result by value and by reference, a string in pieces. */
struct address {
	std::uint32_t host;
	std::uint16_t port, zone;
	bool operator==(const address &) const = default;
};
struct route {
	address to;
	std::string text; /* name=value */
	std::uint64_t both() const noexcept { return std::uint64_t{ to.host } << 16 | to.port; }
	const std::uint16_t &port() const noexcept { return to.port; }
	std::string_view name() const noexcept { return std::string_view(text).substr(0, text.find('=')); }
};

static void keys_may_be_functions()
{
	std::vector<route> routes; /* outlives the tables */
	for (std::uint16_t i = 0; i < 300; i++)
		routes.push_back({ { i / 3u, i, 0 }, "route " + std::to_string(i) + "=x" });
	{
		rcu_hash_table<route, &route::both> by_both;
		rcu_hash_table<route, &route::port> by_port;
		rcu_hash_table<route, &route::name> by_name;
		rcu_hash_table<route, [](const route &r) { return r.to.host; }> by_host;
		rcu_hash_table<route, [](const route &r) -> const address & { return r.to; }> by_address;

		for (route &r : routes) {
			CHECK(by_both.insert_unique(&r) && by_port.insert_unique(&r) && by_name.insert_unique(&r));
			CHECK(by_address.insert_unique(&r));
			by_host.insert(&r);
		}
		rcu_reader section;
		route &r = routes[7];
		CHECK(by_both.find(r.both()) == &r && by_both.find(2ull << 16 | 7) == &r && !by_both.find(7));
		CHECK(by_port.find(7) == &r && !by_port.find(300) && by_address.find({ 2, 7, 0 }) == &r && !by_address.find({ 2, 7, 1 }));
		CHECK(by_name.find("route 7") == &r && by_name.find(std::string("route 7")) == &r && !by_name.find("route 7=x"));
		CHECK(by_host.count(2) == 3 && by_host.find(2)->to.host == 2 && by_host.erase(2) == 3 && by_host.count(2) == 0);
		CHECK(by_name.erase("route 7") == 1 && !by_name.contains("route 7") && by_port.extract(7) == &r && by_both.extract(r));
		CHECK(!by_both.update(r.both(), [&](route *there) { return there ? there : &r; }) && by_both.find(r.both()) == &r);
		CHECK(!by_name.replace(r, &r) && by_name.exchange(&r) == nullptr && by_name.size() == 300);
	}
	rcu_barrier();
}

/* ---- ownership ---- */

static void an_owning_table_retires_what_leaves()
{
	int before = live();
	{
		users_by_name users;
		auto eve = std::make_unique<user>("eve", 1), other = std::make_unique<user>("eve", 2);
		user *there = nullptr;

		CHECK(users.insert_unique(std::move(eve)) && !eve);
		CHECK(!users.insert_unique(std::move(other), &there) && other && there && there->id == 1);
		CHECK(users.try_insert_unique(std::move(other)) == std::errc::file_exists && other);
		CHECK(!users.insert_or_assign(std::move(other)) && !other);
		CHECK(live() == before + 1);
		{
			rcu_reader section;
			user &two = *users.find("eve");

			CHECK(two.id == 2 && users.replace(two, std::make_unique<user>("eve", 3)) && two.id == 2);
			CHECK(users.find("eve")->id == 3);
		}
		CHECK(live() == before + 1);
		user *mine = users.extract("eve");
		CHECK(mine && mine->id == 3 && users.empty() && live() == before + 1);
		mine->retire();
		users.insert(std::make_unique<user>("ada", 4));
		users.insert(std::make_unique<user>("ada", 5));
		CHECK(users.insert_or_assign(std::make_unique<user>("bob", 6)) && users.size() == 3 && users.erase("bob"));
		CHECK(live() == before + 2);
	}
	CHECK(live() == before);
}

static void a_table_keeps_nothing_that_it_does_not_own()
{
	int before = live();
	{
		users_by_name names;
		users_by_id ids;

		for (int i = 0; i < 100; i++) {
			auto u = std::make_unique<user>("user " + std::to_string(i), i);

			CHECK(ids.insert_unique(u.get()));
			names.insert(std::move(u));
		}
		rcu_reader section;
		user *seven = ids.find(7);
		CHECK(seven && names.find("user 7") == seven);
		CHECK(ids.erase(7) && !ids.erase(7) && names.find("user 7") == seven);
		CHECK(ids.erase(0) && !ids.extract(0)); /* 0 is a key, no pointer */
		CHECK(names.erase(*seven) && !names.find("user 7"));
		user *eight = ids.exchange(names.find("user 9")); /* no other object has its key */
		CHECK(eight == names.find("user 9"));
	}
	CHECK(live() == before);
}

static void keys_that_differ_do_not_replace()
{
	users_by_id ids;
	user a("a", 1), b("b", 2), c("c", 1);
	bool caught = false;

	ids.insert(&a);
	try {
		ids.replace(a, &b);
	} catch (const std::invalid_argument &) {
		caught = true;
	}
	rcu_reader section;
	CHECK(caught && ids.find(1) == &a && !ids.find(2));
	CHECK(!ids.replace(c, &c) && ids.find(1) == &a);
	CHECK(ids.replace(a, &c) && ids.find(1) == &c && ids.size() == 1);
}

static void too_much_throws()
{
	users_by_id ids;
	bool caught = false;

	try {
		ids.reserve(~std::size_t{ 0 });
	} catch (const std::bad_alloc &) {
		caught = true;
	}
	CHECK(caught && ids.try_reserve(~std::size_t{ 0 }) == std::errc::not_enough_memory && ids.try_reserve(10) == std::errc{});
}

/* ---- going over a table ---- */

static void iteration_sees_all_once()
{
	users_by_name users;
	std::multiset<std::string> seen;
	int twice = 0, odd = 0;

	for (int i = 0; i < 500; i++) {
		users.insert(std::make_unique<user>("user " + std::to_string(i), i));
		if (i % 5 == 0)
			users.insert(std::make_unique<user>("user " + std::to_string(i), i + 1000));
	}
	std::scoped_lock section(quiesce::rcu_default_domain());
	for (user &u : users) {
		seen.insert(u.name);
		if (u.id % 2)
			odd += users.erase(u); /* allowed, and u stays until the section ends */
		CHECK(u.id >= 0);
	}
	for (const std::string &name : seen)
		twice += seen.count(name) == 2;
	CHECK(seen.size() == 600 && twice == 200 && users.size() == 600 - static_cast<std::size_t>(odd) && odd == 300);
	for (user &u : users.equal_range("user 10")) {
		CHECK(u.name == "user 10");
		twice++;
	}
	CHECK(twice == 202);
	for (user &u : users.equal_range("nobody"))
		CHECK(u.id == -2);
}

/* ---- readers and updaters ---- */

static void readers_find_what_is_alive()
{
	constexpr int names = 300, rounds = 30;
	users_by_name users;
	std::vector<std::thread> updaters, readers;
	int wrong = 0, found = 0, left = 2;

	for (int i = 0; i < names; i++)
		users.insert_unique(std::make_unique<user>(std::to_string(i), i));
	for (int t = 0; t < 2; t++)
		readers.emplace_back([&] {
			int bad = 0, good = 0;

			for (int n = 0; quiesce_load_relaxed(&left) || !good; n++) {
				char name[8];
				rcu_reader section;

				std::snprintf(name, sizeof(name), "%d", n % names);
				if (user *u = users.find(name))
					++(quiesce_load_relaxed(&u->id) == n % names ? good : bad);
				else
					bad += n % 3 == 0; /* objects with these keys are replaced, never removed */
				if (n % names == 0)
					for (user &u : users)
						bad += quiesce_load_relaxed(&u.id) < 0;
			}
			quiesce_fetch_add_relaxed(&wrong, bad);
			quiesce_fetch_add_relaxed(&found, good);
		});
	for (int t = 0; t < 2; t++)
		updaters.emplace_back([&, t] {
			for (int n = 0; n < rounds; n++)
				for (int i = t; i < names; i += 2)
					if (n % 2 && i % 3)
						users.erase(std::to_string(i));
					else
						users.insert_or_assign(std::make_unique<user>(std::to_string(i), i));
			quiesce_fetch_add_relaxed(&left, -1);
		});
	for (auto *threads : { &updaters, &readers })
		for (std::thread &t : *threads)
			t.join();
	CHECK(found > 0 && wrong == 0 && users.size() == names / 3);
}

static void a_table_is_updated_and_cleared()
{
	users_by_name users;
	user *old = nullptr;
	std::size_t seen = 0;
	auto keep = [](user *u) noexcept {
		if (u)
			u->id++;
		return u;
	};
	auto drop = [](user *) noexcept -> user * { return nullptr; };

	for (int i = 0; i < 300; i++)
		users.insert(std::make_unique<user>(std::to_string(i), i));
	CHECK(users.try_update("5", keep, &old) == std::errc{} && !old && users.size() == 300);
	users.for_each_in_steps([&](const user &u) { seen += u.name != "5" || u.id == 6; });
	CHECK(seen == 300);
	CHECK(users.try_update("none", keep, &old) == std::errc{} && !old);
	CHECK(users.try_update("5", drop, &old) == std::errc{} && old && old->id == 6 && !users.contains("5"));
	old->retire();
	users.clear();
	CHECK(users.empty());
	rcu_barrier();
	CHECK(quiesce_load_relaxed(&nr_live) == 0);
}

static void erasures_return_numbers()
{
	users_by_name users;
	users_by_id ids;
	user one("one", 1), also("also one", 1), two("two", 2);
	int before = live();

	for (int i = 0; i < 1000; i++)
		users.insert(std::make_unique<user>("user " + std::to_string(i % 100), i));
	CHECK(users.erase("user 7") == 10 && users.erase("user 7") == 0 && users.size() == 990 && live() == before + 990);
	CHECK(users.erase_if([](const user &u) { return u.id >= 500; }) == 495 && users.size() == 495 && live() == before + 495);
	CHECK(users.erase_if([](const user &) noexcept { return false; }) == 0);
	int judged = 0;
	bool caught = false;
	try {
		users.erase_if([&](const user &) { return ++judged <= 10 ? true : throw 1; });
	} catch (int) {
		caught = true;
	}
	CHECK(caught && judged == 11 && users.size() == 485);
	CHECK(users.erase_if([](const user &) { return true; }) == 485 && live() == before);
	for (user *u : { &one, &also, &two })
		ids.insert(u);
	CHECK(ids.erase(1) == 2 && ids.size() == 1 && ids.erase_if([](const user &u) { return u.id == 2; }) == 1 && ids.empty());
}

struct trouble {};

static void an_exception_changes_nothing()
{
	users_by_name users;
	int caught = 0, moods = 0;
	auto throws = [&](user *) -> user * { throw trouble{}; };
	auto drop = [](user *) noexcept -> user * { return nullptr; };

	for (int i = 0; i < 100; i++)
		users.insert(std::make_unique<user>(std::to_string(i % 50), i));
	for (const char *key : { "7", "none" })
		try {
			users.update(key, throws);
		} catch (const trouble &) {
			caught++;
		}
	CHECK(caught == 2 && users.size() == 100 && users.count("7") == 2 && !users.contains("none"));
	CHECK(users.update("7", drop) && users.count("7") == 1); /* the lock was released */
	CHECK(!users.update("none", [&](user *u) { return moods++, u; }) && moods == 1);
	auto make = [&](user *u) { return u ? u : std::make_unique<user>("none", 7).release(); };
	CHECK(!users.update("none", make) && users.count("none") == 1);
	user eight("8", 0);
	try {
		users.update("7", [&](user *) { return &eight; });
	} catch (const std::invalid_argument &) {
		caught++;
	}
	CHECK(caught == 3 && users.count("7") == 1 && users.count("8") == 2 && users.count("") == 0);
}

static void views_make_pipelines()
{
	users_by_name users;
	std::size_t nr = 0;

	for (int i = 0; i < 300; i++)
		users.insert(std::make_unique<user>("user " + std::to_string(i % 100), i));
	rcu_reader section;
	auto name = [](const user &u) -> const std::string & { return u.name; };
	auto odd = [](const user &u) { return u.id % 2 == 1; };
	for (const std::string &n : users.range() | std::views::filter(odd) | std::views::transform(name))
		nr += n.starts_with("user ");
	CHECK(nr == 150 && std::ranges::distance(users.range()) == 300 && std::ranges::distance(users.equal_range("user 7")) == 3);
	CHECK(std::ranges::count_if(users.equal_range("user 9"), odd) == 3 && std::ranges::none_of(users.equal_range("none"), odd));
	auto first = std::ranges::find_if(users.range(), odd); /* an iterator that outlives its view */
	CHECK(first != std::default_sentinel && first->id % 2 == 1);
	for (user &u : users | std::views::take(5))
		nr += u.id >= 0;
	CHECK(nr == 155);
}

/* ---- found by hazard pointers ---- */

static int nr_sessions;

struct place {
	long x;
};
struct session : place, quiesce::hazard_pointer_obj_base<session> {
	explicit session(int i) : id(i) { quiesce_fetch_add_relaxed(&nr_sessions, 1); }
	~session()
	{
		quiesce_store_relaxed(&id, -1);
		quiesce_fetch_add_relaxed(&nr_sessions, -1);
	}
	int id;
};
static constinit quiesce::hazard_hash_table<session, &session::id> sessions;

static void a_hazard_pointer_keeps_what_it_found()
{
	quiesce::hazard_pointer by = quiesce::make_hazard_pointer();
	session *s;

	CHECK(sessions.insert_unique(std::make_unique<session>(1)) && !sessions.insert_unique(std::make_unique<session>(1)));
	CHECK(sessions.try_insert_unique(std::make_unique<session>(2)) == std::errc{} && sessions.size() == 2);
	s = sessions.find(1, by);
	CHECK(s && s->id == 1 && sessions.erase(1) && sessions.erase(2) && sessions.empty());
	for (int i = 0; i < 10000; i++) { /* enough for scans */
		sessions.insert(std::make_unique<session>(3));
		sessions.erase(3);
	}
	CHECK(s->id == 1);
	CHECK(!sessions.find(1, by.view()) && !sessions.find(2, by));
	hazptr_barrier();
	CHECK(quiesce_load_relaxed(&nr_sessions) == 0);
}

static void hazard_pointers_beside_updaters()
{
	constexpr int keys = 16, rounds = 3000;
	std::vector<std::thread> threads;
	int wrong = 0, found = 0, left = 2;

	for (int t = 0; t < 2; t++)
		threads.emplace_back([&, t] {
			for (int n = 0; n < rounds; n++)
				for (int key = t; key < keys; key += 2)
					n % 2 ? static_cast<void>(sessions.erase(key)) : sessions.insert(std::make_unique<session>(key));
			quiesce_fetch_add_relaxed(&left, -1);
		});
	sessions.insert(std::make_unique<session>(keys));
	for (int t = 0; t < 2; t++)
		threads.emplace_back([&] {
			quiesce::hazard_pointer by = quiesce::make_hazard_pointer();
			int bad = 0, good = 0;

			for (int n = 0; quiesce_load_relaxed(&left) || !good; n++)
				if (const session *s = sessions.find(n % (keys + 1), by))
					++(quiesce_load_relaxed(&s->id) == n % (keys + 1) ? good : bad);
			quiesce_fetch_add_relaxed(&wrong, bad);
			quiesce_fetch_add_relaxed(&found, good);
		});
	for (auto &thread : threads)
		thread.join();
	CHECK(wrong == 0 && found > 0 && sessions.size() == 1);
	sessions.clear();
	hazptr_barrier();
	CHECK(quiesce_load_relaxed(&nr_sessions) == 0);
}

static void a_number_makes_room()
{
	rcu_hash_table<user, &user::id> users(1000), same(quiesce::rcu_hash_seed{ 7 });
	struct quiesce_table_stats stats;

	hashtable_stats(users.native_handle(), &stats);
	CHECK(stats.buckets >= 250 && users.empty() && same.empty());
}

int main()
{
	const test tests[] = {
		TEST(strings_of_all_kinds_find_strings),
		TEST(strings_in_arrays_end_where_they_end),
		TEST(a_hash_may_be_ones_own),
		TEST(keys_may_be_functions),
		TEST(an_owning_table_retires_what_leaves),
		TEST(a_table_keeps_nothing_that_it_does_not_own),
		TEST(keys_that_differ_do_not_replace),
		TEST(a_table_is_updated_and_cleared),
		TEST(too_much_throws),
		TEST(erasures_return_numbers),
		TEST(an_exception_changes_nothing),
		TEST(views_make_pipelines),
		TEST(iteration_sees_all_once),
		TEST(readers_find_what_is_alive),
		TEST(a_number_makes_room),
		TEST(a_hazard_pointer_keeps_what_it_found),
		TEST(hazard_pointers_beside_updaters),
	};
	int status = run_tests(tests);

	quiesce_shutdown(0);
	return status;
}
