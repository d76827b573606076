/* SPDX-License-Identifier: MIT */
/* raw, whole file: a program that knows the standard library and nothing of quiesce. */
#include "check.hpp"

#include <memory>

namespace hp_general {
CLAUSE("saferecl.hp.general")

using check::new_tracked, check::reclaimed, check::retire_much, check::tracked;

TEST("what is protected is not reclaimed, and afterwards it is")
{
	tracked *object = new_tracked();
	std::atomic<tracked *> src(object);
	impl::hazard_pointer h = impl::make_hazard_pointer();

	CHECK(h.protect(src) == object);
	src = nullptr;
	object->retire();
	retire_much();
	CHECK(!object->dead());
	h.reset_protection();
	CHECK(reclaimed([&] { return object->dead(); }));
	CHECK(object->deaths == 1);
}

TEST("an epoch ends where the next begins")
{
	tracked *a = new_tracked(), *b = new_tracked();
	std::atomic<tracked *> src(a);
	impl::hazard_pointer h = impl::make_hazard_pointer();

	(void)h.protect(src);
	src = b;
	CHECK(h.protect(src) == b);
	a->retire();
	CHECK(reclaimed([&] { return a->dead(); }));
	src = nullptr;
	b->retire();
	retire_much();
	CHECK(!b->dead());
	CHECK(h.protect(src) == nullptr);
	CHECK(reclaimed([&] { return b->dead(); }));
}

TEST("several hazard pointers of one object: the last one counts")
{
	tracked *object = new_tracked();
	std::atomic<tracked *> src(object);
	impl::hazard_pointer h[3];

	impl::make_hazard_pointer_batch(h);
	for (auto &each : h)
		(void)each.protect(src);
	src = nullptr;
	object->retire();
	for (int i : { 1, 0 }) {
		h[i] = impl::hazard_pointer();
		retire_much();
		CHECK(!object->dead());
	}
	h[2].reset_protection();
	CHECK(reclaimed([&] { return object->dead(); }));
}

TEST("a protection that lasts delays its own object only")
{
	tracked *held = new_tracked();
	std::atomic<tracked *> src(held);
	impl::hazard_pointer h = impl::make_hazard_pointer();
	std::vector<tracked *> others;

	(void)h.protect(src);
	held->retire();
	for (int i = 0; i < 3000; i++) {
		others.push_back(new_tracked());
		others.back()->retire();
	}
	CHECK(reclaimed([&] {
		for (auto *each : others)
			if (!each->dead())
				return false;
		return true;
	}));
	CHECK(!held->dead());
}

static std::atomic<long> waiting, most;
struct counted : impl::hazard_pointer_obj_base<counted> {
	counted()
	{
		long now = ++waiting, was = most;
		while (now > was && !most.compare_exchange_weak(was, now))
			;
	}
	~counted() { waiting--; }
};

TEST("the number of objects that wait is bounded")
{
	constexpr long nr = 400000;

	waiting = most = 0;
	for (long i = 0; i < nr; i++)
		(new counted)->retire();
	std::printf("#   at most %ld of %ld objects waited\n", most.load(), nr);
	CHECK(most < nr / 4);
	CHECK(reclaimed([] { return waiting == 0; }));
}

/* ---- races: a reader must find the object alive ---- */

static std::atomic<unsigned long> reads;

static void read_one(impl::hazard_pointer &h, std::atomic<tracked *> &src)
{
	tracked *object = h.protect(src);

	CHECK_QUIETLY(!object->dead() && object->value == 1);
	std::this_thread::yield();
	CHECK_QUIETLY(!object->dead());
	reads.fetch_add(1, std::memory_order_relaxed);
}

TEST("readers and an updater, hazard pointers kept")
{
	std::atomic<tracked *> src(new_tracked(1));
	check::racers racers;

	reads = 0;
	for (int i = 0; i < 2; i++)
		racers.add([&] {
			impl::hazard_pointer h = impl::make_hazard_pointer();
			for (int k = 0; k < 100; k++)
				read_one(h, src);
		});
	racers.add([&] {
		src.exchange(new_tracked(1))->retire();
		check::retire_much();
	});
	CHECK(racers.race([&] { return reads > 0; }));
}

TEST("readers and updaters, hazard pointers made for each read")
{
	std::atomic<tracked *> src[4];
	check::racers racers;

	reads = 0;
	for (auto &each : src)
		each = new_tracked(1);
	for (int i = 0; i < 2; i++) {
		racers.add([&] {
			for (auto &each : src) {
				impl::hazard_pointer h = impl::make_hazard_pointer();
				read_one(h, each);
			}
		});
		racers.add([&] {
			for (int k = 0; k < 20; k++)
				for (auto &each : src)
					each.exchange(new_tracked(1))->retire();
			std::this_thread::sleep_for(std::chrono::microseconds(100));
		});
	}
	CHECK(racers.race([&] { return reads > 0; }));
}

/* A stack whose nodes are reused at once: without protection a pop sees a reused node (ABA). */
struct link : impl::hazard_pointer_obj_base<link> {
	link *below = nullptr;
	std::atomic<int> owners{ 0 };
};

struct stack {
	std::atomic<link *> top{ nullptr };

	void push(link *node)
	{
		node->below = top.load();
		while (!top.compare_exchange_weak(node->below, node))
			;
	}

	link *pop(impl::hazard_pointer &h)
	{
		for (;;) {
			link *node = h.protect(top);
			if (!node)
				return nullptr;
			link *below = node->below;
			if (top.compare_exchange_strong(node, below)) {
				h.reset_protection();
				return node;
			}
		}
	}
};

TEST("a stack: each node has one owner")
{
	stack all;
	check::racers racers;
	std::atomic<long> popped{ 0 };

	for (int i = 0; i < 20; i++)
		all.push(new link);
	for (int i = 0; i < 3; i++)
		racers.add([&] {
			impl::hazard_pointer h = impl::make_hazard_pointer();
			for (int k = 0; k < 200; k++) {
				link *node = all.pop(h);
				if (!node)
					continue;
				CHECK_QUIETLY(node->owners.fetch_add(1) == 0);
				popped.fetch_add(1, std::memory_order_relaxed);
				node->retire(); /* frees it: the allocator hands it out again */
				all.push(new link);
			}
		});
	CHECK(racers.race([&] { return popped > 0; }));
	impl::hazard_pointer h = impl::make_hazard_pointer();
	for (link *node; (node = all.pop(h));)
		delete node;
}

/* ---- between threads ---- */

TEST("a protection outlives the thread that began it")
{
	tracked *object = new_tracked();
	std::atomic<tracked *> src(object);
	impl::hazard_pointer h;

	std::thread([&] {
		h = impl::make_hazard_pointer();
		(void)h.protect(src);
	}).join();
	src = nullptr;
	object->retire();
	retire_much();
	CHECK(!object->dead());
	std::thread([moved = std::move(h)]() mutable { impl::hazard_pointer gone(std::move(moved)); }).join();
	CHECK(h.empty());
	CHECK(reclaimed([&] { return object->dead(); }));
}

TEST("what a thread leaves behind is reclaimed, or kept while protected")
{
	tracked *left = new_tracked(), *held = new_tracked();
	std::atomic<tracked *> src(held);
	impl::hazard_pointer h = impl::make_hazard_pointer();

	(void)h.protect(src);
	std::thread([&] {
		left->retire();
		held->retire();
	}).join();
	CHECK(reclaimed([&] { return left->dead(); }));
	CHECK(!held->dead());
	h = impl::hazard_pointer();
	CHECK(reclaimed([&] { return held->dead(); }));
}

/* Destructors of a thread, and of the program, protect and retire like others. */
static std::atomic<int> late_reads;

struct at_exit {
	impl::hazard_pointer h = impl::make_hazard_pointer();
	std::atomic<tracked *> src{ new_tracked(1) };

	at_exit() { (void)h.protect(src); }
	~at_exit()
	{
		tracked *object = src.load();
		impl::hazard_pointer again = impl::make_hazard_pointer();

		CHECK_QUIETLY(!object->dead());
		late_reads += again.protect(src) == object;
		src.exchange(new_tracked(1))->retire();
		retire_much();
		CHECK_QUIETLY(!object->dead());
	}
};

TEST("destructors of a thread and of the program")
{
	static at_exit of_program;
	thread_local at_exit of_main;

	late_reads = 0;
	for (int i = 0; i < 4; i++)
		std::thread([] {
			thread_local at_exit of_thread;
			CHECK(!of_thread.h.empty());
		}).join();
	CHECK(late_reads == 4);
	CHECK(!of_program.h.empty() && !of_main.h.empty());
}

} // namespace hp_general
