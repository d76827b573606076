/* SPDX-License-Identifier: MIT */
/* raw, whole file: C++ programs publish through std::atomic. */
/* ours.cpp - names of the headers that are not in the draft: cohorts, hazard_pointer_clean_up(), rcu_reader, shazptr; and C beside C++. */
#include "check.cpp"

#include <quiesce/shazptr.hpp>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace ours {
CLAUSE("extensions of quiesce")

static_assert(QUIESCE_CPP_LIB_HAZARD_POINTER == 202606L && QUIESCE_CPP_LIB_RCU == 202306L);

static std::atomic<int> ended;

struct node : quiesce::hazard_pointer_obj_base<node> {
	int value = 1;
	~node() { ended++; }
};
struct count {
	void operator()(struct item *gone) const;
};
struct item : quiesce::hazard_pointer_obj_base<item, count> {};
void count::operator()(item *gone) const
{
	ended += 10;
	delete gone;
}

TEST("hazard_pointer_clean_up() reclaims everything of before")
{
	ended = 0;
	std::thread([] { (new node)->retire(); }).join();
	for (int i = 0; i < 100; i++)
		(new node)->retire();
	CHECK_STATIC(noexcept(quiesce::hazard_pointer_clean_up()));
	quiesce::hazard_pointer_clean_up();
	CHECK(ended == 101);
}

TEST("hazard_pointer_try_clean_up() leaves alone what the caller protects")
{
	std::atomic<node *> place{ new node };
	quiesce::hazard_pointer h = quiesce::make_hazard_pointer();

	ended = 0;
	(void)h.protect(place);
	place.exchange(nullptr)->retire();
	(new node)->retire_to_worker();
	CHECK_STATIC(noexcept(quiesce::hazard_pointer_try_clean_up()));
	CHECK(!quiesce::hazard_pointer_try_clean_up());
	CHECK(ended == 1);
	h.reset_protection();
	CHECK(quiesce::hazard_pointer_try_clean_up());
	CHECK(ended == 2);
}

TEST("hazard_pointer_array: slots that are made in one go")
{
	std::atomic<node *> place[20];

	ended = 0;
	{
		quiesce::hazard_pointer_array<20> h;
		std::size_t i = 0;

		CHECK(h.size() == 20);
		for (quiesce::hazard_pointer &one : h) {
			CHECK(!one.empty());
			place[i] = new node;
			(void)one.protect(place[i]);
			CHECK(&one == &h[i]);
			i++;
		}
		for (auto &p : place)
			p.exchange(nullptr)->retire();
		CHECK(!quiesce::hazard_pointer_try_clean_up());
		CHECK(ended == 0);
	}
	CHECK(quiesce::hazard_pointer_try_clean_up());
	CHECK(ended == 20);
	CHECK_STATIC(!std::is_copy_constructible_v<quiesce::hazard_pointer_array<2>>);
}

TEST("hazard_pointer_view: protects with the slot of a hazard_pointer")
{
	std::atomic<node *> place = new node;
	node *expected = nullptr;

	ended = 0;
	{
		quiesce::hazard_pointer h = quiesce::make_hazard_pointer(), other = quiesce::make_hazard_pointer();
		quiesce::hazard_pointer_view view = h.view(), second = other.view(), third = view;
		node *p = view.protect(place);

		CHECK(p == place);
		place.exchange(nullptr)->retire();
		CHECK(!quiesce::hazard_pointer_try_clean_up() && ended == 0);
		CHECK(third.protect(place) == nullptr); /* the same slot */
		CHECK(quiesce::hazard_pointer_try_clean_up() && ended == 1);
		place = new node;
		expected = place;
		CHECK(second.try_protect(expected, place) && expected == place);
		place.exchange(nullptr)->retire();
		std::swap(view, second);
		CHECK(!view.try_protect(expected, place) && !expected); /* ends the protection */
		CHECK(quiesce::hazard_pointer_try_clean_up() && ended == 2);
		place = new node;
		view.reset_protection(place.load());
		place.exchange(nullptr)->retire();
		CHECK(!quiesce::hazard_pointer_try_clean_up());
		view.reset_protection();
		CHECK(quiesce::hazard_pointer_try_clean_up() && ended == 3);
	}
	CHECK_STATIC(std::is_trivially_copyable_v<quiesce::hazard_pointer_view>);
	CHECK_STATIC(!std::is_default_constructible_v<quiesce::hazard_pointer_view>);
	CHECK_STATIC(!std::is_constructible_v<quiesce::hazard_pointer, quiesce::hazard_pointer_view>);
}

static thread_local bool retires;
static std::atomic<int> ended_there;

struct link : quiesce::hazard_pointer_obj_base<link> {
	link *next = nullptr;
	~link()
	{
		ended++;
		ended_there += !retires;
		if (next)
			next->retire_to_worker();
	}
};

TEST("retire_to_worker(): deleters run in another thread, and may retire")
{
	constexpr int nr = 5000;
	link *chain = nullptr;

	CHECK_STATIC(noexcept(std::declval<link &>().retire_to_worker()));
	ended = ended_there = 0;
	retires = true;
	for (int i = 0; i < nr; i++)
		(new link)->retire_to_worker();
	for (int i = 0; i < nr; i++) {
		auto *fresh = new link;
		fresh->next = std::exchange(chain, fresh);
	}
	chain->retire_to_worker(std::default_delete<link>());
	while (ended != 2 * nr)
		std::this_thread::yield();
	CHECK(ended_there == 2 * nr);
	retires = false;
}

struct tree : quiesce::hazard_pointer_obj_base<tree> {
	explicit tree(int *count) : ended(count) {}
	~tree() { ++*ended; }
	void lose(node *child) { child->retire(children); }

	int *ended;
	quiesce::hazard_pointer_cohort children;
};

TEST("a cohort is a member of a retired object")
{
	int ended = 0;
	auto *t = new tree(&ended), *last = new tree(&ended);

	t->lose(new node);
	t->retire();
	last->lose(new node);
	last->retire_to_worker();
	quiesce::hazard_pointer_clean_up();
	CHECK(ended == 2);
}

TEST("a cohort: its objects are reclaimed by synchronize() or its destructor")
{
	CHECK_STATIC(!std::is_copy_constructible_v<quiesce::hazard_pointer_cohort>);
	ended = 0;
	{
		quiesce::hazard_pointer_cohort cohort;
		(new node)->retire(cohort);
		(new node)->retire(cohort, std::default_delete<node>());
		cohort.synchronize();
		CHECK(ended == 2);
		(new item)->retire(cohort);
		cohort.synchronize();
		CHECK(ended == 12);
		for (int i = 0; i < 3000; i++)
			(new node)->retire(cohort);
	}
	CHECK(ended == 3012);
}

TEST("a cohort waits for a reader that protects one of its objects")
{
	ended = 0;
	std::atomic<node *> src(new node);
	std::atomic<int> stage{ 0 };
	quiesce::hazard_pointer_cohort cohort;
	std::thread reader([&] {
		quiesce::hazard_pointer h = quiesce::make_hazard_pointer();
		node *held = h.protect(src);
		stage = 1;
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
		CHECK(ended == 0 && held->value == 1);
		stage = 2;
	});

	while (!stage)
		std::this_thread::yield();
	src.exchange(nullptr)->retire(cohort);
	cohort.synchronize();
	CHECK(stage == 2 && ended == 1);
	reader.join();
}

struct rcu_node : quiesce::rcu_obj_base<rcu_node> {
	~rcu_node() { ended++; }
};

TEST("rcu_reader is a region")
{
	ended = 0;
	{
		quiesce::rcu_reader section;
		CHECK(rcu_read_lock_held());
		(new rcu_node)->retire();
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
		CHECK(ended == 0);
	}
	CHECK(!rcu_read_lock_held());
	quiesce::rcu_barrier();
	CHECK(ended == 1);
}

TEST("shazptr: empty, moved, reset, swapped")
{
	int a = 1;
	std::atomic<int *> src(&a), none(nullptr);
	quiesce::shazptr<int> empty, null(none);

	CHECK_STATIC(!std::is_copy_constructible_v<quiesce::shazptr<int>>);
	CHECK_STATIC(std::is_nothrow_move_constructible_v<quiesce::shazptr<int>>);
	CHECK(!empty && !null && !empty.get());
	quiesce::shazptr guard(src);
	CHECK(guard && guard.get() == &a && *guard == 1);
	quiesce::shazptr moved(std::move(guard));
	CHECK(!guard && moved.get() == &a);
	empty = std::move(moved);
	CHECK(!moved && empty.get() == &a);
	swap(empty, null);
	CHECK(!empty && null.get() == &a);
	null.reset();
	CHECK(!null);
	null.reset();
	synchronize_shazptr(&a);
}

TEST("shazptr protects, until it is cleared")
{
	static std::thread waiting;
	static std::atomic<bool> through;
	static int object = 1;
	std::optional<quiesce::shazptr<int>> guard(quiesce::shazptr<int>::holding(&object));

	waiting = std::thread([] {
		synchronize_shazptr(&object);
		through = true;
	});
	std::this_thread::sleep_for(std::chrono::milliseconds(5));
	CHECK(!through);
	guard.reset();
	waiting.join();
	CHECK(through);
	auto tried = quiesce::shazptr<const int>::try_protect(std::atomic<const int *>(&object));
	CHECK(tried.get() == &object);
	struct shazptr_guard raw = tried.release();
	CHECK(!tried && shazptr_ptr(raw) == &object);
	shazptr_clear(raw);
	synchronize_shazptr(&object);
}

struct first {
	long a = 1;
};
struct second {
	long b = 2;
};
struct both : first, second {};

TEST("shazptr: a guard of a base is waited for by a pointer to the whole")
{
	static both whole;
	static std::atomic<second *> src(&whole);
	static std::atomic<bool> through;
	std::optional<quiesce::shazptr<second>> guard(src);
	std::thread waiting([] {
		quiesce::shazptr<second>::synchronize(&whole);
		through = true;
	});

	std::this_thread::sleep_for(std::chrono::milliseconds(5));
	CHECK(!through);
	guard.reset();
	waiting.join();
	CHECK(through);
	quiesce::shazptr<const int>::synchronize(nullptr);
}

#ifdef QUIESCE_DEBUG
static int nr_reported;
static std::string reported;

static void on_misuse(quiesce_misuse kind, const char *text)
{
	nr_reported += kind == QUIESCE_MISUSE_NULL;
	reported = text;
}

TEST("the debug build reports an empty hazard_pointer, by the name of the member")
{
	node object;
	std::atomic<node *> src(&object);
	quiesce::hazard_pointer empty;
	node *seen = &object;

	nr_reported = 0;
	quiesce_set_misuse_hook(on_misuse);
	CHECK(empty.protect(src) == nullptr);
	CHECK(nr_reported == 1 && reported.find("hazard_pointer::protect() at ") == 0);
	(void)empty.try_protect(seen, src);
	CHECK(nr_reported == 2 && reported.find("hazard_pointer::try_protect() at ") == 0 && !seen);
	CHECK(empty.view().protect(src) == nullptr);
	CHECK(nr_reported == 3 && reported.find("hazard_pointer_view::protect() at ") == 0);
	nr_reported = 2;
	empty.reset_protection(&object);
	CHECK(nr_reported == 3 && reported.find("hazard_pointer::reset_protection() at ") == 0);
	empty.reset_protection();
	CHECK(nr_reported == 4 && reported.find("hazptr_clear() at ") == 0);
	quiesce_set_misuse_hook(nullptr);
}
#endif

TEST("C beside C++: a slot of hazptr.h protects an object of C++")
{
	std::atomic<node *> src(new node);
	hazptr_t *slot = hazptr_alloc(nullptr);
	node *plain = src.load();

	/* The base is first, so the addresses are the same. */
	CHECK(hazptr_protect(slot, &plain) == plain);
	ended = 0;
	src.exchange(nullptr)->retire();
	check::retire_much();
	CHECK(ended == 0);
	hazptr_free(nullptr, slot);
	quiesce::hazard_pointer_clean_up();
	CHECK(ended == 1);
}

} // namespace ours
