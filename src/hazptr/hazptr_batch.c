/* SPDX-License-Identifier: MIT */
/* hazptr_batch.c - how many objects a thread collects before it scans all slots.
 *
 * A scan costs a heavy fence and a load for each slot in use, however many objects it serves; objects that
 * wait for it are garbage.  So the batch is as small as keeps scans cheap for this thread: it doubles after a scan
 * that took a noticeable part of the time since the scan before, and halves after one that took hardly any.  A
 * thread that does other work between two retirements keeps little garbage; one that does nothing else has few
 * scans.  The batch stays within the limits that the program set, and above twice the number of slots in use.
 */
#include "hazptr_retired.h"

#include <errno.h>

#if defined(QUIESCE_SIM)
#define DEFAULT_MAX QUIESCE_HAZPTR_BATCH
#else
#define DEFAULT_MAX (32 * QUIESCE_HAZPTR_BATCH)
#endif
#define OBJECTS_PER_SLOT 2u
#define DEAR 32u   /* a scan is dear if it takes more than this part of the time between two scans ... */
#define CHEAP 64u /* ... and cheap if it takes less than this part */

/* The limits of the process.  Two words: a reader between the two stores combines both choices, for a short
 * time. */
static uint32_t all_min = QUIESCE_HAZPTR_BATCH, all_max = DEFAULT_MAX;
static uint32_t cohort_batch = QUIESCE_COHORT_BATCH;

uint32_t quiesce__cohort_batch(void)
{
	return quiesce_load_relaxed(&cohort_batch); /* Relaxed: a policy. */
}

uint32_t quiesce__batch_min(const struct quiesce__retired_queue *r)
{
	return r->own_min ? r->own_min : quiesce_load_relaxed(&all_min); /* Relaxed: a policy. */
}

static uint32_t batch_max(const struct quiesce__retired_queue *r)
{
	return r->own_max ? r->own_max : quiesce_load_relaxed(&all_max); /* Relaxed: a policy. */
}

void quiesce__batch_adapt(struct quiesce__retired_queue *r, const struct quiesce__hazptr_scan *set)
{
	uint32_t min = quiesce__batch_min(r), max = batch_max(r), slots = OBJECTS_PER_SLOT * set->slots, batch = r->batch;
	uint64_t took = platform_now_ns() - set->begin_ns, between = set->begin_ns - r->scanned_ns;

	r->scanned_ns = set->begin_ns;
	if (took > between / DEAR)
		batch *= 2;
	else if (took < between / CHEAP)
		batch /= 2;
	batch = batch > slots ? batch : slots;
	batch = batch < max ? batch : max;
	quiesce_store_relaxed(&r->batch, batch > min ? batch : min); /* Relaxed: sweepers read it as a hint. */
}

static bool is_valid(uint32_t least, uint32_t most)
{
	return least && least <= most && most <= HAZPTR_BATCH_MAX / 2;
}

int quiesce_set_hazptr_batch(uint32_t least, uint32_t most)
{
	uint32_t cohort = least;

	if (!least && !most)
		least = QUIESCE_HAZPTR_BATCH, most = DEFAULT_MAX, cohort = QUIESCE_COHORT_BATCH;
	if (!is_valid(least, most))
		return -EINVAL;
	quiesce_store_relaxed(&cohort_batch, cohort); /* Relaxed: a policy. */
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
		quiesce_store_relaxed(&r->batch, batch_max(r)); /* Relaxed: sweepers read it as a hint. */
	else if (r->batch < quiesce__batch_min(r))
		quiesce_store_relaxed(&r->batch, quiesce__batch_min(r)); /* Relaxed: sweepers read it as a hint. */
	return 0;
}
