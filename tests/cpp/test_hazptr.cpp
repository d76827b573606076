/* SPDX-License-Identifier: MIT */
/* test_hazptr.cpp - retire() of objects whose deleter only frees memory, and of others: the operator delete of the program is called for
 * each, once, and not while a hazard pointer protects the object. */
#include <quiesce/hazptr.hpp>

#include "../sanitized.h"
#include "tap.hpp"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t bytes = 5000; /* no other object of this program has that size */
std::atomic<int> nr_deleted, nr_own_deleted, nr_destroyed; /* raw: counts of the test */

} // namespace

#if !SANITIZED /* sanitizers have operators of their own, and check the memory */
void *operator new(std::size_t size)
{
	if (void *p = std::malloc(size))
		return p;
	throw std::bad_alloc();
}

void operator delete(void *p) noexcept { std::free(p); }

void operator delete(void *p, std::size_t size) noexcept
{
	nr_deleted += size == bytes;
	std::free(p);
}
#endif

namespace {

struct plain : quiesce::hazard_pointer_obj_base<plain> {
	char payload[bytes - 3 * sizeof(void *)];
	long last = 7;
};

struct own_delete : quiesce::hazard_pointer_obj_base<own_delete> {
	static void operator delete(void *p)
	{
		nr_own_deleted++;
		::operator delete(p);
	}
};

struct own_sized_delete : quiesce::hazard_pointer_obj_base<own_sized_delete> {
	static void operator delete(void *p, std::size_t)
	{
		nr_own_deleted++;
		::operator delete(p);
	}
};

struct destroyed : quiesce::hazard_pointer_obj_base<destroyed> {
	~destroyed() { nr_destroyed++; }
};

struct deleter {
	template<class T> void operator()(T *p) const { delete p; }
};
struct other_deleter : quiesce::hazard_pointer_obj_base<other_deleter, deleter> {};

struct aligned_delete : quiesce::hazard_pointer_obj_base<aligned_delete> {
	static void operator delete(void *p, std::align_val_t) { ::operator delete(p); }
};

struct final_class final : quiesce::hazard_pointer_obj_base<final_class> {};

struct specialised;

} // namespace

template<> struct std::default_delete<specialised> {
	void operator()(specialised *p) const;
};

namespace {

struct specialised : quiesce::hazard_pointer_obj_base<specialised> {};

} // namespace

void std::default_delete<specialised>::operator()(specialised *p) const
{
	nr_own_deleted++;
	delete p;
}

namespace {

static_assert(!quiesce::detail::only_frees<specialised, std::default_delete<specialised>>());
static_assert(!quiesce::detail::only_frees<aligned_delete, std::default_delete<aligned_delete>>());
static_assert(!quiesce::detail::only_frees<final_class, std::default_delete<final_class>>());
static_assert(sizeof(plain) == bytes, "operator delete recognises it");
static_assert(quiesce::detail::only_frees<plain, std::default_delete<plain>>());
static_assert(!quiesce::detail::only_frees<own_delete, std::default_delete<own_delete>>());
static_assert(!quiesce::detail::only_frees<own_sized_delete, std::default_delete<own_sized_delete>>());
static_assert(!quiesce::detail::only_frees<destroyed, std::default_delete<destroyed>>());
static_assert(!quiesce::detail::only_frees<other_deleter, deleter>());

template<class T> void retire_many(int nr)
{
	while (nr--)
		(new T)->retire();
}

void each_is_deleted_by_the_program()
{
	nr_deleted = nr_own_deleted = nr_destroyed = 0;
	retire_many<plain>(3000);
	CHECK(SANITIZED || nr_deleted > 0); /* in this thread, at the pace of the calls */
	retire_many<own_delete>(500);
	retire_many<own_sized_delete>(500);
	retire_many<destroyed>(500);
	retire_many<other_deleter>(500);
	retire_many<specialised>(500);
	retire_many<final_class>(500);
	quiesce::hazard_pointer_clean_up();
	CHECK(SANITIZED || nr_deleted == 3000);
	CHECK(nr_own_deleted == 1500);
	CHECK(nr_destroyed == 500);
}

/* One call may delete objects of each kind. */
void kinds_may_alternate()
{
	nr_deleted = nr_own_deleted = nr_destroyed = 0;
	for (int i = 0; i < 2000; i++) {
		retire_many<plain>(1 + i % 3);
		retire_many<destroyed>(i % 2);
		retire_many<own_delete>(i % 5 == 0);
	}
	quiesce::hazard_pointer_clean_up();
	CHECK(SANITIZED || nr_deleted == 3999);
	CHECK(nr_destroyed == 1000);
	CHECK(nr_own_deleted == 400);
}

void a_protected_object_stays()
{
	std::atomic<plain *> current(new plain); /* raw: the interface wants a std::atomic */
	quiesce::hazard_pointer h = quiesce::make_hazard_pointer();
	plain *p = h.protect(current);

	nr_deleted = 0;
	current.exchange(nullptr)->retire();
	retire_many<plain>(3000);
	quiesce::hazard_pointer_try_clean_up();
	CHECK(SANITIZED || nr_deleted == 3000);
	CHECK(p->last == 7);
	h.reset_protection();
	quiesce::hazard_pointer_clean_up();
	CHECK(SANITIZED || nr_deleted == 3001);
}

void threads_may_retire_and_end()
{
	std::vector<std::thread> threads;

	nr_deleted = 0;
	for (int i = 0; i < 4; i++)
		threads.emplace_back(retire_many<plain>, 1000);
	for (std::thread &t : threads)
		t.join();
	quiesce::hazard_pointer_clean_up();
	CHECK(SANITIZED || nr_deleted == 4000);
}

} // namespace

int main()
{
	return run_tests({ TEST(each_is_deleted_by_the_program), TEST(kinds_may_alternate), TEST(a_protected_object_stays),
			   TEST(threads_may_retire_and_end) });
}
