/* SPDX-License-Identifier: MIT */
/* reload.c - a table that is reloaded beside its lookups, as a service does with the public suffix list. */
#include "study.h"

static const struct study_variant variants[] = {
	{ "rcu", "light", "a section; quiesce::rcu_retire()" },
	{ "rcu", "full", NULL },
	{ "hazptr", "light", "a hazard pointer of the thread; retire()" },
	{ "hazptr", "full", NULL },
	{ "shazptr", "light", "a guard; synchronize_shazptr() in the reloader" },
	{ "shazptr", "full", NULL },
	{ "percpu_rwsem", "light", "percpu_shared_mutex, written for the swap" },
	{ "pthread_rwlock", NULL, "std::shared_mutex, which is one; written for the swap" },
	{ "mutex", NULL, "std::mutex, also of readers" },
	{ "shared_ptr", NULL, "std::atomic<std::shared_ptr>" },
	{ "rwlock_whole", NULL, "std::shared_mutex, written for all of the reload" },
	{ NULL, NULL, NULL },
};

static const struct study_column columns[] = {
	{ "p999_ns", "p99.9 ns", false }, { "p50_ns", "p50 ns", false }, { "max_us", "worst us", true },
	{ "request_p999_us", "request p99.9 us", false }, { "Mlookups", "M/s", false }, { "reloads", "reloads", false },
	{ "reload_ms", "ms each", false }, { "publish_us", "swap us", false }, { "tables", "tables", true }, { NULL, NULL, false },
};

#define RELOADS(text, variant, fence, metric, where) \
	{ text, NULL, STUDY_RATIO, { variant, fence, "reloads" where, metric }, { variant, fence, "quiet" where, metric }, STUDY_NOWHERE }
#define SPARE(variant, fence, target) \
	RELOADS("lookup p99.9, reloads / quiet, CPU spare: " variant target, variant, fence, "p999_ns", ", CPU spare")
#define ALL_CPUS(variant, fence, target) \
	RELOADS("lookup p99.9, reloads / quiet, all CPUs: " variant target, variant, fence, "p999_ns", "")
#define REQUEST(variant, fence) \
	RELOADS("request p99.9, reloads / quiet, CPU spare: " variant, variant, fence, "request_p999_us", ", CPU spare")
#define RATE(variant) \
	{ "lookups a second, quiet: rcu / " variant, NULL, STUDY_RATIO, { "rcu", "light", "quiet", "Mlookups" }, \
	  { variant, NULL, "quiet", "Mlookups" }, STUDY_NOWHERE }
#define TARGET " (target: 2 at most)"

static const struct study_shape shapes[] = {
	SPARE("rcu", "light", TARGET),
	SPARE("hazptr", "light", TARGET),
	SPARE("shazptr", "light", TARGET),
	SPARE("pthread_rwlock", NULL, ""),
	SPARE("shared_ptr", NULL, ""),
	SPARE("rwlock_whole", NULL, ""),
	ALL_CPUS("rcu", "light", TARGET),
	ALL_CPUS("hazptr", "light", TARGET),
	ALL_CPUS("shazptr", "light", TARGET),
	ALL_CPUS("pthread_rwlock", NULL, ""),
	ALL_CPUS("shared_ptr", NULL, ""),
	REQUEST("rcu", "light"),
	REQUEST("pthread_rwlock", NULL),
	REQUEST("rwlock_whole", NULL),
	RATE("shared_ptr"),
	RATE("pthread_rwlock"),
	STUDY_END,
};

const struct study study_reload = {
	.name = "reload",
	.what = "host names looked up in the public suffix list, while it is read, parsed and replaced 20 times a second",
	.honesty = "Nothing was published; the target is our own: p99.9 of a lookup beside reloads at most twice that of a quiet "
		   "service. p99.9, p50 and worst are of lookups, with some 20 ns of the clock's own in them, in the steps of the "
		   "CPU's counter (10 ns on some). A request is due every 10 us for each thread, ready or not, and its time runs "
		   "from there: a thread that is stopped for a whole reload has one long lookup among many thousands, and a hundred "
		   "late answers. Without a spare CPU the reloader takes one from lookups, whatever the variant, so what a lock does "
		   "is in the tables with one. Where p99.9 of lookups grows beside reloads, it does for all alike: the fresh table "
		   "is in no reader's cache. Swap is what a reload takes beyond building: shazptr waits and frees there, rcu and "
		   "hazptr leave that to the library, and with shared_ptr the last owner frees. Tables: the most there were at "
		   "once. On two CPUs the spare one leaves a single reader, which contends with no other; how a lock's or a count's line "
		   "fares among many readers is for a larger machine to show.",
	.program = "reload/reload",
	.missing = "g++",
	.variants = variants,
	.columns = columns,
	.shapes = shapes,
	.rounds = 3,
	.quick_rounds = 2,
	.seconds = 0.4,
	.quick_seconds = 0.18,
};
