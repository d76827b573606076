/* SPDX-License-Identifier: MIT */
/* walk_types.h - the types X_list, X_map, X_tree and X_skip of the scheme that includes it; see walk.h. */
#include "walk_list.h"
#include "walk_skip.h"
#include "walk_table.h"
#include "walk_tree.h"

#define WALK_LONGEST 5000 /* most keys of a list that is measured */

#define WALK_PASTE(a, b) a##_##b
#define WALK_NAME(a, b) WALK_PASTE(a, b)
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

#ifdef __cplusplus /* C++ warns of members that are left out */
#define WALK_MAKE(type, ...) [] { type made{}; __VA_ARGS__; return made; }()
#define WALK_MEMBER made.
#else
#define WALK_MAKE(type, ...) { __VA_ARGS__ }
#define WALK_MEMBER .
#endif

#ifdef WALK_BROKEN
#define WALK_IS_BROKEN true
#define WALK_UNUSED __attribute__((unused))
#else
#define WALK_IS_BROKEN false
#define WALK_UNUSED
#endif

#define WALK_HASH(how, structure, most)                                                                               \
	WALK_MAKE(hash_op, WALK_MEMBER create = walk_create_##structure, WALK_MEMBER destroy = walk_destroy,          \
		  WALK_MEMBER run = how##_run, WALK_MEMBER barrier = walk_barrier, WALK_MEMBER mapped = walk_mapped,  \
		  WALK_MEMBER waiting = walk_waiting, WALK_MEMBER stall = walk_stall, WALK_MEMBER most_keys = most)
WALK_UNUSED static const struct hash_op walk_list_hash = WALK_HASH(list, list, WALK_LONGEST);
static const struct hash_op walk_map_hash = WALK_HASH(list, map, 0);
WALK_UNUSED static const struct hash_op walk_tree_hash = WALK_HASH(tree, tree, 0);
WALK_UNUSED static const struct hash_op walk_skip_hash = WALK_HASH(skip, skip, 0);

#define WALK_OP(structure, text)                                                                              \
	const struct op WALK_NAME(WALK_NAME(walk_op, WALK_SCHEME), structure) = WALK_MAKE(                    \
		op, WALK_MEMBER name = WALK_STRING(WALK_SCHEME) "_" #structure,                               \
		WALK_MEMBER what = text ", " WALK_WHAT, WALK_MEMBER fence_modes = WALK_FENCES,                \
		WALK_MEMBER broken = WALK_IS_BROKEN, WALK_MEMBER hash = &walk_##structure##_hash,             \
		WALK_MEMBER init = walk_init, WALK_MEMBER thread_enter = walk_thread_enter,                   \
		WALK_MEMBER thread_exit = walk_thread_exit, WALK_MEMBER stats = walk_stats);

#ifdef WALK_BROKEN /* one type is enough; nodes of trees have another structure */
WALK_OP(map, "buckets of Michael's lists")
#else
WALK_OP(list, "Michael's list")
WALK_OP(map, "buckets of Michael's lists")
WALK_OP(tree, "an external binary tree, updates by locks")
WALK_OP(skip, "a skip list, one lock for updates")
#endif
