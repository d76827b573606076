/* SPDX-License-Identifier: MIT */
/* walk_skip.h - a skip list with one lock for updates, as in log-structured databases; instantiated by walk_types.h.
 *
 * A reader protects a node's successor on a level, checks that the word still leads there, and then that the node is
 * not removed: so the node was linked after the protection was set, and the successor with it.  A remove marks the
 * node, unlinks it on all levels, and then retires it; so a protection of a node that was found through an unmarked
 * node is found by the scan.
 * Source: W. Pugh, "Skip lists", 1990; one writer at a time beside any readers as in LevelDB.
 */
#ifndef QUIESCE_TOOL_WALK_SKIP_H
#define QUIESCE_TOOL_WALK_SKIP_H

#define WALK_TOWER(word) ((struct walk_tower *)(word))

/* False: the walk has to start again.  The last node before @key on the lowest level is protected; so is its
 * successor, which is returned. */
static inline __attribute__((always_inline)) bool skip_walk(struct walk_tower *head, uint64_t key, struct walk_slots *s,
							    struct walk_tower **ret)
{
	unsigned int here = 0, ahead = 1, t;
	struct walk_tower *node = head, *next;
	int level = WALK_LEVELS - 1;

	for (;;) {
		next = WALK_TOWER(walk_protect(s, ahead, &node->next[level]));
		if (WALK_CHECKS && quiesce_unlikely(walk_load(&node->removed)))
			return false;
		if (next && next->key < key) {
			node = next;
			t = here, here = ahead, ahead = t;
		} else if (!level--) {
			break;
		}
	}
	*ret = next;
	return true;
}

static inline uint64_t skip_lookup(struct walk_table *table, uint64_t key)
{
	struct walk_tower *found;
	struct walk_slots s;
	uint64_t value;

	walk_begin(&s);
	while (!skip_walk(table->tower, key, &s, &found))
		;
	value = found && found->key == key ? found->value : 0;
	walk_end(&s);
	return value;
}

/* The caller holds the lock: stores the node before @key on each level.  Returns the node of @key, or NULL. */
static struct walk_tower *skip_place(struct walk_tower *head, uint64_t key, struct walk_tower **ret_before)
{
	struct walk_tower *node = head, *next = NULL;

	for (int level = WALK_LEVELS - 1; level >= 0; level--) {
		while ((next = WALK_TOWER(node->next[level])) && next->key < key)
			node = next;
		ret_before[level] = node;
	}
	return next && next->key == key ? next : NULL;
}

/* A quarter of the nodes of each level is on the next one. */
static inline uint32_t skip_height(uint64_t key)
{
	uint32_t height = 1 + (uint32_t)__builtin_ctzll(hash_mix(key) | (uint64_t)1 << 63) / 2;

	return height < WALK_LEVELS ? height : WALK_LEVELS;
}

static bool skip_insert(struct walk_table *table, uint64_t key, uint64_t value)
{
	uint32_t height = skip_height(key);
	struct walk_tower *fresh = (struct walk_tower *)malloc(sizeof(*fresh) + height * sizeof(fresh->next[0]));
	struct walk_tower *before[WALK_LEVELS];
	bool there;

	if (!fresh)
		return false;
	fresh->value = value;
	fresh->key = key;
	fresh->removed = 0;
	fresh->height = height;
	hash_spin_lock(&table->lock);
	there = skip_place(table->tower, key, before) != NULL;
	for (uint32_t i = 0; i < height && !there; i++)
		fresh->next[i] = before[i]->next[i];
	for (uint32_t i = 0; i < height && !there; i++)
		walk_store(&before[i]->next[i], (uintptr_t)fresh);
	hash_spin_unlock(&table->lock);
	if (there)
		free(fresh);
	return !there;
}

/* Returns the value that was removed; 0: there was none. */
static uint64_t skip_take(struct walk_table *table, uint64_t key)
{
	struct walk_tower *before[WALK_LEVELS], *node;
	uint64_t value = 0;

	hash_spin_lock(&table->lock);
	node = skip_place(table->tower, key, before);
	if (node) {
		value = node->value;
		walk_store(&node->removed, 1u);
		for (uint32_t i = node->height; i--;)
			walk_store(&before[i]->next[i], node->next[i]);
	}
	hash_spin_unlock(&table->lock);
	if (node)
		walk_retire((struct walk_node *)node);
	return value;
}

static inline bool skip_remove(struct walk_table *table, uint64_t key)
{
	return skip_take(table, key);
}

#endif
