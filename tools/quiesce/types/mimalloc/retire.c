/* SPDX-License-Identifier: MIT */
/* retire.c - mimalloc: objects that are allocated and freed by batches, without a grace period. */
#include <mimalloc.h>

#include "registry.h"
#include "types/retire.h"

static inline struct retire_object *allocate(uint64_t value)
{
	struct retire_object *o = (struct retire_object *)mi_malloc(retire_params.bytes);

	if (quiesce_unlikely(!o))
		abort();
	o->value = value;
	return o;
}

#define BATCH_FREE(object) (mi_free(object), retire_count())
#include "types/retire_batch.h"

RETIRE_PRODUCE(batch, allocate, batch_put)

TYPE(mimalloc_free, .rank = 1400, .groups = PEER_ALLOC | RUN_TABLE,
	.what = "mimalloc: allocate a batch, free it; readers touch nothing",
	.reason = "a free list for each page of 64 KiB, which its thread pops and pushes without a count or a restartable sequence",
	.reclaim = &(const struct op_reclaim){ RETIRE_PRODUCERS(batch), BATCH_READERS, .drain = batch_drain, .dispose = mi_free },
	BATCH_THREADS);
