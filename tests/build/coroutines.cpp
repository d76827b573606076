/* SPDX-License-Identifier: MIT */
/* coroutines.cpp - coroutines that go on in another thread after each co_await, with guards, slots and counts in hand; for fibers.py.
 *
 * Values that a compiler keeps over a co_await are in the frame of the coroutine, and any thread may resume it.
 */
#include <coroutine>
#include <exception>
#include <semaphore>
#include <thread>

struct task {
	struct promise_type {
		task get_return_object() { return { std::coroutine_handle<promise_type>::from_promise(*this) }; }
		std::suspend_always initial_suspend() noexcept { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		void return_void() {}
		void unhandled_exception() { std::terminate(); }
	};
	std::coroutine_handle<promise_type> handle;
};

/* The thread that resumes it is the other one. */
struct elsewhere {
	bool await_ready() noexcept { return false; }
	void await_suspend(std::coroutine_handle<>) noexcept {}
	void await_resume() noexcept {}
};

#define STORY(name) static task name()
#define MOVE() co_await elsewhere{}
#define END() co_return

#include "../migrate.h"

static std::coroutine_handle<> performer;

struct worker {
	std::binary_semaphore go{0}, done{0};
	bool leave = false;
	std::thread thread;

	explicit worker(int number)
	    : thread([this, number] {
		      migrate_enter(number);
		      for (done.release(), go.acquire(); !leave; done.release(), go.acquire())
			      performer.resume();
	      })
	{
		done.acquire();
	}
	~worker()
	{
		leave = true;
		go.release();
		thread.join();
	}
};

int main()
{
	static const struct {
		const char *name;
		task (*story)();
	} stories[] = {
		{ "sections of RCU", story_rcu }, { "guards", story_shazptr },          { "guards of several ways", story_ways },
		{ "slots", story_hazptr },        { "counters per CPU", story_counts }, { "quiescent states", story_qsbr },
	};
	worker first(0), second(1);

	migrate_begin();
	for (auto &s : stories) {
		int before = failures;
		task task = s.story();

		performer = task.handle;
		for (here = 0; !performer.done(); here = !here) {
			worker &w = here ? second : first;

			w.go.release();
			w.done.acquire();
		}
		task.handle.destroy();
		std::printf("%s - %s\n", failures == before ? "ok" : "not ok", s.name);
	}
	percpu_ref_exit(&ref);
	return failures != 0;
}
