/* SPDX-License-Identifier: MIT */
/* retire.c - Concurrency Kit's hazard pointers and epochs: each thread
 * reclaims its own objects, once for each batch. */
#include <ck_epoch.h>
#include <ck_hp.h>

#include "types/registry.h"
#include "types/retire.h"

_Static_assert(sizeof(ck_hp_hazard_t) <= sizeof(void *[RETIRE_HEAD_WORDS]), "there is room for the library's head");
_Static_assert(sizeof(ck_epoch_entry_t) <= sizeof(void *[RETIRE_HEAD_WORDS]), "there is room for the library's head");

static void *record_new(size_t size)
{
	void *record = aligned_alloc(128, (size + 127) / 128 * 128);

	if (!record)
		abort();
	return record;
}

/* ---- ck_hp ---- */

static ck_hp_t hp;
static __thread ck_hp_record_t *hp_record;

static int hp_init(enum op_fence fence)
{
	(void)fence;
	ck_hp_init(&hp, 1, (unsigned int)retire_params.batch, retire_free);
	return 0;
}

static void hp_enter(void)
{
	void **pointers;

	hp_record = ck_hp_recycle(&hp);
	if (hp_record)
		return;
	hp_record = record_new(sizeof(*hp_record));
	pointers = record_new(128);
	ck_hp_register(&hp, hp_record, pointers);
}

OP_FUNCTION(hp_exit, ck_hp_unregister(hp_record); hp_record = NULL)

static inline void hp_retire(struct retire_object *o)
{
	ck_hp_free(hp_record, (ck_hp_hazard_t *)o->head, o, o);
}

RETIRE_PRODUCE(hp, retire_alloc, hp_retire)

static void hp_hold(void **where)
{
	void *first, *again = quiesce_load_relaxed(where);

	do {
		first = again;
		ck_hp_set_fence(hp_record, 0, first);
		again = quiesce_load_relaxed(where);
	} while (again != first);
	retire_use(again);
}

OP_FUNCTION(hp_release, quiesce_fence_light(RAW); ck_hp_clear(hp_record))

static void hp_read(void **where)
{
	hp_hold(where);
	hp_release();
}

OP_FUNCTION(hp_drain, ck_hp_purge(hp_record))

static const struct op_reclaim hp_reclaim = {
	RETIRE_PRODUCERS(hp), .read = hp_read, .hold = hp_hold, .release = hp_release, .drain = hp_drain,
};

TYPE(ck_hp, .rank = 1100, .groups = PEER_HAZPTR | RUN_TABLE | REPORT,
	.what = "Concurrency Kit's hazard pointers, a scan for each batch",
	.reclaim = &hp_reclaim,
	.init = hp_init,
	.thread_enter = hp_enter,
	.thread_exit = hp_exit);

/* ---- ck_epoch ---- */

static ck_epoch_t epoch;
static __thread ck_epoch_record_t *record;
static __thread size_t since_poll;

static int epoch_init(enum op_fence fence)
{
	(void)fence;
	ck_epoch_init(&epoch);
	return 0;
}

static void epoch_enter(void)
{
	record = ck_epoch_recycle(&epoch, NULL);
	if (record)
		return;
	record = record_new(sizeof(*record));
	ck_epoch_register(&epoch, record, NULL);
}

OP_FUNCTION(epoch_exit, ck_epoch_unregister(record); record = NULL)

static void end_object(ck_epoch_entry_t *entry)
{
	retire_free(entry);
}

static inline void epoch_retire(struct retire_object *o)
{
	ck_epoch_call(record, (ck_epoch_entry_t *)o->head, end_object);
	if (quiesce_unlikely(++since_poll == retire_params.batch)) {
		since_poll = 0;
		ck_epoch_poll(record);
	}
}

RETIRE_PRODUCE(epoch, retire_alloc, epoch_retire)

static void epoch_hold(void **where)
{
	ck_epoch_begin(record, NULL);
	retire_use(quiesce_load_relaxed(where));
}

OP_FUNCTION(epoch_release, ck_epoch_end(record, NULL))

static void epoch_read(void **where)
{
	epoch_hold(where);
	epoch_release();
}

OP_FUNCTION(epoch_drain, ck_epoch_barrier(record))

static const struct op_reclaim epoch_reclaim = {
	RETIRE_PRODUCERS(epoch), .read = epoch_read, .hold = epoch_hold, .release = epoch_release, .drain = epoch_drain,
};

TYPE(ck_epoch, .rank = 1110, .groups = PEER_RCU | RUN_TABLE | REPORT,
	.what = "Concurrency Kit's epochs, polled once in each batch",
	.reclaim = &epoch_reclaim,
	.init = epoch_init,
	.thread_enter = epoch_enter,
	.thread_exit = epoch_exit);
