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
#define MOST QUIESCE_HAZPTR_BATCH
#else
#define MOST (4 * QUIESCE_HAZPTR_BATCH)
#endif
#define OBJECTS_PER_SLOT 2u
#define SLOW_FENCE_NS 3000u /* a fence that interrupts no thread takes less */

/* The limits of the process.  Two words: a reader between the two stores combines both choices, for a short
 * time. */
static uint32_t all_least = QUIESCE_HAZPTR_BATCH, all_most = MOST;

uint32_t quiesce__batch_least(const struct quiesce__retired_queue *r)
{
	return r && r->own_least ? r->own_least : quiesce_load_relaxed(&all_least); /* Relaxed: a policy. */
}

static uint32_t batch_most(const struct quiesce__retired_queue *r)
{
	return r->own_most ? r->own_most : quiesce_load_relaxed(&all_most); /* Relaxed: a policy. */
}

void quiesce__batch_adapt(struct quiesce__retired_queue *r, const struct quiesce__hazptr_scan *set)
{
	uint32_t least = quiesce__batch_least(r), most = batch_most(r), slots = OBJECTS_PER_SLOT * set->slots;
	uint32_t batch = set->fence_ns > SLOW_FENCE_NS ? 2 * r->batch : r->batch / 2;

	batch = batch > slots ? batch : slots;
	batch = batch < most ? batch : most;
	r->batch = batch > least ? batch : least;
}

static bool sensible(uint32_t least, uint32_t most)
{
	return least && least <= most && most <= HAZPTR_BATCH_MAX / 2;
}

int quiesce_set_hazptr_batch(uint32_t least, uint32_t most)
{
	if (!least && !most)
		least = QUIESCE_HAZPTR_BATCH, most = MOST;
	if (!sensible(least, most))
		return -EINVAL;
	quiesce_store_relaxed(&all_least, least); /* Relaxed: a policy. */
	quiesce_store_relaxed(&all_most, most); /* Relaxed: a policy. */
	return 0;
}

int quiesce_set_thread_hazptr_batch(uint32_t least, uint32_t most)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__retired_queue *r;

	if ((least || most) && !sensible(least, most))
		return -EINVAL;
	quiesce__init();
	quiesce__fix_mode();
	r = self->retired ? self->retired : quiesce__retired_new(self);
	if (!r)
		return -ENOMEM;
	r->own_least = least;
	r->own_most = most;
	if (r->batch > batch_most(r))
		r->batch = batch_most(r);
	else if (r->batch < quiesce__batch_least(r))
		r->batch = quiesce__batch_least(r);
	return 0;
}
