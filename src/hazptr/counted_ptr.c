/* SPDX-License-Identifier: MIT */
/* counted_ptr.c - reference counts of objects that readers find by hazard pointer: release, and misuse.
 *
 * I1. A pointer that readers find owns a reference.  So when the count is 0, no reader finds the object any
 *     more, as call_hazptr() requires.
 * I2. A count that is 0 stays 0: a reference is taken by an owner of another one, or from a count above 0.
 * I3. A count that was misused is far below 0 and stays there: such an object is leaked, not freed while it
 *     is in use.
 *
 * CP1  accesses through a reference, then its put | the last put, then retired
 * SH3  see shazptr.c
 */
#include "runtime/run.h"

#include <quiesce/counted_ptr.h>
#include <quiesce/shazptr.h>

#define LOST (INT64_MIN / 2)

static void release(struct hazptr_head *head)
{
	struct counted *counted = (struct counted *)(void *)((char *)head - offsetof(struct counted, hazptr));

	quiesce__run_record_func((uintptr_t)counted->release);
	counted->release(counted);
}

static QUIESCE_COLD void report_misuse(struct counted *counted, int64_t refs, const char *what)
{
	quiesce_store_relaxed(&counted->refs, LOST); /* Relaxed: I3, on a best-effort basis. */
	quiesce__misuse(QUIESCE_MISUSE_COUNT, "%s of an object at %p with %lld references: it is not released",
			what, (const void *)counted, (long long)refs);
}

bool quiesce__counted_put_slow(struct counted *counted, int64_t refs)
{
	if (quiesce_likely(refs == 1)) {
		quiesce_call_hazptr(&counted->hazptr, release, QUIESCE_OBJECT_BYTES);
		return true;
	}
	report_misuse(counted, refs, "counted_put()");
	return false;
}

void quiesce__counted_get_slow(struct counted *counted, int64_t refs)
{
	report_misuse(counted, refs, "counted_get()");
}

/* counted_load() found @counted without a reference.  True if @where still points to it, which is misuse
 * (I1), and the load would retry for ever.  The caller's slot protects the object, so it is not another one
 * at the same address. */
bool quiesce__counted_lost(struct counted *counted, void **where, const void *found)
{
	/* CP1: acquire, pairs with CP1 in counted_put() */
	int64_t refs = quiesce_load_acquire(CP1, &counted->refs);

	if (quiesce_load_relaxed(where) != found) /* Relaxed: CP1. */
		return false;
	report_misuse(counted, refs, "counted_load()");
	return true;
}

/* No slot is free: protect by a guard of shazptr.h, which cannot fail. */
void *quiesce__counted_load_slow(void **where, size_t offset)
{
	struct shazptr_guard guard;
	struct counted *counted;
	uintptr_t first;
	void *object;
	bool found;

	do {
		first = (uintptr_t)quiesce_load_relaxed(where); /* Relaxed: only the second load is used. */
		counted = first ? (struct counted *)(first + offset) : NULL;
		guard = shazptr_acquire(counted);
		/* SH3: acquire, pairs with the caller */
		object = quiesce_load_acquire(SH3, where);
		found = (uintptr_t)object == first;
		if (found && object && !counted_tryget(counted)) {
			found = quiesce__counted_lost(counted, where, object);
			object = NULL;
		}
		shazptr_clear(guard);
	} while (!found);
	return object;
}
