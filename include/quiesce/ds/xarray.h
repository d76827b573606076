/* SPDX-License-Identifier: MIT */
/* quiesce/ds/xarray.h - pointers by index, any unsigned long, in order: ranges, neighbours in both directions, marks.
 *
 * Use for what lies at numbers and has an order: pages of a file, blocks, sequence numbers, intervals; use idr.h where the numbers are
 * yours to choose, hashmap.h or hashtable.h where they are scattered: an index without neighbours costs a node of 576 bytes or several.
 *
 *	static DEFINE_XARRAY(pages);
 *	unsigned long index;
 *
 *	if (xa_store(&pages, 17, page, NULL))           // -ENOMEM
 *		...
 *	xa_set_mark(&pages, 17, XA_MARK_0);             // dirty, say
 *
 *	rcu_read_lock();                                // reader
 *	page = xa_load(&pages, 17);
 *	xa_for_each_range(&pages, index, page, 16, 31)
 *		use(page);
 *	xa_for_each_marked(&pages, index, page, XA_MARK_0)
 *		write_back(page);
 *	rcu_read_unlock();
 *
 *	page = xa_erase(&pages, 17);                    // the caller's again, and its readers'
 *	call_rcu(&page->rcu, page_free);
 *
 * Intervals that do not overlap: store each at its last index.  Who has x is the first from x on, if it begins early enough:
 *
 *	unsigned long last = x;
 *
 *	area = xa_find(&areas, &last, ULONG_MAX, XA_PRESENT);
 *	if (area && area->first <= x)
 *		...
 *
 * An index is taken, and then has an entry, which is any pointer, or is reserved and has none.  An entry has three marks of the
 * caller's, which go when it is erased and stay when another one is stored in its place.
 *
 * Ordering.  If xa_load(), a find or an iteration returns an entry, then everything that precedes the call that stored it is
 * visible; if an index that had one has none, then everything that precedes the xa_erase(); if xa_get_mark() or an iteration over
 * a mark finds the mark, then everything that precedes its xa_set_mark().  Operations on the entry of one index are linearizable,
 * and so are those on a mark of it; an erase clears the marks first, and then the entry.
 *
 * Updaters of one xarray take turns in a lock of its own, which is never held over an allocation, a wait or a call of yours.
 * So any thread may update at any time outside signal handlers, also inside a section and under locks of yours; no call
 * here waits for readers.  Where the process can have no worker thread, memory comes back at rcu_barrier() and rcu_throttle().
 * Readers write nothing; with many CPUs that update, have an xarray for each part of the indices.
 *
 * fork(): the child has the entries of the parent.  It must not use an xarray that another thread was updating at the fork.
 *
 * Source: the kernel's XArray, without flags and without its lock; one entry has one index.  Differences: docs/kernel-names.md.
 * Proof: docs/design/radix.md; tests/litmus/ID*.litmus; docs/ordering.md.
 */
#ifndef QUIESCE_DS_XARRAY_H
#define QUIESCE_DS_XARRAY_H

#include <limits.h>
#include <quiesce/detail/radix.h>

QUIESCE_BEGIN_DECLS

/* Private. */
struct xarray {
	struct quiesce__radix tree;
};

#define XARRAY_INIT(name) { QUIESCE_RADIX_INIT }
/** DEFINE_XARRAY - an xarray variable that is ready, before any constructor too. */
#define DEFINE_XARRAY(name) struct xarray name = XARRAY_INIT(name)

/** xa_mark_t - a mark, or as a filter of a search XA_PRESENT: any entry.  What is neither is misuse, and is reported. */
typedef unsigned int xa_mark_t;
#define XA_MARK_0 0u
#define XA_MARK_1 1u
#define XA_MARK_2 2u
#define XA_MARK_MAX XA_MARK_2
#define XA_PRESENT 3u

/** struct xa_limit - from where to where xa_alloc() looks, both included. */
struct xa_limit {
	uint32_t max;
	uint32_t min;
};
static inline struct xa_limit quiesce__xa_limit(uint32_t min, uint32_t max)
{
	struct xa_limit limit = { max, min };

	return limit;
}
#define XA_LIMIT(min, max) quiesce__xa_limit((min), (max))
#define xa_limit_32b XA_LIMIT(0, UINT32_MAX)
#define xa_limit_31b XA_LIMIT(0, INT32_MAX)
#define xa_limit_16b XA_LIMIT(0, UINT16_MAX)

QUIESCE_API int quiesce_xa_store(struct xarray *xa, unsigned long index, void *entry, void **ret_old);
QUIESCE_API int quiesce_xa_insert(struct xarray *xa, unsigned long index, void *entry);
QUIESCE_API int quiesce_xa_cmpxchg(struct xarray *xa, unsigned long index, void *old, void *entry, void **ret_old);
QUIESCE_API void *quiesce_xa_erase(struct xarray *xa, unsigned long index);
QUIESCE_API int quiesce_xa_reserve(struct xarray *xa, unsigned long index);
QUIESCE_API int quiesce_xa_alloc_range(struct xarray *xa, uint32_t *id, void *entry, struct xa_limit limit, uint32_t *next);
QUIESCE_API void quiesce_xa_mark(struct xarray *xa, unsigned long index, xa_mark_t mark, bool on);
QUIESCE_API bool quiesce_xa_get_mark(const struct xarray *xa, unsigned long index, xa_mark_t mark);
QUIESCE_API bool quiesce_xa_marked(const struct xarray *xa, xa_mark_t mark);
QUIESCE_API void *quiesce_xa_find(const struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t filter);
QUIESCE_API void *quiesce_xa_find_reverse(const struct xarray *xa, unsigned long *index, unsigned long min, xa_mark_t filter);
QUIESCE_API unsigned int quiesce_xa_extract(const struct xarray *xa, void **dst, unsigned long start, unsigned long max, unsigned int n,
					    xa_mark_t filter);
QUIESCE_API void quiesce_xa_destroy(struct xarray *xa);

/** xa_init - make @xa empty, as DEFINE_XARRAY() does.
 *
 * Context: nobody else has @xa.  Cost: allocates nothing, here or for an xarray that stays empty. */
static inline void xa_init(struct xarray *xa)
{
	struct xarray fresh = XARRAY_INIT(fresh);

	*xa = fresh;
}

/** xa_load - the entry at @index.
 *
 * Context: inside a section, or where no updater can be; signal handlers.
 * Cost: a load, and another one for each level: one level up to index 63, two to 4095, eleven where an index is 2^60 or more.
 *   No fence, no shared write, wait-free.
 * Return: the entry; NULL: none.
 * Orders: see "Ordering" above. */
QUIESCE_FAST void *xa_load(const struct xarray *xa, unsigned long index) { return quiesce__radix_find(&xa->tree, index); }

/** xa_store - let @index have @entry, whatever is there.
 * @entry: NULL: xa_erase().
 * @ret_old: what was there; not written where memory fails.  NULL: not asked for.
 *
 * (The kernel returns the old entry or an error made a pointer, which a program has no room for.)
 * Context: a thread.  Sleeps while another updater of @xa has the lock.
 * Cost: O(levels); now and then nodes of 576 bytes are allocated, while the lock is not held: 20 at the most, for the
 *   first index of another size.
 * Return: 0; -ENOMEM, and nothing has changed: never where @index is taken.  Orders: release. */
static inline int xa_store(struct xarray *xa, unsigned long index, void *entry, void **ret_old)
{
	return quiesce_xa_store(xa, index, entry, ret_old);
}

/** xa_insert - let @index have @entry if it is free.
 * @entry: NULL reserves it.
 *
 * Context, cost, orders: as xa_store().
 * Return: 0; -EBUSY: it is taken, or reserved; -ENOMEM, and nothing has changed. */
static inline int xa_insert(struct xarray *xa, unsigned long index, void *entry) { return quiesce_xa_insert(xa, index, entry); }

/** xa_cmpxchg - let @index have @entry if it has @old.
 * @old: NULL: has none, be it reserved or free.  @entry: NULL: erase it.
 * @ret_old: what was there; not written where memory fails.  NULL: not asked for.
 *
 * Context, cost, orders: as xa_store().
 * Return: 0; -EBUSY: something else is there; -ENOMEM, and nothing has changed. */
static inline int xa_cmpxchg(struct xarray *xa, unsigned long index, void *old, void *entry, void **ret_old)
{
	return quiesce_xa_cmpxchg(xa, index, old, entry, ret_old);
}

/** xa_erase - free @index, and its marks.
 *
 * Readers may have found its entry before: the object is freed after a grace period.
 * Context: as xa_store().  Allocates nothing; nodes that become empty are freed by call_rcu().
 * Return: the entry; NULL: there was none.  Orders: release. */
static inline void *xa_erase(struct xarray *xa, unsigned long index) { return quiesce_xa_erase(xa, index); }

/** xa_reserve - make sure that a later xa_store() at @index needs no memory.  Readers find nothing there.
 *
 * Context, cost: as xa_store().  Return: 0, also if it is taken already; -ENOMEM. */
static inline int xa_reserve(struct xarray *xa, unsigned long index) { return quiesce_xa_reserve(xa, index); }

/** xa_release - free @index if it is reserved and has no entry.  Context: as xa_erase(). */
static inline void xa_release(struct xarray *xa, unsigned long index) { (void)quiesce_xa_cmpxchg(xa, index, NULL, NULL, NULL); }

/** xa_alloc - give @entry the lowest free index in @limit: xa_limit_32b, or XA_LIMIT(min, max).
 * @id: the index is written there before anybody can find @entry by it.  Not changed if the call fails.
 *
 * Context, cost, orders: as xa_store().
 * Return: 0; -EBUSY: none is free; -ENOMEM, and nothing has changed. */
static inline int xa_alloc(struct xarray *xa, uint32_t *id, void *entry, struct xa_limit limit)
{
	return quiesce_xa_alloc_range(xa, id, entry, limit, NULL);
}

/** xa_alloc_cyclic - xa_alloc() that begins at *@next, and then at the lower end again.
 * @next: the caller's, written under the lock of @xa: where the next call will begin.
 *
 * Return: as xa_alloc().  (The kernel's returns 1 when it has begun again.) */
static inline int xa_alloc_cyclic(struct xarray *xa, uint32_t *id, void *entry, struct xa_limit limit, uint32_t *next)
{
	return quiesce_xa_alloc_range(xa, id, entry, limit, next);
}

/* ---- marks ---- */

/** xa_set_mark, xa_clear_mark - set and clear a mark of the entry at @index; where there is none, nothing happens.
 *
 * Context: as xa_erase().  Cost: O(levels).  Orders: setting is a release. */
static inline void xa_set_mark(struct xarray *xa, unsigned long index, xa_mark_t mark) { quiesce_xa_mark(xa, index, mark, true); }
static inline void xa_clear_mark(struct xarray *xa, unsigned long index, xa_mark_t mark) { quiesce_xa_mark(xa, index, mark, false); }

/** xa_get_mark - has @index an entry with that mark?
 *
 * Context, cost: as xa_load().  Orders: acquire, if it has. */
static inline bool xa_get_mark(const struct xarray *xa, unsigned long index, xa_mark_t mark)
{
	return quiesce_xa_get_mark(xa, index, mark);
}

/** xa_marked - has any entry that mark?  Context: inside a section.  Cost: O(levels). */
static inline bool xa_marked(const struct xarray *xa, xa_mark_t mark) { return quiesce_xa_marked(xa, mark); }

/* ---- in order ---- */

/** xa_find - the first entry from *@index up to @max, included.
 * @index: becomes the index of that entry; not changed if there is none.
 * @filter: XA_PRESENT, or a mark that the entry has.
 *
 * Context: inside a section, or where no updater can be.  Cost: O(levels), as several xa_load(); indices that are reserved, on the
 *   way to the entry, are looked at one by one.
 * Return: the entry, or NULL.  Indices that have an entry (and that mark) from the beginning of the call to its end are not passed over;
 *   what is returned was there, and its index had the mark, during the call.  Orders: see above. */
static inline void *xa_find(const struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t filter)
{
	return quiesce_xa_find(xa, index, max, filter);
}

/** xa_find_after - the same behind *@index: the next one. */
static inline void *xa_find_after(const struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t filter)
{
	unsigned long at = *index + 1;
	void *found = at ? quiesce_xa_find(xa, &at, max, filter) : NULL;

	if (found)
		*index = at;
	return found;
}

/** xa_find_reverse - the last entry from *@index down to @min, included.  Otherwise as xa_find(). */
static inline void *xa_find_reverse(const struct xarray *xa, unsigned long *index, unsigned long min, xa_mark_t filter)
{
	return quiesce_xa_find_reverse(xa, index, min, filter);
}

/** xa_find_before - the same before *@index: the previous one. */
static inline void *xa_find_before(const struct xarray *xa, unsigned long *index, unsigned long min, xa_mark_t filter)
{
	unsigned long at = *index - 1;
	void *found = *index ? quiesce_xa_find_reverse(xa, &at, min, filter) : NULL;

	if (found)
		*index = at;
	return found;
}

/** xa_for_each_range - visit the entries from @start to @last, included, in order.
 * @xa: a pointer.  @index: an unsigned long variable.  @entry: a variable; NULL at the end.
 *
 * Context: inside a section, or where no updater can be.  A section may end between two rounds: the next one goes on behind @index.
 *   Updates are allowed meanwhile, also of the entry at hand.
 * Each entry that is there all the time is visited once; one that comes or goes meanwhile, once or not at all. */
#define xa_for_each_range(xa, index, entry, start, last) \
	QUIESCE_XA_FOR_EACH(xa, index, entry, start, last, XA_PRESENT, xa_find, xa_find_after)

/** xa_for_each_start - from @start on.  xa_for_each - all. */
#define xa_for_each_start(xa, index, entry, start) xa_for_each_range(xa, index, entry, start, ULONG_MAX)
#define xa_for_each(xa, index, entry) xa_for_each_range(xa, index, entry, 0, ULONG_MAX)

/** xa_for_each_marked - those that have a mark: all the time, to be sure to be visited. */
#define xa_for_each_marked(xa, index, entry, filter) \
	QUIESCE_XA_FOR_EACH(xa, index, entry, 0, ULONG_MAX, filter, xa_find, xa_find_after)

/** xa_for_each_range_reverse, xa_for_each_reverse - the same from @last down to @start; of all. */
#define xa_for_each_range_reverse(xa, index, entry, start, last) \
	QUIESCE_XA_FOR_EACH(xa, index, entry, last, start, XA_PRESENT, xa_find_reverse, xa_find_before)
#define xa_for_each_reverse(xa, index, entry) xa_for_each_range_reverse(xa, index, entry, 0, ULONG_MAX)

#define QUIESCE_XA_FOR_EACH(xa, index, entry, from, to, filter, first, next)                              \
	for ((index) = (from), (entry) = QUIESCE_CAST(__typeof__(entry), first((xa), &(index), (to), (filter))); \
	     (entry) != NULL; (entry) = QUIESCE_CAST(__typeof__(entry), next((xa), &(index), (to), (filter))))

/** xa_extract - the first @n entries, or less, from @start to @max, included, into @dst.
 *
 * Context, order, what is found: as xa_find().  Cost: as an iteration, but each node is looked at once.
 * Return: how many. */
static inline unsigned int xa_extract(const struct xarray *xa, void **dst, unsigned long start, unsigned long max, unsigned int n,
				      xa_mark_t filter)
{
	return quiesce_xa_extract(xa, dst, start, max, n, filter);
}

/* ---- the whole ---- */

/** xa_empty - is no index taken, nor reserved?  Any context; no order. */
static inline bool xa_empty(const struct xarray *xa)
{
	return quiesce_load_relaxed(&xa->tree.root) == 0; /* Relaxed: no order promised. */
}

/** xa_count - how many indices are taken, the reserved ones included.  Any context; no order. */
static inline size_t xa_count(const struct xarray *xa)
{
	return quiesce_load_relaxed(&xa->tree.count); /* Relaxed: no order promised. */
}

/** xa_destroy - free all indices, and the memory of @xa; the objects are the caller's business.
 *
 * Readers may be inside: what they walk through is freed after a grace period.  Other updaters may be at work: each of them
 * comes before or after, as a whole.  @xa is empty then and may be used again, or be freed itself, after a grace period if there
 * may be readers.
 * Context: any thread, also in a section.  Cost: O(1); what remains is done by a callback. */
static inline void xa_destroy(struct xarray *xa) { quiesce_xa_destroy(xa); }

/** xa_mk_value, xa_to_value, xa_is_value - numbers up to LONG_MAX as entries, told from pointers to what is aligned to two. */
static inline void *xa_mk_value(unsigned long value) { return (void *)(value << 1 | 1); }
static inline unsigned long xa_to_value(const void *entry) { return (unsigned long)entry >> 1; }
static inline bool xa_is_value(const void *entry) { return (unsigned long)entry & 1; }

QUIESCE_END_DECLS

#endif
