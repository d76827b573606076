/* SPDX-License-Identifier: MIT */
/* radix.h - the tree under idr.c, ida.c and xarray.c: 64 slots a node, read under RCU, changed under a lock.
 *
 *   root = node | 12             an index is (a, b, c), 6 bits each
 *            |
 *      [ . a . . ]
 *          |                     used: the slot leads to indices that are taken
 *      [ b . . . ]               free: indices are free there, or would be if there were a node
 *        |                       marks: an index there has it
 *      [ . . . c ] -> the user's pointer
 *
 * R1. A node in the tree has a used slot, but for the moment until it is taken out; the node atop has one besides
 *     slot 0, or is at the bottom.
 * R2. An index becomes taken by one store that readers see: of the slot that leads to what was built, or of the root.  All nodes
 *     are in hand before anything changes, so where memory fails nothing has.
 * R3. A node that is taken out has no indices, but what slot 0 of an old root leads to.  It is not changed any more and
 *     does not come back; it is freed after a grace period.
 * R4. Node and height of the root are one word.
 * R5. A slot has a mark, or is free, exactly if one of the slots below it is.  For a moment a node above may say more: used
 *     bits and marks are set there first and cleared there last, so that who walks does not pass over what is there.
 *
 * ID1  node or object initialised, then the slot; removed, then the slot | slot, then what it leads to
 * ID2  tree above a new root, then the root | root, then what is below
 * ID3  what precedes the setting of a mark, then the mark | mark, then what follows from it
 */
#ifndef QUIESCE_RADIX_H
#define QUIESCE_RADIX_H

#include "platform/platform.h"

#include <quiesce/detail/radix.h>

#define RADIX_NONE UINT64_MAX

/* What is known of each slot: a bit each.  The marks are the users' first three. */
enum radix_bit { RADIX_MARKS = 3, RADIX_USED = RADIX_MARKS, RADIX_FREE, RADIX_BITS };

struct radix_node {
	struct quiesce__radix_node seen;
	uint64_t bits[RADIX_BITS];
	uintptr_t above; /* the node above, and this one's slot there; the next node where nodes are in hand or taken out */
	struct rcu_head rcu;
} __attribute__((aligned(QUIESCE_CACHELINE)));
_Static_assert(_Alignof(struct radix_node) == QUIESCE_RADIX_WAYS, "a word has room for six bits beside a node");

static inline unsigned int radix_slot_of(uint64_t index, unsigned int shift)
{
	return index >> shift & (QUIESCE_RADIX_WAYS - 1);
}

static inline uint64_t radix_bit(unsigned int slot)
{
	return 1ull << slot;
}

/* ---- who has the lock ---- */

static inline void *radix_peek(const struct radix_node *node, unsigned int slot)
{
	return quiesce_load_relaxed(&node->seen.slot[slot]); /* Relaxed: the lock orders what updaters see of each other. */
}

static inline uint64_t radix_bits(const struct radix_node *node, enum radix_bit which)
{
	return quiesce_load_relaxed(&node->bits[which]); /* Relaxed: as radix_peek(). */
}

static inline struct radix_node *radix_root(const struct quiesce__radix *tree, unsigned int *ret_shift)
{
	uintptr_t root = quiesce_load_relaxed(&tree->root); /* Relaxed: as radix_peek(). */

	*ret_shift = root % QUIESCE_RADIX_WAYS;
	return (struct radix_node *)(root - *ret_shift);
}

/* The node at the bottom where @index belongs, or NULL. */
struct radix_node *quiesce__radix_leaf(const struct quiesce__radix *tree, uint64_t index);

/* The pointer of @index; *@ret_leaf becomes the node in which it is taken, or NULL. */
void *quiesce__radix_look(const struct quiesce__radix *tree, uint64_t index, struct radix_node **ret_leaf);

/* Another pointer for an index that is taken. */
void quiesce__radix_replace(struct radix_node *leaf, uint64_t index, void *ptr);

/* How many nodes it takes to have @index, beside those that are there. */
unsigned int quiesce__radix_wants(const struct quiesce__radix *tree, uint64_t index);

/* Take @index, which nobody has; as many nodes as it wants are in @hand. */
void quiesce__radix_take(struct quiesce__radix *tree, struct quiesce__radix_nodes *hand, uint64_t index, void *ptr);

/* Give @index back, which is taken in @leaf.  Returns the nodes that are out: for
 * quiesce__radix_retire() or quiesce__radix_free(), without the lock. */
struct radix_node *quiesce__radix_give_back(struct quiesce__radix *tree, struct radix_node *leaf, uint64_t index);

/* Set and clear a bit of a slot at the bottom: a mark, or RADIX_FREE. */
void quiesce__radix_set(struct radix_node *leaf, unsigned int slot, enum radix_bit which);
void quiesce__radix_clear(struct radix_node *leaf, unsigned int slot, enum radix_bit which);

/* The lowest index from @from on that is free, were the tree as high as can be.  @from: of 32 bits. */
uint64_t quiesce__radix_lowest_free(const struct quiesce__radix *tree, uint64_t from);

/* ---- without the lock ---- */

bool quiesce__radix_fill(struct quiesce__radix_nodes *hand, unsigned int nr);
void quiesce__radix_empty(struct quiesce__radix_nodes *hand);
void quiesce__radix_retire(struct radix_node *out);
void quiesce__radix_free(struct radix_node *out); /* at once: nobody reads this tree without the lock */

/* Call @attempt under the lock until it returns 0 or an error; a number is how many nodes it needs in hand, which are
 * allocated without the lock.  @preload: take them from there, and allocate none; else NULL.  Return: that, or -ENOMEM. */
typedef int radix_attempt(struct quiesce__radix *tree, struct quiesce__radix_nodes *hand, void *arg);
int quiesce__radix_update(struct quiesce__radix *tree, struct quiesce__radix_nodes *preload, radix_attempt *attempt, void *arg);

/* Give all indices back, while readers may be inside. */
void quiesce__radix_destroy(struct quiesce__radix *tree);

/* The lowest free index from @from to @max, both included, gets @ptr.
 * @next: cyclic: begin there if it is more than @from; becomes the index after the one that was found.  Else NULL.
 * @ret_index: written before anybody can find @ptr; not if the call fails.
 * @preload: nodes, if none may be allocated; else NULL.
 * Return: 0, -ENOSPC, -ENOMEM. */
struct radix_request {
	void *ptr;
	uint32_t *ret_index;
	uint32_t from;
	uint64_t max;
	uint32_t *next;
	struct quiesce__radix_nodes *preload;
};
int quiesce__radix_alloc(struct quiesce__radix *tree, struct radix_request *request);

/* ---- readers, in a section ---- */

/* The lowest index from *@index to @max that has a pointer, and a mark, if @which is one; the highest one from *@index down to
 * @min.  *@index becomes it; NULL, and *@index is not changed: none.  @which: RADIX_USED or a mark. */
void *quiesce__radix_up(const struct quiesce__radix *tree, unsigned long *index, unsigned long max, enum radix_bit which);
void *quiesce__radix_down(const struct quiesce__radix *tree, unsigned long *index, unsigned long min, enum radix_bit which);

/* The first @n pointers from @start to @max; how many there were. */
unsigned int quiesce__radix_gather(const struct quiesce__radix *tree, void **dst, unsigned long start, unsigned long max, unsigned int n,
				   enum radix_bit which);

/* The node at the bottom where @index belongs, or NULL. */
const struct radix_node *quiesce__radix_find_leaf(const struct quiesce__radix *tree, uint64_t index);

#endif
