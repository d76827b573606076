/* SPDX-License-Identifier: MIT */
/* quiesce/ds/idr.h - small integers to pointers: ids are given out, found without a lock, and given back.
 *
 * Use for handles: ids that another process or a caller of yours holds, and that stand for an object of yours;
 * use xarray.h where the numbers come from elsewhere, ida.h for numbers without pointers, hashmap.h or hashtable.h for scattered keys.
 *
 *	static DEFINE_IDR(sessions);
 *
 *	int id = idr_alloc(&sessions, s, 1, 0);         // any of 1 ... INT_MAX, the lowest that is free
 *
 *	rcu_read_lock();                                // reader
 *	s = idr_find(&sessions, id);
 *	if (s)
 *		use(s);
 *	rcu_read_unlock();
 *
 *	s = idr_remove(&sessions, id);                  // s is the caller's again, and its readers'
 *	call_rcu(&s->rcu, session_free);
 *
 * Ordering.  If idr_find() or an iteration returns a pointer, then everything that precedes the idr_alloc() or
 * idr_replace() that stored it is visible; if it does not find an id that had a pointer, then everything that precedes
 * its idr_remove().  Finding, allocating, replacing and removing one id are linearizable.
 *
 * Updaters of one idr take turns in a lock of its own, which is never held over an allocation, a wait or a call of yours.
 * So any thread may update at any time outside signal handlers, also inside a section and under locks of yours; no call
 * here waits for readers.  Where the process can have no worker thread, memory comes back at rcu_barrier() and rcu_throttle().
 * A pointer is any value; NULL is a reservation: the id is taken, and idr_find() finds nothing.
 *
 * An id is used again as soon as it is free: a reader who knows an id of old may find another object.  Who cannot have that
 * compares an id of the object's own (idr_alloc_u32() writes it in time), or uses idr_alloc_cyclic().
 *
 * fork(): the child has the ids of the parent.  It must not use an idr that another thread was updating at the fork.
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

#define IDR_INIT(name) { QUIESCE_RADIX_INIT }
/** DEFINE_IDR - an idr variable that is ready, before any constructor too. */
#define DEFINE_IDR(name) struct idr name = IDR_INIT(name)

/* As many nodes as one allocation can need. */
#define QUIESCE_IDR_PRELOAD 10

/* Nodes in the hand of one thread; private. */
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

/** idr_init - make @idr empty, as DEFINE_IDR() does.
 *
 * Context: nobody else has @idr.  Cost: allocates nothing, here or for an idr that stays empty. */
static inline void idr_init(struct idr *idr)
{
	struct idr fresh = IDR_INIT(fresh);

	*idr = fresh;
}

/** idr_find - the pointer of @id.
 *
 * Context: inside a section, or where no updater can be; signal handlers.
 * Cost: a load, and another one for each level: one level up to id 63, two to 4095, three to 262143.  All but the last two
 *   are shared by so many ids that they stay in the cache.  No fence, no shared write, wait-free.
 * Return: the pointer; NULL: no such id, or one that is reserved.
 * Orders: see "Ordering" above. */
QUIESCE_FAST void *idr_find(const struct idr *idr, unsigned long id) { return quiesce__radix_find(&idr->tree, id); }

/** idr_alloc - give @ptr the lowest free id that is at least @start and less than @end.
 * @ptr: any value; NULL reserves the id, to be filled by idr_replace().
 * @end: not included; 0 or less: no limit but INT_MAX, which is included.
 *
 * Context: a thread.  Sleeps while another updater of @idr has the lock.
 * Cost: O(levels); now and then a node of 576 bytes is allocated, while the lock is not held.
 * Return: the id; -ENOSPC: none free there; -ENOMEM, and nothing has changed; -EINVAL: @start is negative.
 * Orders: release. */
static inline int idr_alloc(struct idr *idr, void *ptr, int start, int end)
{
	return quiesce_idr_alloc(idr, ptr, start, end, NULL);
}

/** idr_alloc_u32 - give @ptr the lowest free id from *@nextid to @max, both included.
 * @nextid: the id is written there before anybody can find @ptr by it, so this may be in the object that @ptr
 *   points to.  Not changed if the call fails.
 * @max: UINT32_MAX if it is more.
 *
 * Context, cost, orders: as idr_alloc().
 * Return: 0; -ENOSPC; -ENOMEM, and nothing has changed. */
static inline int idr_alloc_u32(struct idr *idr, void *ptr, uint32_t *nextid, unsigned long max)
{
	return quiesce_idr_alloc_u32(idr, ptr, nextid, max);
}

/** idr_alloc_cyclic - idr_alloc() that begins after the last id that this call gave out, and then at @start again.
 *
 * So an id is used again late, when 2^31 others have been, and not by the next caller.  The nodes of ids scattered like
 * that may be nearly empty: 576 bytes for an id in the worst case. */
static inline int idr_alloc_cyclic(struct idr *idr, void *ptr, int start, int end)
{
	return quiesce_idr_alloc_cyclic(idr, ptr, start, end);
}

/** idr_get_cursor - where idr_alloc_cyclic() will begin.  Any context; no order. */
static inline unsigned int idr_get_cursor(const struct idr *idr)
{
	return quiesce_load_relaxed(&idr->tree.next); /* Relaxed: no order promised. */
}

/** idr_set_cursor - let idr_alloc_cyclic() begin at @next.  Any context; no order. */
static inline void idr_set_cursor(struct idr *idr, unsigned int next)
{
	quiesce_store_relaxed(&idr->tree.next, next); /* Relaxed: no order promised. */
}

/** idr_preload - get the memory for one allocation now, for where there can be none: under a spinlock, say.
 * @preload: the caller's, at first IDR_NODES_INIT.  One thread at a time.
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
 * (The kernel's preload fills a stock of the CPU and keeps the caller there; a program cannot do the second.)
 * Context: a thread.  Cost: allocates what is missing from ten nodes, 5.8 kB: keep @preload where there are
 *   many allocations, as each uses few nodes or none.
 * Return: 0; -ENOMEM: what @preload has it keeps. */
static inline int idr_preload(struct idr_nodes *preload) { return quiesce_idr_preload(preload); }

/** idr_alloc_preloaded - idr_alloc() that takes its memory from @preload and does not allocate.
 *
 * Return: as idr_alloc(), but -ENOMEM only if idr_preload() did not return 0 since the last call. */
static inline int idr_alloc_preloaded(struct idr *idr, struct idr_nodes *preload, void *ptr, int start, int end)
{
	return quiesce_idr_alloc(idr, ptr, start, end, preload);
}

/** idr_preload_end - free what is left.  @preload may be filled again. */
static inline void idr_preload_end(struct idr_nodes *preload) { quiesce_idr_preload_end(preload); }

/** idr_replace - give @id, which is taken, another pointer.
 * @ret_old: what was there, NULL for an id that was reserved; may be NULL: not asked for.
 *
 * (The kernel returns the old pointer or an error made a pointer, which a program has no room for.)
 * Context: as idr_alloc().  Allocates nothing.
 * Return: 0; -ENOENT: @id is not taken, and *@ret_old is not changed.  Orders: release. */
static inline int idr_replace(struct idr *idr, void *ptr, unsigned long id, void **ret_old)
{
	return quiesce_idr_replace(idr, ptr, id, ret_old);
}

/** idr_remove - give @id back.
 *
 * Readers may have found its pointer before: the object is freed after a grace period.
 * Context: as idr_alloc().  Allocates nothing; nodes that become empty are freed by call_rcu().
 * Return: the pointer; NULL: @id was reserved only, or was not taken.  Orders: release. */
static inline void *idr_remove(struct idr *idr, unsigned long id) { return quiesce_idr_remove(idr, id); }

/** idr_get_next_ul - the lowest id from *@nextid on that has a pointer.
 * @nextid: becomes that id; not changed if there is none.
 *
 * Context: inside a section, or where no updater can be.  Cost: as several idr_find(), and a look at each id on the way that is
 *   reserved.
 * Return: the pointer, or NULL.  An id that had a pointer when the call began and until it ends is not passed over. */
static inline void *idr_get_next_ul(const struct idr *idr, unsigned long *nextid)
{
	return quiesce_idr_get_next_ul(idr, nextid);
}

/** idr_get_next - the same of ids that are an int: up to INT_MAX. */
static inline void *idr_get_next(const struct idr *idr, int *nextid)
{
	unsigned long id = (unsigned long)*nextid;
	void *ptr = *nextid < 0 ? NULL : quiesce_idr_get_next_ul(idr, &id);

	if (!ptr || id > INT_MAX)
		return NULL;
	*nextid = (int)id;
	return ptr;
}

/* Private: the id after @id, or one that nothing follows. */
static inline int quiesce__idr_after(int id) { return id == INT_MAX ? -1 : id + 1; }

/** idr_for_each_entry - visit all ids that have a pointer, in their order.
 * @idr: a pointer.  @entry: a variable, the pointer of the id; NULL at the end.  @id: an int variable.
 *
 * Context: inside a section, or where no updater can be.  A section may end between two rounds: the next one begins at @id.
 *   Updates are allowed meanwhile, also of the id at hand.
 * Each id that has a pointer all the time is visited once; one that comes or goes meanwhile, once or not at all. */
#define idr_for_each_entry(idr, entry, id) \
	for ((id) = 0; ((entry) = QUIESCE_CAST(__typeof__(entry), idr_get_next((idr), &(id)))) != NULL; (id) = quiesce__idr_after(id))

/** idr_for_each_entry_continue - the same from the id that @id says on. */
#define idr_for_each_entry_continue(idr, entry, id) \
	for (; ((entry) = QUIESCE_CAST(__typeof__(entry), idr_get_next((idr), &(id)))) != NULL; (id) = quiesce__idr_after(id))

/** idr_for_each_entry_ul - the same of all ids, those above INT_MAX too.  @id: an unsigned long variable. */
#define idr_for_each_entry_ul(idr, entry, id) \
	for ((id) = 0; ((entry) = QUIESCE_CAST(__typeof__(entry), idr_get_next_ul((idr), &(id)))) != NULL; (id)++)

/** idr_for_each - call @fn for all ids that have a pointer, in their order, until it returns something else than 0.
 *
 * Context: as idr_for_each_entry().  Return: what @fn returned last; 0 without ids. */
static inline int idr_for_each(const struct idr *idr, int (*fn)(int id, void *ptr, void *data), void *data)
{
	int id, result = 0;
	void *ptr;

	idr_for_each_entry(idr, ptr, id) {
		result = fn(id, ptr, data);
		if (result)
			break;
	}
	return result;
}

/** idr_is_empty - is no id taken, nor reserved?  Any context; no order. */
static inline bool idr_is_empty(const struct idr *idr)
{
	return quiesce_load_relaxed(&idr->tree.root) == 0; /* Relaxed: no order promised. */
}

/** idr_count - how many ids are taken, the reserved ones included.  Any context; no order. */
static inline size_t idr_count(const struct idr *idr)
{
	return quiesce_load_relaxed(&idr->tree.count); /* Relaxed: no order promised. */
}

/** idr_destroy - give all ids back, and the memory of @idr; the objects are the caller's business.
 *
 * Readers may be inside: what they walk through is freed after a grace period.  @idr is empty then and may be used again, or
 * be freed itself, after a grace period if there may be readers.
 * Context: any thread, also in a section; no other updater.  Cost: O(1); what remains is done by a callback. */
static inline void idr_destroy(struct idr *idr) { quiesce_idr_destroy(idr); }

QUIESCE_END_DECLS

#endif
