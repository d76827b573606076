/* SPDX-License-Identifier: MIT */
/* radix_walk.c - search for the next index up or down, for readers.
 *
 * ID1, ID2, ID3  see radix.h
 */
#include "radix/radix.h"

#define BITS QUIESCE_RADIX_BITS
#define WAYS QUIESCE_RADIX_WAYS

/* Acquire, also for used bits: a reader that skips an index may rely on its being free. */
static uint64_t bits_for(const struct radix_node *node, enum radix_bit which)
{
	/* ID3: acquire, pairs with ID3 in set_bits() */
	return quiesce_load_acquire(ID3, &node->bits[which]);
}

/* Find the lowest index in @node from *@index up. */
static void *up_in(const struct radix_node *node, unsigned int shift, uint64_t *index, enum radix_bit which)
{
	unsigned int first = radix_slot_of(*index, shift);

	for (uint64_t bits = bits_for(node, which) & ~0ull << first; bits; bits &= bits - 1) {
		unsigned int slot = __builtin_ctzll(bits);
		uint64_t below = slot == first ? *index & (radix_bit(shift) - 1) : 0;
		/* ID1: acquire, pairs with ID1 in set_slot() */
		void *found = quiesce_load_acquire(ID1, &node->seen.slot[slot]);

		if (found && shift)
			found = up_in(found, shift - BITS, &below, which);
		if (found) {
			*index = ((uint64_t)slot << shift) + below;
			return found;
		}
	}
	return NULL;
}

/* Find the highest index in @node from *@index down. */
static void *down_in(const struct radix_node *node, unsigned int shift, uint64_t *index, enum radix_bit which)
{
	unsigned int first = radix_slot_of(*index, shift), slot;

	for (uint64_t bits = bits_for(node, which) & ~0ull >> (WAYS - 1 - first); bits; bits &= ~radix_bit(slot)) {
		uint64_t last = radix_bit(shift) - 1, below;
		void *found;

		slot = WAYS - 1 - __builtin_clzll(bits);
		below = slot == first ? *index & last : last;
		/* ID1: acquire, pairs with ID1 in set_slot() */
		found = quiesce_load_acquire(ID1, &node->seen.slot[slot]);
		if (found && shift)
			found = down_in(found, shift - BITS, &below, which);
		if (found) {
			*index = ((uint64_t)slot << shift) + below;
			return found;
		}
	}
	return NULL;
}

/* Load the root, and store the last index below it in *@ret_last. */
static const struct radix_node *load_root(const struct quiesce__radix *tree, unsigned int *ret_shift, uint64_t *ret_last)
{
	/* ID2: acquire, pairs with ID2 in set_root() */
	uintptr_t root = quiesce_load_acquire(ID2, &tree->root);

	*ret_shift = root % WAYS;
	*ret_last = *ret_shift + BITS < 64 ? radix_bit(*ret_shift + BITS) - 1 : UINT64_MAX;
	return (const struct radix_node *)(root - *ret_shift);
}

void *quiesce__radix_up(const struct quiesce__radix *tree, unsigned long *index, unsigned long max, enum radix_bit which)
{
	unsigned int shift;
	uint64_t last, at = *index;
	const struct radix_node *node = load_root(tree, &shift, &last);
	void *found = node && at <= last && at <= max ? up_in(node, shift, &at, which) : NULL;

	if (!found || at > max)
		return NULL;
	*index = at;
	return found;
}

void *quiesce__radix_down(const struct quiesce__radix *tree, unsigned long *index, unsigned long min, enum radix_bit which)
{
	unsigned int shift;
	uint64_t last, at = *index;
	const struct radix_node *node = load_root(tree, &shift, &last);
	void *found = NULL;

	if (node && at >= min) {
		at = at < last ? at : last;
		found = down_in(node, shift, &at, which);
	}
	if (!found || at < min)
		return NULL;
	*index = at;
	return found;
}

const struct radix_node *quiesce__radix_find_leaf(const struct quiesce__radix *tree, uint64_t index)
{
	unsigned int shift;
	uint64_t last;
	const struct radix_node *node = load_root(tree, &shift, &last);

	if (index > last)
		return NULL;
	for (; node && shift; shift -= BITS) /* ID1: acquire, pairs with ID1 in set_slot() */
		node = quiesce_load_acquire(ID1, &node->seen.slot[radix_slot_of(index, shift)]);
	return node;
}

struct gather_state {
	void **dst;
	unsigned int nr, n;
	uint64_t max;
	enum radix_bit which;
};

/* Gather pointers from @node, whose lowest index is @base, from index @from on.  False: stop, there are enough. */
static bool gather_in(const struct radix_node *node, unsigned int shift, uint64_t base, uint64_t from, struct gather_state *g)
{
	unsigned int first = radix_slot_of(from, shift);

	for (uint64_t bits = bits_for(node, g->which) & ~0ull << first; bits; bits &= bits - 1) {
		unsigned int slot = __builtin_ctzll(bits);
		uint64_t index = base + ((uint64_t)slot << shift);
		/* ID1: acquire, pairs with ID1 in set_slot() */
		void *found = quiesce_load_acquire(ID1, &node->seen.slot[slot]);

		if (index > g->max || g->nr == g->n)
			return false;
		if (found && !shift)
			g->dst[g->nr++] = found;
		if (found && shift && !gather_in(found, shift - BITS, index, slot == first ? from : index, g))
			return false;
	}
	return true;
}

unsigned int quiesce__radix_gather(const struct quiesce__radix *tree, void **dst, unsigned long start, unsigned long max, unsigned int n,
				   enum radix_bit which)
{
	struct gather_state g = { .dst = dst, .n = n, .max = max, .which = which };
	unsigned int shift;
	uint64_t last;
	const struct radix_node *node = load_root(tree, &shift, &last);

	if (node && start <= last)
		gather_in(node, shift, 0, start, &g);
	return g.nr;
}
