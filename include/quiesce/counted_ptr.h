/* SPDX-License-Identifier: MIT */
/* quiesce/counted_ptr.h - reference counts for objects that are found by hazard pointer.
 *
 * Use where many readers use an object for a moment, and a few of them keep it: the short use costs
 * a hazard pointer and no shared write, and a reader that keeps the object promotes its protection
 * to a reference.  Use hazptr.h alone if no reader keeps objects beyond a slot.
 *
 *	struct config { struct counted counted; int limit; };
 *
 *	counted_init(&fresh->counted, config_release);          // updater; one reference, its own
 *	counted_publish(&config, fresh, counted);               // passes it to the pointer
 *
 *	p = counted_protect(slot, &config, counted);            // reader, for a moment
 *	if (p && counted_tryget(&p->counted))                   // ... and for longer
 *		keep(p);                                        // until counted_put(&p->counted)
 *	hazptr_clear(slot);
 *
 * A pointer that readers find owns a reference to its object.  The object is released once its last
 * reference is put and no slot protects its struct counted; so the release comes later than the
 * last put, and in any thread.
 *
 * Ordering.  Every access through a reference happens before its put, that before the last put, and
 * that before the release; and everything a reader did before it cleared its slot happens before
 * the release.  If counted_tryget() succeeds, the object is not released before the matching put.
 * Proof: docs/design/counted_ptr.md; tests/litmus/CP*.litmus; docs/ordering.md.
 *
 * Fibers and coroutines (docs/fibers.md) may hold references and slots across a switch, and release
 * them in any thread.
 *
 * The count has 64 bits, so it does not overflow: a program that leaks a reference each nanosecond
 * needs 292 years.
 *
 * Source: M. Desnoyers, hazard pointers with promotion to reference counts, 2024, for the idea; the
 * kernel's kref for names.
 */
#ifndef QUIESCE_COUNTED_PTR_H
#define QUIESCE_COUNTED_PTR_H

#include <quiesce/hazptr.h>

QUIESCE_BEGIN_DECLS

/* The count, to be embedded in the object. */
struct counted {
	struct hazptr_head hazptr; /* slots protect its address; the library's from the last put on */
	void (*release)(struct counted *counted);
	int64_t refs; /* 0: released or about to be; negative: misused, never released */
};

QUIESCE_API bool quiesce__counted_put_slow(struct counted *counted, int64_t refs);
QUIESCE_API void quiesce__counted_get_slow(struct counted *counted, int64_t refs);
QUIESCE_API bool quiesce__counted_lost(struct counted *counted, void **where, const void *found);
QUIESCE_API void *quiesce__counted_load_slow(void **where, size_t offset);

/** counted_init - make @counted the count of an object with one reference, the caller's.
 * @release: called once, when it is safe to free the object.  It runs as a callback of
 *   call_hazptr(): in another thread, never in counted_put(); it may put further references, but
 *   not wait for callbacks.  It must return, as described at call_rcu().
 *
 * Context: any; no other thread has the object yet. */
QUIESCE_PLAIN void counted_init(struct counted *counted, void (*release)(struct counted *counted))
{
	counted->release = release;
	quiesce_store_relaxed(&counted->refs, (int64_t)1); /* Relaxed: no other thread sees it. */
}

/** counted_read - return the number of references at some recent moment.
 * Context: any.
 * Orders: nothing. */
QUIESCE_FAST int64_t counted_read(const struct counted *counted)
{
	return quiesce_load_relaxed(&counted->refs); /* Relaxed: no order promised. */
}

/** counted_get - take one more reference; the caller has one.
 *
 * Context: any; signal handlers.  A caller that only has a slot uses counted_tryget().
 * Cost: an atomic instruction on a shared line.
 * Misuse: a count of 0 or less is reported (QUIESCE_MISUSE_COUNT), and by default aborts; if a hook returns
 *   the object is never released. */
QUIESCE_FAST void counted_get(struct counted *counted)
{
	/* Relaxed: the caller has a reference; the next owner of this one gets it from the caller. */
	int64_t refs = quiesce_fetch_add_relaxed(&counted->refs, (int64_t)1);

	if (quiesce_unlikely(refs <= 0))
		quiesce__counted_get_slow(counted, refs);
}

/** counted_tryget - promote: take a reference to an object that the caller's slot protects.
 *
 * Context: any; signal handlers.  Cost: as counted_get().
 * Return: false if the last reference is gone; the slot still protects the object, but no reference
 *   can be taken. */
QUIESCE_FAST bool counted_tryget(struct counted *counted)
{
	int64_t refs = quiesce_load_relaxed(&counted->refs); /* Relaxed: the exchange decides. */

	do
		if (quiesce_unlikely(refs <= 0))
			return false;
	/* CP1: full, pairs with CP1 in counted_put() */
	while (quiesce_unlikely(!quiesce_cmpxchg(CP1, &counted->refs, &refs, (int64_t)((uint64_t)refs + 1))));
	return true;
}

/** counted_put - release a reference.  The last one passes the object to call_hazptr(), then to its
 * release function.
 *
 * The caller may no longer use the object, unless it has another reference or a slot.
 * Context, cost: as counted_get(); the last put as call_hazptr(), so not in signal handlers.
 * Misuse: a put too many is reported, as for counted_get().
 * Return: true if it was the last reference.
 * Orders: full fence. */
QUIESCE_FAST bool counted_put(struct counted *counted)
{
	/* CP1: full, pairs with CP1 in counted_put() and counted_tryget() and quiesce__counted_lost() */
	int64_t refs = quiesce_fetch_add(CP1, &counted->refs, (int64_t)-1);

	return quiesce_unlikely(refs <= 1) && quiesce__counted_put_slow(counted, refs);
}

/** counted_protect(slot, where, field) - load a pointer and protect its object, by its struct
 * counted.
 * @slot, @where: as for hazptr_protect().
 * @field: the struct counted in the object.
 *
 * Context: as hazptr_protect().
 * Return: the current pointer; NULL only if it was NULL. */
#define counted_protect(slot, where, field) hazptr_protect(slot, where, field.hazptr)

/** counted_tryprotect(slot, where, field) - counted_protect() with a single attempt; see
 * hazptr_tryprotect(). */
#define counted_tryprotect(slot, where, field) hazptr_tryprotect(slot, where, field.hazptr)

/* ---- private: for counted_load() and counted_publish() ---- */

QUIESCE_FAST struct counted *quiesce__counted_at(void *object, size_t offset)
{
	return (struct counted *)((uintptr_t)object + offset); /* as numbers: in C++ the count may lie before the object */
}

QUIESCE_FAST void *quiesce__counted_load(void **where, size_t offset)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	void *object;

	if (quiesce_unlikely(!slot))
		return quiesce__counted_load_slow(where, offset);
	do {
		object = quiesce__hazptr_protect(slot, where, offset, 0);
		if (!object || quiesce_likely(counted_tryget(quiesce__counted_at(object, offset))))
			break;
	} while (!quiesce__counted_lost(quiesce__counted_at(object, offset), where, object) || (object = NULL));
	hazptr_free(NULL, slot);
	return object;
}

QUIESCE_FAST void quiesce__counted_publish(void **where, void *fresh, size_t offset)
{
	void *old = rcu_xchg_pointer(where, fresh);

	if (old)
		counted_put(quiesce__counted_at(old, offset));
}

/* Offset of the struct counted in the object that *@where points to. */
#define quiesce__counted_offset(where, field) quiesce__offset(__typeof__(**(where)), field, struct counted)

/* ---- pointers that own a reference ---- */

/** counted_load(where, field) - load a pointer, and take a reference to its object.
 *
 * Context: any; signal handlers.  Retries if the pointer changes meanwhile; cannot fail.
 * Cost: a slot of the thread, an atomic instruction on a shared line.
 * Return: the object, with a reference that is the caller's; NULL if the pointer was NULL. */
#define counted_load(where, field) \
	QUIESCE_CAST(quiesce__type_at(where), quiesce__counted_load(quiesce__untyped(where), quiesce__counted_offset(where, field)))

/** counted_publish(where, fresh, field) - replace the pointer at *@where, and put the old object's
 * reference.
 * @fresh: the caller's reference becomes the pointer's; NULL: none.
 *
 * Context: as counted_put().  Any number of concurrent updaters.  Orders: full fence. */
#define counted_publish(where, fresh, field)                                                                                 \
	quiesce__counted_publish(quiesce__untyped(where), QUIESCE_UNTYPED(QUIESCE_CONVERT(quiesce__type_at(where), fresh)), \
				 quiesce__counted_offset(where, field))

/** counted_exchange(where, fresh) - replace the pointer at *@where; the old object's reference
 * becomes the caller's.
 *
 * Context: as rcu_xchg_pointer().
 * Return: the old object or NULL. */
#define counted_exchange(where, fresh) rcu_xchg_pointer((where), (fresh))

/** counted_cmpxchg(where, expected, fresh) - counted_exchange() if *@where is *@expected.
 *
 * Context: as rcu_try_cmpxchg_pointer().
 * Return: true: the caller has the pointer's former reference to *@expected, and no longer its own
 *   to @fresh; false: no reference has moved, and *@expected is the pointer found, an address that
 *   may not be used. */
#define counted_cmpxchg(where, expected, fresh) rcu_try_cmpxchg_pointer((where), (expected), (fresh))

QUIESCE_END_DECLS

#endif
