/* SPDX-License-Identifier: MIT */
/* raw, whole file: a program that knows the standard library and nothing of quiesce. */
/* check.cpp - main(): every test, or those whose line has argv[1]; prints TAP. */
#include "check.hpp"

#include <cstdlib>
#include <cstring>
#include <mutex>

namespace check {

static test *first, **last = &first;
static std::atomic<unsigned> checks, failures;
static std::mutex printing;
static std::atomic<bool> over; /* main() has returned */

test::test(const char *c, const char *t, void (*r)()) : clause(c), title(t), run(r), next(nullptr)
{
	*last = this;
	last = &next;
}

bool that(bool ok, const char *text, const char *file, int line)
{
	checks++;
	if (!ok && failures++ < 20) {
		std::lock_guard lock(printing);
		std::printf("#   %s:%d: %s\n", file, line, text);
		std::fflush(stdout);
		if (over)
			std::_Exit(1);
	}
	return ok;
}

static bool run(const test &t, unsigned number)
{
	checks = failures = 0;
	t.run();
	bool ok = checks && !failures;
	std::printf("%s %u - [%s] %s (%u checks)\n", ok ? "ok" : "not ok", number, t.clause, t.title, checks.load());
	std::fflush(stdout);
	return ok;
}

} // namespace check

int main(int argc, char **argv)
{
	unsigned number = 0, bad = 0, all = 0;

	for (check::test *t = check::first; t; t = t->next) {
		if (argc > 1 && !std::strstr(t->title, argv[1]) && !std::strstr(t->clause, argv[1]))
			continue;
		bad += !check::run(*t, ++number);
		all += check::checks;
	}
	std::printf("1..%u\n# %u tests, %u checks, %u tests failed\n", number, number, all, bad);
	std::fflush(stdout);
	check::failures = 0;
	check::over = true;
	return bad || !number;
}
