/* SPDX-License-Identifier: MIT */
/* reload.cpp - a service answers from a table, and reloads it from its file meanwhile: the effect on the clients.
 *
 * Threads look names up without pause.  A reloader reads and parses the file anew, publishes the table that it made of it, and
 * ends the old one when no reader can be in it any more.  Variants only differ in how the reloader knows that.
 *
 * Two times are taken.  A lookup's own, from where its section begins to where it has ended.  And that of requests: they
 * come every 10 us for each thread, whether it is ready or not, and the next lookup that begins answers the oldest that
 * has come.  A thread that is stopped for 5 ms has one long lookup in a million short ones, and 500 late answers.
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>
#include <unistd.h>

#include <quiesce/atomic.h>

#include "case.h"
#include "histogram.h"
#include "stopwatch.h"
#include "table.hpp"
#include "ways.hpp"

using namespace reload;

namespace {

/* ---- threads ---- */

/* Some threads that run @body(index) until stopped() is true. */
template<class Body> class crew {
public:
	crew(int nr, bool pinned, Body &body) : each(body)
	{
		spin_barrier_init(&barrier, uint32_t(nr) + 1);
		team.nr = nr;
		team.pinned = pinned;
		team.body = member_main;
		team.arg = this;
		team_start(&team);
	}
	crew(const crew &) = delete;
	crew &operator=(const crew &) = delete;
	/* Stop and join the threads, also where the reloader throws. */
	~crew()
	{
		quiesce_store_relaxed(&stop, true); /* Relaxed: publishes nothing. */
		team_join(&team);
	}

	/* Each thread calls this, and so does their maker: it returns when all have arrived. */
	void begin() { spin_barrier_wait(&barrier); }
	bool stopped() const { return quiesce_load_relaxed(&stop); } /* Relaxed: publishes nothing. */

private:
	Body &each;
	struct team team = {};
	struct spin_barrier barrier = {};
	bool stop = false;

	static void member_main(struct member *m)
	{
		auto *self = static_cast<crew *>(m->team->arg);

		try {
			self->each(*self, m->index);
		} catch (const std::bad_alloc &) { /* no memory for a slot; the others wait for this thread */
			case_note("no memory");
			std::_Exit(CASE_FAILED);
		}
	}
};

/* ---- what is measured ---- */

constexpr struct data {
	const char *name, *path, *package;
} known_data[] = {
	{ "psl", "/usr/share/publicsuffix/public_suffix_list.dat", "publicsuffix" },
	{ "geoip", "/usr/share/tor/geoip", "tor-geoipdb" },
};

struct settings {
	data from = known_data[0];
	uint64_t every_ns = 50000000;
} settings;

constexpr uint64_t REQUEST_NS = 10000;

/* Each thread has a tally. */
struct tally {
	histogram lookup = {}, request = {}; /* in ticks */
	uint64_t found = 0;
};

/* The reloader counts its work here. */
struct work {
	uint64_t reloads = 0, total_ns = 0, build_ns = 0;
};

/* A reader looks the names up in their order, and begins at its own place. */
template<class Reader, class Crew>
void answer(Reader &reader, Crew &all, const queries &asked, size_t at, uint64_t period, tally &t)
{
	uint64_t due;

	for (const query &q : asked.list) /* caches and pages get warm */
		reader([&](const table &in) { t.found += in.find(q); });
	all.begin();
	due = stopwatch_begin();
	while (!all.stopped()) {
		const query &q = asked.list[at++ % asked.list.size()];
		uint64_t begin = stopwatch_begin(), took;

		reader([&](const table &in) { t.found += in.find(q); });
		took = stopwatch_since(begin);
		histogram_add(&t.lookup, took);
		if (begin < due)
			continue;
		histogram_add(&t.request, begin + took - due);
		due += period;
	}
}

template<class Way> void reload_once(Way &way, work *w)
{
	uint64_t begin = now_ns();

	way.reload([w] {
		uint64_t start = now_ns();
		table *fresh = table::parse(read_file(settings.from.path));

		w->build_ns += now_ns() - start;
		return fresh;
	});
	w->total_ns += now_ns() - begin;
	w->reloads++;
}

void sleep_until(uint64_t when)
{
	uint64_t now = now_ns();

	if (when > now)
		sleep_ns(when - now);
}

/* Reload at a steady rate; at least once, however short the time is. */
template<class Way> work reload_until(Way &way, uint64_t begin, uint64_t end)
{
	uint64_t due = begin + std::min(settings.every_ns, end - begin) / 2;
	work w;

	do {
		sleep_until(due);
		reload_once(way, &w);
		due = std::max(due + settings.every_ns, now_ns());
	} while (due < end);
	return w;
}

struct scenario {
	const char *name;
	bool reloads, spare;
};
constexpr scenario scenarios[] = {
	{ "quiet", false, false },
	{ "reloads", true, false },
	{ "quiet, CPU spare", false, true },
	{ "reloads, CPU spare", true, true },
};

void report(const case_run *run, const scenario &s, const std::vector<tally> &each, double seconds, double tick_ns, const work &w)
{
	auto all = std::make_unique<tally>();
	double reloads = double(w.reloads), some = w.reloads ? 1 : NAN;

	for (const tally &t : each) {
		histogram_merge(&all->lookup, &t.lookup);
		histogram_merge(&all->request, &t.request);
	}
	auto ns = [tick_ns](const histogram &h, double p) { return double(histogram_quantile(&h, p)) * tick_ns; };

	CASE_RESULT(run, s.name, { "p50_ns", ns(all->lookup, 0.5) }, { "p99_ns", ns(all->lookup, 0.99) },
		    { "p999_ns", ns(all->lookup, 0.999) }, { "max_us", double(all->lookup.max) * tick_ns / 1000 },
		    { "request_p50_us", ns(all->request, 0.5) / 1000 }, { "request_p99_us", ns(all->request, 0.99) / 1000 },
		    { "request_p999_us", ns(all->request, 0.999) / 1000 }, { "request_max_us", double(all->request.max) * tick_ns / 1000 },
		    { "Mlookups", double(all->lookup.nr) / seconds / 1e6 },
		    { "reloads", reloads * some }, { "reload_ms", some * double(w.total_ns) / reloads / 1e6 },
		    { "publish_us", some * double(w.total_ns - w.build_ns) / reloads / 1e3 },
		    { "tables", some * double(table::most_alive()) });
}

template<class Way> void measure_one(const case_run *run, const scenario &s, Way &way, const queries &asked, const stopwatch &clock)
{
	int cpus = cpus_online(), nr = run->threads ? run->threads : cpus;
	double tick_ns = stopwatch_tick_ns(&clock), seconds;
	work w;

	nr = s.spare ? std::min(nr, cpus - 1) : nr;
	std::vector<tally> tallies{ size_t(nr) };
	table::forget_most();
	{
		auto body = [&](auto &all, int index) {
			typename Way::reader reader{ way };

			answer(reader, all, asked, asked.list.size() / size_t(nr) * size_t(index), uint64_t(REQUEST_NS / tick_ns),
			       tallies[size_t(index)]);
		};
		crew all(nr, true, body);

		bind_cpu(s.spare ? cpus - 1 : -1);
		all.begin();
		uint64_t begin = now_ns(), end = begin + uint64_t(run->seconds * 1e9);

		if (s.reloads)
			w = reload_until(way, begin, end);
		sleep_until(end);
		seconds = double(now_ns() - begin) / 1e9;
	}
	bind_cpu(-1);
	report(run, s, tallies, seconds, tick_ns, w);
}

template<class Way> int measure(case_run *run)
{
	stopwatch clock;

	stopwatch_start(&clock);
	std::string text = read_file(settings.from.path);
	Way way(table::parse(text));
	queries asked = make_queries(text, run->round + 1);

	for (const scenario &s : scenarios) {
		if (!case_wants(run, s.name))
			continue;
		if (s.spare && cpus_online() < 2)
			case_note("'%s' is left out: there is one CPU", s.name);
		else
			measure_one(run, s, way, asked, clock);
	}
	return 0;
}

/* ---- --check ---- */

/* Rules of all kinds, and what follows from them. */
constexpr const char *rules = "// no comment\nshop\ncorp.shop  or so\n*.deep.shop\n\nisle\n*.isle\n!port.isle\n";
constexpr struct {
	std::string_view name, registrable;
} examples[] = {
	{ "shop", "" },
	{ "b.shop", "b.shop" },
	{ "a.b.shop", "b.shop" },
	{ "corp.shop", "" },
	{ "www.x.corp.shop", "x.corp.shop" },
	{ "deep.shop", "deep.shop" },
	{ "x.deep.shop", "" },
	{ "www.y.x.deep.shop", "y.x.deep.shop" },
	{ "bay.isle", "" },
	{ "www.bay.isle", "www.bay.isle" },
	{ "port.isle", "port.isle" },
	{ "www.port.isle", "port.isle" },
	{ "elsewhere", "" },
	{ "www.some.elsewhere", "some.elsewhere" },
};

/* Return whether the reader gets the right answer.  A dead table is not searched, because its memory may hold no table any more. */
bool right(const table &in, const auto &example, bool stay)
{
	uint32_t got;

	if (!canary_sings(&in.canary))
		return true; /* the canary has counted this error */
	got = in.find({ example.name, 0 });
	if (stay)
		sched_yield();
	return !canary_sings(&in.canary) || got == example.registrable.size();
}

bool ranges_right()
{
	std::unique_ptr<table, bury> t(table::parse("# two\n30,30,CD\n10,19,AB\n"));
	const uint32_t ab = 'A' << 8 | 'B', cd = 'C' << 8 | 'D';
	auto at = [&t](uint32_t address) { return t->find({ {}, address }); };

	return !at(0) && !at(9) && at(10) == ab && at(19) == ab && !at(20) && at(30) == cd && !at(31) && !at(UINT32_MAX);
}

/* Tables are replaced as fast as they can be made, until time is up or a reader has met a dead one. */
template<class Way> uint64_t replace_tables(Way &way, double seconds)
{
	uint64_t end = now_ns() + uint64_t(seconds * 1e9), n = 0;

	do {
		way.reload([] { return table::parse(rules); });
		n++;
	} while (now_ns() < end && !canary_dead());
	return n;
}

template<class Way> int check(case_run *run)
{
	uint64_t reads = 0, wrong = 0, replaced;
	bool good = ranges_right();
	{
		Way way(table::parse(rules));
		auto body = [&](auto &all, int) {
			typename Way::reader reader{ way };
			uint64_t n = 0, bad = 0;

			all.begin();
			do {
				reader([&](const table &in) { bad += !right(in, examples[n % std::size(examples)], n % 61 == 0); });
				if (n % 61 == 30) /* outside, or no writer ever finds a std::shared_mutex free */
					sched_yield();
				n++;
			} while (!all.stopped());
			(void)quiesce_fetch_add_relaxed(&reads, n); /* Relaxed: counts, read after the join. */
			(void)quiesce_fetch_add_relaxed(&wrong, bad);
		};
		crew all(run->threads ? run->threads : std::max(cpus_online(), 2), false, body);

		all.begin();
		replaced = replace_tables(way, run->seconds);
	}
	if (wrong || !good)
		std::printf("%llu answers were wrong%s\n", (unsigned long long)wrong, good ? "" : ", and those from ranges");
	if (table::alive())
		std::printf("%llu tables were forgotten\n", (unsigned long long)table::alive());
	good = good && !wrong && !table::alive();
	return case_verdict(run, reads, replaced) || !good ? CASE_FAILED : 0;
}

/* ---- the program ---- */

constexpr case_choice variants[] = {
	{ "rcu", "a section; rcu_retire()", false },
	{ "hazptr", "a hazard pointer of the thread; retire()", false },
	{ "shazptr", "a guard; synchronize_shazptr() in the reloader", false },
	{ "percpu_rwsem", "percpu_shared_mutex, written for the swap", false },
	{ "pthread_rwlock", "std::shared_mutex, which is one; written for the swap", false },
	{ "mutex", "std::mutex, also of readers", false },
	{ "shared_ptr", "std::atomic<std::shared_ptr>", false },
	{ "rwlock_whole", "std::shared_mutex, written for all of the reload", false },
	{ "none", "the old table is freed at once", true },
	{ nullptr, nullptr, false },
};

constexpr case_choice scenario_list[] = {
	{ "quiet", "a lookup thread on each CPU", false },
	{ "reloads", "a lookup thread on each CPU, and the reloader beside them", false },
	{ "quiet, CPU spare", "a lookup thread on each CPU but one", false },
	{ "reloads, CPU spare", "a lookup thread on each CPU but one, and the reloader on that one", false },
	{ nullptr, nullptr, false },
};

template<class Way> int run_way(case_run *run)
{
	try {
		bury::with_canary = run->check;
		return run->check ? check<Way>(run) : measure<Way>(run);
	} catch (const std::bad_alloc &) {
		case_note("no memory");
	} catch (const std::exception &e) {
		case_note("%s: %s", settings.from.path, e.what());
	}
	return CASE_FAILED;
}

#ifndef HAVE_STD_ATOMIC_SHARED_PTR
int run_shared_ptr(case_run *)
{
	case_note("this C++ library has no std::atomic<std::shared_ptr>");
	return CASE_UNAVAILABLE;
}
#else
constexpr auto run_shared_ptr = run_way<by_shared_ptr>;
#endif

/* The entries have the order of the variants. */
int (*const ways[])(case_run *) = {
	run_way<by_rcu>, run_way<by_hazptr>, run_way<by_shazptr>, run_way<by_percpu_rwsem>, run_way<by_rwlock>,
	run_way<by_mutex>, run_shared_ptr, run_way<by_rwlock_whole>, run_way<by_nothing>,
};
static_assert(std::size(ways) + 1 == std::size(variants));

int run(case_run *run)
{
	const data &d = settings.from;

	if (!run->check && d.package && access(d.path, R_OK)) {
		case_note("%s is not there: install the Debian package %s, or name a file with --data", d.path, d.package);
		return CASE_UNAVAILABLE;
	}
	cpus_online(); /* before anything is bound */
	return ways[run->variant - variants](run);
}

void take_data(case_run *, const char *value)
{
	settings.from = { value, value, nullptr };
	for (const data &d : known_data)
		if (std::string_view(value) == d.name)
			settings.from = d;
}

void take_every(case_run *, const char *value)
{
	char *end;
	double ms = std::strtod(value, &end);

	if (end == value || *end || !(ms >= 0 && ms <= 1e6))
		case_usage("--every=%s: a number from 0 to 1000000 is needed", value);
	settings.every_ns = uint64_t(ms * 1e6);
}

constexpr case_option options[] = {
	{ "data", "NAME", "psl (public suffixes, default), geoip (addresses and countries), or a file like one of these", take_data },
	{ "every", "MS", "time from one reload to the next, 0: one after the other (default: 50)", take_every },
	{ nullptr, nullptr, nullptr, nullptr },
};

constexpr case_program program = {
	.name = "reload",
	.what = "A service answers from a table, and reloads it from its file meanwhile.",
	.variants = variants,
	.scenarios = scenario_list,
	.options = options,
	.seconds = 1,
	.run = run,
};

} // namespace

int main(int argc, char **argv)
{
	return case_main(&program, argc, argv);
}
