/* SPDX-License-Identifier: MIT */
/* hazptr_batch.c - how many objects a thread collects before it scans all slots.
 *
 * A scan costs a heavy fence and a load for each slot in use, however many objects it serves; objects that
 * wait for it are garbage.  So a batch has twice as many objects as slots are in use, within the limits that
 * the program set, and grows step by step while the fence is slow because it interrupts other threads.
 */
#include "hazptr_retired.h"

#include <errno.h>

#if defined(QUIESCE_SIM)
#define DEFAULT_MAX QUIESCE_HAZPTR_BATCH
#else
#define DEFAULT_MAX (4 * QUIESCE_HAZPTR_BATCH)
#endif
#define OBJECTS_PER_SLOT 2u
#define SLOW_FENCE_NS 3000u /* a fence that interrupts no thread takes less */

/* The limits of the process.  Two words: a reader between the two stores combines both choices, for a short
 * time. */
static uint32_t all_min = QUIESCE_HAZPTR_BATCH, all_max = DEFAULT_MAX;

uint32_t quiesce__batch_min(const struct quiesce__retired_queue *r)
{
	return r && r->own_min ? r->own_min : quiesce_load_relaxed(&all_min); /* Relaxed: a policy. */
}

static uint32_t batch_max(const struct quiesce__retired_queue *r)
{
	return r->own_max ? r->own_max : quiesce_load_relaxed(&all_max); /* Relaxed: a policy. */
}

void quiesce__batch_adapt(struct quiesce__retired_queue *r, const struct quiesce__hazptr_scan *set)
{
	uint32_t min = quiesce__batch_min(r), max = batch_max(r), slots = OBJECTS_PER_SLOT * set->slots;
	uint32_t batch = set->fence_ns > SLOW_FENCE_NS ? 2 * r->batch : r->batch / 2;

	batch = batch > slots ? batch : slots;
	batch = batch < max ? batch : max;
	r->batch = batch > min ? batch : min;
}

static bool is_valid(uint32_t least, uint32_t most)
{
	return least && least <= most && most <= HAZPTR_BATCH_MAX / 2;
}

int quiesce_set_hazptr_batch(uint32_t least, uint32_t most)
{
	if (!least && !most)
		least = QUIESCE_HAZPTR_BATCH, most = DEFAULT_MAX;
	if (!is_valid(least, most))
		return -EINVAL;
	quiesce_store_relaxed(&all_min, least); /* Relaxed: a policy. */
	quiesce_store_relaxed(&all_max, most); /* Relaxed: a policy. */
	return 0;
}

int quiesce_set_thread_hazptr_batch(uint32_t least, uint32_t most)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__retired_queue *r;

	if ((least || most) && !is_valid(least, most))
		return -EINVAL;
	quiesce__init();
	quiesce__fix_mode();
	r = self->retired ? self->retired : quiesce__retired_new(self);
	if (!r)
		return -ENOMEM;
	r->own_min = least;
	r->own_max = most;
	if (r->batch > batch_max(r))
		r->batch = batch_max(r);
	else if (r->batch < quiesce__batch_min(r))
		r->batch = quiesce__batch_min(r);
	return 0;
}
