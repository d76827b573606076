/* SPDX-License-Identifier: MIT */
/* walk_hp.c - Concurrency Kit's hazard pointers. */
#include <ck_hp.h>

#include "types/walk.h"

_Static_assert(sizeof(ck_hp_hazard_t) <= sizeof(union walk_head), "there is room for the library's head");

#define WALK_SCHEME ck_hp
#define WALK_WHAT "Concurrency Kit's hazard pointers, a scan for each batch"
#define WALK_RANK 1100
#define WALK_FENCES false
#define WALK_CHECKS 1

struct walk_slots {
	ck_hp_record_t *record;
};

static ck_hp_t domain;
static __thread ck_hp_record_t *mine;

static inline void walk_begin(struct walk_slots *s)
{
	s->record = mine;
}

static inline void walk_end(struct walk_slots *s)
{
	quiesce_fence_light(RAW);
	ck_hp_clear(s->record);
}

static inline __attribute__((always_inline)) uintptr_t walk_protect(struct walk_slots *s, unsigned int i, uintptr_t *where)
{
	uintptr_t first, again = quiesce_load_relaxed(where);

	do {
		first = again;
		ck_hp_set_fence(s->record, i, (void *)(first & ~WALK_MARK));
		again = walk_load(where);
	} while (quiesce_unlikely(again != first));
	return again;
}

static inline void walk_retire(struct walk_node *node)
{
	walk_note_retired();
	ck_hp_free(mine, (ck_hp_hazard_t *)(void *)&node->head, node, node);
}

static int walk_init(enum op_fence fence)
{
	(void)fence;
	ck_hp_init(&domain, WALK_SLOTS, (unsigned int)retire_params.batch, walk_free);
	return 0;
}

static void walk_thread_enter(void)
{
	void **slots;

	mine = ck_hp_recycle(&domain);
	if (mine)
		return;
	mine = aligned_alloc(128, (sizeof(*mine) + 127) / 128 * 128);
	slots = aligned_alloc(128, 128);
	if (!mine || !slots)
		abort();
	memset(slots, 0, 128);
	ck_hp_register(&domain, mine, slots);
}

static void walk_thread_exit(void)
{
	ck_hp_purge(mine);
	ck_hp_unregister(mine);
	mine = NULL;
	retire_tally_leave();
}

OP_FUNCTION(walk_barrier, ck_hp_purge(mine))

#define walk_stats NULL
#define walk_waiting walk_tally_waiting
#include "types/walk_types.h"
