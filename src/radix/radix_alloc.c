/* SPDX-License-Identifier: MIT */
/* radix_alloc.c - search for free indices, and their allocation. */
#include "radix/radix.h"

#include <errno.h>

#define BITS QUIESCE_RADIX_BITS
#define WAYS QUIESCE_RADIX_WAYS

/* The lowest free index in @node from @from on, or RADIX_NONE.  Only the slot of @from can be free and yet have no
 * index from @from on, so at most two paths down are taken. */
static uint64_t lowest_free_in(const struct radix_node *node, unsigned int shift, uint64_t from)
{
	unsigned int first = radix_slot_of(from, shift);

	for (uint64_t bits = radix_bits(node, RADIX_FREE) & ~0ull << first; bits; bits &= bits - 1) {
		unsigned int slot = __builtin_ctzll(bits);
		uint64_t found = slot == first ? from & (radix_bit(shift) - 1) : 0;
		const struct radix_node *below = shift ? radix_peek(node, slot) : NULL;

		if (below)
			found = lowest_free_in(below, shift - BITS, found);
		if (found != RADIX_NONE)
			return ((uint64_t)slot << shift) + found;
	}
	return RADIX_NONE;
}

/* A tree so high that its last index overflows has free indices below each slot, as no program has taken 2^60. */
uint64_t quiesce__radix_lowest_free(const struct quiesce__radix *tree, uint64_t from)
{
	unsigned int shift;
	const struct radix_node *node = radix_root(tree, &shift);
	uint64_t found = from;

	if (node && from >> shift < WAYS) {
		found = lowest_free_in(node, shift, from);
		if (found == RADIX_NONE)
			found = (uint64_t)WAYS << shift;
	}
	return found;
}

static int try_alloc(struct quiesce__radix *tree, struct quiesce__radix_nodes *spare, void *arg)
{
	const struct radix_request *request = arg;
	uint32_t next = request->next ? quiesce_load_relaxed(request->next) : 0; /* Relaxed: no order promised. */
	uint64_t index = quiesce__radix_lowest_free(tree, next > request->from ? next : request->from);
	unsigned int nr;

	if (index > request->max && next > request->from)
		index = quiesce__radix_lowest_free(tree, request->from);
	if (index > request->max)
		return -ENOSPC;
	nr = quiesce__radix_nodes_needed(tree, index);
	if (nr > spare->nr)
		return nr;
	if (request->next)
		quiesce_store_relaxed(request->next, (uint32_t)index + 1); /* Relaxed: no order promised. */
	*request->ret_index = (uint32_t)index;
	quiesce__radix_take(tree, spare, index, request->ptr);
	return 0;
}

int quiesce__radix_alloc(struct quiesce__radix *tree, struct radix_request *request)
{
	return quiesce__radix_update(tree, request->preload, try_alloc, request);
}
