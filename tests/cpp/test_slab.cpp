/* SPDX-License-Identifier: MIT */
/* test_slab.cpp - slab_allocator and slab_allocated: which objects are from caches, and how each way of deleting returns them. */
#include <quiesce/hazptr.hpp>
#include <quiesce/rcu.hpp>
#include <quiesce/slab.hpp>
#include <quiesce/srcu.hpp>

#include "../sanitized.h"
#include "tap.hpp"

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <type_traits>
#include <vector>

using quiesce::slab_allocated;
using quiesce::slab_allocator;

/* ---- what the compiler knows ---- */

using traits = std::allocator_traits<slab_allocator<int>>;
static_assert(traits::is_always_equal::value && traits::propagate_on_container_move_assignment::value);
static_assert(std::is_same_v<traits::rebind_alloc<long>, slab_allocator<long>>);
static_assert(std::is_nothrow_constructible_v<slab_allocator<int>, const slab_allocator<long> &>);
static_assert(slab_allocator<int>() == slab_allocator<long>() && !(slab_allocator<int>() != slab_allocator<int>()));

struct empty : slab_allocated<empty> {};
struct two_words : slab_allocated<two_words> { long a = 1, b = 2; };
static_assert(sizeof(empty) == 1 && sizeof(two_words) == 2 * sizeof(long), "the base takes no room");

/* Objects in use of the cache for objects of @size bytes. */
static std::uint64_t in_use(std::size_t size)
{
	::kmem_cache_stats s;

	::kmem_cache_get_stats(quiesce__kmem_cache_of_size(QUIESCE_LAYOUT, size, 1), &s);
	return s.objects;
}

/* A class of which no other test has one of the same size. */
template<std::size_t Bytes> struct sized : slab_allocated<sized<Bytes>> {
	static constexpr std::size_t bytes = Bytes;

	sized() = default;
	explicit sized(int) { throw 1; }
	virtual ~sized() = default;
	char rest[Bytes - sizeof(void *)];
};

/* An object is usable before main() begins, and is not deleted. */
static two_words *early = new two_words;

/* ---- containers ---- */

static void nodes_are_from_caches()
{
	std::uint64_t before;
	{
		std::list<int, slab_allocator<int>> list(3, 7);
		std::map<int, long, std::less<>, slab_allocator<std::pair<const int, long>>> map;
		std::size_t node = sizeof(void *) * 3; /* two links and an int, in all libraries */

		before = in_use(node);
		list.push_back(8);
		list.emplace_front(6);
		CHECK(in_use(node) == before + 2 && list.front() == 6 && list.back() == 8);
		for (int i = 0; i < 5000; i++)
			map.emplace(i, -i);
		for (int i = 0; i < 5000; i += 2)
			map.erase(i);
		CHECK(map.size() == 2500 && map.at(4999) == -4999);
		list.clear();
		CHECK(in_use(node) == before - 3);
	}
	{
		auto shared = std::allocate_shared<sized<1000>>(slab_allocator<int>());

		CHECK(reinterpret_cast<std::uintptr_t>(shared.get()) % alignof(sized<1000>) == 0);
	}
}

static void arrays_are_not()
{
	std::vector<two_words, slab_allocator<two_words>> vector(10);
	struct large { char bytes[QUIESCE_SLAB_SIZE_MAX + 1]; };
	std::list<large, slab_allocator<large>> larges(2);
	std::uint64_t before = in_use(sizeof(two_words));
	two_words *array = new two_words[4];

	vector.resize(20);
	CHECK(in_use(sizeof(two_words)) == before && array[3].b == 2);
	delete[] array;
	vector.resize(1);
	vector.shrink_to_fit(); /* an array of one object is from the cache */
	CHECK(in_use(sizeof(two_words)) == before + 1);
}

static void incomplete_types_have_allocators()
{
	struct tree { std::list<tree, slab_allocator<tree>> children; };
	tree root;

	root.children.emplace_back().children.emplace_back();
	CHECK(root.children.front().children.size() == 1);
}

/* ---- new and delete ---- */

static void new_and_delete_use_a_cache()
{
	using type = sized<520>;
	std::uint64_t before = in_use(type::bytes);
	type *one = new type, *two = new (std::nothrow) type;
	alignas(type) char place[sizeof(type)];

	CHECK(one && two && one != two && in_use(type::bytes) == before + 2);
	new (place) type;
	reinterpret_cast<type *>(place)->~type();
	::new (place) type;
	reinterpret_cast<type *>(place)->~type();
	CHECK(in_use(type::bytes) == before + 2);
	delete one;
	std::unique_ptr<type> owner(two);
	owner.reset();
	CHECK(in_use(type::bytes) == before);
	delete new empty;
	CHECK(early->a == 1 && in_use(sizeof(two_words)) >= 1);
}

static bool throws_one(void (*fn)())
{
	try {
		fn();
	} catch (int n) {
		return n == 1;
	}
	return false;
}

template<class T> static void a_throwing_constructor_of()
{
	std::uint64_t before = in_use(T::bytes);

	CHECK(throws_one([] { static_cast<void>(new T(1)); }));
	CHECK(throws_one([] { static_cast<void>(new (std::nothrow) T(1)); }));
	CHECK(in_use(T::bytes) == before);
}

struct derived : sized<536> {
	using sized<536>::sized;
	std::string more = std::string(100, 'x'); /* an object from the cache keeps memory of malloc() alive */
};
struct alignas(256) wide : slab_allocated<wide> {
	static constexpr std::size_t bytes = 512;
	wide() = default;
	explicit wide(int) { throw 1; }
	virtual ~wide() = default;
	char rest[400];
};
struct alignas(1024) wider : wide {
	using wide::wide;
};
static_assert(sizeof(wide) == wide::bytes && sizeof(wider) == 1024);

static void a_throwing_constructor_leaks_nothing()
{
	a_throwing_constructor_of<sized<528>>();
	a_throwing_constructor_of<derived>();
	a_throwing_constructor_of<wide>();
	a_throwing_constructor_of<wider>();
}

static void derived_objects_are_deleted_by_their_bases()
{
	struct same : sized<544> {
		using sized<544>::sized;
	};
	std::uint64_t before = in_use(536), others = in_use(544);
	sized<536> *other = new derived;
	sized<544> *alike = new same;
	wide *walls[] = { new wide, new wider, new (std::nothrow) wider };

	CHECK(in_use(536) == before && in_use(544) == others + 1);
	CHECK(reinterpret_cast<std::uintptr_t>(walls[0]) % alignof(wide) == 0);
	for (wide *w : walls) {
		CHECK(reinterpret_cast<std::uintptr_t>(w) % (w == walls[0] ? alignof(wide) : alignof(wider)) == 0);
		delete w;
	}
	delete other;
	delete alike;
	CHECK(in_use(536) == before && in_use(544) == others);
}

static void alignments_of_each_size()
{
	std::vector<void *> many;

	for (std::size_t size = 1; size <= QUIESCE_SLAB_SIZE_MAX; size = size * 3 / 2 + 1) {
		std::size_t stride = (size + 7) & ~std::size_t{ 7 };
		::kmem_cache *cache = quiesce__kmem_cache_of_size(QUIESCE_LAYOUT, size, 1);

		CHECK(cache == quiesce__kmem_cache_of_size(QUIESCE_LAYOUT, stride, stride & -stride) && ::kmem_cache_size(cache) == stride);
		for (int i = 0; i < 9; i++) {
			many.push_back(::kmem_cache_alloc(cache));
			CHECK(many.back() && !(reinterpret_cast<std::uintptr_t>(many.back()) % (stride & -stride)));
		}
	}
	for (void *object : many)
		::kfree(object);
	CHECK(!quiesce__kmem_cache_of_size(QUIESCE_LAYOUT, 24, 16));
	CHECK(!quiesce__kmem_cache_of_size(QUIESCE_LAYOUT, QUIESCE_SLAB_SIZE_MAX + 1, 1));
}

/* ---- retiring ---- */

struct hazard : slab_allocated<hazard>, quiesce::hazard_pointer_obj_base<hazard> { char rest[600]; };
struct region : slab_allocated<region>, quiesce::rcu_obj_base<region> { char rest[648]; };

static void retired_objects_return()
{
	std::uint64_t hazards = in_use(sizeof(hazard)), regions = in_use(sizeof(region)), others = in_use(552);
	quiesce::srcu_domain domain;
	quiesce::hazard_pointer_cohort cohort;

	for (int i = 0; i < 3000; i++) {
		(new hazard)->retire();
		(new region)->retire();
		quiesce::rcu_retire(new sized<552>);
	}
	(new hazard)->retire(cohort);
	(new hazard)->retire_to_worker();
	domain.retire(new sized<552>);
	domain.barrier();
	cohort.synchronize();
	quiesce::rcu_barrier();
	quiesce::hazard_pointer_clean_up();
	CHECK(in_use(sizeof(hazard)) == hazards && in_use(sizeof(region)) == regions && in_use(552) == others);
}

static void a_protected_object_is_not_reused()
{
	hazard *first = new hazard;
	/* raw: the type in which C++ programs publish pointers. */
	std::atomic<hazard *> current{ first };
	quiesce::hazard_pointer h = quiesce::make_hazard_pointer();
	std::vector<hazard *> fresh;
	bool reused = false;

	h.protect(current)->rest[0] = 'p';
	current.exchange(nullptr)->retire();
	for (int i = 0; i < 1000; i++) {
		fresh.push_back(new hazard);
		fresh.back()->rest[0] = 'f';
		reused = reused || fresh.back() == first;
	}
	CHECK(!reused && first->rest[0] == 'p');
	h.reset_protection();
	for (hazard *f : fresh)
		f->retire();
	quiesce::hazard_pointer_clean_up();
}

/* ---- threads and memory ---- */

/* On one CPU each lap is a switch, so a thread with nothing to do yields: a spin would last until its slice ends. */
static void objects_go_from_thread_to_thread()
{
	constexpr int laps = 5000;
	using type = sized<560>;
	std::uint64_t before = in_use(type::bytes);
	type *box = nullptr;
	int nr = 0;
	std::thread taker([&] {
		while (nr < laps)
			if (type *t = rcu_xchg_pointer(&box, static_cast<type *>(nullptr))) {
				delete t;
				nr++;
			} else {
				std::this_thread::yield();
			}
	});

	for (int i = 0; i < laps; i++) {
		type *expected, *t = new type;

		for (expected = nullptr; !rcu_try_cmpxchg_pointer(&box, &expected, t); expected = nullptr)
			std::this_thread::yield();
	}
	taker.join();
	CHECK(in_use(type::bytes) == before);
}

/* Code that has allocated none yet, as that of another shared object may be. */
static void objects_of_other_code_are_freed()
{
	struct type { char bytes[584]; };
	::kmem_cache *cache = quiesce__kmem_cache_of_size(QUIESCE_LAYOUT, sizeof(type), alignof(type));
	slab_allocator<type> allocator;

	allocator.deallocate(static_cast<type *>(::kmem_cache_alloc(cache)), 1);
	CHECK(in_use(sizeof(type)) == 0);
	allocator.deallocate(allocator.allocate(1), 1);
	CHECK(in_use(sizeof(type)) == 0);
}

/* First allocations of a size by several threads find one cache. */
static void one_cache_is_made()
{
	using type = sized<568>;
	std::vector<std::thread> threads;
	int ready = 0;

	for (int i = 0; i < 4; i++)
		threads.emplace_back([&] {
			quiesce_fetch_add_relaxed(&ready, 1);
			while (quiesce_load_relaxed(&ready) < 4)
				std::this_thread::yield();
			for (int k = 0; k < 100; k++)
				delete new type;
		});
	for (std::thread &t : threads)
		t.join();
	CHECK(in_use(type::bytes) == 0);
}

/* A size that no object had before, while there are no addresses. */
static void no_memory_is_an_exception()
{
	rlimit old, none;
	bool thrown = false, null = false;

	if (SANITIZED || getrlimit(RLIMIT_AS, &old)) {
		CHECK(true);
		return;
	}
	none = old;
	none.rlim_cur = 4096;
	setrlimit(RLIMIT_AS, &none);
	null = !new (std::nothrow) sized<16000>;
	try {
		delete new sized<16000>;
	} catch (const std::bad_alloc &) {
		thrown = true;
	}
	CHECK(thrown);
	setrlimit(RLIMIT_AS, &old);
	CHECK(null);
	delete new sized<16000>;
	CHECK(in_use(16000) == 0);
}

int main()
{
	static const test tests[] = {
		TEST(nodes_are_from_caches),
		TEST(arrays_are_not),
		TEST(incomplete_types_have_allocators),
		TEST(new_and_delete_use_a_cache),
		TEST(a_throwing_constructor_leaks_nothing),
		TEST(derived_objects_are_deleted_by_their_bases),
		TEST(alignments_of_each_size),
		TEST(retired_objects_return),
		TEST(a_protected_object_is_not_reused),
		TEST(objects_go_from_thread_to_thread),
		TEST(objects_of_other_code_are_freed),
		TEST(one_cache_is_made),
		TEST(no_memory_is_an_exception),
	};

	return run_tests(tests);
}
