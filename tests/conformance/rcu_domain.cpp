/* SPDX-License-Identifier: MIT */
#include "check.hpp"

#include <mutex>
#include <type_traits>

namespace rcu_domain {
CLAUSE("saferecl.rcu.domain.members")

using domain = impl::rcu_domain;

TEST("what kind of type it is")
{
	CHECK_STATIC(!std::is_copy_constructible_v<domain> && !std::is_move_constructible_v<domain>);
	CHECK_STATIC(!std::is_copy_assignable_v<domain> && !std::is_move_assignable_v<domain>);
	CHECK_STATIC(!std::is_default_constructible_v<domain>);
	CHECK_STATIC(std::is_void_v<decltype(std::declval<domain &>().lock())> && noexcept(std::declval<domain &>().lock()));
	CHECK_STATIC(std::is_void_v<decltype(std::declval<domain &>().unlock())>);
	CHECK_STATIC(noexcept(std::declval<domain &>().unlock()));
	CHECK_STATIC(std::is_same_v<decltype(std::declval<domain &>().try_lock()), bool>);
	CHECK_STATIC(noexcept(std::declval<domain &>().try_lock()));
}

static std::atomic<int> ended;
struct node : impl::rcu_obj_base<node> {
	~node() { ended++; }
};

/* Retired now, an object stays until the region ends. */
static bool stays_until(void (*leave)())
{
	int seen[2];

	ended = 0;
	(new node)->retire();
	std::this_thread::sleep_for(std::chrono::milliseconds(2));
	seen[0] = ended;
	leave();
	impl::rcu_barrier();
	seen[1] = ended;
	return seen[0] == 0 && seen[1] == 1;
}

TEST("lock(), try_lock() and unlock()")
{
	impl::rcu_default_domain().lock();
	CHECK(stays_until([] { impl::rcu_default_domain().unlock(); }));
	CHECK(impl::rcu_default_domain().try_lock());
	CHECK(stays_until([] { impl::rcu_default_domain().unlock(); }));
}

TEST("regions nest")
{
	domain &all = impl::rcu_default_domain();

	for (int i = 0; i < 20; i++)
		i % 2 ? all.lock() : void(all.try_lock());
	for (int i = 0; i < 19; i++)
		all.unlock();
	CHECK(stays_until([] { impl::rcu_default_domain().unlock(); }));
	all.lock();
	all.lock();
	ended = 0;
	(new node)->retire();
	all.unlock();
	std::this_thread::sleep_for(std::chrono::milliseconds(2));
	CHECK(ended == 0);
	all.unlock();
	impl::rcu_barrier();
	CHECK(ended == 1);
}

TEST("it is lockable by what locks")
{
	domain &all = impl::rcu_default_domain();

	{
		std::scoped_lock<domain> region(all);
		std::scoped_lock again(all);
		ended = 0;
		(new node)->retire();
		CHECK(ended == 0);
	}
	{
		std::lock_guard region(all);
		std::unique_lock another(all, std::try_to_lock), later(all, std::defer_lock);
		std::mutex mutex;
		std::scoped_lock both(mutex, all);
		CHECK(another.owns_lock() && !later.owns_lock());
		later.lock();
		another.unlock();
	}
	impl::rcu_barrier();
	CHECK(ended == 1);
	impl::rcu_synchronize(); /* nothing was left open */
}

TEST("many threads may be in regions at a time")
{
	std::atomic<int> inside{ 0 };
	std::vector<std::thread> threads;

	for (int i = 0; i < 4; i++)
		threads.emplace_back([&] {
			std::scoped_lock region(impl::rcu_default_domain());
			inside++;
			while (inside < 4)
				std::this_thread::yield();
		});
	for (auto &thread : threads)
		thread.join();
	CHECK(inside == 4);
}

} // namespace rcu_domain
