/* SPDX-License-Identifier: MIT */
/* idr.c - ids to pointers: a radix tree of nodes with 64 slots, read under RCU, changed under a lock.
 *
 *   root = node | 12             an id is (a, b, c), 6 bits each
 *            |
 *      [ . a . . ]
 *          |                     used: the slot leads to ids that are taken
 *      [ b . . . ]               free: ids are free there, or would be if there were a node
 *        |
 *      [ . . . c ] -> the caller's pointer
 *
 * I1. A node in the tree has a bit in used, but for the moment until prune() is done; the node atop has one besides that of
 *     slot 0, or is at the bottom.
 * I2. An allocation becomes visible by one store: of the slot that leads to what it built, or of the root.  All nodes are
 *     in hand before anything changes, so where memory fails nothing has.
 * I3. A node that is taken out has no ids, but what slot 0 of an old root leads to.  It is not changed any more and
 *     does not come back; it is freed after a grace period.
 * I4. Node and height of the root are one word.
 * I5. used and free, the links upwards and the counts belong to who has the lock; iterations look at used to pass slots over.
 *
 * ID1  node or object initialised, then the slot; removed, then the slot | slot, then what it leads to
 * ID2  tree above a new root, then the root | root, then what is below
 */
#include "runtime/lock.h"
#include "platform/platform.h"
#include "rcu/reclaim.h"

#include <quiesce/ds/idr.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BITS QUIESCE_IDR_BITS
#define WAYS QUIESCE_IDR_WAYS
#define NONE UINT64_MAX

struct node {
	struct quiesce__idr_node seen;
	uint64_t used;
	uint64_t free;
	struct node *up;    /* the node above; the next one where nodes are in hand or taken out */
	unsigned int place; /* the slot in the node above */
	struct rcu_head rcu;
} __attribute__((aligned(QUIESCE_CACHELINE)));
_Static_assert(_Alignof(struct node) == WAYS, "a root has room for six bits beside the node");

static unsigned int index_of(uint64_t id, unsigned int shift)
{
	return id >> shift & (WAYS - 1);
}

static uint64_t bit_of(unsigned int i)
{
	return 1ull << i;
}

/* ---- words that readers see; under the lock ---- */

/* Relaxed: the lock orders what updaters see of each other. */
static void *peek(const struct node *node, unsigned int i)
{
	return quiesce_load_relaxed(&node->seen.slot[i]);
}

static void set_slot(struct node *node, unsigned int i, void *p)
{
	/* ID1: release, pairs with ID1 in idr_find() and next_in() */
	quiesce_store_release(ID1, &node->seen.slot[i], p);
}

static struct node *root_of(const struct idr *idr, unsigned int *ret_shift)
{
	uintptr_t root = quiesce_load_relaxed(&idr->root); /* Relaxed: as peek(). */

	*ret_shift = root % WAYS;
	return (struct node *)(root - *ret_shift);
}

static void set_root(struct idr *idr, struct node *node, unsigned int shift)
{
	/* ID2: release, pairs with ID2 in idr_find() and quiesce_idr_get_next_ul() */
	quiesce_store_release(ID2, &idr->root, (uintptr_t)node + shift);
}

static uint64_t used_of(const struct node *node)
{
	return quiesce_load_relaxed(&node->used); /* Relaxed: as peek(). */
}

static void set_used(struct node *node, uint64_t used)
{
	quiesce_store_relaxed(&node->used, used); /* Relaxed: before ID1's or ID2's store where ids come; late where they go. */
}

static void add_to_count(struct idr *idr, size_t n)
{
	quiesce_store_relaxed(&idr->count, idr_count(idr) + n); /* Relaxed: idr_count() promises no order. */
}

/* ---- nodes in hand, and nodes taken out ---- */

static bool fill(struct idr_nodes *hand, unsigned int nr)
{
	while (hand->nr < nr) {
		struct node *node = aligned_alloc(WAYS, sizeof *node);

		if (!node)
			return false;
		memset(node, 0, sizeof *node);
		node->free = ~0ull;
		node->up = hand->first;
		hand->first = node;
		hand->nr++;
	}
	return true;
}

static struct node *take(struct idr_nodes *hand)
{
	struct node *node = hand->first;

	hand->first = node->up;
	hand->nr--;
	node->up = NULL;
	return node;
}

static void free_chain(struct node *node)
{
	for (struct node *next; node; node = next) {
		next = node->up;
		platform_free(node);
	}
}

static void free_chain_rcu(struct rcu_head *head)
{
	free_chain((struct node *)((char *)head - offsetof(struct node, rcu)));
}

static void free_tree(struct node *node, unsigned int shift)
{
	for (uint64_t bits = shift ? used_of(node) : 0; bits; bits &= bits - 1)
		free_tree(peek(node, __builtin_ctzll(bits)), shift - BITS);
	platform_free(node);
}

static void free_tree_rcu(struct rcu_head *head)
{
	struct node *node = (struct node *)((char *)head - offsetof(struct node, rcu));

	free_tree(node, node->place);
}

/* In a section, where it does not wait for less garbage whatever the settings: the tree is locked. */
static void after_readers(struct node *node, void (*func)(struct rcu_head *head), size_t nr)
{
	rcu_read_lock();
	quiesce_call_rcu(&node->rcu, func, nr * sizeof *node);
	rcu_read_unlock();
}

static void retire(struct node *out)
{
	size_t nr = 0;

	for (const struct node *node = out; node; node = node->up)
		nr++;
	if (!nr)
		return;
	if (QUIESCE_MUTANT(idr_free_now))
		free_chain(out);
	else
		after_readers(out, free_chain_rcu, nr);
}

/* ---- which id ---- */

/* The lowest free id in @node that is not less than @from, or NONE.  Below another slot than the first one every node
 * that is free somewhere is free at once: two ways down at most. */
static uint64_t lowest_free(const struct node *node, unsigned int shift, uint64_t from)
{
	unsigned int first = index_of(from, shift);

	for (uint64_t bits = node->free & ~0ull << first; bits; bits &= bits - 1) {
		unsigned int i = __builtin_ctzll(bits);
		uint64_t found = i == first ? from & (bit_of(shift) - 1) : 0;
		const struct node *below = shift ? peek(node, i) : NULL;

		if (below)
			found = lowest_free(below, shift - BITS, found);
		if (found != NONE)
			return ((uint64_t)i << shift) + found;
	}
	return NONE;
}

/* The lowest free id from @from on, were the tree as high as can be. */
static uint64_t choose(const struct idr *idr, uint64_t from)
{
	unsigned int shift;
	const struct node *node = root_of(idr, &shift);
	uint64_t end = node ? (uint64_t)WAYS << shift : 0;
	uint64_t found = from < end ? lowest_free(node, shift, from) : from;

	return found == NONE ? end : found;
}

/* The least shift with which one node has @id. */
static unsigned int shift_for(uint64_t id)
{
	unsigned int shift = 0;

	while (id >> shift >= WAYS)
		shift += BITS;
	return shift;
}

/* How many nodes it takes to have @id. */
static unsigned int nodes_for(const struct idr *idr, uint64_t id)
{
	unsigned int shift, goal = shift_for(id);
	const struct node *node = root_of(idr, &shift), *below;

	if (!node)
		return goal / BITS + 1;
	if (goal > shift)
		return (goal - shift) / BITS + goal / BITS;
	for (; shift && (below = peek(node, index_of(id, shift))); shift -= BITS)
		node = below;
	return shift / BITS;
}

/* ---- alloc ---- */

static void link_below(struct node *node, unsigned int i, struct node *below)
{
	below->up = node;
	below->place = i;
	set_used(node, used_of(node) | bit_of(i));
	if (!below->free)
		node->free &= ~bit_of(i);
	set_slot(node, i, below);
}

/* Take slot @i of a node at the bottom. */
static void occupy(struct node *leaf, unsigned int i, void *ptr)
{
	struct node *node = leaf;

	set_used(leaf, used_of(leaf) | bit_of(i));
	leaf->free &= ~bit_of(i);
	for (; !node->free && node->up; node = node->up)
		node->up->free &= ~bit_of(node->place);
	set_slot(leaf, i, ptr);
}

/* The node atop of a tree that is high enough for @id: maybe a new one, which nobody sees yet. */
static struct node *raise(struct idr *idr, struct idr_nodes *hand, uint64_t id, unsigned int *ret_shift)
{
	unsigned int goal = shift_for(id);
	struct node *node = root_of(idr, ret_shift), *above;

	if (!node) {
		*ret_shift = goal;
		return take(hand);
	}
	for (; *ret_shift < goal; node = above) {
		above = take(hand);
		*ret_shift += BITS;
		if (QUIESCE_MUTANT(idr_grow_early))
			set_root(idr, above, *ret_shift);
		link_below(above, 0, node);
	}
	return node;
}

static void put(struct idr *idr, struct idr_nodes *hand, uint64_t id, void *ptr)
{
	unsigned int shift, old_shift, s;
	const struct node *old = root_of(idr, &old_shift);
	struct node *root = raise(idr, hand, id, &shift), *node = root, *below = NULL;
	unsigned int root_shift = shift;

	for (; shift && (below = peek(node, index_of(id, shift))); shift -= BITS)
		node = below;
	if (shift == 0) {
		occupy(node, index_of(id, 0), ptr);
	} else {
		occupy(below = take(hand), index_of(id, 0), ptr);
		for (s = BITS; s < shift; s += BITS) {
			struct node *above = take(hand);

			link_below(above, index_of(id, s), below);
			below = above;
		}
		link_below(node, index_of(id, shift), below);
	}
	if (root != old)
		set_root(idr, root, root_shift);
}

struct request {
	void *ptr;
	uint32_t *id; /* where to write it */
	uint32_t from;
	uint64_t max; /* included */
	bool cyclic;
};

/* Under the lock.  0, -ENOSPC, or how many nodes have to be in hand. */
static int try_alloc(struct idr *idr, struct idr_nodes *hand, const struct request *request)
{
	uint32_t next = request->cyclic ? idr_get_cursor(idr) : 0;
	uint64_t id = choose(idr, next > request->from ? next : request->from);
	unsigned int nr;

	if (id > request->max && next > request->from)
		id = choose(idr, request->from);
	if (id > request->max)
		return -ENOSPC;
	nr = nodes_for(idr, id);
	if (nr > hand->nr)
		return nr;
	if (request->cyclic)
		idr_set_cursor(idr, (uint32_t)id + 1);
	*request->id = (uint32_t)id;
	idr->nr_nodes += nr;
	add_to_count(idr, 1);
	put(idr, hand, id, request->ptr);
	return 0;
}

/* @preload, or NULL: allocate. */
static int alloc(struct idr *idr, struct idr_nodes *preload, const struct request *request)
{
	struct idr_nodes own = IDR_NODES_INIT, *hand = preload ? preload : &own;
	int result;

	for (;;) {
		quiesce__lock(&idr->lock);
		result = try_alloc(idr, hand, request);
		quiesce__unlock(&idr->lock);
		if (result <= 0)
			break;
		if (preload || !fill(hand, result)) {
			result = -ENOMEM;
			break;
		}
	}
	quiesce_idr_preload_end(&own);
	return result;
}

static int alloc_int(struct idr *idr, void *ptr, int start, int end, bool cyclic, struct idr_nodes *preload)
{
	uint32_t id;
	struct request request = { .ptr = ptr, .id = &id, .from = start, .max = end > 0 ? end - 1 : INT_MAX, .cyclic = cyclic };
	int result = start < 0 ? -EINVAL : alloc(idr, preload, &request);

	return result ? result : (int)id;
}

int quiesce_idr_alloc(struct idr *idr, void *ptr, int start, int end, struct idr_nodes *preload)
{
	return alloc_int(idr, ptr, start, end, false, preload);
}

int quiesce_idr_alloc_cyclic(struct idr *idr, void *ptr, int start, int end)
{
	return alloc_int(idr, ptr, start, end, true, NULL);
}

int quiesce_idr_alloc_u32(struct idr *idr, void *ptr, uint32_t *nextid, unsigned long max)
{
	struct request request = { .ptr = ptr, .id = nextid, .from = *nextid, .max = max < UINT32_MAX ? max : UINT32_MAX };

	return alloc(idr, NULL, &request);
}

int quiesce_idr_preload(struct idr_nodes *preload)
{
	return fill(preload, QUIESCE_IDR_PRELOAD) ? 0 : -ENOMEM;
}

void quiesce_idr_preload_end(struct idr_nodes *preload)
{
	free_chain(preload->first);
	*preload = (struct idr_nodes)IDR_NODES_INIT;
}

/* ---- replace, remove, destroy ---- */

/* The node at the bottom in which @id is taken, or NULL. */
static struct node *leaf_of(const struct idr *idr, uint64_t id)
{
	unsigned int shift;
	struct node *node = root_of(idr, &shift);

	if (!node || id >> shift >= WAYS)
		return NULL;
	for (; shift && node; shift -= BITS)
		node = peek(node, index_of(id, shift));
	return node && used_of(node) & bit_of(index_of(id, 0)) ? node : NULL;
}

int quiesce_idr_replace(struct idr *idr, void *ptr, unsigned long id, void **ret_old)
{
	struct node *leaf;
	void *old = NULL;

	quiesce__lock(&idr->lock);
	leaf = leaf_of(idr, id);
	if (leaf) {
		old = peek(leaf, index_of(id, 0));
		set_slot(leaf, index_of(id, 0), ptr);
	}
	quiesce__unlock(&idr->lock);
	if (leaf && ret_old)
		*ret_old = old;
	return leaf ? 0 : -ENOENT;
}

/* Empty slot @i, and tell the nodes above that ids are free here. */
static void vacate(struct node *node, unsigned int i)
{
	bool was_full;

	set_slot(node, i, NULL);
	set_used(node, used_of(node) & ~bit_of(i));
	do {
		was_full = !node->free;
		node->free |= bit_of(i);
		i = node->place;
		node = node->up;
	} while (was_full && node);
}

/* Take out the roots whose only slot is the first one: I1.  Returns @out with them. */
static struct node *lower(struct idr *idr, struct node *out)
{
	unsigned int shift;
	struct node *root = root_of(idr, &shift), *below;

	for (; root && shift && used_of(root) == bit_of(0); root = below) {
		below = peek(root, 0);
		below->up = NULL;
		shift -= BITS;
		set_root(idr, below, shift);
		if (QUIESCE_MUTANT(idr_shrink_clears))
			set_slot(root, 0, NULL);
		root->up = out;
		out = root;
		idr->nr_nodes--;
	}
	return out;
}

/* @node has lost an id: take out what has become empty. */
static struct node *prune(struct idr *idr, struct node *node)
{
	struct node *out = NULL, *up;

	for (; node && !used_of(node); node = up) {
		up = node->up;
		if (up)
			vacate(up, node->place);
		else
			set_root(idr, NULL, 0);
		node->up = out;
		out = node;
		idr->nr_nodes--;
	}
	return lower(idr, out);
}

void *quiesce_idr_remove(struct idr *idr, unsigned long id)
{
	struct node *leaf, *out = NULL;
	void *old = NULL;

	quiesce__lock(&idr->lock);
	leaf = leaf_of(idr, id);
	if (leaf) {
		old = peek(leaf, index_of(id, 0));
		vacate(leaf, index_of(id, 0));
		out = prune(idr, leaf);
		add_to_count(idr, -1);
	}
	quiesce__unlock(&idr->lock);
	retire(out);
	return old;
}

void quiesce_idr_destroy(struct idr *idr)
{
	unsigned int shift;
	struct node *root;
	size_t nr;

	quiesce__lock(&idr->lock);
	root = root_of(idr, &shift);
	nr = idr->nr_nodes;
	set_root(idr, NULL, 0);
	add_to_count(idr, 0 - idr_count(idr));
	idr->nr_nodes = 0;
	idr_set_cursor(idr, 0);
	quiesce__unlock(&idr->lock);
	if (!root)
		return;
	root->place = shift; /* of the node atop it says nothing */
	after_readers(root, free_tree_rcu, nr);
}

/* ---- readers ---- */

/* The lowest id in @node that is not less than *@id and has a pointer. */
static void *next_in(const struct node *node, unsigned int shift, uint64_t *id)
{
	unsigned int first = index_of(*id, shift);
	/* Relaxed: an id that has been there all the time was written there before. */
	uint64_t bits = quiesce_load_relaxed(&node->used) & ~0ull << first;

	for (; bits; bits &= bits - 1) {
		unsigned int i = __builtin_ctzll(bits);
		uint64_t below = i == first ? *id & (bit_of(shift) - 1) : 0;
		/* ID1: acquire, pairs with ID1 in set_slot() */
		void *found = quiesce_load_acquire(ID1, &node->seen.slot[i]);

		if (found && shift)
			found = next_in(found, shift - BITS, &below);
		if (found) {
			*id = ((uint64_t)i << shift) + below;
			return found;
		}
	}
	return NULL;
}

void *quiesce_idr_get_next_ul(const struct idr *idr, unsigned long *nextid)
{
	/* ID2: acquire, pairs with ID2 in set_root() */
	uintptr_t root = quiesce_load_acquire(ID2, &idr->root);
	unsigned int shift = root % WAYS;
	uint64_t id = *nextid;
	void *found;

	if (!root || id >> shift >= WAYS)
		return NULL;
	found = next_in((const struct node *)(root - shift), shift, &id);
	if (found)
		*nextid = id;
	return found;
}
