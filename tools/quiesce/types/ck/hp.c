/* SPDX-License-Identifier: MIT */
/* hp.c - Concurrency Kit's hazard pointers: a slot of the thread's record, set with a full fence. */
#include <ck_hp.h>
#include <stdlib.h>

#include "types/loop.h"
#include "types/registry.h"

#define SLOTS 1
#define THRESHOLD 1024 /* never reached, because nothing is retired here */

static ck_hp_t domain;
static __thread ck_hp_record_t *record __attribute__((tls_model("initial-exec")));

static int hp_init(enum op_fence fence)
{
	(void)fence;
	ck_hp_init(&domain, SLOTS, THRESHOLD, free);
	return 0;
}

static void thread_enter(void)
{
	void **slots;

	record = ck_hp_recycle(&domain);
	if (record)
		return;
	record = aligned_alloc(128, (sizeof(*record) + 127) / 128 * 128);
	slots = calloc(16, sizeof(*slots));
	if (!record || !slots)
		abort();
	ck_hp_register(&domain, record, slots);
}

OP_FUNCTION(thread_exit, ck_hp_unregister(record); record = NULL)

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

typedef ck_hp_record_t *ck_hp_kept;

static ck_hp_record_t *ck_hp_begin(void)
{
	return record;
}

static void ck_hp_end(ck_hp_record_t *kept)
{
	(void)kept;
}

OP_SECTION_KEPT(ck_hp, protect(kept, &t->ptr), ck_hp_set(kept, 0, NULL))

OP_FUNCTION(section_lock, protect(record, &op_target.ptr))
OP_FUNCTION(section_unlock, ck_hp_set(record, 0, NULL))

OP_READ_OPS(ck_hp, section_lock, section_unlock);

TYPE(ck_hp, .rank = 1110, .groups = PEER_HAZPTR | RUN_OBJECT | REPORT_READ | FAMILY_OBJECT,
	.what = "Concurrency Kit's hazard pointers, inlined, a slot in hand",
	.read = &ck_hp_read,
	.init = hp_init,
	.thread_enter = thread_enter,
	.thread_exit = thread_exit);
