/* SPDX-License-Identifier: MIT */
/* hazptrs.h - shared by the tests of general hazard pointers: objects that count their callbacks, and
 * objects in plenty, so that each reclaimer has enough garbage to start.
 */
#ifndef HAZPTRS_H
#define HAZPTRS_H

#include <quiesce/hazptr.h>

#include "testing.h"

struct thing {
	struct hazptr_head hazptr;
	int runs;
	int id;
	struct hazptr_head other; /* for protection by field */
};

/* A thread that sees that a callback has run may use the object again. */
static inline int runs_of(const struct thing *t)
{
	/* raw: orders what tests do, not what the library does */
	return __atomic_load_n(&t->runs, __ATOMIC_ACQUIRE);
}

static inline void has_run(struct thing *t)
{
	/* raw: orders what tests do, not what the library does */
	__atomic_fetch_add(&t->runs, 1, __ATOMIC_RELEASE);
}

static inline void thing_run(struct hazptr_head *head)
{
	has_run((struct thing *)(void *)head);
}

static inline void other_run(struct hazptr_head *head)
{
	has_run((struct thing *)(void *)((char *)head - offsetof(struct thing, other)));
}

static inline void thing_retire(struct thing *t)
{
	call_hazptr(&t->hazptr, thing_run);
}

/* Return how many of @nr things have run; -1 if one ran twice. */
static inline int things_run(const struct thing *t, int nr)
{
	int n = 0;

	for (int i = 0; i < nr; i++) {
		int runs = runs_of(&t[i]);

		if (runs > 1)
			return -1;
		n += runs;
	}
	return n;
}

/* Return the address that @slot protects, without the scan's tag. */
static inline uintptr_t slot_value(hazptr_t *slot)
{
	return quiesce_load_relaxed(&slot->value) & UINTPTR_MAX >> 1; /* Relaxed: the caller's slot. */
}

/* Protect @object in @slot, as a reader does that loads its address from a shared pointer. */
static inline void protect_in(hazptr_t *slot, void *object)
{
	void *place = object;

	assert_ptr_equal(hazptr_protect(slot, &place), object);
}

/* Return a new slot that protects @object. */
static inline hazptr_t *slot_with(struct hazptr_context *ctx, void *object)
{
	hazptr_t *slot = hazptr_alloc(ctx);

	assert_non_null(slot);
	protect_in(slot, object);
	return slot;
}

/* Retire so much that the calling thread scans for its own queue, at least twice. */
static inline void retire_plenty(void)
{
	uint64_t before = stats_now().hazptr_scans;

	for (int i = 0; i < 3 * HAZPTR_BATCH_MAX; i++) {
		struct thing *t = malloc(sizeof *t);

		assert_non_null(t);
		kfree_hazptr(t, hazptr);
	}
	assert_true(stats_now().hazptr_scans >= before + 2);
}

/* ---- a thread that makes one call, and ends ---- */

static inline void in_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	thread_must(pthread_create(&thread, NULL, fn, arg));
	pthread_join(thread, NULL);
}

#endif
