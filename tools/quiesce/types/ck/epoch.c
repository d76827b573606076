/* SPDX-License-Identifier: MIT */
/* epoch.c - Concurrency Kit's epoch-based reclamation. */
#include <ck_epoch.h>
#include <errno.h>
#include <stdlib.h>

#include "types/loop.h"
#include "types/registry.h"

static ck_epoch_t epoch;
static __thread ck_epoch_record_t *record;

static int epoch_init(enum op_fence fence)
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
OP_FUNCTION(epoch_wait, ck_epoch_synchronize(record))

OP_READ(ck_epoch, ck_epoch_begin(record, NULL), OP_LOAD, ck_epoch_end(record, NULL));

static const struct op_wait ck_epoch_wait = { .wait = epoch_wait };

TYPE(ck_epoch, .rank = 1100, .groups = PEER_RCU | RUN_READ | RUN_WAIT | REPORT_READ | REPORT_WAIT | FAMILY_ALL,
	.what = "Concurrency Kit's epochs, inlined",
	.read = &ck_epoch_read,
	.wait = &ck_epoch_wait,
	.init = epoch_init,
	.thread_enter = thread_enter,
	.thread_exit = thread_exit);
