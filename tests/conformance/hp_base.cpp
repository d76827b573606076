/* SPDX-License-Identifier: MIT */
/* raw, whole file: a program that knows the standard library and nothing of quiesce. */
#include "check.hpp"

#include <memory>
#include <type_traits>

namespace hp_base {
CLAUSE("saferecl.hp.base")

/* Names that a base may not hide from the members of a class that derives from it. */
static int head = 1, next = 2, func = 3, deleter = 4, list = 5, slot = 6, value = 7, prev = 8, reclaim = 9, node = 10;

using check::reclaimed;

static std::atomic<int> ended;

struct plain : impl::hazard_pointer_obj_base<plain> {
	~plain() { ended++; }
};

TEST("only a derived class makes or destroys a base")
{
	using base = impl::hazard_pointer_obj_base<plain>;

	CHECK_STATIC(!std::is_default_constructible_v<base>);
	CHECK_STATIC(!std::is_copy_constructible_v<base>);
	CHECK_STATIC(!std::is_destructible_v<base>);
	CHECK_STATIC(!std::is_copy_assignable_v<base>);
	CHECK_STATIC(!std::has_virtual_destructor_v<base>);
	CHECK_STATIC(std::is_copy_constructible_v<plain> && std::is_copy_assignable_v<plain>);
	CHECK_STATIC(std::is_move_constructible_v<plain> && std::is_move_assignable_v<plain>);
}

TEST("retire() returns nothing, throws nothing, and deletes by default")
{
	CHECK_STATIC(noexcept(std::declval<plain &>().retire()));
	CHECK_STATIC(noexcept(std::declval<plain &>().retire(std::default_delete<plain>())));
	CHECK_STATIC(std::is_void_v<decltype(std::declval<plain &>().retire())>);
	ended = 0;
	(new plain)->retire();
	(new plain)->retire(std::default_delete<plain>());
	CHECK(reclaimed([] { return ended == 2; }));
}

/* T may be incomplete until an object is retired. */
struct late;
struct holds_late {
	impl::hazard_pointer_obj_base<late> *pointer = nullptr;
	std::atomic<late *> published{ nullptr };
};
static bool ask(impl::hazard_pointer &h, holds_late &where);
struct late : impl::hazard_pointer_obj_base<late> {
	int field = 42;
};
static bool ask(impl::hazard_pointer &h, holds_late &where) { return h.protect(where.published)->field == 42; }

TEST("T may be incomplete where the base is only named")
{
	holds_late holder;
	impl::hazard_pointer h = impl::make_hazard_pointer();

	holder.published = new late;
	holder.pointer = holder.published.load();
	CHECK(ask(h, holder));
	holder.pointer->retire();
}

template<class V> struct typed : impl::hazard_pointer_obj_base<typed<V>> {
	V field{};
	int seen() { return this->field + head + next; }
};

struct named : impl::hazard_pointer_obj_base<named> {
	int sum() { return head + next + func + deleter + list + slot + value + prev + reclaim + node; }
};

TEST("the base hides no names; templates may derive")
{
	named one;
	typed<int> two;

	CHECK(one.sum() == 55);
	CHECK(two.seen() == 3);
	(new typed<long>)->retire();
}

/* ---- deleters ---- */

template<class D> struct with : impl::hazard_pointer_obj_base<with<D>, D> {
	std::atomic<int> deaths{ 0 };
	int paid = 0;
};

struct pay {
	int sum = 0;
	template<class T> void operator()(T *object) const
	{
		object->paid = sum;
		object->deaths++;
	}
};

struct move_only {
	std::unique_ptr<int> sum;
	template<class T> void operator()(T *object)
	{
		object->paid = *sum;
		object->deaths++;
	}
};

struct only_assigned { /* as little as is required: it is not even move-constructible from a const */
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

TEST("deleters: with state, movable only, final")
{
	auto *a = check::immortal<with<pay>>();
	auto *b = check::immortal<with<move_only>>();
	auto *c = check::immortal<with<only_assigned>>();
	auto *d = check::immortal<with<last>>();

	a->retire(pay{ 7 });
	b->retire(move_only{ std::make_unique<int>(8) });
	c->retire(only_assigned(9));
	d->retire();
	CHECK(reclaimed([&] { return a->deaths && b->deaths && c->deaths && d->deaths; }));
	CHECK(a->paid == 7 && b->paid == 8 && c->paid == 9);
}

struct by_function;
struct by_function : impl::hazard_pointer_obj_base<by_function, void (*)(by_function *)> {
	std::atomic<int> deaths{ 0 };
};

TEST("deleters: a pointer to a function, a closure")
{
	auto closure = [](auto *object) { object->deaths++; };
	auto *a = check::immortal<by_function>();
	auto *b = check::immortal<with<decltype(closure)>>();

	a->retire([](by_function *object) { object->deaths++; });
	b->retire();
	CHECK(reclaimed([&] { return a->deaths && b->deaths; }));
}

/* ---- which pointer the deleter gets ---- */

struct first_base {
	long a = 1, b = 2;
	virtual ~first_base() = default;
};
struct whole;
struct check_whole {
	void operator()(whole *object) const;
};
struct whole : first_base, impl::hazard_pointer_obj_base<whole, check_whole> {
	whole *self = this;
	int deaths = 0;
};
static std::atomic<int> wholes_right;
void check_whole::operator()(whole *object) const { wholes_right += object->self == object && object->a == 1; }

struct alignas(256) aligned : impl::hazard_pointer_obj_base<aligned> {
	~aligned() { ended += reinterpret_cast<std::uintptr_t>(this) % 256 == 0; }
};

struct polymorphic : impl::hazard_pointer_obj_base<polymorphic> {
	virtual ~polymorphic() = default;
};
struct more : polymorphic {
	~more() override { ended++; }
};

TEST("the deleter gets the object: base not first, aligned, of a derived class")
{
	wholes_right = ended = 0;
	for (int i = 0; i < 3; i++)
		check::immortal<whole>()->retire();
	(new aligned)->retire();
	static_cast<polymorphic *>(new more)->retire();
	CHECK(reclaimed([] { return wholes_right == 3 && ended == 2; }));
}

/* ---- how often ---- */

TEST("every object is reclaimed once, whichever thread retires it")
{
	constexpr int nr = 5000;
	std::vector<check::tracked *> all[3];

	{
		std::vector<std::thread> threads;
		for (auto &mine : all)
			threads.emplace_back([&mine] {
				for (int i = 0; i < nr; i++) {
					mine.push_back(check::new_tracked());
					mine.back()->retire();
				}
			});
		for (auto &thread : threads)
			thread.join();
	}
	auto deaths = [&](int at_least) {
		int n = 0;
		for (auto &mine : all)
			for (auto *object : mine)
				n += object->deaths >= at_least;
		return n;
	};
	CHECK(reclaimed([&] { return deaths(1) == 3 * nr; }));
	check::retire_much();
	CHECK(deaths(2) == 0);
}

struct chained : impl::hazard_pointer_obj_base<chained> {
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
	constexpr int nr = 300;
	chained *chain = nullptr;

	for (int i = 0; i < nr; i++) {
		auto *link = new chained;
		link->behind = std::exchange(chain, link);
	}
	ended = 0;
	chain->retire();
	CHECK(reclaimed([] { return ended == nr; }));
}

TEST("a copy is an object of its own")
{
	plain a, b(a);

	b = a;
	b = std::move(a);
	ended = 0;
	(new plain(b))->retire();
	CHECK(reclaimed([] { return ended == 1; }));
}

struct pair_of_ints : impl::hazard_pointer_obj_base<pair_of_ints> {
	int a = 1, b = 2;
};

TEST("a reader may copy what it protects")
{
	std::atomic<pair_of_ints *> src(new pair_of_ints);
	std::atomic<unsigned long> copies{ 0 };
	check::racers racers;

	racers.add([&] {
		impl::hazard_pointer h = impl::make_hazard_pointer();
		for (int i = 0; i < 100; i++) {
			pair_of_ints copy = *h.protect(src);
			CHECK_QUIETLY(copy.a == 1 && copy.b == 2);
			copies.fetch_add(1, std::memory_order_relaxed);
		}
	});
	racers.add([&] { src.exchange(new pair_of_ints)->retire(); });
	CHECK(racers.race([&] { return copies > 0; }));
	src.exchange(nullptr)->retire();
}

} // namespace hp_base
