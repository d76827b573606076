/* SPDX-License-Identifier: MIT */
/* quiesce/ds/xarray.h - pointers by index, any unsigned long, in order: ranges, neighbours in both
 * directions, marks.
 *
 * Use for entries with numbers and an order: pages of a file, blocks, sequence numbers, intervals.
 * Use idr.h if you may choose the numbers; hashmap.h or hashtable.h if they are scattered: an
 * index without neighbours costs one or more nodes of 576 bytes.
 *
 *	static DEFINE_XARRAY(pages);
 *	unsigned long index;
 *
 *	if (xa_store(&pages, 17, page, NULL))           // -ENOMEM
 *		...
 *	xa_set_mark(&pages, 17, XA_MARK_0);             // dirty, for example
 *
 *	rcu_read_lock();                                // reader
 *	page = xa_load(&pages, 17);
 *	xa_for_each_range(&pages, index, page, 16, 31)
 *		use(page);
 *	xa_for_each_marked(&pages, index, page, XA_MARK_0)
 *		write_back(page);
 *	rcu_read_unlock();
 *
 *	page = xa_erase(&pages, 17);                    // readers may still use it
 *	call_rcu(&page->rcu, page_free);
 *
 * Intervals that do not overlap: store each at its last index.  The interval that contains x is
 * the first from x on, if it begins early enough:
 *
 *	unsigned long last = x;
 *
 *	area = xa_find(&areas, &last, ULONG_MAX, XA_PRESENT);
 *	if (area && area->first <= x)
 *		...
 *
 * An index that is taken has an entry, which is any pointer, or is reserved and has none.  An
 * entry has three marks for the caller's use, which are cleared when it is erased and kept when
 * another entry replaces it.
 *
 * Ordering.  If xa_load(), a find or an iteration returns an entry, everything that precedes the
 * call that stored it is visible; if an index that had an entry has none, everything that precedes
 * the xa_erase(); if xa_get_mark() or an iteration over a mark finds the mark, everything that
 * precedes its xa_set_mark().  Operations on the entry of one index are linearizable, and so are
 * those on a mark of it; an erase clears the marks first, and then the entry.
 *
 * Updaters of one xarray exclude each other by a lock of its own, which is never held over an
 * allocation, a wait or a call of the program.  So any thread may update at any time outside
 * signal handlers, also inside a section and under the program's locks; no call here waits for
 * readers.  If the process cannot have a worker thread, memory is freed by rcu_barrier() and
 * rcu_throttle().  Readers write nothing; for updates from many CPUs, use an xarray for each part
 * of the indices.
 *
 * fork(): the child has the entries of the parent.  It must not use an xarray that another thread
 * was updating at the fork.
 *
 * Source: the kernel's XArray, without flags and without its lock; one entry has one index.
 *   Differences: docs/kernel-names.md.
 * Proof: docs/design/radix.md; tests/litmus/ID*.litmus; docs/ordering.md.
 */
#ifndef QUIESCE_DS_XARRAY_H
#define QUIESCE_DS_XARRAY_H

#include <limits.h>
#include <quiesce/detail/radix.h>

QUIESCE_BEGIN_DECLS

/* An xarray; its member is private. */
struct xarray {
	struct quiesce__radix tree;
};

/** DEFINE_XARRAY, XARRAY_INIT - define an empty xarray; the initialiser of one.
 * It is usable before any constructor has run, too. */
#define XARRAY_INIT(name) { QUIESCE_RADIX_INIT }
#define DEFINE_XARRAY(name) struct xarray name = XARRAY_INIT(name)

/** xa_mark_t - a mark; as the filter of a search also XA_PRESENT: any entry.
 * Other values are misuse, and are reported. */
typedef unsigned int xa_mark_t;
#define XA_MARK_0 0u
#define XA_MARK_1 1u
#define XA_MARK_2 2u
#define XA_MARK_MAX XA_MARK_2
#define XA_PRESENT 3u

/** struct xa_limit - a range of indices for xa_alloc(); both ends are included. */
struct xa_limit {
	uint32_t max;
	uint32_t min;
};
QUIESCE_PLAIN struct xa_limit quiesce__xa_limit(uint32_t min, uint32_t max)
{
	struct xa_limit limit = { max, min };

	return limit;
}
/** XA_LIMIT - the struct xa_limit of @min to @max; xa_limit_32b, _31b and _16b begin at 0. */
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

/** xa_init - initialise @xa as empty, as DEFINE_XARRAY() does.
 *
 * Context: no other thread has @xa.
 * Cost: allocates nothing, here or for an xarray that stays empty. */
QUIESCE_PLAIN void xa_init(struct xarray *xa)
{
	struct xarray fresh = XARRAY_INIT(fresh);

	*xa = fresh;
}

/** xa_load - return the entry at @index.
 *
 * Context: inside a section, or where no updater can be; signal handlers.
 * Cost: a load, and one more for each level: one level up to index 63, two to 4095, eleven for an
 *   index of 2^60 or more.  No fence, no shared write, wait-free.
 * Return: the entry; NULL: none.
 * Orders: see "Ordering" above. */
QUIESCE_FAST void *xa_load(const struct xarray *xa, unsigned long index) { return quiesce__radix_find(&xa->tree, index); }

/** xa_store - store @entry at @index, whatever is there.
 * @entry: NULL: as xa_erase().
 * @ret_old: if not NULL, set to the previous entry; not written if memory is short.
 *
 * (The kernel returns the old entry, or an error as an invalid pointer, which a program does not have.)
 * Context: a thread.  Sleeps while another updater of @xa has the lock.
 * Cost: O(levels); sometimes nodes of 576 bytes are allocated, while the lock is not held: at most
 *   20, for the first index of another magnitude.
 * Return: 0; -ENOMEM, and nothing has changed: never if @index is taken.
 * Orders: release. */
QUIESCE_PLAIN int xa_store(struct xarray *xa, unsigned long index, void *entry, void **ret_old)
{
	return quiesce_xa_store(xa, index, entry, ret_old);
}

/** xa_insert - store @entry at @index if that is free.
 * @entry: NULL: reserve the index.
 *
 * Context, cost, orders: as xa_store().
 * Return: 0; -EBUSY: it is taken, or reserved; -ENOMEM, and nothing has changed. */
QUIESCE_PLAIN int xa_insert(struct xarray *xa, unsigned long index, void *entry) { return quiesce_xa_insert(xa, index, entry); }

/** xa_cmpxchg - store @entry at @index if that has the entry @old.
 * @old: NULL: no entry, reserved or free.
 * @entry: NULL: erase the index.
 * @ret_old: if not NULL, set to the previous entry; not written if memory is short.
 *
 * Context, cost, orders: as xa_store().
 * Return: 0; -EBUSY: the entry is another one; -ENOMEM, and nothing has changed. */
QUIESCE_PLAIN int xa_cmpxchg(struct xarray *xa, unsigned long index, void *old, void *entry, void **ret_old)
{
	return quiesce_xa_cmpxchg(xa, index, old, entry, ret_old);
}

/** xa_erase - free @index, and clear its marks.
 *
 * Readers may have found its entry before: free the object after a grace period.
 * Context: as xa_store().  Allocates nothing; nodes that become empty are freed by call_rcu().
 * Return: the entry; NULL: there was none.
 * Orders: release. */
QUIESCE_PLAIN void *xa_erase(struct xarray *xa, unsigned long index) { return quiesce_xa_erase(xa, index); }

/** xa_reserve - make sure that a later xa_store() at @index needs no memory.
 * Readers find nothing there.
 *
 * Context, cost: as xa_store().
 * Return: 0, also if it is taken already; -ENOMEM. */
QUIESCE_PLAIN int xa_reserve(struct xarray *xa, unsigned long index) { return quiesce_xa_reserve(xa, index); }

/** xa_release - free @index if it is reserved and has no entry.
 * Context: as xa_erase(). */
QUIESCE_PLAIN void xa_release(struct xarray *xa, unsigned long index) { (void)quiesce_xa_cmpxchg(xa, index, NULL, NULL, NULL); }

/** xa_alloc - store @entry at the lowest free index in @limit: xa_limit_32b, or XA_LIMIT(min, max).
 * @id: the index is written there before readers can find @entry by it; not changed if the call
 *   fails.
 *
 * Context, cost, orders: as xa_store().
 * Return: 0; -EBUSY: none is free; -ENOMEM, and nothing has changed. */
QUIESCE_PLAIN int xa_alloc(struct xarray *xa, uint32_t *id, void *entry, struct xa_limit limit)
{
	return quiesce_xa_alloc_range(xa, id, entry, limit, NULL);
}

/** xa_alloc_cyclic - xa_alloc() that searches from *@next on, and then from the lower end.
 * @next: the caller's, written under the lock of @xa: where the next call begins.
 *
 * Return: as xa_alloc().  (The kernel returns 1 when it has started again.) */
QUIESCE_PLAIN int xa_alloc_cyclic(struct xarray *xa, uint32_t *id, void *entry, struct xa_limit limit, uint32_t *next)
{
	return quiesce_xa_alloc_range(xa, id, entry, limit, next);
}

/* ---- marks ---- */

/** xa_set_mark, xa_clear_mark - set or clear a mark of the entry at @index; no effect if there is
 * none.
 *
 * Context: as xa_erase().
 * Cost: O(levels).
 * Orders: setting is a release. */
QUIESCE_PLAIN void xa_set_mark(struct xarray *xa, unsigned long index, xa_mark_t mark) { quiesce_xa_mark(xa, index, mark, true); }
QUIESCE_PLAIN void xa_clear_mark(struct xarray *xa, unsigned long index, xa_mark_t mark) { quiesce_xa_mark(xa, index, mark, false); }

/** xa_get_mark - test whether @index has an entry with that mark.
 *
 * Context, cost: as xa_load().
 * Orders: acquire, if true. */
QUIESCE_PLAIN bool xa_get_mark(const struct xarray *xa, unsigned long index, xa_mark_t mark)
{
	return quiesce_xa_get_mark(xa, index, mark);
}

/** xa_marked - test whether any entry has that mark.
 * Context: inside a section.
 * Cost: O(levels). */
QUIESCE_PLAIN bool xa_marked(const struct xarray *xa, xa_mark_t mark) { return quiesce_xa_marked(xa, mark); }

/* ---- in order ---- */

/** xa_find - find the first entry from *@index up to @max, included.
 * @index: set to the index of that entry; not changed if there is none.
 * @filter: XA_PRESENT, or a mark that the entry has.
 *
 * Context: inside a section, or where no updater can be.
 * Cost: O(levels), as several xa_load(); reserved indices on the way are checked one by one.
 * Return: the entry, or NULL.  An index that has an entry (and that mark) throughout the call is
 *   not missed; the entry returned was there, and had the mark, during the call.
 * Orders: see above. */
QUIESCE_PLAIN void *xa_find(const struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t filter)
{
	return quiesce_xa_find(xa, index, max, filter);
}

/** xa_find_after - find the first entry after *@index; otherwise as xa_find(). */
QUIESCE_PLAIN void *xa_find_after(const struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t filter)
{
	unsigned long at = *index + 1;
	void *found = at ? quiesce_xa_find(xa, &at, max, filter) : NULL;

	if (found)
		*index = at;
	return found;
}

/** xa_find_reverse - find the last entry from *@index down to @min, included; otherwise as
 * xa_find(). */
QUIESCE_PLAIN void *xa_find_reverse(const struct xarray *xa, unsigned long *index, unsigned long min, xa_mark_t filter)
{
	return quiesce_xa_find_reverse(xa, index, min, filter);
}

/** xa_find_before - find the last entry before *@index; otherwise as xa_find_reverse(). */
QUIESCE_PLAIN void *xa_find_before(const struct xarray *xa, unsigned long *index, unsigned long min, xa_mark_t filter)
{
	unsigned long at = *index - 1;
	void *found = *index ? quiesce_xa_find_reverse(xa, &at, min, filter) : NULL;

	if (found)
		*index = at;
	return found;
}

/** xa_for_each_range - visit the entries from @start to @last, included, in order.
 * @xa: a pointer.
 * @index: an unsigned long variable.
 * @entry: a variable; NULL at the end.
 *
 * Context: inside a section, or where no updater can be.  A section may end between two
 *   iterations: the next one continues after @index.  Updates are allowed meanwhile, also of the
 *   current entry.
 * Each entry that is there throughout is visited once; one that is stored or erased meanwhile,
 * once or not at all. */
#define xa_for_each_range(xa, index, entry, start, last) \
	QUIESCE_XA_FOR_EACH(xa, index, entry, start, last, XA_PRESENT, xa_find, xa_find_after)

/** xa_for_each_start - visit the entries from @start on.
 * xa_for_each - visit all entries. */
#define xa_for_each_start(xa, index, entry, start) xa_for_each_range(xa, index, entry, start, ULONG_MAX)
#define xa_for_each(xa, index, entry) xa_for_each_range(xa, index, entry, 0, ULONG_MAX)

/** xa_for_each_marked - visit the entries that have a mark; an entry that has it throughout is not
 * missed. */
#define xa_for_each_marked(xa, index, entry, filter) \
	QUIESCE_XA_FOR_EACH(xa, index, entry, 0, ULONG_MAX, filter, xa_find, xa_find_after)

/** xa_for_each_range_reverse - visit the entries from @last down to @start.
 * xa_for_each_reverse - visit all entries from the last to the first. */
#define xa_for_each_range_reverse(xa, index, entry, start, last) \
	QUIESCE_XA_FOR_EACH(xa, index, entry, last, start, XA_PRESENT, xa_find_reverse, xa_find_before)
#define xa_for_each_reverse(xa, index, entry) xa_for_each_range_reverse(xa, index, entry, 0, ULONG_MAX)

#define QUIESCE_XA_FOR_EACH(xa, index, entry, from, to, filter, first, next)                              \
	for ((index) = (from), (entry) = QUIESCE_CAST(__typeof__(entry), first((xa), &(index), (to), (filter))); \
	     (entry) != NULL; (entry) = QUIESCE_CAST(__typeof__(entry), next((xa), &(index), (to), (filter))))

/** xa_extract - store the first @n entries, or fewer, from @start to @max, included, in @dst.
 *
 * Context, order, guarantees: as xa_find().
 * Cost: as an iteration, but each node is read once.
 * Return: the number of entries. */
QUIESCE_PLAIN unsigned int xa_extract(const struct xarray *xa, void **dst, unsigned long start, unsigned long max, unsigned int n,
				      xa_mark_t filter)
{
	return quiesce_xa_extract(xa, dst, start, max, n, filter);
}

/* ---- the whole ---- */

/** xa_empty - test whether no index is taken or reserved.
 * Context: any.
 * Orders: nothing. */
QUIESCE_PLAIN bool xa_empty(const struct xarray *xa)
{
	return quiesce_load_relaxed(&xa->tree.root) == 0; /* Relaxed: no order promised. */
}

/** xa_count - return the number of indices that are taken or reserved.
 * Context: any.
 * Orders: nothing. */
QUIESCE_PLAIN size_t xa_count(const struct xarray *xa)
{
	return quiesce_load_relaxed(&xa->tree.count); /* Relaxed: no order promised. */
}

/** xa_destroy - free all indices, and the memory of @xa; the objects belong to the caller.
 *
 * Readers may be inside: the nodes are freed after a grace period.  Other updaters may be active:
 * each update takes effect before or after, as a whole.  Afterwards @xa is empty, and may be used
 * again or be freed itself, after a grace period if there may be readers.
 * Context: any thread, also in a section.
 * Cost: O(1); a callback does the rest. */
QUIESCE_PLAIN void xa_destroy(struct xarray *xa) { quiesce_xa_destroy(xa); }

/** xa_mk_value, xa_to_value, xa_is_value - store numbers up to LONG_MAX as entries.
 * They are distinct from pointers to objects at even addresses. */
QUIESCE_PLAIN void *xa_mk_value(unsigned long value) { return (void *)(value << 1 | 1); }
QUIESCE_PLAIN unsigned long xa_to_value(const void *entry) { return (unsigned long)entry >> 1; }
QUIESCE_PLAIN bool xa_is_value(const void *entry) { return (unsigned long)entry & 1; }

QUIESCE_END_DECLS

#endif
