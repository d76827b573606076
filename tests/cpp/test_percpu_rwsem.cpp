/* SPDX-License-Identifier: MIT */
/* test_percpu_rwsem.cpp - percpu_shared_mutex: the standard's requirements, its guards, times and clocks, exclusion. */
#include <quiesce/percpu_rwsem.hpp>

#include <quiesce/control.h>

#include "tap.hpp"

#include <concepts>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <ratio>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using quiesce::percpu_shared_mutex;

using shared_guard = std::shared_lock<percpu_shared_mutex>;
using unique_guard = std::unique_lock<percpu_shared_mutex>;

/* ---- what the compiler knows ---- */

template<class M>
concept shared_timed_lockable = requires(M m, std::chrono::duration<double, std::ratio<60>> d, std::chrono::system_clock::time_point t) {
	{ m.lock() } -> std::same_as<void>;
	{ m.unlock() } -> std::same_as<void>;
	{ m.lock_shared() } -> std::same_as<void>;
	{ m.unlock_shared() } -> std::same_as<void>;
	{ m.try_lock() } -> std::same_as<bool>;
	{ m.try_lock_shared() } -> std::same_as<bool>;
	{ m.try_lock_for(d) } -> std::same_as<bool>;
	{ m.try_lock_until(t) } -> std::same_as<bool>;
	{ m.try_lock_shared_for(d) } -> std::same_as<bool>;
	{ m.try_lock_shared_until(t) } -> std::same_as<bool>;
};

static_assert(shared_timed_lockable<percpu_shared_mutex> && shared_timed_lockable<std::shared_timed_mutex>);
static_assert(!shared_timed_lockable<std::timed_mutex>); /* the concept can be false */
static_assert(std::is_nothrow_default_constructible_v<percpu_shared_mutex> && std::is_nothrow_destructible_v<percpu_shared_mutex>);
static_assert(!std::is_copy_constructible_v<percpu_shared_mutex> && !std::is_copy_assignable_v<percpu_shared_mutex>);
static_assert(!std::is_move_constructible_v<percpu_shared_mutex> && !std::is_move_assignable_v<percpu_shared_mutex>);
static_assert(std::is_standard_layout_v<percpu_shared_mutex>);
static_assert(std::same_as<percpu_shared_mutex::native_handle_type, decltype(std::declval<percpu_shared_mutex &>().native_handle())>);
static_assert(noexcept(std::declval<percpu_shared_mutex &>().lock()) && noexcept(std::declval<percpu_shared_mutex &>().unlock_shared()));

using quiesce::detail::at_least_ns;
static_assert(at_least_ns(0ns) == 0 && at_least_ns(-1h) == 0 && at_least_ns(7ns) == 7 && at_least_ns(1h) == 3600000000000u);
static_assert(at_least_ns(std::chrono::nanoseconds::max()) == INT64_MAX);
static_assert(at_least_ns(std::chrono::nanoseconds::min()) == 0 && at_least_ns(std::chrono::hours::min()) == 0);
static_assert(at_least_ns(std::chrono::hours::max()) == UINT64_MAX);
static_assert(at_least_ns(std::chrono::duration<double>(std::numeric_limits<double>::infinity())) == UINT64_MAX);
static_assert(at_least_ns(std::chrono::duration<int, std::pico>(1)) == 1); /* rounds up: not earlier than asked for */
static_assert(at_least_ns(std::chrono::duration<int, std::pico>(1000)) == 1);
static_assert(at_least_ns(std::chrono::duration<double>(0.5)) == 500000000);
static_assert(at_least_ns(std::chrono::duration<unsigned, std::ratio<1, 3>>(1)) == 333333334);

/* The object is usable before any constructor runs, and until the last destructor. */
static bool locked_early = [] {
	extern percpu_shared_mutex early;
	bool locked = early.try_lock_shared();

	if (locked)
		early.unlock_shared();
	return locked;
}();
constinit percpu_shared_mutex early;
struct last_user {
	~last_user() { shared_guard reading(early); }
};

/* ---- attempts of another thread ---- */

enum : unsigned { NEITHER = 0, READ = 1, WRITE = 2, BOTH = 3 };

static unsigned others_get(percpu_shared_mutex &m)
{
	unsigned got = 0;

	std::thread([&] {
		if (m.try_lock_shared()) {
			got |= READ;
			m.unlock_shared();
		}
		if (m.try_lock()) {
			got |= WRITE;
			m.unlock();
		}
	}).join();
	return got;
}

/* ---- guards ---- */

static void locks_exclude_as_they_should()
{
	percpu_shared_mutex m;

	CHECK(locked_early && others_get(m) == BOTH);
	m.lock();
	CHECK(others_get(m) == NEITHER && percpu_is_write_locked_by_me(m.native_handle()));
	m.unlock();
	m.lock_shared();
	CHECK(others_get(m) == READ && percpu_is_read_locked(m.native_handle()));
	m.unlock_shared();
	CHECK(m.try_lock() && others_get(m) == NEITHER);
	CHECK(!m.try_lock_shared() && !m.try_lock());
	m.unlock();
	CHECK(m.try_lock_shared() && m.try_lock_shared());
	CHECK(others_get(m) == READ);
	m.unlock_shared();
	CHECK(!m.try_lock());
	m.unlock_shared();
	CHECK(others_get(m) == BOTH);
}

static void guards_of_the_standard_take_it()
{
	percpu_shared_mutex m, n;
	{
		std::lock_guard g(m);
		CHECK(others_get(m) == NEITHER);
	}
	{
		std::scoped_lock g(m, n);
		CHECK(others_get(m) == NEITHER && others_get(n) == NEITHER);
	}
	{
		shared_guard g(m), h(n, std::defer_lock), i(n, std::try_to_lock);
		CHECK(others_get(m) == READ && !h && i);
		i.unlock();
		h.lock();
		shared_guard j = std::move(g);
		CHECK(!g && j && j.mutex() == &m && others_get(m) == READ);
		CHECK(m.try_lock_shared());
		shared_guard adopted(m, std::adopt_lock);
		j.unlock();
		CHECK(others_get(m) == READ);
	}
	CHECK(others_get(m) == BOTH && others_get(n) == BOTH);
	{
		unique_guard g(m, 1s), h(n, std::chrono::steady_clock::now() + 1s);
		CHECK(g && h && others_get(m) == NEITHER && others_get(n) == NEITHER);
		shared_guard i(m, 1ms), j(n, std::chrono::system_clock::now() + 1ms), k(m, std::try_to_lock);
		CHECK(!i && !j && !k);
		swap(g, h);
		g.unlock();
		CHECK(others_get(m) == NEITHER && others_get(n) == BOTH);
		g.release();
	}
	shared_guard g(m, std::defer_lock);
	unique_guard h(n, std::defer_lock);
	std::lock(g, h);
	CHECK(others_get(m) == READ && others_get(n) == NEITHER);
}

template<class Fn> static std::errc what_throws(Fn fn)
{
	try {
		fn();
	} catch (const std::system_error &e) {
		return static_cast<std::errc>(e.code().value());
	}
	return std::errc();
}

/* The mutex itself never throws; its guards do when they are used wrongly. */
static void errors_of_guards_leave_the_lock_as_it_was()
{
	percpu_shared_mutex m;
	shared_guard none, reading(m);
	unique_guard nothing, writing(m, std::defer_lock);

	CHECK(what_throws([&] { none.lock(); }) == std::errc::operation_not_permitted);
	CHECK(what_throws([&] { none.unlock(); }) != std::errc()); /* libstdc++ throws another error than the standard requires */
	CHECK(what_throws([&] { nothing.lock(); }) == std::errc::operation_not_permitted);
	CHECK(what_throws([&] { writing.unlock(); }) == std::errc::operation_not_permitted);
	CHECK(what_throws([&] { reading.lock(); }) == std::errc::resource_deadlock_would_occur);
	CHECK(what_throws([&] { reading.try_lock_for(1ms); }) == std::errc::resource_deadlock_would_occur);
	CHECK(others_get(m) == READ);
	reading.unlock();
	CHECK(what_throws([&] { reading.unlock(); }) != std::errc());
	writing.lock();
	CHECK(what_throws([&] { writing.lock(); }) == std::errc::resource_deadlock_would_occur);
	CHECK(what_throws([&] { (void)writing.try_lock(); }) == std::errc::resource_deadlock_would_occur);
	CHECK(others_get(m) == NEITHER);
	writing.unlock();
	CHECK(others_get(m) == BOTH);
}

static void an_exception_unlocks()
{
	percpu_shared_mutex m;
	int caught = 0;

	for (int i = 0; i < 2; i++)
		try {
			unique_guard writing(m, std::defer_lock);
			shared_guard reading(m, std::defer_lock);

			if (i)
				writing.lock();
			else
				reading.lock();
			throw i;
		} catch (int) {
			caught++;
			CHECK(others_get(m) == BOTH);
		}
	CHECK(caught == 2);
}

static void other_threads_may_unlock()
{
	percpu_shared_mutex m;
	shared_guard reading(m);
	unique_guard writing;

	std::thread([g = std::move(reading)]() mutable { g.unlock(); }).join();
	CHECK(others_get(m) == BOTH);
	std::thread([&] { writing = unique_guard(m); }).join();
	CHECK(writing && others_get(m) == NEITHER);
	writing.unlock();
	CHECK(others_get(m) == BOTH);
}

/* ---- times ---- */

static void waits_end()
{
	percpu_shared_mutex m;
	{
		shared_guard reading(m);
		CHECK(!m.try_lock_for(2ms) && !m.try_lock_for(0s) && !m.try_lock_for(-1h));
		CHECK(!m.try_lock_until(std::chrono::steady_clock::now() + 2ms));
		CHECK(!m.try_lock_until(std::chrono::system_clock::time_point::min()));
		CHECK(!m.try_lock_for(std::chrono::duration<float>(0.001f)));
		CHECK(!m.try_lock_for(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())));
		CHECK(others_get(m) == READ); /* a writer that gave up lets readers in */
	}
	CHECK(others_get(m) == BOTH);
	{
		unique_guard writing(m);
		CHECK(!m.try_lock_shared_for(2ms) && !m.try_lock_shared_for(0s) && !m.try_lock_shared_for(-1h));
		CHECK(!m.try_lock_shared_until(std::chrono::system_clock::now() + 2ms));
		CHECK(!m.try_lock_shared_until(std::chrono::steady_clock::time_point::min()));
		CHECK(!m.try_lock_for(2ms) && !m.try_lock_until(std::chrono::steady_clock::now() - 1s));
	}
	CHECK(others_get(m) == BOTH);
	CHECK(m.try_lock_for(std::chrono::hours::max()));
	m.unlock();
	CHECK(m.try_lock_shared_until(std::chrono::steady_clock::time_point::max()));
	m.unlock_shared();
	CHECK(m.try_lock_until(std::chrono::steady_clock::time_point::min())); /* free: even then */
	m.unlock();
}

/* A waiter with a long timeout gets the lock when it is released. */
static void waits_are_answered()
{
	for (int i = 0; i < 4; i++) {
		percpu_shared_mutex m;
		bool got = false;
		unique_guard writing(m, std::defer_lock);
		shared_guard reading(m, std::defer_lock);

		if (i < 2)
			writing.lock();
		else
			reading.lock();
		std::thread waiter([&] {
			if (i % 2) {
				got = m.try_lock_for(std::chrono::hours(1));
				if (got)
					m.unlock();
			} else {
				got = m.try_lock_shared_until(std::chrono::system_clock::now() + std::chrono::hours(1));
				if (got)
					m.unlock_shared();
			}
		});
		std::this_thread::sleep_for(3ms);
		if (i < 2)
			writing.unlock();
		else
			reading.unlock();
		waiter.join();
		CHECK(got);
	}
}

/* The slow clock stands still for some reads. */
struct slow_clock {
	using duration = std::chrono::milliseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<slow_clock>;
	static constexpr bool is_steady = false;
	static inline int reads, steps_after, throws_at = -1;

	static time_point now()
	{
		if (reads++ == throws_at)
			throw reads;
		return time_point(duration(reads > steps_after ? 2 : 0));
	}
};

static void a_wait_lasts_as_long_as_its_clock_says()
{
	percpu_shared_mutex m;
	const slow_clock::time_point end(slow_clock::duration(2));

	m.lock();
	slow_clock::reads = 0, slow_clock::steps_after = 5;
	CHECK(!m.try_lock_shared_until(end) && slow_clock::reads == 6);
	slow_clock::reads = 0;
	CHECK(!m.try_lock_until(end) && slow_clock::reads == 6);
	for (int at = 0; at < 2; at++) {
		bool caught = false;

		slow_clock::reads = 0, slow_clock::throws_at = at;
		try {
			m.try_lock_shared_until(end);
		} catch (int) {
			caught = true;
		}
		CHECK(caught);
	}
	slow_clock::throws_at = -1;
	m.unlock();
	CHECK(others_get(m) == BOTH);
	slow_clock::reads = 0;
	CHECK(m.try_lock_until(end) && slow_clock::reads == 1);
	m.unlock();
}

/* ---- together ---- */

static void conditions_wait_with_it()
{
	percpu_shared_mutex m;
	std::condition_variable_any changed;
	int turn = 0, readers = 0;
	std::vector<std::thread> threads;

	for (int i = 0; i < 3; i++)
		threads.emplace_back([&] {
			shared_guard reading(m);
			changed.wait(reading, [&] { return turn >= 1; });
			quiesce_fetch_add_relaxed(&readers, 1);
		});
	threads.emplace_back([&] {
		unique_guard writing(m);
		CHECK(!changed.wait_for(writing, 1ms, [&] { return turn >= 3; }));
		changed.wait(writing, [&] { return turn >= 1; });
		turn++;
	});
	std::this_thread::sleep_for(2ms); /* mostly they wait by then */
	{
		unique_guard writing(m);
		turn = 1;
	}
	changed.notify_all();
	for (auto &t : threads)
		t.join();
	CHECK(readers == 3 && turn == 2);
}

struct data {
	percpu_shared_mutex m;
	long word[8] = {}; /* equal under the lock */
	long shared[2] = {}; /* reads that waited; relaxed counts */
};

static bool read_equal(const data &d)
{
	bool equal = true;
	long first = quiesce_load_relaxed(&d.word[7]);

	for (const long &w : d.word)
		equal = equal && quiesce_load_relaxed(&w) == first;
	return equal;
}

static void write_all(data &d)
{
	for (long &w : d.word)
		quiesce_store_relaxed(&w, quiesce_load_relaxed(&w) + 1);
}

/* Enter by one of four constructors of the guard. */
template<class Guard> static Guard enter(percpu_shared_mutex &m, int way)
{
	switch (way & 3) {
	case 0: return Guard(m, std::try_to_lock);
	case 1: return Guard(m, 100us);
	case 2: return Guard(m, std::chrono::system_clock::now() + 1ms);
	default: return Guard(m);
	}
}

static void readers_and_writers_exclude_each_other()
{
	constexpr int readers = 6, writers = 2, sections = 3000;
	data d;
	long wrong = 0, written = 0, nr_read = 0, left = writers;
	std::vector<std::thread> threads;

	for (int t = 0; t < readers; t++)
		threads.emplace_back([&, t] {
			for (int i = t; quiesce_load_relaxed(&left) > 0; i++) {
				auto reading = enter<shared_guard>(d.m, i);

				if (!reading)
					continue;
				if (!read_equal(d))
					quiesce_fetch_add_relaxed(&wrong, 1L);
				quiesce_fetch_add_relaxed(&nr_read, 1L);
			}
		});
	for (int t = 0; t < writers; t++)
		threads.emplace_back([&, t] {
			long mine = 0;

			for (int i = t; mine < sections; i++) {
				auto writing = enter<unique_guard>(d.m, i);

				if (!writing)
					continue;
				if (!read_equal(d))
					quiesce_fetch_add_relaxed(&wrong, 1L);
				write_all(d);
				mine++;
				if (mine % 500 == 0) {
					writing.unlock();
					std::this_thread::sleep_for(25ms); /* readers become fast again */
				}
			}
			quiesce_fetch_add_relaxed(&written, mine);
			quiesce_fetch_add_relaxed(&left, -1L);
		});
	for (auto &t : threads)
		t.join();
	CHECK(wrong == 0 && nr_read > 0);
	CHECK(written == long(writers) * sections && d.word[0] == written && read_equal(d));
}

/* The last one to hold an object's lock may delete the object. */
static void a_mutex_ends_when_its_last_user_has_left()
{
	int rounds = 0;

	for (; rounds < 20; rounds++) {
		auto object = std::make_unique<data>();
		data *p = object.get();
		std::mutex started;
		std::condition_variable cond;
		bool inside = false;
		std::thread reader([&, p] {
			p->m.lock_shared();
			{
				std::lock_guard g(started);
				inside = true;
				cond.notify_one();
			}
			p->m.unlock_shared();
		});
		{
			std::unique_lock g(started);
			cond.wait(g, [&] { return inside; });
		}
		p->m.lock();
		p->m.unlock();
		if (rounds % 4)
			reader.join();
		object.reset();
		if (reader.joinable())
			reader.join();
	}
	CHECK(rounds == 20);
}

static last_user at_exit;

int main()
{
	return run_tests({
		TEST(locks_exclude_as_they_should), TEST(guards_of_the_standard_take_it),
		TEST(errors_of_guards_leave_the_lock_as_it_was), TEST(an_exception_unlocks), TEST(other_threads_may_unlock),
		TEST(waits_end), TEST(waits_are_answered), TEST(a_wait_lasts_as_long_as_its_clock_says),
		TEST(conditions_wait_with_it), TEST(readers_and_writers_exclude_each_other),
		TEST(a_mutex_ends_when_its_last_user_has_left),
	});
}
