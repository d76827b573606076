/* SPDX-License-Identifier: MIT */
/* test_srcu.cpp - srcu_domain, srcu_reader and srcu_section: waits, the time of reclamation, exceptions. */
#include <quiesce/srcu.hpp>

#include <quiesce/control.h>

#include "tap.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;
using quiesce::srcu_domain;
using quiesce::srcu_reader;
using quiesce::srcu_section;

/* ---- what the compiler knows ---- */

static_assert(std::is_nothrow_default_constructible_v<srcu_domain> && !std::is_convertible_v<const char *, srcu_domain>);
static_assert(!std::is_copy_constructible_v<srcu_domain> && !std::is_move_constructible_v<srcu_domain>);
static_assert(!std::is_copy_assignable_v<srcu_domain> && !std::is_move_assignable_v<srcu_domain>);
static_assert(!std::is_copy_constructible_v<srcu_reader> && !std::is_move_constructible_v<srcu_reader>);
static_assert(!std::is_convertible_v<srcu_domain &, srcu_reader> && std::is_nothrow_constructible_v<srcu_reader, srcu_domain &>);
static_assert(!std::is_copy_constructible_v<srcu_section> && !std::is_copy_assignable_v<srcu_section>);
static_assert(std::is_nothrow_move_constructible_v<srcu_section> && std::is_nothrow_move_assignable_v<srcu_section>);
static_assert(std::is_nothrow_swappable_v<srcu_section> && std::is_nothrow_default_constructible_v<srcu_section>);
static_assert(noexcept(std::declval<srcu_domain &>().synchronize()) && noexcept(std::declval<srcu_domain &>().barrier()));
static_assert(!noexcept(std::declval<srcu_domain &>().retire(static_cast<int *>(nullptr))));

/* The object is usable before any constructor runs. */
static int read_early = [] {
	extern srcu_domain early;
	srcu_reader section(early);

	return 1;
}();
constinit srcu_domain early("early");

/* ---- does a wait end? ---- */

/* A waiter is a thread that waits for the readers of a domain. */
struct waiter {
	explicit waiter(srcu_domain &domain) : thread([this, &domain] {
		domain.synchronize();
		quiesce_store_relaxed(&done, true);
	})
	{
	}
	bool waits()
	{
		std::this_thread::sleep_for(3ms);
		return !quiesce_load_relaxed(&done);
	}
	bool done = false;
	std::thread thread;
};

static void a_wait_lasts_as_long_as_a_section()
{
	srcu_domain domain("a");
	srcu_section outer(domain), inner(domain), none;

	CHECK(read_early == 1 && outer && inner && !none);
	waiter w(domain);
	CHECK(w.waits());
	none = std::move(outer);
	CHECK(none && !outer && w.waits());
	none.end();
	none.end();
	CHECK(!none && w.waits());
	swap(inner, outer);
	CHECK(outer && !inner && w.waits());
	outer = srcu_section(); /* assigning ends what was there */
	w.thread.join();
	CHECK(!outer);
	domain.synchronize_expedited();
}

static void domains_do_not_wait_for_each_other()
{
	srcu_domain a("a"), b("b");
	srcu_section section(a);

	b.synchronize(); /* this must not wait for the other domain's reader */
	b.synchronize_expedited();
	{
		srcu_reader scope(b);
		waiter w(a);
		CHECK(w.waits());
		section.end();
		w.thread.join();
		CHECK(w.done);
	}
	b.synchronize();
}

static void a_section_moves_to_another_thread()
{
	srcu_domain domain("a");
	srcu_section section(domain);
	waiter w(domain);

	std::thread([s = std::move(section), &w]() mutable {
		srcu_section kept(std::move(s));
		CHECK(kept && !s && w.waits());
	}).join();
	CHECK(!section);
	w.thread.join();
	CHECK(w.done);
}

static void a_section_outlives_its_thread()
{
	srcu_domain domain("a");
	std::unique_ptr<srcu_section> section;

	std::thread([&] { section = std::make_unique<srcu_section>(domain); }).join();
	waiter w(domain);
	CHECK(w.waits());
	section.reset();
	w.thread.join();
	CHECK(w.done);
}

/* ---- retire ---- */

static int nr_dead; /* relaxed counts */

struct object {
	~object()
	{
		quiesce_store_relaxed(&value, -1);
		quiesce_fetch_add_relaxed(&nr_dead, 1);
	}
	int value = 42;
};

static int dead()
{
	return quiesce_load_relaxed(&nr_dead);
}

static void objects_live_as_long_as_their_readers()
{
	srcu_domain domain("a");
	/* raw: the pointer type that the header documents. */
	std::atomic<object *> current{ new object };
	int before = dead();
	srcu_section section(domain);
	object *found = current.load();

	domain.retire(current.exchange(new object));
	std::this_thread::sleep_for(20ms);
	CHECK(dead() == before && quiesce_load_relaxed(&found->value) == 42);
	section.end();
	domain.barrier();
	CHECK(dead() == before + 1);
	delete current.load();
}

static void deleters_have_state_and_run_in_order()
{
	std::vector<int> order;
	{
		srcu_domain domain("a");

		for (int i = 0; i < 5; i++)
			domain.retire(static_cast<void *>(&order), [i](void *p) { static_cast<std::vector<int> *>(p)->push_back(i); });
		/* A deleter may retire, too: its own node may be freed by then. */
		domain.retire(new object, [&domain, &order](object *o) {
			domain.retire(o, [&order](object *again) {
				delete again;
				order.push_back(6);
			});
			order.push_back(5);
		});
		domain.barrier();
		domain.barrier();
		CHECK((order == std::vector<int>{ 0, 1, 2, 3, 4, 5, 6 }));
	}
	srcu_domain empty;
	empty.barrier();
	CHECK(empty.native_handle() != nullptr);
}

static void a_domain_ends_when_everything_is_reclaimed()
{
	int before = dead();

	for (int i = 0; i < 50; i++) {
		srcu_domain domain;
		{
			srcu_reader section(domain);
			domain.retire(new object);
		}
		if (i % 2)
			domain.retire(std::make_unique<object>().release());
	}
	CHECK(dead() == before + 75);
}

struct throws_when_moved {
	throws_when_moved() = default;
	throws_when_moved(throws_when_moved &&other) : moves(other.moves - 1)
	{
		if (moves < 0)
			throw 5;
	}
	void operator()(object *o) const { delete o; }
	int moves = 0;
};

static bool fail_new; /* the main thread's, while there is no other */

static void whatever_throws_schedules_nothing()
{
	srcu_domain domain("a");
	auto owned = std::make_unique<object>();
	int before = dead(), caught = 0;

	try {
		domain.retire(owned.get(), throws_when_moved());
	} catch (int) {
		caught++;
	}
	try {
		fail_new = true;
		if (QUIESCE_TSAN) /* ThreadSanitizer has an operator new of its own */
			throw std::bad_alloc();
		domain.retire(owned.get());
	} catch (const std::bad_alloc &) {
		caught++;
	}
	fail_new = false;
	domain.barrier();
	CHECK(caught == 2 && dead() == before && owned->value == 42);
	throws_when_moved once;
	once.moves = 2; /* into the argument and into the node */
	domain.retire(owned.release(), std::move(once));
	domain.barrier();
	CHECK(dead() == before + 1);
}

static void readers_and_updaters_run_together()
{
	constexpr int readers = 4, updates = 400;
	srcu_domain domain("together"), other("other");
	/* raw: the pointer type that the header documents. */
	std::atomic<object *> current{ new object };
	std::vector<std::thread> threads;
	int left = 2, before = dead(), wrong = 0, nr_read = 0;

	for (int t = 0; t < readers; t++)
		threads.emplace_back([&, t] {
			srcu_section kept;

			for (int i = t; quiesce_load_relaxed(&left) > 0; i++) {
				srcu_reader section(domain), elsewhere(other);
				object *o = current.load();

				if (i % 64 == 0)
					std::this_thread::sleep_for(100us);
				if (i % 8 == 0)
					kept = srcu_section(domain);
				if (i % 16 == 9)
					kept.end();
				if (quiesce_load_relaxed(&o->value) != 42)
					quiesce_fetch_add_relaxed(&wrong, 1);
				quiesce_fetch_add_relaxed(&nr_read, 1);
			}
		});
	for (int t = 0; t < 2; t++)
		threads.emplace_back([&, t] {
			while (quiesce_load_relaxed(&nr_read) == 0)
				std::this_thread::yield();
			for (int i = t; i < updates + t; i++) {
				object *old = current.exchange(new object);

				if (i % 4) {
					domain.retire(old);
					continue;
				}
				if (i % 8)
					domain.synchronize();
				else
					domain.synchronize_expedited();
				delete old;
			}
			quiesce_fetch_add_relaxed(&left, -1);
		});
	for (auto &t : threads)
		t.join();
	domain.barrier();
	CHECK(wrong == 0 && nr_read > 0);
	CHECK(dead() == before + 2 * updates);
	delete current.load();
}

#if !QUIESCE_TSAN
/* The function is not inlined, or the compiler would see new and free() side by side. */
[[gnu::noinline]] static void *allocate(std::size_t size)
{
	void *p = fail_new ? nullptr : std::malloc(size);

	if (!p)
		throw std::bad_alloc();
	return p;
}
[[gnu::noinline]] static void deallocate(void *p) { std::free(p); }
void *operator new(std::size_t size) { return allocate(size); }
void operator delete(void *p) noexcept { deallocate(p); }
void operator delete(void *p, std::size_t) noexcept { deallocate(p); }
#endif

int main()
{
	return run_tests({
		TEST(a_wait_lasts_as_long_as_a_section), TEST(domains_do_not_wait_for_each_other),
		TEST(a_section_moves_to_another_thread), TEST(a_section_outlives_its_thread),
		TEST(objects_live_as_long_as_their_readers), TEST(deleters_have_state_and_run_in_order),
		TEST(a_domain_ends_when_everything_is_reclaimed), TEST(whatever_throws_schedules_nothing),
		TEST(readers_and_updaters_run_together),
	});
}
