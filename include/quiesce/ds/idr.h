/* SPDX-License-Identifier: MIT */
/* quiesce/ds/idr.h - small integers to pointers: ids are allocated, found without a lock, and
 * freed.
 *
 * Use for handles: ids that another process or a caller holds, and that stand for an object of the
 * program.  Use xarray.h if the numbers come from elsewhere, ida.h for numbers without pointers,
 * hashmap.h or hashtable.h for scattered keys.
 *
 *	static DEFINE_IDR(sessions);
 *
 *	int id = idr_alloc(&sessions, s, 1, 0);         // the lowest of 1 ... INT_MAX that is free
 *
 *	rcu_read_lock();                                // reader
 *	s = idr_find(&sessions, id);
 *	if (s)
 *		use(s);
 *	rcu_read_unlock();
 *
 *	s = idr_remove(&sessions, id);                  // readers may still use it
 *	call_rcu(&s->rcu, session_free);
 *
 * Ordering.  If idr_find() or an iteration returns a pointer, everything that precedes the
 * idr_alloc() or idr_replace() that stored it is visible; if it does not find an id that had a
 * pointer, everything that precedes its idr_remove().  Finding, allocating, replacing and removing
 * one id are linearizable.
 *
 * Updaters of one idr exclude each other by a lock of its own, which is never held over an
 * allocation, a wait or a call of the program.  So any thread may update at any time outside
 * signal handlers, also inside a section and under the program's locks; no call here waits for
 * readers.  If the process cannot have a worker thread, memory is freed by rcu_barrier() and
 * rcu_throttle().
 * A pointer is any value; NULL is a reservation: the id is taken, and idr_find() finds nothing.
 *
 * An id is reused as soon as it is free: a reader with an old id may find another object.  If that
 * must not happen, compare an id in the object itself (idr_alloc_u32() writes it in time), or use
 * idr_alloc_cyclic().
 *
 * fork(): the child has the ids of the parent.  It must not use an idr that another thread was
 * updating at the fork.
 *
 * Proof: docs/design/radix.md; tests/litmus/ID*.litmus; docs/ordering.md.
 */
#ifndef QUIESCE_DS_IDR_H
#define QUIESCE_DS_IDR_H

#include <limits.h>
#include <quiesce/detail/radix.h>

QUIESCE_BEGIN_DECLS

/* Private. */
struct idr {
	struct quiesce__radix tree;
};

/* Private, for the loops below.  Return the id after @id, or -1 if @id has no successor. */
QUIESCE_PLAIN int quiesce__idr_after(int id) { return id == INT_MAX ? -1 : id + 1; }

/** DEFINE_IDR, IDR_INIT - define an empty idr; the initialiser of one.
 * It is usable before any constructor has run, too. */
#define IDR_INIT(name) { QUIESCE_RADIX_INIT }
#define DEFINE_IDR(name) struct idr name = IDR_INIT(name)

/* Number of nodes that one allocation can need. */
#define QUIESCE_IDR_PRELOAD 10

/* Nodes that one thread has allocated in advance; private. */
struct idr_nodes {
	struct quiesce__radix_nodes nodes;
};
#define IDR_NODES_INIT { { NULL, 0 } }

QUIESCE_API int quiesce_idr_alloc(struct idr *idr, void *ptr, int start, int end, struct idr_nodes *preload);
QUIESCE_API int quiesce_idr_alloc_u32(struct idr *idr, void *ptr, uint32_t *nextid, unsigned long max);
QUIESCE_API int quiesce_idr_alloc_cyclic(struct idr *idr, void *ptr, int start, int end);
QUIESCE_API int quiesce_idr_replace(struct idr *idr, void *ptr, unsigned long id, void **ret_old);
QUIESCE_API void *quiesce_idr_remove(struct idr *idr, unsigned long id);
QUIESCE_API void *quiesce_idr_get_next_ul(const struct idr *idr, unsigned long *nextid);
QUIESCE_API void quiesce_idr_destroy(struct idr *idr);
QUIESCE_API int quiesce_idr_preload(struct idr_nodes *preload);
QUIESCE_API void quiesce_idr_preload_end(struct idr_nodes *preload);

/** idr_init - initialise @idr as empty, as DEFINE_IDR() does.
 *
 * Context: no other thread has @idr.
 * Cost: allocates nothing, here or for an idr that stays empty. */
QUIESCE_PLAIN void idr_init(struct idr *idr)
{
	struct idr fresh = IDR_INIT(fresh);

	*idr = fresh;
}

/** idr_find - return the pointer of @id.
 *
 * Context: inside a section, or where no updater can be; signal handlers.
 * Cost: a load, and one more for each level: one level up to id 63, two to 4095, three to 262143.
 *   All but the last two are shared by so many ids that they stay in the cache.  No fence, no
 *   shared write, wait-free.
 * Return: the pointer; NULL: no such id, or one that is reserved.
 * Orders: see "Ordering" above. */
QUIESCE_FAST void *idr_find(const struct idr *idr, unsigned long id) { return quiesce__radix_find(&idr->tree, id); }

/** idr_alloc - allocate for @ptr the lowest free id that is at least @start and less than @end.
 * @ptr: any value; NULL reserves the id, for a later idr_replace().
 * @end: not included; 0 or less: no limit but INT_MAX, which is included.
 *
 * Context: a thread.  Sleeps while another updater of @idr has the lock.
 * Cost: O(levels); sometimes a node of 576 bytes is allocated, while the lock is not held.
 * Return: the id; -ENOSPC: none free there; -ENOMEM, and nothing has changed; -EINVAL: @start is
 *   negative.
 * Orders: release. */
QUIESCE_PLAIN int idr_alloc(struct idr *idr, void *ptr, int start, int end)
{
	return quiesce_idr_alloc(idr, ptr, start, end, NULL);
}

/** idr_alloc_u32 - allocate for @ptr the lowest free id from *@nextid to @max, both included.
 * @nextid: the id is written there before readers can find @ptr by it, so it may be in the object
 *   to which @ptr points; not changed if the call fails.
 * @max: at most UINT32_MAX is used.
 *
 * Context, cost, orders: as idr_alloc().
 * Return: 0; -ENOSPC; -ENOMEM, and nothing has changed. */
QUIESCE_PLAIN int idr_alloc_u32(struct idr *idr, void *ptr, uint32_t *nextid, unsigned long max)
{
	return quiesce_idr_alloc_u32(idr, ptr, nextid, max);
}

/** idr_alloc_cyclic - idr_alloc() that searches from the id after its last result on, and then from
 * @start.
 *
 * So an id is reused late, after 2^31 others, and not by the next caller.  The nodes of ids
 * scattered like this may be nearly empty: 576 bytes for an id in the worst case. */
QUIESCE_PLAIN int idr_alloc_cyclic(struct idr *idr, void *ptr, int start, int end)
{
	return quiesce_idr_alloc_cyclic(idr, ptr, start, end);
}

/** idr_get_cursor - return the id from which idr_alloc_cyclic() will search.
 * Context: any.
 * Orders: nothing. */
QUIESCE_PLAIN unsigned int idr_get_cursor(const struct idr *idr)
{
	return quiesce_load_relaxed(&idr->tree.next); /* Relaxed: no order promised. */
}

/** idr_set_cursor - set the id from which idr_alloc_cyclic() will search.
 * Context: any.
 * Orders: nothing. */
QUIESCE_PLAIN void idr_set_cursor(struct idr *idr, unsigned int next)
{
	quiesce_store_relaxed(&idr->tree.next, next); /* Relaxed: no order promised. */
}

/** idr_preload - get the memory for one allocation in advance, for a place where none is possible,
 * such as under a spinlock.
 * @preload: the caller's, initialised with IDR_NODES_INIT.  One thread at a time.
 *
 *	struct idr_nodes nodes = IDR_NODES_INIT;
 *
 *	if (idr_preload(&nodes) == 0) {
 *		lock(&mine);
 *		id = idr_alloc_preloaded(&idr, &nodes, ptr, 0, 0);
 *		unlock(&mine);
 *	}
 *	idr_preload_end(&nodes);
 *
 * (The kernel's preload fills a per-CPU stock and disables preemption; a program cannot do the
 * latter.)
 * Context: a thread.
 * Cost: allocates what is missing from ten nodes, 5.8 kB: keep @preload for many allocations, as
 *   each of them uses few nodes or none.
 * Return: 0; -ENOMEM: @preload keeps what it has.
 */
QUIESCE_PLAIN int idr_preload(struct idr_nodes *preload) { return quiesce_idr_preload(preload); }

/** idr_alloc_preloaded - idr_alloc() that takes its memory from @preload and does not allocate.
 *
 * Return: as idr_alloc(), but -ENOMEM only if idr_preload() has not returned 0 since the last
 *   call. */
QUIESCE_PLAIN int idr_alloc_preloaded(struct idr *idr, struct idr_nodes *preload, void *ptr, int start, int end)
{
	return quiesce_idr_alloc(idr, ptr, start, end, preload);
}

/** idr_preload_end - free the rest of @preload, which may be filled again. */
QUIESCE_PLAIN void idr_preload_end(struct idr_nodes *preload) { quiesce_idr_preload_end(preload); }

/** idr_replace - replace the pointer of @id, which is taken.
 * @ret_old: if not NULL, set to the previous pointer; NULL for a reserved id.
 *
 * (The kernel returns the old pointer, or an error as an invalid pointer, which a program does not have.)
 * Context: as idr_alloc().  Allocates nothing.
 * Return: 0; -ENOENT: @id is not taken, and *@ret_old is not changed.
 * Orders: release. */
QUIESCE_PLAIN int idr_replace(struct idr *idr, void *ptr, unsigned long id, void **ret_old)
{
	return quiesce_idr_replace(idr, ptr, id, ret_old);
}

/** idr_remove - free @id.
 *
 * Readers may have found its pointer before: free the object after a grace period.
 * Context: as idr_alloc().  Allocates nothing; nodes that become empty are freed by call_rcu().
 * Return: the pointer; NULL: @id was reserved only, or was not taken.
 * Orders: release. */
QUIESCE_PLAIN void *idr_remove(struct idr *idr, unsigned long id) { return quiesce_idr_remove(idr, id); }

/** idr_get_next_ul - find the lowest id from *@nextid on that has a pointer.
 * @nextid: set to that id; not changed if there is none.
 *
 * Context: inside a section, or where no updater can be.
 * Cost: as several idr_find(), and a check of each reserved id on the way.
 * Return: the pointer, or NULL.  An id that has a pointer throughout the call is not missed. */
QUIESCE_PLAIN void *idr_get_next_ul(const struct idr *idr, unsigned long *nextid)
{
	return quiesce_idr_get_next_ul(idr, nextid);
}

/** idr_get_next - idr_get_next_ul() for ids up to INT_MAX, as an int. */
QUIESCE_PLAIN void *idr_get_next(const struct idr *idr, int *nextid)
{
	unsigned long id = (unsigned long)*nextid;
	void *ptr = *nextid < 0 ? NULL : quiesce_idr_get_next_ul(idr, &id);

	if (!ptr || id > INT_MAX)
		return NULL;
	*nextid = (int)id;
	return ptr;
}

/** idr_for_each_entry - visit all ids that have a pointer, in order.
 * @idr: a pointer.
 * @entry: a variable, the pointer of the id; NULL at the end.
 * @id: an int variable.
 *
 * Context: inside a section, or where no updater can be.  A section may end between two
 *   iterations: the next one begins at @id.  Updates are allowed meanwhile, also of the current
 *   id.
 * Each id that has a pointer throughout is visited once; one that is allocated or removed
 * meanwhile, once or not at all. */
#define idr_for_each_entry(idr, entry, id) \
	for ((id) = 0; ((entry) = QUIESCE_CAST(__typeof__(entry), idr_get_next((idr), &(id)))) != NULL; (id) = quiesce__idr_after(id))

/** idr_for_each_entry_continue - visit the ids from the value of @id on. */
#define idr_for_each_entry_continue(idr, entry, id) \
	for (; ((entry) = QUIESCE_CAST(__typeof__(entry), idr_get_next((idr), &(id)))) != NULL; (id) = quiesce__idr_after(id))

/** idr_for_each_entry_ul - visit all ids, those above INT_MAX, too.
 * @id: an unsigned long variable. */
#define idr_for_each_entry_ul(idr, entry, id) \
	for ((id) = 0; ((entry) = QUIESCE_CAST(__typeof__(entry), idr_get_next_ul((idr), &(id)))) != NULL; (id)++)

/** idr_for_each - call @fn for all ids that have a pointer, in order, until it returns a value
 * other than 0.
 *
 * Context: as idr_for_each_entry().
 * Return: the last value that @fn returned; 0 without ids. */
QUIESCE_PLAIN int idr_for_each(const struct idr *idr, int (*fn)(int id, void *ptr, void *data), void *data)
{
	int id, result = 0;
	void *ptr;

	for (id = 0; (ptr = idr_get_next(idr, &id)) != NULL; id = quiesce__idr_after(id)) {
		result = fn(id, ptr, data);
		if (result)
			break;
	}
	return result;
}

/** idr_is_empty - test whether no id is taken or reserved.
 * Context: any.
 * Orders: nothing. */
QUIESCE_PLAIN bool idr_is_empty(const struct idr *idr)
{
	return quiesce_load_relaxed(&idr->tree.root) == 0; /* Relaxed: no order promised. */
}

/** idr_count - return the number of ids that are taken or reserved.
 * Context: any.
 * Orders: nothing. */
QUIESCE_PLAIN size_t idr_count(const struct idr *idr)
{
	return quiesce_load_relaxed(&idr->tree.count); /* Relaxed: no order promised. */
}

/** idr_destroy - free all ids, and the memory of @idr; the objects belong to the caller.
 *
 * Readers may be inside: the nodes are freed after a grace period.  Afterwards @idr is empty, and
 * may be used again or be freed itself, after a grace period if there may be readers.
 * Context: any thread, also in a section; no other updater.
 * Cost: O(1); a callback does the rest. */
QUIESCE_PLAIN void idr_destroy(struct idr *idr) { quiesce_idr_destroy(idr); }

QUIESCE_END_DECLS

#endif
