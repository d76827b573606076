/* SPDX-License-Identifier: MIT */
/* held.c - account of locks and domains that are held, by thread.
 *
 * A table of fixed size under one lock: only debug builds pay for it.  Where it is full, nothing is recorded, and
 * questions are answered with no: a report that is missing is better than one that is wrong.
 */
#include "held.h"

#define MAX_HELD 4096u

static struct entry {
	const void *thread; /* its block; NULL: handed over, or gone */
	const void *object; /* NULL: free */
	const void *site;   /* code that took it, */
	uint64_t since;     /* when, */
	uint32_t tid;       /* in which thread */
	enum quiesce__held_kind kind;
} held[MAX_HELD];
static uint32_t nr_held; /* entries ever used */
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
	quiesce_store_relaxed(&nr_held, nr_held + 1); /* Relaxed: under the lock; who exits looks without it. */
	return &held[nr_held - 1];
}

void quiesce__held_add(const void *object, enum quiesce__held_kind kind, const void *site)
{
	struct platform_sigmask mask;
	uint64_t now = platform_now_ns();
	struct entry *e;

	quiesce__fork_check();
	if (!(quiesce__self()->state & QUIESCE_TLS_EXITING))
		platform_arm_thread_exit(); /* if that cannot be, its end is not reported */
	begin(&mask);
	e = find_free();
	if (e)
		*e = (struct entry){ quiesce__self(), object, site, now, quiesce__tid(), kind };
	end(&mask);
}

void quiesce__held_remove(const void *object, enum quiesce__held_kind kind)
{
	struct platform_sigmask mask;
	struct entry *e;

	quiesce__fork_check();
	begin(&mask);
	e = find(quiesce__self(), object, kind);
	if (!e)
		e = find(NULL, object, kind);
	if (e)
		e->object = NULL;
	end(&mask);
}

bool quiesce__held_by_me(const void *object, enum quiesce__held_kind kind)
{
	struct platform_sigmask mask;
	bool mine;

	quiesce__fork_check();
	begin(&mask);
	mine = find(quiesce__self(), object, kind) != NULL;
	end(&mask);
	return mine;
}

struct quiesce__holder quiesce__held_longest(const void *object, enum quiesce__held_kind kind)
{
	struct quiesce__holder longest = { .nr = 0 };
	struct platform_sigmask mask;

	if (!quiesce_load_relaxed(&nr_held)) /* Relaxed: a report; who does not build so pays nothing. */
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

/* What the calling thread still holds, disowned; NULL object: nothing. */
static struct entry disown_one(void)
{
	struct entry found = { .object = NULL };
	struct platform_sigmask mask;

	begin(&mask);
	for (uint32_t i = 0; i < nr_held && !found.object; i++)
		if (held[i].object && held[i].thread == quiesce__self()) {
			found = held[i];
			held[i].thread = NULL;
		}
	end(&mask);
	return found;
}

void quiesce__held_thread_exit(void)
{
	static const char *const what[] = { "a percpu_rw_semaphore for reading", "a percpu_rw_semaphore for writing",
					    "a section of a domain of SRCU", "a slot of hazptr_alloc()" };
	struct entry e;

	if (!quiesce_load_relaxed(&nr_held)) /* Relaxed: this thread's own entries are counted. */
		return;
	while ((e = disown_one()).object)
		quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_READER,
				"thread %u exits and holds %s, %p, which stays held until somebody releases it", platform_tid(),
				what[e.kind], e.object);
}

void quiesce__held_fork_child(void)
{
	quiesce__lock_reset(&lock, false);
	for (uint32_t i = 0; i < nr_held; i++)
		if (held[i].thread != quiesce__self())
			held[i].thread = NULL;
}
