/* SPDX-License-Identifier: MIT */
/* walk_tree.h - an external binary tree whose updates lock one or two inner nodes; instantiated by walk_types.h.
 *
 * Values are in leaves.  A remove locks the leaf's parent and the parent's parent, marks the parent as removed, and
 * then puts the other child in its place.  A reader protects a child, checks that the word still leads there, and
 * then that the node that has the word is not removed: so that node was linked after the protection was set, and the
 * child with it; a remove unlinks the child later, and its scan finds the protection.  Readers under RCU need no such
 * check.
 * After T. David, R. Guerraoui, V. Trigonakis, "Asynchronized concurrency" (BST-TK), 2015, with plain locks.
 */
#ifndef QUIESCE_TOOL_WALK_TREE_H
#define QUIESCE_TOOL_WALK_TREE_H

#define WALK_BRANCH(word) ((struct walk_branch *)(word))

struct walk_path {
	struct walk_branch *above, *parent, *leaf;
};

static inline int tree_side(const struct walk_branch *inner, uint64_t key)
{
	return key >= inner->key;
}

/* Returns false if the walk has to start again. */
static inline __attribute__((always_inline)) bool tree_walk(struct walk_branch *root, uint64_t key, struct walk_slots *s,
							     struct walk_path *ret)
{
	unsigned int here = 0, ahead = 1, behind = 2, t;
	struct walk_branch *above = root, *parent = root, *child;

	for (;;) {
		child = WALK_BRANCH(walk_protect(s, ahead, &parent->child[tree_side(parent, key)]));
		if (WALK_CHECKS && quiesce_unlikely(walk_load(&parent->removed)))
			return false;
		if (!quiesce_load_relaxed(&child->child[0]))
			break;
		above = parent;
		parent = child;
		t = behind, behind = here, here = ahead, ahead = t;
	}
	ret->above = above;
	ret->parent = parent;
	ret->leaf = child;
	return true;
}

static inline bool tree_find(struct walk_branch *root, uint64_t key, struct walk_slots *s, struct walk_path *ret)
{
	while (!tree_walk(root, key, s, ret))
		;
	return ret->leaf->key == key;
}

static inline uint64_t tree_lookup(struct walk_table *table, uint64_t key)
{
	struct walk_path path;
	struct walk_slots s;
	uint64_t value;

	walk_begin(&s);
	value = tree_find(&table->root, key, &s, &path) ? path.leaf->value : 0;
	walk_end(&s);
	return value;
}

/* True if @inner is in the tree, with @child; the caller holds its lock. */
static inline bool tree_has(const struct walk_branch *inner, uint64_t key, const struct walk_branch *child)
{
	return !inner->removed && inner->child[tree_side(inner, key)] == (uintptr_t)child;
}

static bool tree_hang(const struct walk_path *path, struct walk_branch *leaf, struct walk_branch *inner)
{
	bool right = leaf->key > path->leaf->key, good;

	inner->key = right ? leaf->key : path->leaf->key;
	inner->child[right] = (uintptr_t)leaf;
	inner->child[!right] = (uintptr_t)path->leaf;
	hash_spin_lock(&path->parent->lock);
	good = tree_has(path->parent, leaf->key, path->leaf);
	if (good)
		walk_store(&path->parent->child[tree_side(path->parent, leaf->key)], (uintptr_t)inner);
	hash_spin_unlock(&path->parent->lock);
	return good;
}

static bool tree_insert(struct walk_table *table, uint64_t key, uint64_t value)
{
	struct walk_branch *leaf = (struct walk_branch *)calloc(1, sizeof(*leaf)), *inner = (struct walk_branch *)calloc(1, sizeof(*inner));
	struct walk_path path;
	struct walk_slots s;
	bool there = !leaf || !inner;

	walk_begin(&s);
	if (!there) {
		leaf->key = key;
		leaf->value = value;
		do
			there = tree_find(&table->root, key, &s, &path);
		while (!there && !tree_hang(&path, leaf, inner));
	}
	walk_end(&s);
	if (there) {
		free(leaf);
		free(inner);
	}
	return !there;
}

/* Unlinks the leaf and its parent. */
static bool tree_unlink(const struct walk_path *path, uint64_t key)
{
	struct walk_branch *above = path->above, *parent = path->parent;
	bool good;

	hash_spin_lock(&above->lock);
	hash_spin_lock(&parent->lock);
	good = tree_has(above, key, parent) && tree_has(parent, key, path->leaf);
	if (good) {
		/* The mark comes first: a reader that finds the other child through this
		 * node and sees no mark has found it in the tree. */
		walk_store(&parent->removed, 1u);
		walk_store(&above->child[tree_side(above, key)], parent->child[!tree_side(parent, key)]);
	}
	hash_spin_unlock(&parent->lock);
	hash_spin_unlock(&above->lock);
	return good;
}

/* Returns the value that was removed; 0: there was none. */
static uint64_t tree_take(struct walk_table *table, uint64_t key)
{
	struct walk_path path;
	struct walk_slots s;
	uint64_t value;
	bool there;

	walk_begin(&s);
	do
		there = tree_find(&table->root, key, &s, &path);
	while (there && !tree_unlink(&path, key));
	value = there ? path.leaf->value : 0;
	walk_end(&s);
	if (there) {
		walk_retire((struct walk_node *)path.parent);
		walk_retire((struct walk_node *)path.leaf);
	}
	return value;
}

static inline bool tree_remove(struct walk_table *table, uint64_t key)
{
	return tree_take(table, key);
}

#endif
