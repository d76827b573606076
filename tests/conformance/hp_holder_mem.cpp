/* SPDX-License-Identifier: MIT */
/* raw, whole file: a program that knows the standard library and nothing of quiesce. */
#include "check.hpp"

#include <type_traits>

namespace hp_holder_mem {
CLAUSE("saferecl.hp.holder.mem")

using check::new_tracked, check::reclaimed, check::retire_much, check::tracked;
using holder = impl::hazard_pointer;

TEST("types, and nothing throws")
{
	using source = const std::atomic<tracked *> &;
	holder h;

	CHECK_STATIC(std::is_same_v<decltype(std::as_const(h).empty()), bool> && noexcept(std::as_const(h).empty()));
	CHECK_STATIC(std::is_same_v<decltype(h.protect(std::declval<source>())), tracked *>);
	CHECK_STATIC(noexcept(h.protect(std::declval<source>())));
	CHECK_STATIC(std::is_same_v<decltype(h.try_protect(std::declval<tracked *&>(), std::declval<source>())), bool>);
	CHECK_STATIC(noexcept(h.try_protect(std::declval<tracked *&>(), std::declval<source>())));
	CHECK_STATIC(std::is_void_v<decltype(h.reset_protection(std::declval<const tracked *>()))>);
	CHECK_STATIC(noexcept(h.reset_protection(std::declval<const tracked *>())));
	CHECK_STATIC(std::is_void_v<decltype(h.reset_protection())> && noexcept(h.reset_protection(nullptr)));
	CHECK_STATIC(std::is_void_v<decltype(h.swap(h))> && noexcept(h.swap(h)));
}

TEST("empty() reports ownership, not of association")
{
	holder h;
	CHECK(h.empty());
	h = impl::make_hazard_pointer();
	CHECK(!h.empty());
	h.reset_protection();
	CHECK(!h.empty());
}

TEST("protect() returns what the source has")
{
	tracked *a = new_tracked(), *b = new_tracked();
	std::atomic<tracked *> src(a);
	const std::atomic<tracked *> &constant = src;
	holder h = impl::make_hazard_pointer();

	CHECK(h.protect(src) == a);
	CHECK(h.protect(constant) == a);
	src = b;
	CHECK(h.protect(src) == b);
	src = nullptr;
	CHECK(h.protect(src) == nullptr);
	CHECK(!h.empty());
}

TEST("try_protect() with the right pointer protects")
{
	tracked *object = new_tracked(), *ptr = object;
	std::atomic<tracked *> src(object);
	holder h = impl::make_hazard_pointer();

	CHECK(h.try_protect(ptr, src) && ptr == object);
	object->retire();
	retire_much();
	CHECK(!object->dead());
	h.reset_protection();
	CHECK(reclaimed([&] { return object->dead(); }));
}

TEST("try_protect() with another pointer returns the right one, and protects neither")
{
	tracked *old = new_tracked(), *fresh = new_tracked(), *before = new_tracked(), *ptr = before;
	std::atomic<tracked *> src(before);
	holder h = impl::make_hazard_pointer();

	CHECK(h.try_protect(ptr, src));
	src = fresh;
	ptr = old;
	CHECK(!h.try_protect(ptr, src));
	CHECK(ptr == fresh && !h.empty());
	for (tracked *each : { before, old, fresh })
		each->retire();
	CHECK(reclaimed([&] { return before->dead() && old->dead() && fresh->dead(); }));
}

TEST("try_protect() and null pointers")
{
	tracked *object = new_tracked(), *ptr = nullptr;
	std::atomic<tracked *> src(nullptr);
	holder h = impl::make_hazard_pointer();

	CHECK(h.try_protect(ptr, src) && ptr == nullptr);
	ptr = object;
	CHECK(!h.try_protect(ptr, src) && ptr == nullptr);
	src = object;
	CHECK(!h.try_protect(ptr, src) && ptr == object);
	CHECK(h.try_protect(ptr, src) && ptr == object);
	src = nullptr;
	CHECK(h.protect(src) == nullptr); /* ends the epoch */
	object->retire();
	CHECK(reclaimed([&] { return object->dead(); }));
}

TEST("reset_protection() of an object that is not yet retired protects it")
{
	tracked *object = new_tracked();
	holder h = impl::make_hazard_pointer();

	h.reset_protection(object);
	object->retire();
	retire_much();
	CHECK(!object->dead());
	h.reset_protection(static_cast<const tracked *>(nullptr));
	CHECK(!h.empty() && reclaimed([&] { return object->dead(); }));
}

TEST("reset_protection() of the same object begins a new epoch that protects as well")
{
	tracked *object = new_tracked();
	const tracked *constant = object;
	holder h = impl::make_hazard_pointer();

	h.reset_protection(object);
	h.reset_protection(constant);
	object->retire();
	retire_much();
	CHECK(!object->dead());
	h.reset_protection(nullptr);
	CHECK(reclaimed([&] { return object->dead(); }));
}

TEST("swap() moves ownership and ends no epoch")
{
	tracked *object[2] = { new_tracked(), new_tracked() };
	holder h[2], none;

	impl::make_hazard_pointer_batch(h);
	for (int i = 0; i < 2; i++)
		h[i].reset_protection(object[i]);
	h[0].swap(h[1]);
	h[0].swap(h[0]);
	for (tracked *each : object)
		each->retire();
	retire_much();
	CHECK(!object[0]->dead() && !object[1]->dead());
	h[0].reset_protection();
	CHECK(reclaimed([&] { return object[1]->dead(); }));
	CHECK(!object[0]->dead());
	h[1].swap(none);
	CHECK(h[1].empty() && !none.empty());
	retire_much();
	CHECK(!object[0]->dead());
	none = holder();
	CHECK(reclaimed([&] { return object[0]->dead(); }));
}

/* The base is not the first: a pointer to the object is not a pointer to it. */
struct before {
	long room[3] = {};
	virtual ~before() = default;
};
struct apart;
struct note {
	void operator()(apart *object) const;
};
struct apart : before, impl::hazard_pointer_obj_base<apart, note> {
	std::atomic<bool> dead{ false };
};
void note::operator()(apart *object) const { object->dead = true; }

TEST("an object whose base is not the first")
{
	apart *object = check::immortal<apart>(), *ptr = nullptr;
	std::atomic<apart *> src(nullptr);
	holder h = impl::make_hazard_pointer();

	CHECK(h.protect(src) == nullptr);
	CHECK(h.try_protect(ptr, src));
	h.reset_protection(ptr);
	src = object;
	CHECK(h.protect(src) == object);
	object->retire();
	retire_much();
	CHECK(!object->dead);
	h.reset_protection(static_cast<apart *>(nullptr));
	CHECK(reclaimed([&] { return object->dead.load(); }));
}

/* Stores before the publication are visible through the pointer; ThreadSanitizer would report a race. */
struct message : impl::hazard_pointer_obj_base<message> {
	int text[4] = { 0, 0, 0, 0 };
};

TEST("protect() acquires")
{
	std::atomic<message *> src(new message);
	std::atomic<unsigned long> reads{ 0 };
	check::racers racers;

	racers.add([&] {
		holder h = impl::make_hazard_pointer();
		message *ptr = h.protect(src);
		CHECK_QUIETLY(ptr->text[0] == ptr->text[3]);
		while (!h.try_protect(ptr, src))
			;
		CHECK_QUIETLY(ptr->text[0] == ptr->text[3]);
		reads.fetch_add(1, std::memory_order_relaxed);
	});
	racers.add([&] {
		auto *fresh = new message;
		int text = src.load()->text[0] + 1;
		for (int &each : fresh->text)
			each = text;
		src.exchange(fresh, std::memory_order_acq_rel)->retire();
	});
	CHECK(racers.race([&] { return reads > 0; }));
	src.exchange(nullptr)->retire();
}

} // namespace hp_holder_mem
