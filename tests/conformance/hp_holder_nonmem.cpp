/* SPDX-License-Identifier: MIT */
/* raw, whole file: a program that knows the standard library and nothing of quiesce. */
#include "check.hpp"

#include <span>

namespace hp_holder_nonmem {
CLAUSE("saferecl.hp.holder.nonmem")

using check::new_tracked, check::reclaimed, check::retire_much, check::tracked;
using holder = impl::hazard_pointer;

TEST("what is made is owned, and unassociated")
{
	tracked *object = new_tracked();

	for (int i = 0; i < 50; i++) { /* repeated, so that hazard pointers are reused */
		holder h = impl::make_hazard_pointer();
		CHECK_QUIETLY(!h.empty());
		if (i < 49)
			h.reset_protection(object);
	}
	object->retire();
	holder h = impl::make_hazard_pointer();
	CHECK(reclaimed([&] { return object->dead(); }));
}

TEST("swap() is found as std::swap is")
{
	holder a = impl::make_hazard_pointer(), b;

	impl::swap(a, b);
	CHECK(a.empty() && !b.empty());
	swap(a, b);
	CHECK(!a.empty() && b.empty());
	using std::swap;
	swap(a, b);
	CHECK(a.empty() && !b.empty());
	impl::swap(b, b);
	CHECK(!b.empty());
}

TEST("a batch makes what is missing and keeps what is there")
{
	tracked *object = new_tracked();
	holder h[5];

	h[2] = impl::make_hazard_pointer();
	h[2].reset_protection(object);
	impl::make_hazard_pointer_batch(h);
	for (auto &each : h)
		CHECK(!each.empty());
	object->retire();
	retire_much();
	CHECK(!object->dead());
	for (int i : { 0, 1, 3, 4 })
		h[i].reset_protection(); /* the hazard pointers are distinct */
	impl::make_hazard_pointer_batch(h); /* nothing is missing */
	retire_much();
	CHECK(!object->dead());
	h[2].reset_protection();
	CHECK(reclaimed([&] { return object->dead(); }));
}

TEST("each of a batch protects by itself")
{
	std::vector<holder> h(100);
	std::vector<tracked *> objects;

	impl::make_hazard_pointer_batch(h);
	for (auto &each : h) {
		objects.push_back(new_tracked());
		each.reset_protection(objects.back());
	}
	for (tracked *object : objects)
		object->retire();
	retire_much();
	for (tracked *object : objects)
		CHECK_QUIETLY(!object->dead());
	impl::clear_hazard_pointer_batch(std::span(h).first(50));
	for (std::size_t i = 0; i < h.size(); i++)
		CHECK(h[i].empty() == (i < 50));
	CHECK(reclaimed([&] {
		for (std::size_t i = 0; i < 50; i++)
			if (!objects[i]->dead())
				return false;
		return true;
	}));
	for (std::size_t i = 50; i < h.size(); i++)
		CHECK_QUIETLY(!objects[i]->dead());
	impl::clear_hazard_pointer_batch(h);
	CHECK(reclaimed([&] {
		for (tracked *object : objects)
			if (!object->dead())
				return false;
		return true;
	}));
}

TEST("a batch of none, of empty ones, twice")
{
	holder h[3];

	impl::make_hazard_pointer_batch({});
	impl::clear_hazard_pointer_batch({});
	impl::clear_hazard_pointer_batch(h);
	h[1] = impl::make_hazard_pointer();
	impl::clear_hazard_pointer_batch(h);
	impl::clear_hazard_pointer_batch(h);
	for (auto &each : h)
		CHECK(each.empty());
	impl::make_hazard_pointer_batch(h);
	for (auto &each : h)
		CHECK(!each.empty());
}

} // namespace hp_holder_nonmem
