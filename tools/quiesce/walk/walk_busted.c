/* SPDX-License-Identifier: MIT */
/* walk_busted.c - what is removed is dead at once: has to be BROKEN with updates (a test of this tool). */
#include "walk.h"

#define WALK_SCHEME busted
#define WALK_WHAT "what is removed is dead at once: has to be BROKEN with updates (a test of this tool)"
#define WALK_FENCES false
#define WALK_CHECKS 0
#define DEAD ((uint64_t)0xdeadbeef)

struct walk_slots {
	char unused;
};

static inline void walk_begin(struct walk_slots *s)
{
	(void)s;
}

static inline void walk_end(struct walk_slots *s)
{
	(void)s;
}

static inline uintptr_t walk_protect(struct walk_slots *s, unsigned int i, uintptr_t *where)
{
	(void)s, (void)i;
	return walk_load(where);
}

/* The memory stays, so that who comes too late finds that out and goes on. */
static inline void walk_retire(struct walk_node *node)
{
	quiesce_store_relaxed(&node->value, DEAD);
}

static int walk_init(enum op_fence fence)
{
	(void)fence;
	return 0;
}

static void walk_thread_enter(void)
{
}

static void walk_thread_exit(void)
{
}

static void walk_barrier(void)
{
}

static uint64_t walk_waiting(void)
{
	return 0;
}

#define walk_stats NULL
#define WALK_BROKEN
#include "walk_types.h"
