/* SPDX-License-Identifier: MIT */
/* raw, whole file: a program that knows the standard library and nothing of quiesce. */
#include "check.hpp"

#include <cstring>
#include <memory>
#include <type_traits>

namespace rcu_base {
CLAUSE("saferecl.rcu.base")

/* Names that a base may not hide from the members of a class that derives from it. */
static int head = 1, next = 2, func = 3, deleter = 4, value = 5, node = 6;

static std::atomic<int> ended;

struct plain : impl::rcu_obj_base<plain> {
	~plain() { ended++; }
};

TEST("only a derived class makes or destroys a base")
{
	using base = impl::rcu_obj_base<plain>;

	CHECK_STATIC(!std::is_default_constructible_v<base> && !std::is_destructible_v<base>);
	CHECK_STATIC(!std::is_copy_constructible_v<base> && !std::is_copy_assignable_v<base>);
	CHECK_STATIC(std::is_copy_constructible_v<plain> && std::is_copy_assignable_v<plain>);
	CHECK_STATIC(std::is_move_constructible_v<plain> && std::is_move_assignable_v<plain>);
}

struct trivial : impl::rcu_obj_base<trivial> {
	int a = 0;
};
struct by_function : impl::rcu_obj_base<by_function, void (*)(by_function *)> {
	std::atomic<int> *deaths = nullptr;
};
struct untrivial {
	std::shared_ptr<int> state;
	template<class T> void operator()(T *) const {}
};
struct not_trivial : impl::rcu_obj_base<not_trivial, untrivial> {};

TEST("trivially copyable if the deleter is")
{
	CHECK_STATIC(std::is_trivially_copyable_v<impl::rcu_obj_base<trivial>>);
	CHECK_STATIC(std::is_trivially_copyable_v<impl::rcu_obj_base<by_function, void (*)(by_function *)>>);
	CHECK_STATIC(std::is_trivially_copyable_v<trivial>);
	CHECK_STATIC(!std::is_trivially_copyable_v<not_trivial>);
	trivial a, b;
	a.a = 5;
	std::memcpy(static_cast<void *>(&b), &a, sizeof a);
	CHECK(b.a == 5);
	(new trivial(b))->retire();
	impl::rcu_barrier();
}

TEST("retire() returns nothing, throws nothing, and deletes by default")
{
	impl::rcu_domain &domain = impl::rcu_default_domain();

	CHECK_STATIC(noexcept(std::declval<plain &>().retire()));
	CHECK_STATIC(noexcept(std::declval<plain &>().retire(std::default_delete<plain>(), domain)));
	CHECK_STATIC(std::is_void_v<decltype(std::declval<plain &>().retire())>);
	ended = 0;
	(new plain)->retire();
	(new plain)->retire(std::default_delete<plain>());
	(new plain)->retire({}, domain);
	impl::rcu_barrier();
	CHECK(ended == 3);
}

struct late;
struct holds_late {
	impl::rcu_obj_base<late> *pointer = nullptr;
};
struct late : impl::rcu_obj_base<late> {
	~late() { ended++; }
};

TEST("T may be incomplete where the base is only named")
{
	holds_late holder{ new late };

	ended = 0;
	holder.pointer->retire();
	impl::rcu_barrier();
	CHECK(ended == 1);
}

struct named : impl::rcu_obj_base<named> {
	int sum() { return head + next + func + deleter + value + node; }
};

TEST("the base hides no names")
{
	named one;
	CHECK(one.sum() == 21);
}

/* ---- deleters ---- */

template<class D> struct with : impl::rcu_obj_base<with<D>, D> {
	std::atomic<int> deaths{ 0 };
	int paid = 0;
};

struct move_only {
	std::unique_ptr<int> sum;
	template<class T> void operator()(T *object)
	{
		object->paid = *sum;
		object->deaths++;
	}
};

struct only_assigned {
	int sum = 0;
	only_assigned() = default;
	explicit only_assigned(int s) : sum(s) {}
	only_assigned(only_assigned &&) = default;
	only_assigned &operator=(only_assigned &&other) noexcept
	{
		sum = other.sum;
		return *this;
	}
	template<class T> void operator()(T *object) &
	{
		object->paid = sum;
		object->deaths++;
	}
};

struct last final {
	template<class T> void operator()(T *object) { object->deaths++; }
};

TEST("deleters: movable only, assigned only, final, a pointer to a function, a closure")
{
	auto closure = [](auto *object) { object->deaths++; };
	auto *a = check::immortal<with<move_only>>();
	auto *b = check::immortal<with<only_assigned>>();
	auto *c = check::immortal<with<last>>();
	auto *d = check::immortal<with<decltype(closure)>>();
	auto *e = check::immortal<by_function>();
	std::atomic<int> deaths{ 0 };

	e->deaths = &deaths;
	a->retire(move_only{ std::make_unique<int>(8) });
	b->retire(only_assigned(9));
	c->retire();
	d->retire();
	e->retire([](by_function *object) { ++*object->deaths; });
	impl::rcu_barrier();
	CHECK(a->deaths == 1 && b->deaths == 1 && c->deaths == 1 && d->deaths == 1 && deaths == 1);
	CHECK(a->paid == 8 && b->paid == 9);
}

struct first_base {
	long a = 1, b = 2;
	virtual ~first_base() = default;
};
struct whole;
struct check_whole {
	void operator()(whole *object) const;
};
struct whole : first_base, impl::rcu_obj_base<whole, check_whole> {
	whole *self = this;
	bool right = false;
};
void check_whole::operator()(whole *object) const { object->right = object->self == object && object->a == 1; }

struct polymorphic : impl::rcu_obj_base<polymorphic> {
	virtual ~polymorphic() = default;
};
struct alignas(256) more : polymorphic {
	~more() override { ended += reinterpret_cast<std::uintptr_t>(this) % 256 == 0; }
};

TEST("the deleter gets the object: base not first, of a derived class, aligned")
{
	whole *object = check::immortal<whole>();

	ended = 0;
	object->retire();
	static_cast<polymorphic *>(new more)->retire();
	impl::rcu_barrier();
	CHECK(object->right && ended == 1);
}

struct chained : impl::rcu_obj_base<chained> {
	chained *behind = nullptr;
	~chained()
	{
		ended++;
		if (behind)
			behind->retire();
	}
};

TEST("a deleter may retire")
{
	chained *chain = nullptr;

	for (int i = 0; i < 20; i++) {
		auto *link = new chained;
		link->behind = std::exchange(chain, link);
	}
	ended = 0;
	chain->retire();
	CHECK(check::eventually([] {
		impl::rcu_barrier();
		return ended == 20;
	}));
}

} // namespace rcu_base
