/* SPDX-License-Identifier: MIT */
/* tap.hpp - a program of tests: each has to check something, and a hang ends in a crash. */
#ifndef QUIESCE_TESTS_TAP_HPP
#define QUIESCE_TESTS_TAP_HPP

#include <quiesce/atomic.h>

#include <cstddef>
#include <cstdio>
#include <unistd.h>

/* Count of checks that any thread has made. */
inline int nr_failed, nr_checks;

#define CHECK(condition)                                                                \
	do {                                                                            \
		quiesce_fetch_add_relaxed(&nr_checks, 1);                               \
		if (!(condition)) {                                                     \
			quiesce_fetch_add_relaxed(&nr_failed, 1);                       \
			std::printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition);   \
		}                                                                       \
	} while (0)

struct test {
	const char *name;
	void (*fn)();
};
#define TEST(fn) test{ #fn, fn }

template<std::size_t N> int run_tests(const test (&tests)[N])
{
	int n = 0, bad = 0;

	std::printf("1..%zu\n", N);
	for (const test &t : tests) {
		nr_failed = nr_checks = 0;
		alarm(90);
		t.fn();
		bool ok = nr_checks && !nr_failed;
		std::printf("%s %d - %s (%d checks)\n", ok ? "ok" : "not ok", ++n, t.name, nr_checks);
		bad += !ok;
	}
	return bad != 0;
}

#endif
