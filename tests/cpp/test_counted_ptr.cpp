/* SPDX-License-Identifier: MIT */
/* test_counted_ptr.cpp - counted_ptr, counted_guard and atomic_counted_ptr: ownership, the end of objects, exceptions. */
#include <quiesce/counted_ptr.hpp>

#include <quiesce/control.h>

#include "../sanitized.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <unordered_set>
#include <vector>

using quiesce::atomic_counted_ptr;
using quiesce::counted_guard;
using quiesce::counted_obj_base;
using quiesce::counted_ptr;
using quiesce::make_counted;

/* ---- TAP ---- */

static int nr_failed, nr_checks;
static const char *skipped; /* why */

#define CHECK(condition)                                                                \
	do {                                                                            \
		nr_checks++;                                                            \
		if (!(condition)) {                                                     \
			nr_failed++;                                                    \
			std::printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition);   \
		}                                                                       \
	} while (0)

/* ---- an allocator that fails on request, and counts ---- */

static long nr_live;   /* relaxed counts */
static long fail_after = -1; /* the main thread's, while there is no other */

[[maybe_unused]] static void *allocate(std::size_t size, std::size_t align)
{
	void *p = nullptr;

	if (fail_after >= 0 && fail_after-- == 0)
		throw std::bad_alloc();
	if (posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, size))
		throw std::bad_alloc();
	quiesce_fetch_add_relaxed(&nr_live, 1L);
	return p;
}

[[maybe_unused]] static void deallocate(void *p)
{
	if (p)
		quiesce_fetch_add_relaxed(&nr_live, -1L);
	std::free(p);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NEW_IS_TAKEN 1 /* by the sanitizer, and linked statically */
#endif
#endif
#ifndef NEW_IS_TAKEN
#define NEW_IS_TAKEN 0
void *operator new(std::size_t size) { return allocate(size, 16); }
void *operator new(std::size_t size, std::align_val_t align) { return allocate(size, static_cast<std::size_t>(align)); }
void operator delete(void *p) noexcept { deallocate(p); }
void operator delete(void *p, std::size_t) noexcept { deallocate(p); }
void operator delete(void *p, std::align_val_t) noexcept { deallocate(p); }
void operator delete(void *p, std::size_t, std::align_val_t) noexcept { deallocate(p); }
#endif

/* ---- objects ---- */

static int nr_dead; /* destructors that have run */

struct plain {
	explicit plain(int v = 42) : value(v) {}
	~plain()
	{
		quiesce_store_relaxed(&value, -1);
		quiesce_fetch_add_relaxed(&nr_dead, 1);
	}
	int value;
};

struct other_base {
	virtual ~other_base() = default;
	long pad = 1;
};
struct base : counted_obj_base {
	int value = 7; /* no virtual destructor */
};
struct derived : other_base, base {
	explicit derived(std::string t) : text(std::move(t)) {}
	~derived() override { quiesce_fetch_add_relaxed(&nr_dead, 1); }
	std::string text;
};
struct alignas(128) wide {
	char bytes[3] = { 1, 2, 3 };
};
struct thrower {
	explicit thrower(bool now)
	{
		if (now)
			throw 5;
	}
	std::string text = "long enough to be allocated by itself, surely";
};
struct node;
static_assert(sizeof(counted_ptr<node>) == sizeof(void *)); /* an incomplete type is allowed */
struct node {
	atomic_counted_ptr<node> next;
	counted_ptr<node> owner;
	counted_guard<node> guard;
};

/* Return how many objects have died since the last call, after all reclaimable ones have been reclaimed. */
static int dead()
{
	static int before;
	int now, n;

	hazptr_barrier();
	now = quiesce_load_relaxed(&nr_dead);
	n = now - before;
	before = now;
	return n;
}

/* ---- what the compiler knows ---- */

template <class P> concept moves = std::is_nothrow_move_constructible_v<P> && std::is_nothrow_move_assignable_v<P>;
template <class P> concept copies = std::is_copy_constructible_v<P> || std::is_copy_assignable_v<P>;

static_assert(moves<counted_ptr<int>> && std::is_nothrow_copy_constructible_v<counted_ptr<int>>);
static_assert(moves<counted_guard<int>> && !copies<counted_guard<int>>);
static_assert(!copies<atomic_counted_ptr<int>> && !std::is_move_constructible_v<atomic_counted_ptr<int>>);
static_assert(sizeof(atomic_counted_ptr<int>) == sizeof(void *) && atomic_counted_ptr<int>::is_always_lock_free);
static_assert(std::is_convertible_v<counted_ptr<derived>, counted_ptr<base>>);
static_assert(std::is_convertible_v<counted_ptr<derived>, counted_ptr<const base>>);
static_assert(std::is_convertible_v<counted_ptr<int>, counted_ptr<const int>>);
static_assert(!std::is_convertible_v<counted_ptr<const int>, counted_ptr<int>>);
static_assert(!std::is_convertible_v<counted_ptr<base>, counted_ptr<derived>>);
static_assert(!std::is_convertible_v<counted_ptr<derived>, counted_ptr<other_base>>); /* the other base has no count */
static_assert(!std::is_convertible_v<int *, counted_ptr<int>> && !std::is_constructible_v<counted_ptr<int>, int *>);
static_assert(noexcept(std::declval<atomic_counted_ptr<int> &>().load()));
static_assert(noexcept(std::declval<atomic_counted_ptr<int> &>().protect()));
static_assert(noexcept(std::declval<counted_guard<int> &>().promote()));

/* ---- counted_ptr ---- */

static void copies_share_and_moves_do_not()
{
	counted_ptr<plain> a = make_counted<plain>(5), b, c;

	CHECK(a && !b && a.use_count() == 1 && b.use_count() == 0);
	b = a;
	CHECK(a == b && a.use_count() == 2 && b->value == 5 && &*b == a.get());
	c = std::move(a);
	CHECK(!a && a == nullptr && c == b && c.use_count() == 2);
	c = *&c;
	b = std::move(*&b);
	CHECK(b && c.use_count() == 2);
	swap(a, b);
	CHECK(a && !b);
	a.reset();
	CHECK(c.use_count() == 1 && dead() == 0);
	c = nullptr;
	CHECK(dead() == 1);
}

static void pointers_are_compared_by_address()
{
	auto a = make_counted<int>(1), b = make_counted<int>(1), a2 = a;
	std::unordered_set<counted_ptr<int>> set{ a, b, a2 };

	CHECK(a == a2 && a != b && (a < b) == std::less<int *>()(a.get(), b.get()));
	CHECK((a <=> b) != 0 && nullptr != a && set.size() == 2 && set.count(a2) == 1);
	CHECK(counted_ptr<const int>(a) == a);
}

static void pointers_convert_to_bases_that_hold_the_count()
{
	auto d = make_counted<derived>("a text that is long enough to be allocated");
	counted_ptr<base> b = d;
	counted_ptr<const base> c = std::move(b);

	CHECK(static_cast<const void *>(c.get()) != static_cast<const void *>(d.get()));
	CHECK(c.get() == static_cast<base *>(d.get()) && c->value == 7 && d.use_count() == 2 && c.use_count() == 2);
	d.reset();
	CHECK(dead() == 0 && c.use_count() == 1);
	c.reset();
	CHECK(dead() == 1); /* the derived one, though the base's destructor is not virtual */
}

static void copies_of_objects_have_counts_of_their_own()
{
	auto a = make_counted<derived>("x");
	auto a2 = a;
	auto b = make_counted<derived>(*a);

	CHECK(a.use_count() == 2 && b.use_count() == 1);
	*b = *a;
	CHECK(b.use_count() == 1 && a.use_count() == 2);
	a = a2 = b = nullptr;
	CHECK(dead() == 2);
}

static void any_alignment_will_do()
{
	auto w = make_counted<wide>();
	auto c = make_counted<char>('x');
	auto d = make_counted<const double>(1.5);
	atomic_counted_ptr<const double> a{ d };

	CHECK(reinterpret_cast<std::uintptr_t>(w.get()) % 128 == 0 && w->bytes[2] == 3);
	CHECK(*c == 'x' && *d == 1.5 && *a.protect() == 1.5 && *a.load() == 1.5);
}

static void references_pass_through_raw_pointers()
{
	auto a = make_counted<plain>(3);
	auto b = a;
	plain *raw = a.release();

	CHECK(!a && b.use_count() == 2);
	a = counted_ptr<plain>::adopt(raw);
	CHECK(b.use_count() == 2);
	a = b = nullptr;
	CHECK(dead() == 1);
}

template <class Fn> static bool throws_bad_alloc(Fn fn)
{
	try {
		fail_after = 0;
		fn();
	} catch (const std::bad_alloc &) {
		fail_after = -1;
		return true;
	}
	fail_after = -1;
	return false;
}

static void whatever_throws_leaves_nothing_behind()
{
	long live = quiesce_load_relaxed(&nr_live);
	bool caught = false;

	if (NEW_IS_TAKEN) {
		std::puts("# operator new is the sanitizer's: allocations that fail are not tried");
	} else {
		CHECK(throws_bad_alloc([] { make_counted<plain>(); }));
		CHECK(throws_bad_alloc([] { make_counted<wide>(); }));
		CHECK(throws_bad_alloc([] { make_counted<base>(); }));
	}
	try {
		make_counted<thrower>(true);
	} catch (int) {
		caught = true;
	}
	CHECK(caught);
	CHECK(dead() == 0 && quiesce_load_relaxed(&nr_live) == live);
	make_counted<thrower>(false);
	make_counted<wide>();
	hazptr_barrier();
	CHECK(quiesce_load_relaxed(&nr_live) == live);
}

/* ---- guards ---- */

static void a_guard_keeps_what_is_replaced()
{
	atomic_counted_ptr<plain> a{ make_counted<plain>(1) };
	auto guard = a.protect();

	CHECK(guard && guard->value == 1 && a.load().use_count() == 2); /* the guard is none */
	a = make_counted<plain>(2);
	CHECK(quiesce_shutdown(1000000) == -ETIMEDOUT && guard->value == 1);
	CHECK(!guard.promote()); /* the last reference has gone */
	counted_guard<plain> moved = std::move(guard);
	CHECK(!guard && moved->value == 1);
	guard = std::move(moved);
	CHECK(guard && !moved && guard->value == 1);
	guard.protect(a);
	CHECK(guard->value == 2 && dead() == 1);
	guard.reset();
	CHECK(!guard && dead() == 0);
	a = nullptr;
	CHECK(dead() == 1 && !a.protect());
}

static void a_guard_is_promoted()
{
	atomic_counted_ptr<derived> a{ make_counted<derived>("text") };
	counted_ptr<derived> kept;
	{
		auto guard = a.protect();
		kept = guard.promote();
		CHECK(kept.get() == guard.get() && kept.use_count() == 2 && guard->text == "text");
	}
	a = nullptr;
	CHECK(dead() == 0 && kept.use_count() == 1 && kept->text == "text");
	kept.reset();
	CHECK(dead() == 1);
	CHECK(!counted_guard<derived>().promote());
}

static void guards_are_many()
{
	atomic_counted_ptr<plain> a{ make_counted<plain>(1) };
	std::vector<counted_guard<plain>> guards;

	for (int i = 0; i < 1000; i++)
		guards.push_back(a.protect());
	std::swap(guards.front(), guards.back());
	a = nullptr;
	guards.resize(1);
	CHECK(guards[0]->value == 1 && quiesce_shutdown(1000000) == -ETIMEDOUT);
	guards.clear();
	CHECK(dead() == 1);
}

static void a_guard_moves_to_another_thread()
{
	atomic_counted_ptr<plain> a{ make_counted<plain>(1) };
	auto guard = a.protect();

	a = nullptr;
	std::thread([g = std::move(guard)]() mutable {
		CHECK(g->value == 1);
		g.reset();
	}).join();
	CHECK(dead() == 1);
}

/* Without memory for slots guards hold references. */
static void without_slots_a_guard_is_a_reference()
{
	if (SANITIZED) {
		skipped = "a sanitizer needs memory itself";
		return;
	}
	static hazptr_t *taken[20000];
	atomic_counted_ptr<plain> a{ make_counted<plain>(1) };
	struct rlimit old, none;
	int nr = 0;

	getrlimit(RLIMIT_DATA, &old);
	none = old;
	none.rlim_cur = 1;
	setrlimit(RLIMIT_DATA, &none);
	while (nr < 20000 && (taken[nr] = hazptr_alloc(nullptr)))
		nr++;
	{
		counted_guard<plain> guard = a.protect(), moved;
		counted_ptr<plain> kept = guard.promote();

		setrlimit(RLIMIT_DATA, &old);
		CHECK(nr >= 7 && nr < 20000 && kept.use_count() == 3);
		a = nullptr;
		moved = std::move(guard);
		CHECK(moved->value == 1 && kept.use_count() == 2);
		hazptr_free(nullptr, taken[--nr]);
		moved.protect(a);
		CHECK(!moved && kept.use_count() == 1);
	}
	while (nr)
		hazptr_free(nullptr, taken[--nr]);
	CHECK(dead() == 1);
}

/* ---- atomic_counted_ptr ---- */

static void loads_and_exchanges_count()
{
	atomic_counted_ptr<plain> a;
	auto one = make_counted<plain>(1), two = make_counted<plain>(2);

	CHECK(!a.load() && a.is_lock_free());
	a.store(one);
	CHECK(one.use_count() == 2 && a.load() == one);
	counted_ptr<plain> found = a;
	CHECK(found == one && one.use_count() == 3);
	found = a.exchange(two);
	CHECK(found == one && one.use_count() == 2 && two.use_count() == 2);
	a = std::move(two);
	CHECK(a.load()->value == 2);
	CHECK(a.load().use_count() == 2);
	found = one = nullptr;
	a = nullptr;
	CHECK(dead() == 2);
}

static void compare_and_exchange_counts()
{
	auto one = make_counted<plain>(1), two = make_counted<plain>(2);
	atomic_counted_ptr<plain> a{ one };
	counted_ptr<plain> expected = two;

	CHECK(!a.compare_exchange_strong(expected, two));
	CHECK(expected == one && one.use_count() == 3 && two.use_count() == 1);
	CHECK(a.compare_exchange_strong(expected, two));
	CHECK(a.load() == two);
	CHECK(one.use_count() == 2 && two.use_count() == 2);
	expected = nullptr;
	CHECK(!a.compare_exchange_weak(expected, nullptr) && expected == two);
	CHECK(a.compare_exchange_weak(expected, nullptr) && !a.load() && two.use_count() == 2);
	expected = nullptr;
	CHECK(a.compare_exchange_strong(expected, one) && one.use_count() == 2);
	a = nullptr;
	one = two = expected = nullptr;
	CHECK(dead() == 2);
}

static void long_lists_do_not_recurse()
{
	long live = quiesce_load_relaxed(&nr_live);
	counted_ptr<node> head;

	for (int i = 0; i < 100000; i++) {
		auto fresh = make_counted<node>();

		fresh->next = std::move(head);
		head = std::move(fresh);
	}
	head = nullptr;
	CHECK(quiesce_shutdown(0) == 0);
	CHECK(quiesce_load_relaxed(&nr_live) == live);
}

/* ---- all at once ---- */

static void threads_read_keep_and_replace()
{
	static constexpr int readers = 3, updaters = 2, updates = QUIESCE_TSAN ? 2000 : 10000, enough = 1000;
	atomic_counted_ptr<plain> shared[2];
	std::vector<std::thread> threads;
	int left = updates * updaters, made = 0, wrong = 0;

	for (auto &s : shared)
		s = make_counted<plain>();
	for (int t = 0; t < readers; t++)
		threads.emplace_back([&] {
			counted_ptr<plain> kept;
			counted_guard<plain> again;
			int bad = 0;

			for (int i = 0; i < enough || quiesce_load_relaxed(&left) > 0; i++) {
				auto guard = shared[i % 2].protect();

				bad += quiesce_load_relaxed(&guard->value) != 42;
				if (i % 8 == 0)
					kept = guard.promote();
				if (i % 8 == 4)
					kept = shared[1].load();
				again.protect(shared[0]);
				bad += kept && quiesce_load_relaxed(&kept->value) != 42;
				bad += quiesce_load_relaxed(&again->value) != 42 || quiesce_load_relaxed(&guard->value) != 42;
			}
			quiesce_fetch_add_relaxed(&wrong, bad);
		});
	for (int t = 0; t < updaters; t++)
		threads.emplace_back([&] {
			for (int i = 0; i < updates; i++) {
				auto fresh = make_counted<plain>();
				auto expected = shared[i % 2].load();

				if (i % 3)
					shared[i % 2] = std::move(fresh);
				else
					shared[i % 2].compare_exchange_strong(expected, fresh);
				quiesce_fetch_add_relaxed(&made, 1);
				quiesce_fetch_add_relaxed(&left, -1);
			}
		});
	for (auto &t : threads)
		t.join();
	for (auto &s : shared)
		s = nullptr;
	CHECK(wrong == 0 && made == updates * updaters);
	CHECK(quiesce_shutdown(0) == 0);
	CHECK(dead() == made + 2);
}

/* A pointer is dropped when the process ends: no function may be called that has been unloaded. */
static atomic_counted_ptr<derived> at_exit{ make_counted<derived>("dropped after main()") };

int main()
{
	static const struct {
		const char *name;
		void (*fn)();
	} tests[] = {
#define TEST(fn) { #fn, fn }
		TEST(copies_share_and_moves_do_not), TEST(pointers_are_compared_by_address),
		TEST(pointers_convert_to_bases_that_hold_the_count), TEST(copies_of_objects_have_counts_of_their_own),
		TEST(any_alignment_will_do), TEST(references_pass_through_raw_pointers),
		TEST(whatever_throws_leaves_nothing_behind), TEST(a_guard_keeps_what_is_replaced), TEST(a_guard_is_promoted),
		TEST(guards_are_many), TEST(a_guard_moves_to_another_thread), TEST(without_slots_a_guard_is_a_reference),
		TEST(loads_and_exchanges_count), TEST(compare_and_exchange_counts), TEST(long_lists_do_not_recurse),
		TEST(threads_read_keep_and_replace),
	};
	int n = 0, bad = 0;

	std::printf("1..%zu\n", sizeof tests / sizeof tests[0]);
	for (const auto &test : tests) {
		nr_failed = nr_checks = 0;
		skipped = nullptr;
		alarm(90); /* for hangs only: with ThreadSanitizer on a busy machine the threads take most of a minute */
		test.fn();
		bool ok = skipped || (nr_checks && !nr_failed);
		std::printf("%s %d - %s (%d checks)%s%s\n", ok ? "ok" : "not ok", ++n, test.name, nr_checks, skipped ? " # SKIP " : "",
			    skipped ? skipped : "");
		bad += !ok;
	}
	return bad != 0;
}
