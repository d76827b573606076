/* SPDX-License-Identifier: MIT */
/* urcu/ref.h - a count of references, whose last put calls a function.
 *
 * The count does not exceed LONG_MAX: at that value urcu_ref_get() aborts, and the two functions that return a value
 * fail.  Full barriers: each get that succeeds, and urcu_ref_put().
 */
#ifndef QUIESCE_URCU_REF_H
#define QUIESCE_URCU_REF_H

#include <urcu/assert.h>
#include <urcu/uatomic.h>

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

QUIESCE_BEGIN_DECLS

struct urcu_ref {
	long refcount;
};

static inline void urcu_ref_set(struct urcu_ref *ref, long val) { uatomic_store(&ref->refcount, val); }

static inline void urcu_ref_init(struct urcu_ref *ref) { urcu_ref_set(ref, 1); }

/* Adds a reference, unless there are LONG_MAX or @none. */
static inline bool quiesce_urcu__ref_get_unless(struct urcu_ref *ref, long none)
{
	long found = uatomic_load(&ref->refcount), expected;

	do {
		expected = found;
		if (expected == LONG_MAX || expected == none)
			return false;
		found = uatomic_cmpxchg(&ref->refcount, expected, expected + 1);
	} while (found != expected);
	return true;
}

/* Returns false if there are too many. */
__attribute__((__warn_unused_result__)) static inline bool urcu_ref_get_safe(struct urcu_ref *ref)
{
	return quiesce_urcu__ref_get_unless(ref, LONG_MAX);
}

static inline void urcu_ref_get(struct urcu_ref *ref)
{
	if (!urcu_ref_get_safe(ref))
		abort();
}

/* Returns false if there are no references, or too many.  The caller keeps the count itself in existence by other
 * means, a section for example. */
static inline bool urcu_ref_get_unless_zero(struct urcu_ref *ref) { return quiesce_urcu__ref_get_unless(ref, 0); }

/* Drops a reference; calls @release() if it was the last. */
static inline void urcu_ref_put(struct urcu_ref *ref, void (*release)(struct urcu_ref *))
{
	long left = uatomic_sub_return(&ref->refcount, 1);

	urcu_posix_assert(left >= 0);
	if (left == 0)
		release(ref);
}

QUIESCE_END_DECLS

#endif
