/* SPDX-License-Identifier: MIT */
/* hp.c - Concurrency Kit's hazard pointers: slots of the thread's record, set with a full fence; reads, deferred frees with a
 * scan for each batch, and walks. */
#include <ck_hp.h>
#include <stdlib.h>

#include "loop.h"
#include "registry.h"
#include "types/retire.h"
#include "types/walk.h"

_Static_assert(sizeof(ck_hp_hazard_t) <= sizeof(void *[RETIRE_HEAD_WORDS]), "there is room for the library's head");
_Static_assert(sizeof(ck_hp_hazard_t) <= sizeof(union walk_head), "there is room for the library's head");

static ck_hp_t domain;
static __thread ck_hp_record_t *record __attribute__((tls_model("initial-exec")));

static int init(unsigned int slots, void (*end)(void *))
{
	ck_hp_init(&domain, slots, (unsigned int)retire_params.batch, end);
	return 0;
}

static int init_one(enum op_fence fence)
{
	(void)fence;
	return init(1, retire_free);
}

static void thread_enter(void)
{
	void **slots;

	record = ck_hp_recycle(&domain);
	if (record)
		return;
	record = aligned_alloc(128, (sizeof(*record) + 127) / 128 * 128);
	slots = aligned_alloc(128, 128);
	if (!record || !slots)
		abort();
	memset(slots, 0, 128);
	ck_hp_register(&domain, record, slots);
}

OP_FUNCTION(thread_exit, ck_hp_unregister(record); record = NULL)
OP_FUNCTION(drain, ck_hp_purge(record))
#define THREADS .init = init_one, .thread_enter = thread_enter, .thread_exit = thread_exit

static inline __attribute__((always_inline)) struct op_item *protect(ck_hp_record_t *r, struct op_item **where)
{
	struct op_item *first = quiesce_load_relaxed(where), *again;

	for (;; first = again) {
		ck_hp_set_fence(r, 0, first);
		again = quiesce_load_relaxed(where);
		if (quiesce_likely(again == first))
			return again;
	}
}

OP_KEPT(ck_hp, ck_hp_record_t *, record)

OP_SECTION_KEPT(ck_hp, protect(kept, &t->ptr), ck_hp_set(kept, 0, NULL))
OP_FUNCTION(section_lock, protect(record, &op_target.ptr))
OP_FUNCTION(section_unlock, ck_hp_set(record, 0, NULL))
OP_READ_OPS(ck_hp, section_lock, section_unlock);

TYPE(ck_hp, .rank = 1110, .groups = PEER_HAZPTR | RUN_OBJECT | REPORT_READ | FAMILY_OBJECT,
	.what = "Concurrency Kit's hazard pointers, inlined, a slot in hand",
	.reason = "its slot is in hand, and its section is inlined with its fence; ours with full fences is a call",
	.read = &ck_hp_read, THREADS);

/* ---- deferred frees ---- */

#define RETIRE(object) ck_hp_free(record, (ck_hp_hazard_t *)(object)->head, object, object)
RETIRE_PRODUCE(hp, retire_alloc, RETIRE)

static void hold(void **where)
{
	void *first, *again = quiesce_load_relaxed(where);

	do {
		first = again;
		ck_hp_set_fence(record, 0, first);
		again = quiesce_load_relaxed(where);
	} while (again != first);
	retire_use(again);
}

OP_FUNCTION(release, quiesce_fence_light(RAW); ck_hp_clear(record))
RETIRE_READ

TYPE(ck_hp, .rank = 1100, .groups = PEER_HAZPTR | RUN_TABLE | REPORT,
	.what = "Concurrency Kit's hazard pointers, a scan for each batch",
	.reason = "its scan needs no membarrier, because each protection of its readers has a full fence, and its batch has no lock",
	.reclaim = &(const struct op_reclaim){ RETIRE_PRODUCERS(hp), RETIRE_READERS, .drain = drain }, THREADS);

/* ---- walks ---- */

#define WALK_SCHEME ck_hp
#define WALK_WHAT "Concurrency Kit's hazard pointers, a scan for each batch"
#define WALK_RANK 1100
#define WALK_FENCES false
#define WALK_CHECKS 1

struct walk_slots {
	ck_hp_record_t *record;
};

static inline void walk_begin(struct walk_slots *s)
{
	s->record = record;
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
	retire_note();
	ck_hp_free(record, (ck_hp_hazard_t *)(void *)&node->head, node, node);
}

static int walk_init(enum op_fence fence)
{
	(void)fence;
	return init(WALK_SLOTS, walk_free);
}

OP_FUNCTION(walk_thread_exit, drain(); thread_exit(); retire_tally_leave())

#define walk_thread_enter thread_enter
#define walk_barrier drain
#define walk_stats NULL
#define walk_waiting retire_waiting
#include "types/walk_types.h"
