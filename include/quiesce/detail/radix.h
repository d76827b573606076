/* SPDX-License-Identifier: MIT */
/* quiesce/detail/radix.h - private: the radix tree of idr.h, ida.h and xarray.h, as far as their
 * inline functions need it.
 *
 * Nodes have 64 slots, six bits of an index each.  Readers walk the tree in a section; one updater
 * at a time changes it, under the tree's lock.  See docs/design/radix.md. */
#ifndef QUIESCE_DETAIL_RADIX_H
#define QUIESCE_DETAIL_RADIX_H

#include <quiesce/rcu.h>
#include <stdbool.h>

QUIESCE_BEGIN_DECLS

#define QUIESCE_RADIX_BITS 6
#define QUIESCE_RADIX_WAYS 64u

/* The part of a node that readers load.  A node is aligned to the number of its slots. */
struct quiesce__radix_node {
	void *slot[QUIESCE_RADIX_WAYS]; /* nodes; in a leaf the user's pointers */
};

/* A tree; its members are written under its lock. */
struct quiesce__radix {
	/* The root node, and in the low bits that its alignment leaves free the shift of an index
	 * there; 0: empty.  Lookups read no other member: updates do not write its cache line,
	 * unless the height of the tree changes. */
	uintptr_t root __attribute__((__aligned__(QUIESCE_CACHELINE)));
	size_t count __attribute__((__aligned__(QUIESCE_CACHELINE))); /* number of indices taken */
	size_t nr_nodes;
	uint32_t next; /* cursor of idr_alloc_cyclic() */
	struct quiesce__lock lock;
};
#define QUIESCE_RADIX_INIT { 0, 0, 0, 0, { 0 } }

/* Nodes that one thread has allocated in advance. */
struct quiesce__radix_nodes {
	void *first;
	unsigned int nr;
};

/* Return the pointer in the slot of @index; NULL: there is no slot, or it is empty.  The caller is
 * in a section, or excludes updaters. */
QUIESCE_FAST void *quiesce__radix_find(const struct quiesce__radix *tree, unsigned long index)
{
	/* ID2: acquire, pairs with ID2 in set_root() */
	uintptr_t root = quiesce_load_acquire(ID2, &tree->root);
	unsigned int shift = (unsigned int)(root % QUIESCE_RADIX_WAYS);
	void *found = (void *)(root - root % QUIESCE_RADIX_WAYS);

	if (quiesce_unlikely(index >> shift >= QUIESCE_RADIX_WAYS))
		return NULL;
	while (found) {
		/* ID1: acquire, pairs with ID1 in set_slot() */
		found = quiesce_load_acquire(ID1, &((struct quiesce__radix_node *)found)->slot[index >> shift & (QUIESCE_RADIX_WAYS - 1)]);
		if (shift == 0)
			break;
		shift -= QUIESCE_RADIX_BITS;
	}
	return found;
}

QUIESCE_END_DECLS

#endif
