/* SPDX-License-Identifier: MIT */
/* walk_hazptr.c - hazard pointers of quiesce: three slots in a row, kept by the thread; kfree_hazptr(). */
#include "ours.h"
#include "types/walk.h"

#define WALK_SCHEME hazptr
#define WALK_WHAT "hazard pointers of quiesce, kfree_hazptr()"
#define WALK_RANK 310
#define WALK_FENCES true
#define WALK_CHECKS 1
#ifndef WALK_HAZPTR_RETIRE /* a test defines its own */
#define WALK_HAZPTR_RETIRE(node) kfree_hazptr(&(node)->head, hazptr)
#endif

struct walk_slots {
	hazptr_t *slot;
};

static __thread hazptr_t *mine;

static inline void walk_begin(struct walk_slots *s)
{
	s->slot = mine;
}

static inline void walk_end(struct walk_slots *s)
{
	for (unsigned int i = 0; i < WALK_SLOTS; i++)
		hazptr_clear(s->slot + i);
}

static inline __attribute__((always_inline)) uintptr_t walk_protect(struct walk_slots *s, unsigned int i, uintptr_t *where)
{
	return (uintptr_t)hazptr_protect_masked(s->slot + i, (void **)where, WALK_MARK);
}

static inline void walk_retire(struct walk_node *node)
{
	WALK_HAZPTR_RETIRE(node);
}

/* --batch sets the batch of this scheme, too; without it the library's own is used. */
static int walk_init(enum op_fence fence)
{
	uint32_t batch = retire_params.batch_given ? (uint32_t)retire_params.batch : 0;
	int err = op_rcu_init(fence);

	return err ? err : quiesce_set_hazptr_batch(batch, batch);
}

static void walk_thread_enter(void)
{
	mine = hazptr_alloc_array(NULL, WALK_SLOTS);
	if (!mine)
		abort();
}

OP_FUNCTION(walk_thread_exit, hazptr_free_array(NULL, mine, WALK_SLOTS))
OP_FUNCTION(walk_barrier, hazptr_barrier())

#define walk_waiting op_hazptr_waiting
#define walk_stats op_rcu_stats
#include "types/walk_types.h"
