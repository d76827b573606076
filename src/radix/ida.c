/* SPDX-License-Identifier: MIT */
/* ida.c - allocation of integers: a tree whose bottom slots are words of 64 integers, one bit each.
 *
 * A slot is free in the tree if a bit of its word is 0; a word without a set bit is not in the tree.  Every call takes the
 * lock.
 */
#include "radix/radix.h"
#include "runtime/core.h"
#include "runtime/lock.h"

#include <quiesce/ds/ida.h>

#include <errno.h>

#define PER_WORD 64u

static uint64_t word_of(const struct ida *ida, uint64_t index, struct radix_node **ret_leaf)
{
	return (uintptr_t)quiesce__radix_lookup(&ida->tree, index, ret_leaf);
}

static uint64_t bit_of(unsigned int id)
{
	return 1ull << id % PER_WORD;
}

static uint64_t lowest_free(const struct ida *ida, unsigned int from)
{
	struct radix_node *leaf;
	uint64_t index = from / PER_WORD, free = ~word_of(ida, index, &leaf) & ~0ull << from % PER_WORD;

	if (!free) {
		index = quiesce__radix_lowest_free(&ida->tree, index + 1);
		free = ~word_of(ida, index, &leaf);
	}
	return index * PER_WORD + __builtin_ctzll(free);
}

/* Take @id; @spare has as many nodes as quiesce__radix_nodes_needed() returned. */
static void take(struct ida *ida, struct quiesce__radix_nodes *spare, unsigned int id)
{
	uint64_t index = id / PER_WORD, word;
	unsigned int slot = radix_slot_of(index, 0);
	struct radix_node *leaf;

	word = word_of(ida, index, &leaf) | bit_of(id);
	if (leaf)
		quiesce__radix_replace(leaf, index, (void *)(uintptr_t)word);
	else
		quiesce__radix_take(&ida->tree, spare, index, (void *)(uintptr_t)word);
	if (leaf && !~word)
		quiesce__radix_clear(leaf, slot, RADIX_FREE);
	if (!leaf)
		quiesce__radix_set(quiesce__radix_leaf(&ida->tree, index), slot, RADIX_FREE);
}

struct request {
	unsigned int min, max, id;
};

static int try_alloc(struct quiesce__radix *tree, struct quiesce__radix_nodes *spare, void *arg)
{
	struct ida *ida = (struct ida *)tree; /* the tree is the first member of struct ida */
	struct request *request = arg;
	uint64_t id = lowest_free(ida, request->min);
	unsigned int nr;
	struct radix_node *leaf;

	if (id > request->max)
		return -ENOSPC;
	word_of(ida, id / PER_WORD, &leaf);
	nr = leaf ? 0 : quiesce__radix_nodes_needed(tree, id / PER_WORD);
	if (nr > spare->nr)
		return nr;
	take(ida, spare, id);
	request->id = id;
	return 0;
}

int quiesce_ida_alloc_range(struct ida *ida, unsigned int min, unsigned int max)
{
	struct request request = { .min = min, .max = max < INT_MAX ? max : INT_MAX };
	int result = min > INT_MAX ? -ENOSPC : quiesce__radix_update(&ida->tree, NULL, try_alloc, &request);

	return result ? result : (int)request.id;
}

/* Free @id; false if it was not taken. */
static bool give_back(struct ida *ida, unsigned int id, struct radix_node **ret_out)
{
	uint64_t index = id / PER_WORD, word;
	struct radix_node *leaf;

	word = word_of(ida, index, &leaf);
	if (!(word & bit_of(id)))
		return false;
	word &= ~bit_of(id);
	if (!word) {
		*ret_out = quiesce__radix_give_back(&ida->tree, leaf, index);
	} else {
		quiesce__radix_replace(leaf, index, (void *)(uintptr_t)word);
		quiesce__radix_set(leaf, radix_slot_of(index, 0), RADIX_FREE);
	}
	return true;
}

void quiesce_ida_free(struct ida *ida, unsigned int id)
{
	struct radix_node *out = NULL;
	bool was_taken;

	quiesce__lock(&ida->tree.lock);
	was_taken = give_back(ida, id, &out);
	quiesce__unlock(&ida->tree.lock);
	quiesce__radix_free(out);
	if (!was_taken)
		quiesce__misuse(QUIESCE_MISUSE_ARGUMENT, "ida_free() of %u, which is not taken", id);
}

static int find_first(const struct ida *ida, unsigned int min, unsigned int max)
{
	struct radix_node *leaf;
	unsigned long index = min / PER_WORD;
	uint64_t word = word_of(ida, index, &leaf) & ~0ull << min % PER_WORD, id;

	if (!word) {
		index++;
		word = (uintptr_t)quiesce__radix_up(&ida->tree, &index, max / PER_WORD, RADIX_USED);
	}
	if (!word)
		return -ENOENT;
	id = index * PER_WORD + __builtin_ctzll(word);
	return id <= max ? (int)id : -ENOENT;
}

int quiesce_ida_find_first_range(struct ida *ida, unsigned int min, unsigned int max)
{
	int result;

	if (min > INT_MAX)
		return -EINVAL;
	quiesce__lock(&ida->tree.lock);
	result = find_first(ida, min, max < INT_MAX ? max : INT_MAX);
	quiesce__unlock(&ida->tree.lock);
	return result;
}

void quiesce_ida_destroy(struct ida *ida)
{
	quiesce__radix_destroy(&ida->tree);
}
