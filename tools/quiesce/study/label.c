/* SPDX-License-Identifier: MIT */
/* label.c - a label that every open of a web server checks, a use of hazard pointers in the kernel: cases/label. */
#include "study.h"

static const struct study_variant variants[] = {
	{ "unchecked", NULL, "no check of the label: the upper bound" },
	{ "refcount", NULL, "a reference of the label that the worker's credential keeps, on one count: AppArmor until condref" },
	{ "percpu_ref", "light", "a reference of that label, counted per CPU" },
	{ "percpu_ref", "full", "a reference of that label, on one count, by a call" },
	{ "rcu", "light", "a section around the check" },
	{ "rcu", "full", NULL },
	{ "hazptr", "light", "a slot of each worker, hazptr_protect(); call_hazptr()" },
	{ "hazptr", "full", NULL },
	{ "counted_ptr", "light", "counted_load() and counted_put(): a hazard pointer made a reference, each time" },
	{ "condref", NULL, "no reference while the worker's own label is not stale: AppArmor now" },
	{ NULL, NULL, NULL },
};

static const struct study_column columns[] = {
	{ "ns_check", "ns/turn", false }, { "checks_M", "turns M/s", false }, { "line_ns", "line ns", false },
	{ "requests_s", "requests/s", false }, { "cpu_us", "CPU us/req", false }, { "p50_us", "p50 us", false },
	{ "p99_us", "p99 us", false }, { "replacements", "replaced", false }, { "errors", "errors", true }, { NULL, NULL, false },
};

#define GAP(text, figure, metric, a, a_fence, where) \
	{ text, figure, STUDY_GAP, { a, a_fence, where, metric }, { "refcount", NULL, where, metric }, \
	  { "unchecked", NULL, where, metric } }
#define SLOWER(text, figure, metric, where) \
	{ text, figure, STUDY_RATIO, { "refcount", NULL, where, metric }, { "unchecked", NULL, where, metric }, STUDY_NOWHERE }
#define NEAR "loop, 2 threads, near"
#define FAR "loop, 2 threads, far"
#define ALL "loop, all CPUs"
#define SLIDES "1.116, nginx, 192 CPUs"
#define SLIDES_GAP "0.64 (7.4 of 11.6 %)"

static const struct study_shape shapes[] = {
	SLOWER("ns: refcount / unchecked, 1 thread", NULL, "ns_check", "loop, 1 thread"),
	SLOWER("ns: refcount / unchecked, near", NULL, "ns_check", NEAR),
	SLOWER("ns: refcount / unchecked, far", SLIDES, "ns_check", FAR),
	SLOWER("ns: refcount / unchecked, all CPUs", SLIDES, "ns_check", ALL),
	GAP("gap recovered: hazptr, near", NULL, "ns_check", "hazptr", "light", NEAR),
	GAP("gap recovered: hazptr, far", SLIDES_GAP, "ns_check", "hazptr", "light", FAR),
	GAP("gap recovered: hazptr full, far", NULL, "ns_check", "hazptr", "full", FAR),
	GAP("gap recovered: rcu, far", NULL, "ns_check", "rcu", "light", FAR),
	GAP("gap recovered: percpu_ref, far", NULL, "ns_check", "percpu_ref", "light", FAR),
	GAP("gap recovered: condref, far", NULL, "ns_check", "condref", NULL, FAR),
	GAP("gap recovered: counted_ptr, far", NULL, "ns_check", "counted_ptr", "light", FAR),
	GAP("gap recovered: hazptr, all CPUs", SLIDES_GAP, "ns_check", "hazptr", "light", ALL),
	GAP("gap recovered: hazptr, http", SLIDES_GAP, "requests_s", "hazptr", "light", "http"),
	GAP("gap recovered: rcu, http", NULL, "requests_s", "rcu", "light", "http"),
	GAP("gap recovered: percpu_ref, http", NULL, "requests_s", "percpu_ref", "light", "http"),
	GAP("gap recovered: condref, http", NULL, "requests_s", "condref", NULL, "http"),
	STUDY_END,
};

const struct study study_label = {
	.name = "label",
	.what = "a security label that each open of a web server asks, replaced meanwhile",
	.document = "\"Hazard pointers in the Linux kernel\", slides, 2024: nginx with 192 workers, two EPYC sockets, AppArmor",
	.honesty = "The share of a gap means something only where the gap, refcount against unchecked, exceeds three times the spread. "
		   "Under HTTP on few CPUs it does not: a request takes 22 us of the server's CPU time, a check 0.1 us at most, wrk "
		   "has half of the machine, and requests/s vary by a tenth; the shapes named http are then noise, of either sign. The "
		   "loop has the check without HTTP, beside a microsecond of work: read that, and how it grows with threads. "
		   "The cost of a shared count depends on how long its line travels (line ns), and hosts move virtual CPUs about: so "
		   "two threads are called near (one cache) or far, sample by sample, and one of the two may be missing. ns/turn is "
		   "CPU time of a thread, with the work, the median of slices of a ms. Nothing here is nginx on 192 CPUs: a larger "
		   "machine must confirm what the loop on all CPUs says.",
	.program = "label/label",
	.missing = "libmicrohttpd-dev wrk",
	.variants = variants,
	.columns = columns,
	.shapes = shapes,
	.rounds = 3,
	.quick_rounds = 1,
	.seconds = 0.5,
	.quick_seconds = 0.5,
};
