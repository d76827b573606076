/* SPDX-License-Identifier: MIT */
/* report.c - format a report on the stack and deliver it in one call, without allocating.
 *
 * A report about a thread may be out of date when it is read: reports are for people.
 *
 * RU3  hook set up, then set | hook read, then called
 */
#include "report.h"

#include "platform/probe.h"
#include "readers.h"
#include "run.h"

#include <stdarg.h>
#include <stdio.h>

#define MS 1000000u

static void (*report_hook)(const struct quiesce_report *report);

void quiesce_set_report_hook(void (*hook)(const struct quiesce_report *report))
{
	/* RU3: release, pairs with RU3 in quiesce__report_end() */
	quiesce_store_release(RU3, &report_hook, hook);
}

void quiesce__report_add(struct quiesce__report *r, const char *format, ...)
{
	size_t space = sizeof r->text - r->length;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(r->text + r->length, space, format, args);
	va_end(args);
	r->length += n < 0 ? 0 : (size_t)n < space ? (size_t)n : space - 1;
}

void quiesce__report_stall(struct quiesce__report *r, const char *call, const void *object, uint64_t ns)
{
	r->reported = (struct quiesce_report){ .kind = QUIESCE_REPORT_STALL, .call = call, .object = object, .waited_ns = ns };
	r->length = 0;
	quiesce__report_add(r, "%s", call);
	if (object)
		quiesce__report_add(r, "(%p)", object);
	quiesce__report_add(r, ": waiting for %llu ms for ", (unsigned long long)(ns / MS));
}

void quiesce__report_garbage(struct quiesce__report *r, const char *what, uint64_t bytes, uint64_t objects)
{
	r->reported = (struct quiesce_report){ .kind = QUIESCE_REPORT_GARBAGE, .call = what, .garbage_bytes = bytes };
	r->length = 0;
	quiesce__report_add(r, "garbage: %llu MiB in %llu objects of %s", (unsigned long long)(bytes >> 20),
			    (unsigned long long)objects, what);
}

/* The state of thread @tid as text, empty where it is not known. */
static const char *state_of(uint32_t tid)
{
	switch (platform_thread_state(tid)) {
	case 'R':
		return ", runnable";
	case 'S':
	case 'D':
		return ", asleep";
	case 'T':
	case 't':
		return ", stopped";
	default:
		return "";
	}
}

static void add_known_thread(struct quiesce__report *r, uint32_t tid)
{
	char name[16];

	platform_thread_name(tid, name);
	quiesce__report_add(r, "thread %u (%s)", tid, name);
	if (tid != quiesce__tid())
		quiesce__report_add(r, "%s", state_of(tid));
}

void quiesce__report_thread(struct quiesce__report *r, uint32_t tid, uint32_t waiter)
{
	if (tid == QUIESCE_TID_INHERITED) {
		quiesce__report_add(r, "a thread of the parent, which forked without fork handlers; whether the child has it is known once "
				       "the child's first thread calls the library");
		return;
	}
	if (!tid) {
		quiesce__report_add(r, "a thread that is not known");
		return;
	}
	if (!platform_thread_alive(tid)) {
		quiesce__report_add(r, "thread %u, which has ended", tid);
		return;
	}
	r->reported.holder = tid; /* set only while the id is still that thread's */
	add_known_thread(r, tid);
	if (tid == waiter)
		quiesce__report_add(r, ", the one that waits");
}

void quiesce__report_code(struct quiesce__report *r, const char *before, const void *code)
{
	char where[160];

	platform_describe_code(code, where, sizeof where);
	quiesce__report_add(r, "%s%s", before, where);
}

void quiesce__report_since(struct quiesce__report *r, uint64_t since, const void *site)
{
	if (since)
		quiesce__report_add(r, ", inside for %llu ms", (unsigned long long)((platform_now_ns() - since) / MS));
	if (site)
		quiesce__report_code(r, ", from ", site);
}

void quiesce__report_held(struct quiesce__report *r, const void *object, enum quiesce__held_kind kind)
{
	struct quiesce__holder h = quiesce__held_longest(object, kind);

	if (!h.nr) {
		quiesce__report_add(r, " (programs built with QUIESCE_DEBUG are told who)");
		return;
	}
	quiesce__report_add(r, ": ");
	quiesce__report_thread(r, h.tid, quiesce__tid());
	quiesce__report_since(r, h.since, h.site);
}

void quiesce__report_count(struct quiesce__report *r, uint64_t inside, const char *what)
{
	if ((int64_t)inside < 0)
		quiesce__report_add(r, "%s that never came: there are %llu more unlocks than locks", what, (unsigned long long)-inside);
	else
		quiesce__report_add(r, "%llu %s", (unsigned long long)inside, what);
}

struct hook_call {
	struct quiesce__run run;
	void (*hook)(const struct quiesce_report *report);
	const struct quiesce_report *reported;
};

static void run_hook(struct quiesce__run *run)
{
	struct hook_call *call = (struct hook_call *)run;

	call->hook(call->reported);
}

/* The hook runs in the middle of a wait that other threads share, so the wait cannot be abandoned. */
static void hook_ended(struct quiesce__run *run)
{
	const struct hook_call *call = (const struct hook_call *)run;

	quiesce__say("thread %u ended in the hook of quiesce_set_report_hook(), in the middle of %s(): the process cannot go on",
		     platform_tid(), call->reported->call);
	platform_die();
}

static void call_hook(void (*hook)(const struct quiesce_report *report), const struct quiesce__report *r)
{
	struct hook_call call = { .hook = hook, .reported = &r->reported };

	quiesce__run(&call.run, run_hook, hook_ended);
}

void quiesce__report_end(struct quiesce__report *r)
{
	/* RU3: acquire, pairs with RU3 in quiesce_set_report_hook() */
	void (*hook)(const struct quiesce_report *) = quiesce_load_acquire(RU3, &report_hook);

	r->reported.text = r->text;
	quiesce_probe(report, r->reported.kind, r->reported.call, r->text);
	if (hook)
		call_hook(hook, r);
	else
		quiesce__say("%s", r->text);
	if (r->reported.kind == QUIESCE_REPORT_STALL) /* counted last: a caller that reads the new count may free what the hook used */
		quiesce__count(stalls);
}

/* ---- garbage ---- */

static struct {
	struct quiesce__lock lock;
	uint64_t next[QUIESCE_NR_GARBAGE_KINDS]; /* number of bytes of the next report; 0: the threshold */
} garbage;

/* Take a report: true if @bytes have reached the number of the next one, which is raised.  Once garbage falls below half the threshold,
 * the next report is at the threshold again.  Under the lock. */
static bool take_report(uint64_t *next_report, uint64_t bytes, uint64_t threshold)
{
	uint64_t next = *next_report > threshold ? *next_report : threshold;

	if (bytes < threshold / 2)
		quiesce_store_relaxed(next_report, 0); /* Relaxed: under the lock. */
	if (bytes < next)
		return false;
	while (next <= bytes && next <= UINT64_MAX / 2)
		next *= 2;
	quiesce_store_relaxed(next_report, next); /* Relaxed: under the lock. */
	return true;
}

bool quiesce__garbage_take_report(enum quiesce__garbage_kind kind, uint64_t bytes)
{
	uint64_t threshold = quiesce_load_relaxed(&quiesce__settings.garbage_warning); /* Relaxed: a setting. */
	uint64_t *next = &garbage.next[kind];
	bool taken;

	/* Relaxed: callers check often, so a report that this check misses comes with a later one. */
	if (quiesce_likely(!threshold || (bytes < threshold && !quiesce_load_relaxed(next))) || !quiesce__trylock(&garbage.lock))
		return false;
	taken = take_report(next, bytes, threshold);
	quiesce__unlock(&garbage.lock);
	if (taken)
		quiesce__count(garbage_warnings);
	return taken;
}

void quiesce__reports_fork_child(void)
{
	quiesce__lock_reset(&garbage.lock, false);
}

void quiesce_set_garbage_warning(uint64_t bytes)
{
	quiesce__init();
	quiesce_store_relaxed(&quiesce__settings.garbage_warning, bytes); /* Relaxed: a setting. */
}
