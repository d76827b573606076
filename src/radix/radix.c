/* SPDX-License-Identifier: MIT */
/* radix.c - updates of the tree; its idea, invariants and barriers are in radix.h.
 *
 * ID1, ID2, ID3  see radix.h
 */
#include "radix/radix.h"
#include "platform/platform.h"
#include "rcu/reclaim.h"
#include "runtime/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BITS QUIESCE_RADIX_BITS
#define WAYS QUIESCE_RADIX_WAYS

/* ---- words that readers load ---- */

static void set_slot(struct radix_node *node, unsigned int slot, void *ptr)
{
	/* ID1: release, pairs with ID1 in quiesce__radix_find(), up_in() and down_in() */
	quiesce_store_release(ID1, &node->seen.slot[slot], ptr);
}

static void set_root(struct quiesce__radix *tree, struct radix_node *node, unsigned int shift)
{
	/* ID2: release, pairs with ID2 in quiesce__radix_find() and load_root() */
	quiesce_store_release(ID2, &tree->root, (uintptr_t)node + shift);
}

static void set_bits(struct radix_node *node, enum radix_bit which, uint64_t bits)
{
	/* ID3: release, pairs with ID3 in bits_for() and quiesce_xa_get_mark() */
	quiesce_store_release(ID3, &node->bits[which], bits);
}

static struct radix_node *node_above(const struct radix_node *node)
{
	return (struct radix_node *)(node->above - node->above % WAYS);
}

static void add_to_count(struct quiesce__radix *tree, size_t n)
{
	/* Relaxed: readers of the count are promised no order. */
	quiesce_store_relaxed(&tree->count, quiesce_load_relaxed(&tree->count) + n);
}

/* ---- preallocated nodes, and removed nodes ---- */

bool quiesce__radix_fill(struct quiesce__radix_nodes *spare, unsigned int nr)
{
	while (spare->nr < nr) {
		struct radix_node *node = aligned_alloc(WAYS, sizeof *node);

		if (!node)
			return false;
		memset(node, 0, sizeof *node);
		node->bits[RADIX_FREE] = ~0ull;
		node->above = (uintptr_t)spare->first;
		spare->first = node;
		spare->nr++;
	}
	return true;
}

static struct radix_node *take_node(struct quiesce__radix *tree, struct quiesce__radix_nodes *spare)
{
	struct radix_node *node = spare->first;

	spare->first = node_above(node);
	spare->nr--;
	tree->nr_nodes++;
	node->above = 0;
	return node;
}

void quiesce__radix_free(struct radix_node *out)
{
	for (struct radix_node *next; out; out = next) {
		next = node_above(out);
		platform_free(out);
	}
}

void quiesce__radix_free_spare(struct quiesce__radix_nodes *spare)
{
	quiesce__radix_free(spare->first);
	*spare = (struct quiesce__radix_nodes){ NULL, 0 };
}

static struct radix_node *node_of(struct rcu_head *head)
{
	return (struct radix_node *)((char *)head - offsetof(struct radix_node, rcu));
}

static void free_chain_rcu(struct rcu_head *head)
{
	quiesce__radix_free(node_of(head));
}

static void free_tree(struct radix_node *node, unsigned int shift)
{
	for (uint64_t bits = shift ? radix_bits(node, RADIX_USED) : 0; bits; bits &= bits - 1)
		free_tree(radix_peek(node, __builtin_ctzll(bits)), shift - BITS);
	platform_free(node);
}

/* A root has no parent: that word holds its shift. */
static void free_tree_rcu(struct rcu_head *head)
{
	struct radix_node *root = node_of(head);

	free_tree(root, root->above);
}

/* Called in a section, because call_rcu() does not throttle its caller there, whatever the settings: the caller may
 * hold locks. */
static void call_after_readers(struct radix_node *node, void (*func)(struct rcu_head *head), size_t nr)
{
	rcu_read_lock();
	quiesce_call_rcu(&node->rcu, func, nr * sizeof *node);
	rcu_read_unlock();
}

void quiesce__radix_retire(struct radix_node *out)
{
	size_t nr = 0;

	for (const struct radix_node *node = out; node; node = node_above(node))
		nr++;
	if (!nr)
		return;
	if (QUIESCE_MUTANT(radix_free_now))
		quiesce__radix_free(out);
	else
		call_after_readers(out, free_chain_rcu, nr);
}

/* ---- bits ---- */

/* Bits are set from the root down, and cleared from the leaf up: a mark that a reader sees in a leaf is set on the
 * whole path. */
void quiesce__radix_set(struct radix_node *node, unsigned int slot, enum radix_bit which)
{
	if (!node || radix_bits(node, which) & radix_bit(slot))
		return;
	if (QUIESCE_MUTANT(radix_mark_below))
		set_bits(node, which, radix_bits(node, which) | radix_bit(slot));
	quiesce__radix_set(node_above(node), node->above % WAYS, which);
	set_bits(node, which, radix_bits(node, which) | radix_bit(slot));
}

void quiesce__radix_clear(struct radix_node *node, unsigned int slot, enum radix_bit which)
{
	for (uint64_t left = 0; node && !left; node = node_above(node)) {
		left = radix_bits(node, which) & ~radix_bit(slot);
		set_bits(node, which, left);
		slot = node->above % WAYS;
	}
}

/* ---- finding ---- */

struct radix_node *quiesce__radix_leaf(const struct quiesce__radix *tree, uint64_t index)
{
	unsigned int shift;
	struct radix_node *node = radix_root(tree, &shift);

	if (!node || index >> shift >= WAYS)
		return NULL;
	for (; shift && node; shift -= BITS)
		node = radix_peek(node, radix_slot_of(index, shift));
	return node;
}

void *quiesce__radix_lookup(const struct quiesce__radix *tree, uint64_t index, struct radix_node **ret_leaf)
{
	struct radix_node *leaf = quiesce__radix_leaf(tree, index);

	if (leaf && !(radix_bits(leaf, RADIX_USED) & radix_bit(radix_slot_of(index, 0))))
		leaf = NULL;
	*ret_leaf = leaf;
	return leaf ? radix_peek(leaf, radix_slot_of(index, 0)) : NULL;
}

void quiesce__radix_replace(struct radix_node *leaf, uint64_t index, void *ptr)
{
	set_slot(leaf, radix_slot_of(index, 0), ptr);
}

/* The least shift of a root whose indices include @index. */
static unsigned int shift_for(uint64_t index)
{
	unsigned int shift = 0;

	while (index >> shift >= WAYS)
		shift += BITS;
	return shift;
}

unsigned int quiesce__radix_nodes_needed(const struct quiesce__radix *tree, uint64_t index)
{
	unsigned int shift, goal = shift_for(index);
	const struct radix_node *node = radix_root(tree, &shift), *below;

	if (!node)
		return goal / BITS + 1;
	if (goal > shift)
		return (goal - shift) / BITS + goal / BITS;
	for (; shift && (below = radix_peek(node, radix_slot_of(index, shift))); shift -= BITS)
		node = below;
	return shift / BITS;
}

/* ---- taking an index ---- */

/* Link @below to an empty slot of @node.  @below is a new node, or, if @node is a new root, the whole tree. */
static void link_below(struct radix_node *node, unsigned int slot, struct radix_node *below)
{
	below->above = (uintptr_t)node + slot;
	for (unsigned int which = QUIESCE_MUTANT(radix_marks_lost) ? RADIX_USED : 0; which <= RADIX_USED; which++)
		if (radix_bits(below, which))
			set_bits(node, which, radix_bits(node, which) | radix_bit(slot));
	if (!radix_bits(below, RADIX_FREE))
		set_bits(node, RADIX_FREE, radix_bits(node, RADIX_FREE) & ~radix_bit(slot));
	set_slot(node, slot, below);
}

static void occupy(struct radix_node *leaf, unsigned int slot, void *ptr)
{
	set_bits(leaf, RADIX_USED, radix_bits(leaf, RADIX_USED) | radix_bit(slot));
	quiesce__radix_clear(leaf, slot, RADIX_FREE);
	set_slot(leaf, slot, ptr);
}

/* The root of a tree that is high enough for @index; perhaps a new one, which is not published yet. */
static struct radix_node *grow_root(struct quiesce__radix *tree, struct quiesce__radix_nodes *spare, uint64_t index,
				    unsigned int *ret_shift)
{
	unsigned int goal = shift_for(index);
	struct radix_node *node = radix_root(tree, ret_shift), *above;

	if (!node) {
		*ret_shift = goal;
		return take_node(tree, spare);
	}
	for (; *ret_shift < goal; node = above) {
		above = take_node(tree, spare);
		*ret_shift += BITS;
		if (QUIESCE_MUTANT(radix_grow_early))
			set_root(tree, above, *ret_shift);
		link_below(above, 0, node);
	}
	return node;
}

/* Allocate a leaf with @index, and the nodes above it up to shift @end. */
static struct radix_node *new_branch(struct quiesce__radix *tree, struct quiesce__radix_nodes *spare, uint64_t index, void *ptr,
				 unsigned int end)
{
	struct radix_node *below = take_node(tree, spare);

	occupy(below, radix_slot_of(index, 0), ptr);
	for (unsigned int shift = BITS; shift < end; shift += BITS) {
		struct radix_node *above = take_node(tree, spare);

		link_below(above, radix_slot_of(index, shift), below);
		below = above;
	}
	return below;
}

void quiesce__radix_take(struct quiesce__radix *tree, struct quiesce__radix_nodes *spare, uint64_t index, void *ptr)
{
	unsigned int shift, old_shift;
	const struct radix_node *old = radix_root(tree, &old_shift);
	struct radix_node *root = grow_root(tree, spare, index, &shift), *node = root, *below;
	unsigned int root_shift = shift;

	for (; shift && (below = radix_peek(node, radix_slot_of(index, shift))); shift -= BITS)
		node = below;
	if (shift == 0)
		occupy(node, radix_slot_of(index, 0), ptr);
	else
		link_below(node, radix_slot_of(index, shift), new_branch(tree, spare, index, ptr, shift));
	if (root != old)
		set_root(tree, root, root_shift);
	add_to_count(tree, 1);
}

/* ---- freeing an index ---- */

/* Empty a slot, and mark in the nodes above that indices are free here. */
static void vacate(struct radix_node *node, unsigned int slot)
{
	set_slot(node, slot, NULL);
	set_bits(node, RADIX_USED, radix_bits(node, RADIX_USED) & ~radix_bit(slot));
	quiesce__radix_set(node, slot, RADIX_FREE);
}

static struct radix_node *unlink_node(struct quiesce__radix *tree, struct radix_node *node, struct radix_node *out)
{
	node->above = (uintptr_t)out;
	tree->nr_nodes--;
	return node;
}

/* Remove the roots that use slot 0 only (R1).  Returns @out with these added. */
static struct radix_node *shrink_root(struct quiesce__radix *tree, struct radix_node *out)
{
	unsigned int shift;
	struct radix_node *root = radix_root(tree, &shift), *below;

	for (; root && shift && radix_bits(root, RADIX_USED) == radix_bit(0); root = below) {
		below = radix_peek(root, 0);
		below->above = 0;
		shift -= BITS;
		set_root(tree, below, shift);
		if (QUIESCE_MUTANT(radix_shrink_clears))
			set_slot(root, 0, NULL);
		out = unlink_node(tree, root, out);
	}
	return out;
}

struct radix_node *quiesce__radix_give_back(struct quiesce__radix *tree, struct radix_node *leaf, uint64_t index)
{
	struct radix_node *node = leaf, *out = NULL, *above;
	unsigned int slot = radix_slot_of(index, 0);

	for (unsigned int mark = 0; mark < RADIX_MARKS; mark++)
		if (radix_bits(leaf, mark) & radix_bit(slot))
			quiesce__radix_clear(leaf, slot, mark);
	vacate(leaf, slot);
	for (; node && !radix_bits(node, RADIX_USED); node = above) {
		above = node_above(node);
		if (above)
			vacate(above, node->above % WAYS);
		else
			set_root(tree, NULL, 0);
		out = unlink_node(tree, node, out);
	}
	add_to_count(tree, -1);
	return shrink_root(tree, out);
}

int quiesce__radix_update(struct quiesce__radix *tree, struct quiesce__radix_nodes *preload, radix_attempt *attempt, void *arg)
{
	struct quiesce__radix_nodes own = { NULL, 0 }, *spare = preload ? preload : &own;
	int result;

	do {
		quiesce__lock(&tree->lock);
		result = attempt(tree, spare, arg);
		quiesce__unlock(&tree->lock);
		if (result > 0 && (preload || !quiesce__radix_fill(spare, result)))
			result = -ENOMEM;
	} while (result > 0);
	quiesce__radix_free_spare(&own);
	return result;
}

void quiesce__radix_destroy(struct quiesce__radix *tree)
{
	unsigned int shift;
	struct radix_node *root;
	size_t nr;

	if (!QUIESCE_MUTANT(radix_destroy_unlocked))
		quiesce__lock(&tree->lock);
	root = radix_root(tree, &shift);
	nr = tree->nr_nodes;
	set_root(tree, NULL, 0);
	quiesce_store_relaxed(&tree->count, 0); /* Relaxed: readers of the count are promised no order. */
	tree->nr_nodes = 0;
	quiesce_store_relaxed(&tree->next, 0); /* Relaxed: no order is promised. */
	quiesce__unlock(&tree->lock);
	if (!root)
		return;
	root->above = shift;
	call_after_readers(root, free_tree_rcu, nr);
}
