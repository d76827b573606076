/* SPDX-License-Identifier: MIT */
/* epoch.c - Concurrency Kit's epoch-based reclamation: reads and waits, deferred frees, and walks. */
#include <ck_epoch.h>
#include <stdlib.h>

#include "loop.h"
#include "registry.h"
#include "types/retire.h"
#include "types/walk.h"
#include "types/walk_section.h"

_Static_assert(sizeof(ck_epoch_entry_t) <= sizeof(void *[RETIRE_HEAD_WORDS]), "there is room for the library's head");
_Static_assert(sizeof(ck_epoch_entry_t) <= sizeof(union walk_head), "there is room for the library's head");

static ck_epoch_t epoch;
static __thread ck_epoch_record_t *record;

static int init(enum op_fence fence)
{
	(void)fence;
	ck_epoch_init(&epoch);
	return 0;
}

static void thread_enter(void)
{
	record = ck_epoch_recycle(&epoch, NULL);
	if (record)
		return;
	record = aligned_alloc(128, (sizeof(*record) + 127) / 128 * 128);
	if (!record)
		abort();
	ck_epoch_register(&epoch, record, NULL);
}

OP_FUNCTION(thread_exit, ck_epoch_unregister(record); record = NULL)
OP_FUNCTION(drain, ck_epoch_barrier(record))
#define THREADS .init = init, .thread_enter = thread_enter, .thread_exit = thread_exit

OP_READ(ck_epoch, ck_epoch_begin(record, NULL), OP_LOAD, ck_epoch_end(record, NULL));
OP_FUNCTION(epoch_wait, ck_epoch_synchronize(record))

TYPE(ck_epoch, .rank = 1100, .groups = PEER_RCU | RUN_READ | RUN_WAIT | REPORT_READ | REPORT_WAIT | FAMILY_ALL,
	.what = "Concurrency Kit's epochs, inlined",
	.reason = "each section of its readers has a full fence, so that a wait needs no system call that interrupts their CPUs",
	.read = &ck_epoch_read, .wait = &(const struct op_wait){ .wait = epoch_wait }, THREADS);

/* ---- deferred frees, polled once in each batch ---- */

static __thread size_t since_poll;

static inline void call(ck_epoch_entry_t *entry, ck_epoch_cb_t *end)
{
	ck_epoch_call(record, entry, end);
	if (quiesce_unlikely(++since_poll >= retire_params.batch)) {
		since_poll = 0;
		ck_epoch_poll(record);
	}
}

static void end_object(ck_epoch_entry_t *entry)
{
	retire_free(entry);
}

#define CALL(object) call((ck_epoch_entry_t *)(object)->head, end_object)
RETIRE_PRODUCE(epoch, retire_alloc, CALL)

static void hold(void **where)
{
	ck_epoch_begin(record, NULL);
	retire_use(quiesce_load_relaxed(where));
}

OP_FUNCTION(release, ck_epoch_end(record, NULL))
RETIRE_READ

TYPE(ck_epoch, .rank = 1110, .groups = PEER_RCU | RUN_TABLE | REPORT,
	.what = "Concurrency Kit's epochs, polled once in each batch",
	.reason = "the thread that retires polls and frees, without lock, worker or membarrier; each section has a full fence",
	.reclaim = &(const struct op_reclaim){ RETIRE_PRODUCERS(epoch), RETIRE_READERS, .drain = drain }, THREADS);

/* ---- walks ---- */

#define WALK_SCHEME ck_epoch
#define WALK_WHAT "Concurrency Kit's epochs, polled once in a batch"
#define WALK_RANK 1110
#define WALK_FENCES false

WALK_SECTION(ck_epoch_begin(record, NULL), ck_epoch_end(record, NULL))

static void end_node(ck_epoch_entry_t *entry)
{
	walk_free(entry);
}

static inline void walk_retire(struct walk_node *node)
{
	retire_note();
	call((ck_epoch_entry_t *)(void *)&node->head, end_node);
}

OP_FUNCTION(walk_thread_exit, drain(); thread_exit(); retire_tally_leave())

#define walk_init init
#define walk_thread_enter thread_enter
#define walk_barrier drain
#define walk_stats NULL
#define walk_waiting retire_waiting
#include "types/walk_types.h"
