/* SPDX-License-Identifier: MIT */
/* property.cpp - sequences by RapidCheck. */
#include "property.hpp"

#include "../sanitized.h"

#include <rapidcheck.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <unistd.h>

namespace properties {

namespace {

/* Sequences are longer than RapidCheck's hundred, because a table has to grow several times. */
constexpr int LONGEST = 400;
/* Seconds for shrinking; the sequence that is left then is reported as it is. */
constexpr int LIMIT_S = 20;

/* The handler of crashes reads which property runs, and where in its sequence. */
const property *current;
const std::vector<op> *sequence;
std::size_t at;

std::string text(const property &p, const op &o)
{
	return std::string(p.verbs[o.verb].name) + "(" + std::to_string(o.a) + ", " + std::to_string(o.b) + ")";
}

std::string text(const property &p, const std::vector<op> &ops)
{
	std::string all;

	for (const op &o : ops)
		all += (all.empty() ? "" : " ") + text(p, o);
	return all;
}

/* A crash cannot be shrunk, but its sequence is reported. */
void crashed(int signal)
{
	char line[200];

	if (current && sequence)
		for (std::size_t i = 0; i < sequence->size() && i <= at; i++) {
			const op &o = (*sequence)[i];
			int n = snprintf(line, sizeof(line), "# %s: %s(%u, %u)%s\n", current->name.c_str(),
					 current->verbs[o.verb].name, o.a, o.b, i == at ? " <- here" : "");

			if (n < 0 || write(STDERR_FILENO, line, static_cast<std::size_t>(n)) < 0)
				break;
		}
	std::signal(signal, SIG_DFL);
	std::raise(signal);
}

rc::Gen<std::vector<op>> sequences(const property &p)
{
	std::vector<unsigned> hat;

	for (unsigned i = 0; i < p.verbs.size(); i++)
		hat.insert(hat.end(), static_cast<std::size_t>(p.verbs[i].weight), i);
	/* Few keys meet each other often, many make a structure large. */
	auto number = [] {
		return rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0, 8), rc::gen::inRange<std::uint32_t>(0, 64),
				      rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::uint32_t>(0, 4096)));
	};
	auto one = rc::gen::map(rc::gen::tuple(rc::gen::elementOf(hat), number(), number()),
				[](const std::tuple<unsigned, std::uint32_t, std::uint32_t> &t) {
		return op{ std::get<0>(t), std::get<1>(t), std::get<2>(t) };
	});

	return rc::gen::container<std::vector<op>>(one);
}

/* Silences RapidCheck's own reports: this file reports failures, and a planted fault is none. */
struct silent : rc::detail::TestListener {
	void onTestCaseFinished(const rc::detail::CaseDescription &) override {}
	void onShrinkTried(const rc::detail::CaseDescription &, bool) override {}
	void onTestFinished(const rc::detail::TestMetadata &, const rc::detail::TestResult &) override {}
};

/* The last sequence that failed: RapidCheck goes on from there to smaller ones. */
struct failure {
	std::vector<op> ops;
	std::string why;
	std::time_t first = 0;
};

void run_case(const property &p, const std::vector<op> &ops, failure &last)
{
	if (last.first && std::time(nullptr) - last.first > LIMIT_S)
		return;
	current = &p;
	sequence = &ops;
	at = 0;
	alarm(20);
	try {
		auto s = p.make();

		for (const op &o : ops) {
			s->apply(o);
			s->compare(false);
			at++;
		}
		s->compare(true);
	} catch (const difference &d) {
		last.ops = ops;
		last.why = d.what();
		if (!last.first)
			last.first = std::time(nullptr);
		sequence = nullptr;
		throw;
	}
	sequence = nullptr;
}

int times()
{
	const char *said = std::getenv("QUIESCE_PROPERTY");
	int n = said ? std::atoi(said) : std::getenv("CI_LONG") ? 30 : 1;

	return n > 0 ? n : 1;
}

/* With a sanitizer a sequence takes several times as long; the stage without one has as many as the property says. */
int cases_of(const property &p)
{
	bool few = SANITIZED && !std::getenv("CI_LONG") && !std::getenv("QUIESCE_PROPERTY");

	return few ? (p.nr_cases + 2) / 3 : p.nr_cases * times();
}

/* One round: nr_cases sequences, or fewer if they differ. */
rc::detail::TestResult round_of(const property &p, std::uint64_t seed, failure &last, int &nr_cases)
{
	rc::detail::TestParams params = rc::detail::configuration().testParams;
	silent listener;

	params.seed = seed;
	params.maxSuccess = p.planted ? p.nr_cases * 10 : cases_of(p);
	params.maxSize = LONGEST;
	return rc::detail::checkTestable([&] {
		auto ops = *sequences(p);

		nr_cases++;
		run_case(p, ops, last);
	}, rc::detail::TestMetadata{ p.name, p.name }, params, listener);
}

bool check(const property &p, std::string &said)
{
	/* The sequences that find a planted fault are known for a fixed seed. */
	std::uint64_t seed = p.planted ? 1 : rc::detail::configuration().testParams.seed;
	failure last;
	int nr_cases = 0;
	auto result = round_of(p, seed, last, nr_cases);

	/* A round may by chance not reach all required states. */
	for (int n = 0; p.unreached && result.is<rc::detail::SuccessResult>() && !(said = p.unreached()).empty() && n < 20; n++)
		result = round_of(p, ++seed, last, nr_cases);
	if (result.is<rc::detail::SuccessResult>()) {
		if (p.planted)
			said = "the planted fault was not found";
		return said.empty();
	}
	said = "after " + std::to_string(nr_cases) + " sequences: " + text(p, last.ops) + ": " + last.why;
	if (!result.is<rc::detail::FailureResult>())
		said = "no result";
	else if (last.ops.size() > p.planted)
		said += p.planted ? " (more than " + std::to_string(p.planted) + " operations)" : "";
	else
		return p.planted != 0;
	return false;
}

} // namespace

int run(const std::vector<property> &properties)
{
	int n = 0, bad = 0;

	for (int signal : { SIGSEGV, SIGBUS, SIGABRT, SIGALRM })
		std::signal(signal, crashed);
	std::printf("1..%zu\n# RC_PARAMS=\"seed=%llu\"\n", properties.size(),
		    static_cast<unsigned long long>(rc::detail::configuration().testParams.seed));
	for (const property &p : properties) {
		std::string said;

		std::fflush(stdout);
		auto start = std::clock();
		bool ok = check(p, said);
		int ms = static_cast<int>((std::clock() - start) * 1000 / CLOCKS_PER_SEC);

		std::printf("%s %d - %s (%d ms)\n", ok ? "ok" : "not ok", ++n, p.name.c_str(), ms);
		if (!said.empty())
			std::printf("# %s\n", said.c_str());
		bad += !ok;
	}
	return bad != 0;
}

} // namespace properties
