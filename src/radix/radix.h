/* SPDX-License-Identifier: MIT */
/* radix.h - the tree under idr.c, ida.c and xarray.c: 64 slots in a node, read under RCU, updated under a lock.
 *
 *   root = node | 12             an index is (a, b, c), 6 bits each
 *            |
 *      [ . a . . ]
 *          |                     used bit: the slot leads to indices that are taken
 *      [ b . . . ]               free bit: indices below the slot are free, or would be if it had a node
 *        |                       marks: an index below the slot has the mark
 *      [ . . . c ] -> the user's pointer
 *
 * R1. A node in the tree has a used slot, except for the moment before it is removed; the root uses a slot other than
 *     slot 0, or is a leaf.
 * R2. An index becomes taken by one store that readers see: of the slot that leads to the new nodes, or of the root.  All
 *     nodes are allocated before anything changes, so a failed allocation changes nothing.
 * R3. A removed node has no indices, except those that slot 0 of an old root leads to.  It is not changed any more and is
 *     never used again; it is freed after a grace period.
 * R4. Node and height of the root are one word.
 * R5. A slot has a mark, or is free, exactly if one of the slots below it is.  For a moment a node above may claim more:
 *     used bits and marks are set there first and cleared there last, so that a walk does not miss an index.
 *
 * ID1  node or object initialised, then the slot; removed, then the slot | slot, then its target
 * ID2  tree below a new root linked, then the root                       | root, then the tree below
 * ID3  accesses before the setting of a mark, then the mark              | mark, then accesses that depend on it
 */
#ifndef QUIESCE_RADIX_H
#define QUIESCE_RADIX_H

#include "platform/platform.h"

#include <quiesce/detail/radix.h>

#define RADIX_NONE UINT64_MAX

/* Bits of each slot.  The first three are the users' marks. */
enum radix_bit { RADIX_MARKS = 3, RADIX_USED = RADIX_MARKS, RADIX_FREE, RADIX_BITS };

struct radix_node {
	struct quiesce__radix_node seen;
	uint64_t bits[RADIX_BITS];
	uintptr_t above; /* parent node, and this node's slot there; the next node in a list of preallocated or removed nodes */
	struct rcu_head rcu;
} __attribute__((aligned(QUIESCE_CACHELINE)));
_Static_assert(_Alignof(struct radix_node) == QUIESCE_RADIX_WAYS, "the address of a node leaves six bits of a word free");

static inline unsigned int radix_slot_of(uint64_t index, unsigned int shift)
{
	return index >> shift & (QUIESCE_RADIX_WAYS - 1);
}

static inline uint64_t radix_bit(unsigned int slot)
{
	return 1ull << slot;
}

/* ---- functions for the holder of the lock ---- */

static inline void *radix_peek(const struct radix_node *node, unsigned int slot)
{
	return quiesce_load_relaxed(&node->seen.slot[slot]); /* Relaxed: the lock orders updates. */
}

static inline uint64_t radix_bits(const struct radix_node *node, enum radix_bit which)
{
	return quiesce_load_relaxed(&node->bits[which]); /* Relaxed: the lock orders updates. */
}

static inline struct radix_node *radix_root(const struct quiesce__radix *tree, unsigned int *ret_shift)
{
	uintptr_t root = quiesce_load_relaxed(&tree->root); /* Relaxed: the lock orders updates. */

	*ret_shift = root % QUIESCE_RADIX_WAYS;
	return (struct radix_node *)(root - *ret_shift);
}

/* The leaf to which @index belongs; NULL if there is none. */
struct radix_node *quiesce__radix_leaf(const struct quiesce__radix *tree, uint64_t index);

/* The pointer of @index.  *@ret_leaf is set to the leaf in which @index is taken, or to NULL. */
void *quiesce__radix_lookup(const struct quiesce__radix *tree, uint64_t index, struct radix_node **ret_leaf);

/* Replace the pointer of an index that is taken. */
void quiesce__radix_replace(struct radix_node *leaf, uint64_t index, void *ptr);

/* Number of nodes that must be added before @index can be taken. */
unsigned int quiesce__radix_nodes_needed(const struct quiesce__radix *tree, uint64_t index);

/* Take @index, which is free; @spare has as many nodes as quiesce__radix_nodes_needed() returned. */
void quiesce__radix_take(struct quiesce__radix *tree, struct quiesce__radix_nodes *spare, uint64_t index, void *ptr);

/* Free @index, which is taken in @leaf.  Returns the removed nodes, for quiesce__radix_retire() or
 * quiesce__radix_free(), without the lock. */
struct radix_node *quiesce__radix_give_back(struct quiesce__radix *tree, struct radix_node *leaf, uint64_t index);

/* Set or clear a bit of a slot of a leaf: a mark, or RADIX_FREE. */
void quiesce__radix_set(struct radix_node *leaf, unsigned int slot, enum radix_bit which);
void quiesce__radix_clear(struct radix_node *leaf, unsigned int slot, enum radix_bit which);

/* The lowest free index from @from on, as if the tree could grow without limit.  @from: 32 bits. */
uint64_t quiesce__radix_lowest_free(const struct quiesce__radix *tree, uint64_t from);

/* ---- functions for callers without the lock ---- */

bool quiesce__radix_fill(struct quiesce__radix_nodes *spare, unsigned int nr);
void quiesce__radix_free_spare(struct quiesce__radix_nodes *spare);
void quiesce__radix_retire(struct radix_node *out);
void quiesce__radix_free(struct radix_node *out); /* immediately: the tree has no readers outside of the lock */

/* Call @attempt under the lock until it returns 0 or an error.  A positive number is the nodes that it needs in
 * @spare, which are allocated without the lock.  @preload: nodes to use instead of allocating any; NULL: none.
 * Return: the last result, or -ENOMEM. */
typedef int radix_attempt(struct quiesce__radix *tree, struct quiesce__radix_nodes *spare, void *arg);
int quiesce__radix_update(struct quiesce__radix *tree, struct quiesce__radix_nodes *preload, radix_attempt *attempt, void *arg);

/* Free all indices; readers may be in the tree. */
void quiesce__radix_destroy(struct quiesce__radix *tree);

/* Give the lowest free index from @from to @max, both included, to @ptr.
 * @next: for cyclic allocation: the search begins there if it is more than @from; set to the index after the one found.
 *   Else NULL.
 * @ret_index: written before readers can find @ptr; not written if the call fails.
 * @preload: nodes to use, if none may be allocated; else NULL.
 * Return: 0, -ENOSPC, -ENOMEM.
 */
struct radix_request {
	void *ptr;
	uint32_t *ret_index;
	uint32_t from;
	uint64_t max;
	uint32_t *next;
	struct quiesce__radix_nodes *preload;
};
int quiesce__radix_alloc(struct quiesce__radix *tree, struct radix_request *request);

/* ---- functions for readers, in a section ---- */

/* Find the lowest index from *@index to @max (up), or the highest from *@index down to @min (down), that has a
 * pointer, and the mark @which unless that is RADIX_USED.  Sets *@index and returns the pointer; NULL, without a
 * change of *@index, if there is none. */
void *quiesce__radix_up(const struct quiesce__radix *tree, unsigned long *index, unsigned long max, enum radix_bit which);
void *quiesce__radix_down(const struct quiesce__radix *tree, unsigned long *index, unsigned long min, enum radix_bit which);

/* Store the first @n pointers from @start to @max in @dst; returns their number. */
unsigned int quiesce__radix_gather(const struct quiesce__radix *tree, void **dst, unsigned long start, unsigned long max, unsigned int n,
				   enum radix_bit which);

/* The leaf to which @index belongs; NULL if there is none. */
const struct radix_node *quiesce__radix_find_leaf(const struct quiesce__radix *tree, uint64_t index);

#endif
