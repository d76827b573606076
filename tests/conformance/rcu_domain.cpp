/* SPDX-License-Identifier: MIT */
/* raw, whole file: a program that knows the standard library and nothing of quiesce. */
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

/* Another thread's rcu_synchronize() must return only after @leave has closed the region. */
static bool protects_until(void (*leave)())
{
	std::atomic<bool> through{ false };
	std::atomic<int> stage{ 0 };
	bool early;

	ended = 0;
	(new node)->retire();
	std::thread updater([&] {
		stage = 1;
		impl::rcu_synchronize();
		impl::rcu_barrier();
		through = true;
	});
	while (!stage)
		std::this_thread::yield();
	std::this_thread::sleep_for(std::chrono::milliseconds(3)); /* time to go wrong */
	early = through || ended;
	leave();
	updater.join();
	return !early && ended == 1;
}

TEST("lock(), try_lock() and unlock()")
{
	impl::rcu_default_domain().lock();
	CHECK(protects_until([] { impl::rcu_default_domain().unlock(); }));
	CHECK(impl::rcu_default_domain().try_lock());
	CHECK(protects_until([] { impl::rcu_default_domain().unlock(); }));
}

TEST("regions nest")
{
	domain &all = impl::rcu_default_domain();

	for (int i = 0; i < 20; i++)
		i % 2 ? all.lock() : void(all.try_lock());
	for (int i = 0; i < 19; i++)
		all.unlock();
	CHECK(protects_until([] { impl::rcu_default_domain().unlock(); }));
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
