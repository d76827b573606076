/* SPDX-License-Identifier: MIT */
/* test_cpp17.cpp - the C++ faces that need no newer language, as a program for C++17 uses them. */
#include <quiesce/counted_ptr.hpp>
#include <quiesce/ds/ida.hpp>
#include <quiesce/ds/idr.hpp>
#include <quiesce/ds/lfqueue.hpp>
#include <quiesce/ds/lfstack.hpp>
#include <quiesce/ds/rculist.hpp>
#include <quiesce/ds/wfcqueue.hpp>
#include <quiesce/ds/wfstack.hpp>
#include <quiesce/ds/xarray.hpp>
#include <quiesce/hazptr.hpp>
#include <quiesce/percpu_rwsem.hpp>
#include <quiesce/rcu.hpp>
#include <quiesce/shazptr.hpp>
#include <quiesce/slab.hpp>
#include <quiesce/srcu.hpp>

#include "tap.hpp"

#include <atomic>
#include <list>
#include <mutex>
#include <shared_mutex>

static int alive;

template<class Base> struct counts : Base {
	explicit counts(int n) : number(n) { quiesce_fetch_add_relaxed(&alive, 1); }
	~counts() { quiesce_fetch_add_relaxed(&alive, -1); }
	int number;
};
struct hazard : counts<quiesce::hazard_pointer_obj_base<hazard>> { using counts::counts; };
struct region : counts<quiesce::rcu_obj_base<region>> { using counts::counts; };
struct plain : counts<std::true_type> { using counts::counts; };

/* Objects are the same in the files of one program that are compiled for C++17 and for C++20. */
static_assert(sizeof(quiesce::hazard_pointer_obj_base<hazard>) == sizeof(hazptr_head), "a deleter without state takes no room");
static_assert(sizeof(quiesce::rcu_obj_base<region>) == sizeof(rcu_head), "a deleter without state takes no room");

static void hazard_pointers()
{
	/* raw: the type in which C++ programs publish pointers. */
	std::atomic<hazard *> current{ new hazard(1) };
	quiesce::hazard_pointer_cohort cohort;
	quiesce::hazard_pointer h = quiesce::make_hazard_pointer();
	quiesce::hazard_pointer_array<2> more;
	hazard *seen = h.protect(current);

	CHECK(seen->number == 1 && !h.empty() && more.size() == 2);
	current.exchange(new hazard(2))->retire();
	CHECK(!quiesce::hazard_pointer_try_clean_up() && seen->number == 1);
	h.reset_protection();
	quiesce::hazard_pointer_clean_up();
	CHECK(alive == 1);
	current.exchange(new hazard(3))->retire(cohort);
	cohort.synchronize();
	current.load()->retire_to_worker();
	quiesce::hazard_pointer_clean_up();
	CHECK(alive == 0);
}

static void regions()
{
	/* raw: the type in which C++ programs publish pointers. */
	std::atomic<region *> current{ new region(1) };
	/* raw: the type in which C++ programs publish pointers. */
	std::atomic<plain *> of_srcu{ new plain(2) };
	quiesce::srcu_domain domain;

	{
		std::scoped_lock section(quiesce::rcu_default_domain());
		quiesce::rcu_reader nested;
		quiesce::srcu_reader other(domain);
		quiesce::srcu_section moved(quiesce::srcu_section{ domain });

		CHECK(current.load()->number == 1 && of_srcu.load()->number == 2 && moved);
		current.exchange(nullptr)->retire();
		domain.retire(of_srcu.exchange(nullptr));
	}
	quiesce::rcu_retire(new plain(3));
	quiesce::rcu_barrier();
	quiesce::rcu_synchronize();
	domain.barrier();
	CHECK(alive == 0);
}

static void guards_and_locks()
{
	plain object(1);
	/* raw: the type in which C++ programs publish pointers. */
	std::atomic<plain *> current{ &object };
	static quiesce::percpu_shared_mutex lock;

	{
		quiesce::shazptr guard(current);
		std::shared_lock reading(lock);

		CHECK(guard && guard->number == 1 && !lock.try_lock());
	}
	quiesce::shazptr<plain>::synchronize(current.exchange(nullptr));
	CHECK(std::unique_lock(lock, std::chrono::milliseconds(100)).owns_lock());
}

static void counted_pointers()
{
	quiesce::counted_ptr<plain> a = quiesce::make_counted<plain>(1), b = a, none;
	quiesce::counted_ptr<const plain> fixed = a;
	quiesce::atomic_counted_ptr<plain> current{ a };

	CHECK(a == b && !(a != b) && a != none && none == nullptr && nullptr == none && a != nullptr && nullptr != a && fixed == a);
	CHECK(none < a && a > none && a <= b && a >= b && !(a < b));
	CHECK(current.protect()->number == 1 && current.load() == a);
	CHECK((!std::is_convertible_v<quiesce::counted_ptr<const plain>, quiesce::counted_ptr<plain>>));
	a.reset();
	b.reset();
	fixed.reset();
	current.store(nullptr);
	quiesce::hazard_pointer_clean_up();
	CHECK(alive == 0);
}

static void numbers()
{
	quiesce::ida free_numbers;
	quiesce::idr<plain> ids;
	quiesce::xarray<plain> pages;
	plain objects[2] = { plain(1), plain(2) };
	int sum = 0;

	CHECK(free_numbers.alloc(1) == 1 && free_numbers.alloc(1, 1) == std::nullopt);
	for (plain &o : objects) {
		CHECK(ids.alloc(&o, o.number) == o.number && !pages.store(static_cast<unsigned long>(o.number) << 20, &o));
	}
	quiesce::rcu_reader section;
	for (auto [id, object] : ids)
		sum += id * object->number;
	for (auto [index, object] : pages.reverse())
		sum = sum * 10 + static_cast<int>(index >> 20) * object->number;
	CHECK(sum == 541 && ids.begin() != ids.end() && ids.lower_bound(1) == ids.begin() && ids.lower_bound(2) != ids.begin());
	CHECK(pages.begin() != pages.end() && pages.find_after(1ul << 20)->second == &objects[1]);
}

struct item {
	int number;
	lfq_node lfq;
	wfcq_node wfcq;
	lfs_node lfs;
	wfs_node wfs;
	list_head node;
};

static void queues_and_lists()
{
	quiesce::lfqueue<&item::lfq> jobs;
	quiesce::wfcqueue<&item::wfcq> mail;
	quiesce::lfstack<&item::lfs> lock_free;
	quiesce::wfstack<&item::wfs> wait_free;
	list_head list = LIST_HEAD_INIT(list);
	item items[3] = {};
	int sum = 0, n = 0;
	quiesce::rcu_reader section;

	for (item &i : items) {
		i.number = ++n;
		jobs.enqueue(i);
		mail.enqueue(i);
		lock_free.push(i);
		wait_free.push(i);
		list_add_tail_rcu(&i.node, &list);
	}
	for (item &i : mail)
		sum = sum * 10 + i.number;
	for (item &i : lock_free.pop_all())
		sum = sum * 10 + i.number;
	for (item &i : wait_free.pop_all())
		sum = sum * 10 + i.number;
	CHECK(sum == 123321321 && mail.begin() == mail.begin() && mail.begin() != mail.end());
	for (item &i : quiesce::rcu_list_range<&item::node>(list))
		n = n * 10 + i.number;
	CHECK(n == 3123 && jobs.dequeue() == &items[0] && mail.dequeue() == &items[0]);
}

struct cached : quiesce::slab_allocated<cached>, counts<quiesce::rcu_obj_base<cached>> { using counts::counts; };

static void caches()
{
	std::list<int, quiesce::slab_allocator<int>> list(3, 7);

	(new cached(1))->retire();
	delete new cached(2);
	quiesce::rcu_barrier();
	CHECK(alive == 0 && list.back() == 7);
}

int main()
{
	return run_tests({ TEST(hazard_pointers), TEST(regions), TEST(guards_and_locks), TEST(counted_pointers), TEST(numbers),
			   TEST(queues_and_lists), TEST(caches) });
}
