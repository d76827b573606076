/* SPDX-License-Identifier: MIT */
/* test_lfqueue.cpp - quiesce::lfqueue: types, order, objects of a derived class, many producers and takers. */
#include <quiesce/ds/lfqueue.hpp>
#include <quiesce/rcu.hpp>

#include "tap.hpp"

#include <array>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

struct job : quiesce::rcu_obj_base<job> {
	virtual ~job() = default;
	int from = 0, number = 0;
	lfq_node node{};
};

struct task : job {
	int more = 7;
};

using jobs = quiesce::lfqueue<&job::node>;

static_assert(sizeof(jobs) == 2 * QUIESCE_CACHELINE); // head and tail in different lines, wherever it lies
static_assert(std::is_nothrow_default_constructible_v<jobs>);
static_assert(!std::is_copy_constructible_v<jobs> && !std::is_move_constructible_v<jobs>);
static_assert(!std::is_copy_assignable_v<jobs> && !std::is_move_assignable_v<jobs>);
static_assert(noexcept(std::declval<jobs &>().enqueue(std::declval<job &>())) && noexcept(std::declval<jobs &>().dequeue()));
static_assert(std::is_same_v<decltype(std::declval<jobs &>().dequeue()), job *>);

template <class Queue, class T> static void put(Queue &queue, T &object)
{
	std::scoped_lock section(quiesce::rcu_default_domain());

	queue.enqueue(object);
}

template <class Queue> static auto take(Queue &queue)
{
	std::scoped_lock section(quiesce::rcu_default_domain());

	return queue.dequeue();
}

/* The object is usable before any constructor runs. */
static job first;
static const bool used_early = [] {
	extern jobs early;

	put(early, first);
	return !early.empty();
}();
constinit jobs early;

static void first_in_first_out()
{
	std::array<job, 5> objects;
	jobs queue;

	CHECK(used_early && take(early) == &first && early.empty());
	CHECK(queue.empty() && !take(queue));
	for (auto &one : objects)
		put(queue, one);
	for (auto &one : objects)
		CHECK(!queue.empty() && take(queue) == &one);
	CHECK(queue.empty() && !take(queue) && ::lfq_destroy(queue.native_handle()) == 0);
	quiesce::rcu_synchronize();
}

static void derived_objects()
{
	quiesce::lfqueue<&job::node, task> queue;
	task a, b;

	put(queue, a);
	put(queue, b);
	const task *got = take(queue);
	CHECK(got == &a && got->more == 7);
	CHECK(take(queue) == &b && queue.empty());
	quiesce::rcu_synchronize();
}

static void many_put_in_and_take()
{
	constexpr int nr_threads = 3, nr_each = 20000;
	std::vector<std::thread> threads;
	int wrong = 0;
	jobs queue;

	for (int t = 0; t < nr_threads; t++)
		threads.emplace_back([&, t] {
			std::array<int, nr_threads> newest;

			newest.fill(-1);
			for (int i = 0; i < nr_each; i++) {
				job *fresh = new job;

				fresh->from = t;
				fresh->number = i;
				put(queue, *fresh);
				job *got = take(queue);
				if (!got || got->number <= newest[static_cast<size_t>(got->from)]) {
					quiesce_fetch_add_relaxed(&wrong, 1);
					continue;
				}
				newest[static_cast<size_t>(got->from)] = got->number;
				got->retire();
			}
		});
	for (auto &t : threads)
		t.join();
	CHECK(wrong == 0 && queue.empty());
	quiesce::rcu_barrier();
}

int main()
{
	return run_tests({ TEST(first_in_first_out), TEST(derived_objects), TEST(many_put_in_and_take) });
}
