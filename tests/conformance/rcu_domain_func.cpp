/* SPDX-License-Identifier: MIT */
/* raw, whole file: a program that knows the standard library and nothing of quiesce. */
#include "check.hpp"

#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>

/* operator new fails on request, in this thread.  It is not inline, because compilers would see malloc() and warn. */
static thread_local bool no_memory;
static std::atomic<unsigned> news;

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NEW_IS_TAKEN 1 /* by the sanitizer, and linked statically */
#endif
#endif
#ifndef NEW_IS_TAKEN
#define NEW_IS_TAKEN 0
[[gnu::noinline]] void *operator new(std::size_t size)
{
	news.fetch_add(1, std::memory_order_relaxed);
	void *memory = no_memory ? nullptr : std::malloc(size ? size : 1);
	if (!memory)
		throw std::bad_alloc();
	return memory;
}
[[gnu::noinline]] void operator delete(void *memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace rcu_domain_func {
CLAUSE("saferecl.rcu.domain.func")

struct object {
	std::atomic<int> deaths{ 0 };
};
struct bury {
	void operator()(object *gone) const noexcept { gone->deaths++; }
};

static object *made()
{
	return check::immortal<object>();
}

TEST("there is one default domain")
{
	impl::rcu_domain *seen = nullptr;

	std::thread([&] { seen = &impl::rcu_default_domain(); }).join();
	CHECK(seen == &impl::rcu_default_domain());
}

/* ---- rcu_synchronize() ---- */

TEST("rcu_synchronize() waits for a region of before")
{
	for (int i = 0; i < 20; i++) {
		std::atomic<int> stage{ 0 };
		int plain = 0; /* written by the region: ThreadSanitizer would report a race */
		std::thread reader([&] {
			impl::rcu_default_domain().lock();
			stage = 1;
			std::this_thread::sleep_for(std::chrono::microseconds(500));
			plain = 1;
			stage = 2;
			impl::rcu_default_domain().unlock();
		});
		while (!stage)
			std::this_thread::yield();
		i % 2 ? impl::rcu_synchronize() : impl::rcu_synchronize(impl::rcu_default_domain());
		CHECK(stage == 2 && plain == 1);
		reader.join();
	}
}

TEST("rcu_synchronize() does not wait for regions of after")
{
	std::atomic<bool> stop{ false };
	std::atomic<unsigned> came{ 0 };
	std::vector<std::thread> threads;

	/* There is always a reader inside: each stays until another has entered. */
	for (int i = 0; i < 2; i++)
		threads.emplace_back([&] {
			while (!stop) {
				std::scoped_lock region(impl::rcu_default_domain());
				unsigned mine = ++came;
				while (came == mine && !stop)
					std::this_thread::yield();
			}
		});
	while (came < 2)
		std::this_thread::yield();
	for (int i = 0; i < 5; i++)
		impl::rcu_synchronize();
	CHECK(true);
	stop = true;
	for (auto &thread : threads)
		thread.join();
}

TEST("a pointer that was replaced before is not seen after")
{
	struct item {
		std::atomic<bool> dead{ false };
	};
	std::atomic<item *> src(check::immortal<item>());
	std::atomic<unsigned long> reads{ 0 };
	check::racers racers;

	for (int i = 0; i < 2; i++)
		racers.add([&] {
			std::scoped_lock region(impl::rcu_default_domain());
			item *seen = src.load(std::memory_order_acquire);
			CHECK_QUIETLY(!seen->dead);
			std::this_thread::yield();
			CHECK_QUIETLY(!seen->dead);
			reads.fetch_add(1, std::memory_order_relaxed);
		});
	racers.add([&] {
		item *old = src.exchange(check::immortal<item>());
		impl::rcu_synchronize();
		old->dead = true;
	});
	CHECK(racers.race([&] { return reads > 0; }));
}

/* ---- rcu_barrier() ---- */

TEST("rcu_barrier() waits for what was scheduled before, by any thread")
{
	constexpr int nr = 500;
	std::vector<object *> objects(2 * nr);

	for (auto &each : objects)
		each = made();
	std::thread([&] {
		for (int i = 0; i < nr; i++)
			impl::rcu_retire(objects[static_cast<std::size_t>(i)], bury());
	}).join();
	for (std::size_t i = nr; i < 2 * nr; i++)
		impl::rcu_retire(objects[i], bury());
	impl::rcu_barrier();
	for (auto *each : objects)
		CHECK_QUIETLY(each->deaths == 1);
	impl::rcu_barrier(impl::rcu_default_domain());
	for (auto *each : objects)
		CHECK_QUIETLY(each->deaths == 1);
	CHECK(objects.size() == 2 * nr);
}

TEST("rcu_barrier() is no rcu_synchronize(): with nothing scheduled it needs no region to end")
{
	std::atomic<int> stage{ 0 };

	impl::rcu_barrier();
	std::thread reader([&] {
		std::scoped_lock region(impl::rcu_default_domain());
		stage = 1;
		while (stage < 2)
			std::this_thread::yield();
	});
	while (!stage)
		std::this_thread::yield();
	impl::rcu_barrier();
	CHECK(stage == 1);
	stage = 2;
	reader.join();
}

TEST("rcu_barrier() from several threads")
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 3; i++)
		threads.emplace_back([] {
			for (int k = 0; k < 10; k++) {
				object *mine = made();
				impl::rcu_retire(mine, bury());
				impl::rcu_barrier();
				CHECK_QUIETLY(mine->deaths == 1);
			}
		});
	for (auto &thread : threads)
		thread.join();
	CHECK(threads.size() == 3);
}

/* ---- rcu_retire() ---- */

static std::atomic<int> ended;
struct counted {
	~counted() { ended++; }
};
struct incomplete;
struct drop {
	void operator()(incomplete *) const { ended++; }
	void operator()(void *) const { ended++; }
};

TEST("rcu_retire() of objects of any type, with any deleter")
{
	int here = 0;
	std::unique_ptr<int> sum(new int(5));

	ended = 0;
	impl::rcu_retire(new counted);
	impl::rcu_retire(new int(3));
	impl::rcu_retire(new counted, std::default_delete<counted>());
	impl::rcu_retire(&here, [sum = std::move(sum)](int *value) { *value += *sum; }); /* movable only, no default */
	impl::rcu_retire(&here, +[](int *) { ended++; });
	impl::rcu_retire(reinterpret_cast<incomplete *>(&here), drop());
	impl::rcu_retire<void, drop>(&here);
	impl::rcu_barrier();
	CHECK(ended == 5);
	CHECK(here == 5);
}

TEST("the deleter is destroyed too")
{
	auto state = std::make_shared<int>(1);
	object *gone = made();

	impl::rcu_retire(gone, [state](object *it) { it->deaths += *state; });
	impl::rcu_barrier();
	CHECK(gone->deaths == 1);
	CHECK(check::eventually([&] { return state.use_count() == 1; }));
}

TEST("bad_alloc: nothing is scheduled")
{
	object *gone = made();
	bool thrown = false;
	unsigned before = news;

	no_memory = true;
	try {
		impl::rcu_retire(gone, bury());
	} catch (const std::bad_alloc &) {
		thrown = true;
	}
	no_memory = false;
	if (NEW_IS_TAKEN)
		std::printf("#   nothing fails here: operator new is the sanitizer's\n");
	else
		std::printf("#   operator new was%s asked\n", news == before ? " not" : "");
	impl::rcu_barrier();
	CHECK(gone->deaths == (thrown ? 0 : 1));
	if (thrown)
		impl::rcu_retire(gone, bury());
	impl::rcu_barrier();
	CHECK(gone->deaths == 1);
}

static int moves_left;
struct explosive {
	explosive() = default;
	explosive(explosive &&)
	{
		if (!moves_left--)
			throw std::length_error("explosive");
	}
	void operator()(object *gone) const { gone->deaths++; }
};

TEST("an exception of the deleter's move: nothing is scheduled")
{
	object *gone = made();
	bool thrown = false;

	moves_left = 0;
	try {
		impl::rcu_retire(gone, explosive());
	} catch (const std::length_error &) {
		thrown = true;
	}
	impl::rcu_barrier();
	CHECK(thrown && gone->deaths == 0);
	moves_left = 1000;
	impl::rcu_retire(gone, explosive());
	impl::rcu_barrier();
	CHECK(gone->deaths == 1);
}

} // namespace rcu_domain_func
