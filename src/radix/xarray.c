/* SPDX-License-Identifier: MIT */
/* xarray.c - a sparse array of pointers, in order, with marks, in a tree; see radix.h.
 *
 * ID3  see radix.h
 */
#include "radix/radix.h"
#include "runtime/core.h"
#include "runtime/lock.h"

#include <quiesce/ds/xarray.h>

#include <errno.h>

_Static_assert((int)XA_PRESENT == (int)RADIX_USED && (int)XA_MARK_MAX < (int)RADIX_MARKS, "a filter is a bit of the tree");

/* An update of one index has a new entry, and a condition on the old one. */
struct change {
	void *entry;
	void *expected;
	enum { ALWAYS, IF_FREE, IF_EXPECTED } when;
	uint64_t index; /* index of a store */
	void *old;      /* entry before the change */
};

static bool fits(const struct change *change, const struct radix_node *leaf, const void *there)
{
	switch (change->when) {
	case IF_FREE:
		return !leaf;
	case IF_EXPECTED:
		return there == change->expected;
	default:
		return true;
	}
}

static int try_store(struct quiesce__radix *tree, struct quiesce__radix_nodes *spare, void *arg)
{
	struct change *change = arg;
	struct radix_node *leaf;
	unsigned int nr;

	change->old = quiesce__radix_lookup(tree, change->index, &leaf);
	if (!fits(change, leaf, change->old))
		return -EBUSY;
	if (leaf) {
		quiesce__radix_replace(leaf, change->index, change->entry);
		return 0;
	}
	nr = quiesce__radix_nodes_needed(tree, change->index);
	if (nr > spare->nr)
		return nr;
	quiesce__radix_take(tree, spare, change->index, change->entry);
	return 0;
}

static int store(struct xarray *xa, unsigned long index, struct change *change, void **ret_old)
{
	int result;

	change->index = index;
	result = quiesce__radix_update(&xa->tree, NULL, try_store, change);
	if (ret_old && result != -ENOMEM)
		*ret_old = change->old;
	return result;
}

/* Free @index if its entry is as expected; returns the entry that it had, in any case. */
static void *erase(struct xarray *xa, unsigned long index, const struct change *change, bool *ret_fits)
{
	struct radix_node *leaf, *out = NULL;
	void *old;

	quiesce__lock(&xa->tree.lock);
	old = quiesce__radix_lookup(&xa->tree, index, &leaf);
	*ret_fits = fits(change, leaf, old);
	if (leaf && *ret_fits)
		out = quiesce__radix_give_back(&xa->tree, leaf, index);
	quiesce__unlock(&xa->tree.lock);
	quiesce__radix_retire(out);
	return old;
}

void *quiesce_xa_erase(struct xarray *xa, unsigned long index)
{
	struct change always = { .when = ALWAYS };
	bool unused;

	return erase(xa, index, &always, &unused);
}

int quiesce_xa_store(struct xarray *xa, unsigned long index, void *entry, void **ret_old)
{
	struct change change = { .entry = entry, .when = ALWAYS };
	void *old;

	if (entry)
		return store(xa, index, &change, ret_old);
	old = quiesce_xa_erase(xa, index);
	if (ret_old)
		*ret_old = old;
	return 0;
}

int quiesce_xa_insert(struct xarray *xa, unsigned long index, void *entry)
{
	struct change change = { .entry = entry, .when = IF_FREE };

	return store(xa, index, &change, NULL);
}

int quiesce_xa_cmpxchg(struct xarray *xa, unsigned long index, void *old, void *entry, void **ret_old)
{
	struct change change = { .entry = entry, .expected = old, .when = IF_EXPECTED };
	bool fitted;
	void *there;

	if (entry)
		return store(xa, index, &change, ret_old);
	there = erase(xa, index, &change, &fitted);
	if (ret_old)
		*ret_old = there;
	return fitted ? 0 : -EBUSY;
}

int quiesce_xa_reserve(struct xarray *xa, unsigned long index)
{
	struct change change = { .entry = NULL, .when = IF_FREE };
	int result = store(xa, index, &change, NULL);

	return result == -EBUSY ? 0 : result;
}

int quiesce_xa_alloc_range(struct xarray *xa, uint32_t *id, void *entry, struct xa_limit limit, uint32_t *next)
{
	struct radix_request request = { .ptr = entry, .ret_index = id, .from = limit.min, .max = limit.max, .next = next };

	int result = quiesce__radix_alloc(&xa->tree, &request);

	return result == -ENOSPC ? -EBUSY : result; /* as in the kernel */
}

void quiesce_xa_destroy(struct xarray *xa)
{
	quiesce__radix_destroy(&xa->tree);
}

/* ---- marks ---- */

/* True if @mark is at most @last; others are reported, because the next bit of the tree has another use. */
static bool at_most(xa_mark_t last, xa_mark_t mark, const char *call)
{
	if (mark <= last)
		return true;
	quiesce__misuse(QUIESCE_MISUSE_ARGUMENT, "%s() of %u, which is no mark", call, mark);
	return false;
}

void quiesce_xa_mark(struct xarray *xa, unsigned long index, xa_mark_t mark, bool on)
{
	struct radix_node *leaf;
	unsigned int slot = radix_slot_of(index, 0);

	if (!at_most(XA_MARK_MAX, mark, on ? "xa_set_mark" : "xa_clear_mark"))
		return;
	quiesce__lock(&xa->tree.lock);
	if (quiesce__radix_lookup(&xa->tree, index, &leaf)) {
		if (on)
			quiesce__radix_set(leaf, slot, (enum radix_bit)mark);
		else if (radix_bits(leaf, (enum radix_bit)mark) & radix_bit(slot))
			quiesce__radix_clear(leaf, slot, (enum radix_bit)mark);
	}
	quiesce__unlock(&xa->tree.lock);
}

/* ---- readers ---- */

bool quiesce_xa_get_mark(const struct xarray *xa, unsigned long index, xa_mark_t mark)
{
	const struct radix_node *leaf;

	if (!at_most(XA_MARK_MAX, mark, "xa_get_mark"))
		return false;
	leaf = quiesce__radix_find_leaf(&xa->tree, index);
	/* ID3: acquire, pairs with ID3 in set_bits() */
	return leaf && quiesce_load_acquire(ID3, &leaf->bits[mark]) & radix_bit(radix_slot_of(index, 0));
}

bool quiesce_xa_marked(const struct xarray *xa, xa_mark_t mark)
{
	unsigned long index = 0;

	if (!at_most(XA_PRESENT, mark, "xa_marked"))
		return false;
	return quiesce__radix_up(&xa->tree, &index, ULONG_MAX, (enum radix_bit)mark);
}

void *quiesce_xa_find(const struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t filter)
{
	if (!at_most(XA_PRESENT, filter, "xa_find"))
		return NULL;
	return quiesce__radix_up(&xa->tree, index, max, (enum radix_bit)filter);
}

void *quiesce_xa_find_reverse(const struct xarray *xa, unsigned long *index, unsigned long min, xa_mark_t filter)
{
	if (!at_most(XA_PRESENT, filter, "xa_find_reverse"))
		return NULL;
	return quiesce__radix_down(&xa->tree, index, min, (enum radix_bit)filter);
}

unsigned int quiesce_xa_extract(const struct xarray *xa, void **dst, unsigned long start, unsigned long max, unsigned int n,
				xa_mark_t filter)
{
	if (!at_most(XA_PRESENT, filter, "xa_extract"))
		return 0;
	return quiesce__radix_gather(&xa->tree, dst, start, max, n, (enum radix_bit)filter);
}
