/* SPDX-License-Identifier: MIT */
/* quiesce/ds/ida.h - allocation of small numbers; nothing is stored with them.
 *
 * Use for names and slots that only have to differ: instances of a device, places in an array; use
 * idr.h if an object has to be found by its number.
 *
 *	static DEFINE_IDA(instances);
 *
 *	int id = ida_alloc(&instances);         // the lowest of 0 ... INT_MAX that is free
 *	if (id < 0)                             // -ENOMEM, -ENOSPC
 *		...
 *	...
 *	ida_free(&instances, id);
 *
 * A number costs one bit if its neighbours are in use, too: a node of 576 bytes holds up to 4096
 * of them, and there is a node for each 64 nodes (64 times 4096 numbers), and so on.  There are no
 * readers, so memory is freed at once, except that ida_destroy() leaves that to a callback of
 * call_rcu().
 *
 * Ordering.  A caller that gets a number sees everything that precedes the ida_free() of that
 * number.
 *
 * Callers of one ida exclude each other by a lock of its own, which is never held over an
 * allocation, a wait or a call of the program: any thread may call at any time outside signal
 * handlers, also inside a section and under the program's locks.
 *
 * fork(): the child has the numbers of the parent.  It must not use an ida that another thread was
 * updating at the fork.
 *
 * Source: the kernel's ida.  Proof: docs/design/radix.md.
 */
#ifndef QUIESCE_DS_IDA_H
#define QUIESCE_DS_IDA_H

#include <limits.h>
#include <quiesce/detail/radix.h>

QUIESCE_BEGIN_DECLS

/* Private.  Each slot of the tree holds 64 numbers. */
struct ida {
	struct quiesce__radix tree;
};

/** DEFINE_IDA, IDA_INIT - define an empty ida; the initialiser of one.
 * It is usable before any constructor has run, too. */
#define IDA_INIT(name) { QUIESCE_RADIX_INIT }
#define DEFINE_IDA(name) struct ida name = IDA_INIT(name)

QUIESCE_API int quiesce_ida_alloc_range(struct ida *ida, unsigned int min, unsigned int max);
QUIESCE_API void quiesce_ida_free(struct ida *ida, unsigned int id);
QUIESCE_API int quiesce_ida_find_first_range(struct ida *ida, unsigned int min, unsigned int max);
QUIESCE_API void quiesce_ida_destroy(struct ida *ida);

/** ida_init - initialise @ida as empty, as DEFINE_IDA() does.
 *
 * Context: no other thread has @ida.
 * Cost: allocates nothing, here or for an ida that stays empty. */
QUIESCE_PLAIN void ida_init(struct ida *ida)
{
	struct ida fresh = IDA_INIT(fresh);

	*ida = fresh;
}

/** ida_alloc_range - allocate the lowest free number from @min to @max, both included.
 * @max: at most INT_MAX is used.
 *
 * Context: a thread.  Sleeps while another caller has the lock.
 * Cost: O(levels), two up to 262143; sometimes a node of 576 bytes is allocated, while the lock is
 *   not held.
 * Return: the number; -ENOSPC: none free there, as where @min is more than INT_MAX; -ENOMEM, and
 *   nothing has changed.
 * Orders: acquire, after the ida_free() of that number. */
QUIESCE_PLAIN int ida_alloc_range(struct ida *ida, unsigned int min, unsigned int max) { return quiesce_ida_alloc_range(ida, min, max); }

/** ida_alloc, ida_alloc_min, ida_alloc_max - allocate the lowest free number of all, from @min on,
 * or up to @max; otherwise as ida_alloc_range(). */
QUIESCE_PLAIN int ida_alloc(struct ida *ida) { return quiesce_ida_alloc_range(ida, 0, INT_MAX); }
QUIESCE_PLAIN int ida_alloc_min(struct ida *ida, unsigned int min) { return quiesce_ida_alloc_range(ida, min, INT_MAX); }
QUIESCE_PLAIN int ida_alloc_max(struct ida *ida, unsigned int max) { return quiesce_ida_alloc_range(ida, 0, max); }

/** ida_free - free @id.
 *
 * Context: as ida_alloc_range().  Allocates nothing.
 * Misuse: a number that is not taken: reported.
 * Orders: release. */
QUIESCE_PLAIN void ida_free(struct ida *ida, unsigned int id) { quiesce_ida_free(ida, id); }

/** ida_find_first_range - find the lowest number from @min to @max, both included, that is taken.
 *
 * Context: as ida_alloc_range().  Allocates nothing.
 * Return: the number; -ENOENT: none; -EINVAL: @min is more than INT_MAX. */
QUIESCE_PLAIN int ida_find_first_range(struct ida *ida, unsigned int min, unsigned int max)
{
	return quiesce_ida_find_first_range(ida, min, max);
}
QUIESCE_PLAIN int ida_find_first(struct ida *ida) { return quiesce_ida_find_first_range(ida, 0, INT_MAX); }

/** ida_exists - test whether @id is taken.
 * Context: as ida_alloc_range(). */
QUIESCE_PLAIN bool ida_exists(struct ida *ida, unsigned int id) { return quiesce_ida_find_first_range(ida, id, id) >= 0; }

/** ida_is_empty - test whether no number is taken.
 * Context: any.
 * Orders: nothing. */
QUIESCE_PLAIN bool ida_is_empty(const struct ida *ida)
{
	return quiesce_load_relaxed(&ida->tree.root) == 0; /* Relaxed: no order promised. */
}

/** ida_destroy - free all numbers, and the memory of @ida, which is empty afterwards and may be
 * used again.
 *
 * Context: a thread; no other thread uses @ida.
 * Cost: O(1); a callback does the rest. */
QUIESCE_PLAIN void ida_destroy(struct ida *ida) { quiesce_ida_destroy(ida); }

QUIESCE_END_DECLS

#endif
