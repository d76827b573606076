/* SPDX-License-Identifier: MIT */
/* raw, whole file: a program that knows the standard library and nothing of quiesce. */
/* check.hpp - tests that list themselves, checks that count, and the oracle: objects that know whether they live. */
#ifndef CONFORMANCE_CHECK_HPP
#define CONFORMANCE_CHECK_HPP

#include "config.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

namespace check {

struct test {
	const char *clause, *title;
	void (*run)();
	test *next;

	test(const char *c, const char *t, void (*r)());
};

/* Counts, from any thread; a failure is printed.  Returns @ok. */
bool that(bool ok, const char *text, const char *file, int line);

/* TEST("title") { ... }, in a namespace of the file's own, after CLAUSE("stable name"). */
#define CLAUSE(name) [[maybe_unused]] static constexpr const char *the_clause = name;
#define TEST(title) TEST_2(title, __LINE__)
#define TEST_2(title, line) TEST_3(title, line)
#define TEST_3(title, line)                                              \
	static void test_##line();                                       \
	static ::check::test entry_##line(the_clause, title, test_##line); \
	static void test_##line()

#define CHECK(...) ::check::that((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
/* A check while compiling, which is counted as well. */
#define CHECK_STATIC(...)                    \
	do {                                 \
		static_assert(__VA_ARGS__);  \
		CHECK(true);                 \
	} while (0)

/* A check inside a loop, of which only failures are counted. */
#define CHECK_QUIETLY(...) ((__VA_ARGS__) || CHECK(__VA_ARGS__))

/* A race lasts at least so long. */
inline constexpr std::chrono::milliseconds while_racing(150);
/* Time limit for events that must occur, CONFORMANCE_LIMIT_MS if that is set; it is no measurement. */
inline std::chrono::milliseconds time_limit()
{
	const char *chosen = std::getenv("CONFORMANCE_LIMIT_MS");
	return std::chrono::milliseconds(chosen ? std::atol(chosen) : 20000);
}

template<class F> bool eventually(F &&come)
{
	auto end = std::chrono::steady_clock::now() + time_limit();

	while (!come()) {
		if (std::chrono::steady_clock::now() > end)
			return false;
		std::this_thread::sleep_for(std::chrono::microseconds(200));
	}
	return true;
}

/* Threads that run until they are asked to stop, and are joined. */
class racers {
public:
	template<class F> void add(F run)
	{
		threads.emplace_back([this, run] {
			while (!stop.load(std::memory_order_relaxed))
				run();
		});
	}
	/* Until @enough() holds, and some time at least: a busy machine may give a thread its first turn late. */
	template<class F> bool race(F &&enough)
	{
		std::this_thread::sleep_for(while_racing);
		bool held = eventually(enough);
		end();
		return held;
	}
	void end()
	{
		stop = true;
		for (auto &thread : threads)
			thread.join();
		threads.clear();
	}

private:
	std::atomic<bool> stop{ false };
	std::vector<std::thread> threads;
};

/* Memory of objects that are retired with a deleter that does not free: it stays, whatever the implementation does,
 * so that a reader that comes too late finds a dead object and not a crash. */
template<class T, class... A> T *immortal(A &&...args)
{
	struct link {
		T object;
		link *next;
		explicit link(A &&...a) : object(std::forward<A>(a)...), next(nullptr) {}
	};
	static std::atomic<link *> all;
	link *made = new link(std::forward<A>(args)...);

	made->next = all.load();
	while (!all.compare_exchange_weak(made->next, made))
		;
	return &made->object;
}

/* ---- retiring so much that all reclaimable objects are reclaimed ---- */

struct ballast : impl::hazard_pointer_obj_base<ballast> {
	char room[8];
};

/* There is no call that forces a reclamation; but the number of objects that wait is bounded. */
template<class F> bool reclaimed(F &&done)
{
	return eventually([&] {
		for (int i = 0; i < 20000 && !done(); i++)
			(new ballast)->retire();
		return done();
	});
}

inline void retire_much()
{
	for (int i = 0; i < 30000; i++)
		(new ballast)->retire();
}

/* ---- an object that knows how often it has been reclaimed ---- */

struct tracked;
struct bury {
	void operator()(tracked *object) const noexcept;
};

struct tracked : impl::hazard_pointer_obj_base<tracked, bury> {
	std::atomic<int> deaths{ 0 };
	int value = 0;

	tracked() = default;
	explicit tracked(int v) : value(v) {}
	bool dead() const { return deaths.load() != 0; }
};

inline void bury::operator()(tracked *object) const noexcept { object->deaths.fetch_add(1); }

inline tracked *new_tracked(int value = 0) { return immortal<tracked>(value); }

} // namespace check

#endif
