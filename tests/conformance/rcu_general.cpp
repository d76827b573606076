/* SPDX-License-Identifier: MIT */
/* raw, whole file: a program that knows the standard library and nothing of quiesce. */
#include "check.hpp"

#include <mutex>

namespace rcu_general {
CLAUSE("saferecl.rcu.general")

struct item;
struct bury {
	void operator()(item *gone) const noexcept;
};
struct item : impl::rcu_obj_base<item, bury> {
	std::atomic<int> deaths{ 0 };
	int value = 1;
};
void bury::operator()(item *gone) const noexcept { gone->deaths++; }

static item *made()
{
	return check::immortal<item>();
}

/* Another thread opens a region, and closes it when asked to. */
class reader {
public:
	reader() : thread([this] {
		std::scoped_lock region(impl::rcu_default_domain());
		stage = 1;
		while (stage < 2)
			std::this_thread::yield();
	})
	{
		while (!stage)
			std::this_thread::yield();
	}
	void leave()
	{
		stage = 2;
		thread.join();
	}

private:
	std::atomic<int> stage{ 0 };
	std::thread thread;
};

/* Give a wrong implementation time to fail. */
static void dawdle()
{
	for (int i = 0; i < 50; i++)
		impl::rcu_retire(new int);
	std::this_thread::sleep_for(std::chrono::milliseconds(3));
}

TEST("what is scheduled waits for a region of another thread")
{
	item *a = made(), *b = made();
	reader other;

	a->retire();
	impl::rcu_retire(b, [](item *gone) { gone->deaths++; });
	dawdle();
	CHECK(a->deaths == 0 && b->deaths == 0);
	other.leave();
	impl::rcu_barrier();
	CHECK(a->deaths == 1 && b->deaths == 1);
}

TEST("what is scheduled waits for each of several regions")
{
	item *object = made();
	reader one, two;

	object->retire();
	one.leave();
	dawdle();
	CHECK(object->deaths == 0);
	two.leave();
	impl::rcu_barrier();
	CHECK(object->deaths == 1);
}

TEST("what is scheduled in a region waits for it")
{
	item *a = made(), *b = made();

	{
		std::scoped_lock region(impl::rcu_default_domain());
		a->retire();
		impl::rcu_retire(b, [](item *gone) { gone->deaths++; });
		dawdle();
		CHECK(a->deaths == 0 && b->deaths == 0);
	}
	impl::rcu_barrier();
	CHECK(a->deaths == 1 && b->deaths == 1);
}

TEST("a region that sleeps, and threads that exit with something scheduled")
{
	item *object = made();
	reader sleeper;

	std::thread([&] { object->retire(); }).join();
	dawdle();
	CHECK(object->deaths == 0);
	sleeper.leave();
	impl::rcu_barrier();
	CHECK(object->deaths == 1);
}

TEST("readers and updaters: what a region has seen lives until it ends; each is evaluated once")
{
	std::atomic<item *> src[4];
	std::atomic<unsigned long> reads{ 0 }, updates{ 0 };
	std::vector<item *> gone;
	check::racers racers;

	for (auto &each : src)
		each = made();
	for (int i = 0; i < 2; i++)
		racers.add([&] {
			std::scoped_lock region(impl::rcu_default_domain());
			for (auto &each : src) {
				item *seen = each.load(std::memory_order_acquire);
				std::this_thread::yield();
				std::scoped_lock nested(impl::rcu_default_domain());
				CHECK_QUIETLY(seen->deaths == 0 && seen->value == 1);
			}
			reads.fetch_add(1, std::memory_order_relaxed);
		});
	racers.add([&] {
		for (auto &each : src) {
			item *old = each.exchange(made());
			gone.push_back(old);
			if (gone.size() % 2)
				old->retire();
			else
				impl::rcu_retire(old, bury());
		}
		updates++;
	});
	CHECK(racers.race([&] { return reads > 0 && updates > 0; }));
	impl::rcu_barrier();
	for (item *each : gone)
		CHECK_QUIETLY(each->deaths == 1);
}

/* Destructors of a thread and of the program read and retire like others. */
static std::atomic<int> late;

struct at_exit {
	item *object = made();

	at_exit()
	{
		std::scoped_lock region(impl::rcu_default_domain());
		CHECK(object->deaths == 0);
	}
	~at_exit()
	{
		item *old = std::exchange(object, made());
		{
			std::scoped_lock region(impl::rcu_default_domain());
			old->retire();
			impl::rcu_retire(made(), bury());
			CHECK_QUIETLY(old->deaths == 0);
		}
		impl::rcu_synchronize();
		late++;
	}
};

TEST("destructors of a thread and of the program")
{
	static at_exit of_program;

	late = 0;
	for (int i = 0; i < 4; i++)
		std::thread([] { thread_local at_exit of_thread; CHECK(of_thread.object != nullptr); }).join();
	CHECK(late == 4 && of_program.object);
	impl::rcu_barrier();
}

} // namespace rcu_general
