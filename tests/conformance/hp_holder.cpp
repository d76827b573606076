/* SPDX-License-Identifier: MIT */
/* raw, whole file: a program that knows the standard library and nothing of quiesce. */
#include "check.hpp"

#include <algorithm>
#include <type_traits>

namespace hp_holder {
CLAUSE("saferecl.hp.holder.ctor")

using check::new_tracked, check::reclaimed, check::retire_much, check::tracked;
using holder = impl::hazard_pointer;

TEST("what kind of type it is")
{
	CHECK_STATIC(std::is_nothrow_default_constructible_v<holder>);
	CHECK_STATIC(std::is_nothrow_move_constructible_v<holder> && std::is_nothrow_move_assignable_v<holder>);
	CHECK_STATIC(std::is_nothrow_destructible_v<holder> && std::is_nothrow_swappable_v<holder>);
	CHECK_STATIC(!std::is_copy_constructible_v<holder> && !std::is_copy_assignable_v<holder>);
	CHECK_STATIC(std::is_same_v<decltype(std::declval<holder &>() = holder()), holder &>);
	CHECK_STATIC(!std::is_constructible_v<holder, std::nullptr_t> && !std::is_constructible_v<holder, void *>);
}

TEST("the default is empty; every way to write it")
{
	holder a, b{}, c({}), d = {};
	static holder of_program;
	thread_local holder of_thread;

	CHECK(a.empty() && b.empty() && c.empty() && d.empty() && of_program.empty() && of_thread.empty());
	a = {};
	CHECK(a.empty());
}

TEST("a move takes the hazard pointer and leaves empty")
{
	holder a = impl::make_hazard_pointer();
	CHECK(!a.empty());
	holder b(std::move(a));
	CHECK(a.empty() && !b.empty());
	holder c(std::move(a));
	CHECK(a.empty() && c.empty());
	c = std::move(b);
	CHECK(b.empty() && !c.empty());
	c = std::move(b);
	CHECK(b.empty() && c.empty());
	a = impl::make_hazard_pointer();
	CHECK(!a.empty());
}

TEST("a move keeps the epoch")
{
	tracked *object = new_tracked();
	std::atomic<tracked *> src(object);
	holder a = impl::make_hazard_pointer(), c;

	(void)a.protect(src);
	holder b(std::move(a));
	c = std::move(b);
	holder &self = c;
	c = std::move(self); /* no effect */
	CHECK(!c.empty());
	object->retire();
	retire_much();
	CHECK(!object->dead());
	c = holder();
	CHECK(reclaimed([&] { return object->dead(); }));
}

TEST("assignment ends the epoch of what was owned, and keeps that of the new one")
{
	tracked *old = new_tracked(), *fresh = new_tracked();
	std::atomic<tracked *> src(old);
	holder a = impl::make_hazard_pointer(), b = impl::make_hazard_pointer();

	(void)a.protect(src);
	src = fresh;
	(void)b.protect(src);
	src = nullptr;
	a = std::move(b);
	old->retire();
	fresh->retire();
	CHECK(reclaimed([&] { return old->dead(); }));
	CHECK(!fresh->dead());
	a = std::move(b); /* empty */
	CHECK(a.empty() && reclaimed([&] { return fresh->dead(); }));
}

TEST("the destructor ends the epoch")
{
	tracked *object = new_tracked();
	std::atomic<tracked *> src(object);

	{
		holder h = impl::make_hazard_pointer();
		(void)h.protect(src);
		object->retire();
		retire_much();
		CHECK(!object->dead());
	}
	CHECK(reclaimed([&] { return object->dead(); }));
}

TEST("thousands at a time, each for an object of its own")
{
	constexpr std::size_t nr = 5000;
	std::vector<holder> holders;
	std::vector<tracked *> objects;

	for (std::size_t i = 0; i < nr; i++) {
		objects.push_back(new_tracked(static_cast<int>(i)));
		std::atomic<tracked *> src(objects.back());
		holders.push_back(impl::make_hazard_pointer()); /* moved when the vector grows */
		CHECK_QUIETLY(holders.back().protect(src) == objects.back());
		objects.back()->retire();
	}
	auto dead = [&](std::size_t first, std::size_t last) {
		return std::count_if(objects.begin() + static_cast<long>(first), objects.begin() + static_cast<long>(last),
				     [](tracked *object) { return object->dead(); });
	};
	retire_much();
	CHECK(dead(0, nr) == 0);
	std::thread([&] { holders.resize(nr / 2); }).join();
	CHECK(reclaimed([&] { return dead(nr / 2, nr) == nr / 2; }));
	CHECK(dead(0, nr / 2) == 0);
	holders.clear();
	CHECK(reclaimed([&] { return dead(0, nr) == nr; }));
}

} // namespace hp_holder
