/* SPDX-License-Identifier: MIT */
/* walk_epoch.c - Concurrency Kit's epochs. */
#include <ck_epoch.h>

#include "types/walk.h"
#include "types/walk_section.h"

_Static_assert(sizeof(ck_epoch_entry_t) <= sizeof(union walk_head), "there is room for the library's head");

#define WALK_SCHEME ck_epoch
#define WALK_WHAT "Concurrency Kit's epochs, polled once in a batch"
#define WALK_RANK 1110
#define WALK_FENCES false

static ck_epoch_t epoch;
static __thread ck_epoch_record_t *mine;
static __thread size_t since_poll;

static inline void walk_begin(struct walk_slots *s)
{
	(void)s;
	ck_epoch_begin(mine, NULL);
}

static inline void walk_end(struct walk_slots *s)
{
	(void)s;
	ck_epoch_end(mine, NULL);
}

static void end_node(ck_epoch_entry_t *entry)
{
	walk_free(entry);
}

static inline void walk_retire(struct walk_node *node)
{
	walk_note_retired();
	ck_epoch_call(mine, (ck_epoch_entry_t *)(void *)&node->head, end_node);
	if (quiesce_unlikely(++since_poll >= retire_params.batch)) {
		since_poll = 0;
		ck_epoch_poll(mine);
	}
}

static int walk_init(enum op_fence fence)
{
	(void)fence;
	ck_epoch_init(&epoch);
	return 0;
}

static void walk_thread_enter(void)
{
	mine = ck_epoch_recycle(&epoch, NULL);
	if (mine)
		return;
	mine = aligned_alloc(128, (sizeof(*mine) + 127) / 128 * 128);
	if (!mine)
		abort();
	ck_epoch_register(&epoch, mine, NULL);
}

static void walk_thread_exit(void)
{
	ck_epoch_barrier(mine);
	ck_epoch_unregister(mine);
	mine = NULL;
	retire_tally_leave();
}

OP_FUNCTION(walk_barrier, ck_epoch_barrier(mine))

#define walk_stats NULL
#define walk_waiting walk_tally_waiting
#include "types/walk_types.h"
