/* SPDX-License-Identifier: MIT */
/* walk_busted.c - a removed node is dead at once: has to be BROKEN with updates (a test of this tool). */
#include "types/walk.h"
#include "types/walk_section.h"

#define WALK_SCHEME busted
#define WALK_WHAT "what is removed is dead at once: has to be BROKEN with updates (a test of this tool)"
#define WALK_RANK 110
#define WALK_FENCES false
#define DEAD ((uint64_t)0xdeadbeef)

WALK_SECTION((void)0, (void)0)

/* The memory is kept, so a reader that comes too late finds the dead value, reports it and goes on. */
static inline void walk_retire(struct walk_node *node)
{
	quiesce_store_relaxed(&node->value, DEAD);
}

#define walk_thread_enter NULL
#define walk_thread_exit NULL
#define walk_barrier NULL
#define walk_init NULL
#define walk_stats NULL
#define walk_waiting NULL /* there are no deferred frees */
#define WALK_BROKEN
#include "types/walk_types.h"
