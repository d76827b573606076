/* SPDX-License-Identifier: MIT */
/* segments.c - allocation and release of the segments of queues. */
#include "segments.h"

QUIESCE_COLD bool quiesce__append_segment(struct quiesce__append *to)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__segment *fresh;

	if (!quiesce__heap_begin(self) && !QUIESCE_MUTANT(cb_heap_nests))
		return false;
	fresh = platform_block_get(sizeof *fresh);
	quiesce__heap_end(self);
	if (!fresh)
		return false;
	/* Relaxed throughout: CB1 publishes all of it with the first address. */
	quiesce_store_relaxed(&fresh->next, NULL);
	quiesce_store_relaxed(&fresh->base, to->queued);
	if (to->last)
		quiesce_store_relaxed(&to->last->next, fresh);
	else
		quiesce_store_relaxed(&to->first, fresh);
	to->last = fresh;
	to->at = fresh->slot;
	to->end = fresh->slot + QUIESCE_SEGMENT_SLOTS;
	return true;
}

/* The consumer moves to the next segment before it frees the old one, so that the child of a fork never finds a segment that was freed. */
static QUIESCE_COLD void next_segment(struct quiesce__consume *from, const struct quiesce__append *end)
{
	struct quiesce__segment *old = from->head;

	/* Relaxed: CB1 orders it, as it orders the addresses. */
	from->head = old ? quiesce_load_relaxed(&old->next) : quiesce_load_relaxed(&end->first);
	if (old)
		platform_block_put(old, sizeof *old);
}

uintptr_t *quiesce__consume_at(struct quiesce__consume *from, const struct quiesce__append *end, uint64_t until, uint32_t *ret_nr)
{
	uint64_t i, left = until - from->taken;

	/* Relaxed: CB1 orders it, as it orders the addresses. */
	if (!from->head || from->taken - quiesce_load_relaxed(&from->head->base) == QUIESCE_SEGMENT_SLOTS)
		next_segment(from, end);
	i = from->taken - quiesce_load_relaxed(&from->head->base); /* Relaxed: CB1 orders it. */
	*ret_nr = (uint32_t)(left < QUIESCE_SEGMENT_SLOTS - i ? left : QUIESCE_SEGMENT_SLOTS - i);
	return &from->head->slot[i];
}

void quiesce__segments_end(struct quiesce__consume *from, const struct quiesce__append *end)
{
	/* Relaxed throughout: no owner is left. */
	struct quiesce__segment *segment = from->head ? from->head : quiesce_load_relaxed(&end->first), *next;

	for (; segment; segment = next) {
		next = quiesce_load_relaxed(&segment->next); /* Relaxed: no owner is left. */
		platform_block_put(segment, sizeof *segment);
	}
	from->head = NULL;
}
