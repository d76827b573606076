/* SPDX-License-Identifier: MIT */
/* held.c - locks and domains that are held, by thread.
 *
 * A table of fixed size under one lock, used by debug builds only.  Where the table is full nothing is
 * recorded, and queries return "not held": a missing report is better than a wrong one.
 */
#include "held.h"

#define MAX_HELD 4096u

static struct entry {
	const void *thread; /* TLS block of the holder; NULL: handed over, or the holder has ended */
	const void *object; /* NULL: the entry is free */
	const void *site;   /* code that took @object */
	uint64_t since;     /* time when it was taken */
	uint32_t tid;       /* thread that took it */
	enum quiesce__held_kind kind;
} held[MAX_HELD];
static uint32_t nr_held; /* number of entries that were ever used */
static struct quiesce__lock lock; /* signals are blocked while it is held */

static void begin(struct platform_sigmask *mask)
{
	platform_signals_block(mask);
	quiesce__lock(&lock);
}

static void end(const struct platform_sigmask *mask)
{
	quiesce__unlock(&lock);
	platform_signals_restore(mask);
}

static struct entry *find(const void *thread, const void *object, enum quiesce__held_kind kind)
{
	for (uint32_t i = nr_held; i--;)
		if (held[i].object == object && held[i].kind == kind && (!thread || held[i].thread == thread))
			return &held[i];
	return NULL;
}

static struct entry *find_free(void)
{
	for (uint32_t i = 0; i < nr_held; i++)
		if (!held[i].object)
			return &held[i];
	if (nr_held == MAX_HELD)
		return NULL;
	quiesce_store_relaxed(&nr_held, nr_held + 1); /* Relaxed: under the lock; a thread that exits reads it without the lock. */
	return &held[nr_held - 1];
}

void quiesce__held_add(const void *object, enum quiesce__held_kind kind, const void *site)
{
	struct platform_sigmask mask;
	uint64_t now = platform_now_ns();
	struct entry *e;

	quiesce__init();
	if (!(quiesce__self()->state & QUIESCE_TLS_EXITING))
		platform_arm_thread_exit(); /* if that fails, what the thread holds at its end is not reported */
	begin(&mask);
	/* A slot has one holder at a time, and may have been freed by a part of the program that is a release
	 * build: then its entry is still here, and is used again. */
	e = kind == QUIESCE_HELD_SLOT ? find(NULL, object, kind) : NULL;
	if (!e)
		e = find_free();
	if (e)
		*e = (struct entry){ quiesce__self(), object, site, now, quiesce__tid(), kind };
	end(&mask);
}

void quiesce__held_remove(const void *object, enum quiesce__held_kind kind)
{
	struct platform_sigmask mask;
	struct entry *e;

	quiesce__init();
	begin(&mask);
	e = find(quiesce__self(), object, kind);
	if (!e)
		e = find(NULL, object, kind);
	if (e)
		e->object = NULL;
	end(&mask);
}

const void *quiesce__held_since(const void *object, enum quiesce__held_kind kind)
{
	struct platform_sigmask mask;
	const struct entry *e;
	const void *site;

	quiesce__init();
	begin(&mask);
	e = find(quiesce__self(), object, kind);
	site = e ? e->site : NULL;
	end(&mask);
	return site;
}

bool quiesce__held_by_me(const void *object, enum quiesce__held_kind kind)
{
	return quiesce__held_since(object, kind) != NULL;
}

struct quiesce__holder quiesce__held_longest(const void *object, enum quiesce__held_kind kind)
{
	struct quiesce__holder longest = { .nr = 0 };
	struct platform_sigmask mask;

	if (!quiesce_load_relaxed(&nr_held)) /* Relaxed: a report; programs without debug builds take no lock here. */
		return longest;
	begin(&mask);
	for (uint32_t i = 0; i < nr_held; i++) {
		const struct entry *e = &held[i];

		if (e->object != object || e->kind != kind)
			continue;
		if (!longest.nr++ || e->since < longest.since) {
			longest.since = e->since;
			longest.site = e->site;
			longest.tid = e->tid;
		}
	}
	end(&mask);
	return longest;
}

const void *quiesce__held_slot_of_mine(bool (*protects)(const void *slot, uintptr_t address), uintptr_t address)
{
	struct platform_sigmask mask;
	const void *slot = NULL;

	if (!quiesce_load_relaxed(&nr_held)) /* Relaxed: this thread's own entries are counted. */
		return NULL;
	begin(&mask);
	for (uint32_t i = 0; i < nr_held && !slot; i++)
		if (held[i].object && held[i].kind == QUIESCE_HELD_SLOT && held[i].thread == quiesce__self() &&
		    protects(held[i].object, address))
			slot = held[i].object;
	end(&mask);
	return slot;
}

/* ---- the end of a thread, or of the process in a thread ---- */

bool quiesce__held_disown(bool slots, struct quiesce__held *ret)
{
	struct platform_sigmask mask;

	ret->object = NULL;
	if (!quiesce_load_relaxed(&nr_held)) /* Relaxed: this thread's own entries are counted. */
		return false;
	begin(&mask);
	for (uint32_t i = 0; i < nr_held && !ret->object; i++)
		if (held[i].object && held[i].thread == quiesce__self() && (held[i].kind == QUIESCE_HELD_SLOT) == slots) {
			*ret = (struct quiesce__held){ held[i].object, held[i].site, held[i].kind };
			held[i].thread = NULL;
		}
	end(&mask);
	return ret->object != NULL;
}

/* Report everything that the calling thread holds.  @format takes the thread id, the kind of object, its
 * address, and the code that took it. */
static void report_all(const char *format)
{
	static const char *const what[] = { "a percpu_rw_semaphore for reading", "a percpu_rw_semaphore for writing",
					    "a section of a domain of SRCU" };
	struct platform_location taken;
	struct quiesce__held h;

	while (quiesce__held_disown(false, &h))
		quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_READER, format, platform_tid(), what[h.kind], h.object,
				platform_location(h.site, &taken));
}

void quiesce__held_thread_exit(void)
{
	report_all("thread %u exits and holds %s, %p, taken at %s, which stays held until somebody releases it");
}

void quiesce__held_process_exit(void)
{
	report_all("the process exits in thread %u, which holds %s, %p, taken at %s");
}

void quiesce__held_fork_child(void)
{
	quiesce__lock_reset(&lock, false);
	for (uint32_t i = 0; i < nr_held; i++)
		if (held[i].thread != quiesce__fork_survivor)
			held[i].thread = NULL;
}
