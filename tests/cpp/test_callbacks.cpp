/* SPDX-License-Identifier: MIT */
/* test_callbacks.cpp - callbacks that throw, and that end their thread, where their callers are C++. */
#include <quiesce/hazptr.hpp>
#include <quiesce/rcu.h>
#include <quiesce/srcu.h>

#include <quiesce/control.h>

#include "tap.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>

/* ---- children ---- */

struct outcome {
	int status;
	std::string text; /* output on stderr */
};

static outcome in_child(void (*fn)())
{
	outcome o{};
	char text[4096];
	int fd[2];
	ssize_t n;
	pid_t pid;

	if (pipe(fd))
		std::abort();
	std::fflush(nullptr);
	pid = fork();
	if (!pid) {
		const rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		dup2(fd[1], STDERR_FILENO);
		fn();
		_exit(0);
	}
	close(fd[1]);
	while ((n = read(fd[0], text, sizeof text)) > 0)
		o.text.append(text, static_cast<std::size_t>(n));
	close(fd[0]);
	waitpid(pid, &o.status, 0);
	return o;
}

static bool aborts_with(void (*fn)(), const char *words)
{
	outcome o = in_child(fn);
	bool ok = WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT && o.text.find(words) != std::string::npos;

	if (!ok)
		std::printf("# status %#x, \"%s\" and not \"%s\"\n", static_cast<unsigned int>(o.status), o.text.c_str(), words);
	return ok;
}

/* ---- exceptions ---- */

[[noreturn]] static void fail()
{
	throw std::runtime_error("a callback throws");
}

static void throw_in_rcu()
{
	static rcu_head head;

	call_rcu(&head, [](rcu_head *) { fail(); });
	rcu_barrier();
}

static void throw_in_srcu()
{
	static srcu_struct domain;
	static rcu_head head;

	init_srcu_struct(&domain);
	call_srcu(&domain, &head, [](rcu_head *) { fail(); });
	srcu_barrier(&domain);
}

/* The exception is thrown in this thread, which would catch it. */
static void throw_where_it_is_retired()
{
	static int object;

	quiesce_set_thread_hazptr_batch(1, 1);
	try {
		hazptr_retire(&object, [](void *) { fail(); });
	} catch (const std::exception &) {
		std::fputs("caught\n", stderr);
	}
	_exit(0);
}

static void throw_in_a_hook()
{
	quiesce_set_stall_timeout(1000000);
	quiesce_set_report_hook([](const quiesce_report *) { fail(); });
	rcu_read_lock();
	std::thread([] {
		try {
			synchronize_rcu();
		} catch (const std::exception &) {
			_exit(0);
		}
	}).join();
}

static void an_exception_does_not_leave_a_callback()
{
	CHECK(aborts_with(throw_in_rcu, "an exception leaves the callback "));
	CHECK(aborts_with(throw_in_rcu, " of call_rcu(), which has to return"));
	CHECK(aborts_with(throw_in_srcu, " of call_srcu(), which has to return"));
	CHECK(aborts_with(throw_where_it_is_retired, " of call_hazptr_inline(), which has to return"));
	CHECK(aborts_with(throw_in_a_hook, "an exception leaves a function of the program's"));
}

static int nr_caught;

static void catches(rcu_head *)
{
	try {
		fail();
	} catch (const std::exception &) {
		quiesce_fetch_add_relaxed(&nr_caught, 1);
	}
}

static void inside_of_one_it_may_be_caught()
{
	static rcu_head head;

	call_rcu(&head, catches);
	rcu_barrier();
	CHECK(nr_caught == 1);
}

/* ---- ends ----
 * Where the standard library is libc++, frames with destructors have no part in it: glibc unwinds with libgcc_s, whose contexts
 * the unwinder of libc++ does not know.
 */

static int nr_destroyed, nr_ran;

struct counted {
	~counted() { quiesce_fetch_add_relaxed(&nr_destroyed, 1); }
};

static void end_thread(rcu_head *)
{
#ifndef _LIBCPP_VERSION
	counted in_the_callback;
#else
	nr_destroyed++;
#endif
	quiesce_fetch_add_relaxed(&nr_ran, 1);
	pthread_exit(nullptr);
}

static void runs(rcu_head *)
{
	quiesce_fetch_add_relaxed(&nr_ran, 1);
}

/* Objects on the stack of the callback are destroyed. */
static void a_callback_that_ends_its_thread_is_unwound()
{
	static rcu_head heads[4];

	quiesce_set_misuse_hook([](quiesce_misuse, const char *) {});
	for (rcu_head &head : heads)
		call_rcu(&head, &head == &heads[1] ? end_thread : runs);
	rcu_barrier();
	quiesce_set_misuse_hook(nullptr);
	CHECK(nr_ran == 4);
	CHECK(nr_destroyed == 1);
}

#ifndef _LIBCPP_VERSION

struct node : quiesce::hazard_pointer_obj_base<node> {
	~node()
	{
		if (ends)
			pthread_exit(nullptr);
	}
	bool ends = false;
};

static void end_in_a_destructor()
{
	node *last = new node;

	last->ends = true;
	last->retire();
	quiesce::hazard_pointer_clean_up();
}

/* The draft's functions are noexcept, and so are destructors: that is C++'s own rule. */
static void a_destructor_must_not()
{
	outcome o = in_child(end_in_a_destructor);

	CHECK(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT);
}

#endif

int main()
{
	const test tests[] = {
		TEST(an_exception_does_not_leave_a_callback),
		TEST(inside_of_one_it_may_be_caught),
		TEST(a_callback_that_ends_its_thread_is_unwound),
#ifndef _LIBCPP_VERSION
		TEST(a_destructor_must_not),
#endif
	};

	return run_tests(tests);
}
