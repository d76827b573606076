/* SPDX-License-Identifier: MIT */
/* walk_create.c - the structures of walkscale, empty, and their end. */
#include "walk.h"

#define INFINITE UINT64_MAX /* above every key */

static void *create(uint64_t nr_buckets)
{
	struct walk_table *t = aligned_alloc(128, (sizeof(*t) + 127) / 128 * 128);

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->mask = nr_buckets - 1;
	t->bucket = nr_buckets ? hash_array_alloc(nr_buckets * sizeof(*t->bucket)) : NULL;
	if (t->bucket || !nr_buckets)
		return t;
	free(t);
	return NULL;
}

void *walk_create_list(uint64_t nr_keys)
{
	(void)nr_keys;
	return create(1);
}

void *walk_create_map(uint64_t nr_keys)
{
	return create(hash_power(nr_keys < 2 ? 2 : nr_keys));
}

/* The root has a leaf to its left, so that every other leaf has a parent, and that parent has a parent. */
void *walk_create_tree(uint64_t nr_keys)
{
	struct walk_table *t = create(0);
	struct walk_branch *last = calloc(1, sizeof(*last));

	(void)nr_keys;
	if (!t || !last) {
		free(t);
		free(last);
		return NULL;
	}
	last->key = INFINITE - 1;
	t->root.key = INFINITE;
	t->root.child[0] = (uintptr_t)last;
	return t;
}

void *walk_create_skip(uint64_t nr_keys)
{
	struct walk_table *t = create(0);

	(void)nr_keys;
	if (t)
		t->tower = calloc(1, sizeof(*t->tower) + WALK_LEVELS * sizeof(t->tower->next[0]));
	if (t && t->tower)
		return t;
	free(t);
	return NULL;
}

static void free_list(uintptr_t word)
{
	while (word) {
		struct walk_node *node = (struct walk_node *)word;

		word = node->next & ~WALK_MARK;
		free(node);
	}
}

static void free_tree(uintptr_t word)
{
	struct walk_branch *branch = (struct walk_branch *)word;

	if (!branch)
		return;
	free_tree(branch->child[0]);
	free_tree(branch->child[1]);
	free(branch);
}

static void free_towers(struct walk_tower *tower)
{
	while (tower) {
		struct walk_tower *next = (struct walk_tower *)tower->next[0];

		free(tower);
		tower = next;
	}
}

void walk_destroy(void *table)
{
	struct walk_table *t = table;

	for (uint64_t i = 0; t->bucket && i <= t->mask; i++)
		free_list(t->bucket[i]);
	if (t->bucket)
		hash_array_free(t->bucket, (t->mask + 1) * sizeof(*t->bucket));
	free_tree(t->root.child[0]);
	free_towers(t->tower);
	free(t);
}

uint64_t walk_mapped(const void *table)
{
	const struct walk_table *t = table;

	return t->bucket ? hash_array_mapped((t->mask + 1) * sizeof(*t->bucket)) : 0;
}
