/* SPDX-License-Identifier: MIT */
/* walk_types.h - the types X_list, X_map, X_tree and X_skip of the scheme that includes it; see walk.h. */
#include "registry.h"
#include "walk_list.h"
#include "walk_skip.h"
#include "walk_tree.h"

#define WALK_LONGEST 5000 /* most keys of a list that is measured */

#define WALK_TEXT(a) #a
#define WALK_STRING(a) WALK_TEXT(a)

HASH_RUN(list, struct walk_table)
HASH_RUN(tree, struct walk_table)
HASH_RUN(skip, struct walk_table)

/* Stays inside a lookup that protects the first node, which leads to all others. */
static void walk_stall(void *arg, void (*stay)(void *arg), void *stay_arg)
{
	struct walk_table *table = (struct walk_table *)arg;
	struct walk_slots s;

	walk_begin(&s);
	(void)walk_protect(&s, 0, table->bucket ? &table->bucket[0] : table->tower ? &table->tower->next[0] : &table->root.child[0]);
	stay(stay_arg);
	walk_end(&s);
}

#ifdef WALK_BROKEN
#define WALK_IS_BROKEN true
#define WALK_UNUSED __attribute__((unused))
#else
#define WALK_IS_BROKEN false
#define WALK_UNUSED
#endif

#define WALK_HASH(how, structure, most)                                                                               \
	{ .create = walk_create_##structure, .destroy = walk_destroy, .run = how##_run, .barrier = walk_barrier,      \
	  .mapped = walk_mapped, .waiting = walk_waiting, .stall = walk_stall, .most_keys = most }
WALK_UNUSED static const struct hash_op walk_list_hash = WALK_HASH(list, list, WALK_LONGEST);
static const struct hash_op walk_map_hash = WALK_HASH(list, map, 0);
WALK_UNUSED static const struct hash_op walk_tree_hash = WALK_HASH(tree, tree, 0);
WALK_UNUSED static const struct hash_op walk_skip_hash = WALK_HASH(skip, skip, 0);

#define WALK_OP(structure, number, text)                                                                      \
	TYPE_DEFINE(walk_##structure, WALK_STRING(WALK_SCHEME) "_" #structure, .rank = WALK_RANK + (number),   \
		    .what = text ", " WALK_WHAT, .fence_modes = WALK_FENCES, .broken = WALK_IS_BROKEN, .walk = true, \
		    .hash = &walk_##structure##_hash, .init = walk_init, .thread_enter = walk_thread_enter,    \
		    .thread_exit = walk_thread_exit, .stats = walk_stats)

#ifdef WALK_BROKEN /* one type is enough; nodes of trees have another structure */
WALK_OP(map, 1, "buckets of Michael's lists");
#else
WALK_OP(list, 0, "Michael's list");
WALK_OP(map, 1, "buckets of Michael's lists");
WALK_OP(tree, 2, "an external binary tree, updates by locks");
WALK_OP(skip, 3, "a skip list, one lock for updates");
#endif
