/* SPDX-License-Identifier: MIT */
/* seqlock.c - the read side of a sequence lock: readers write nothing, and may have to repeat.
 *
 * It protects values, not memory: an object that a reader may follow must never be freed.
 */
#include "loop.h"
#include "registry.h"

static struct {
	uint64_t sequence;
} __attribute__((aligned(128))) shared;

static inline __attribute__((always_inline)) uint64_t seqlock_section(struct op_target *t)
{
	uint64_t begin, value;

	do {
		/* raw: a seqlock's acquire load, which pairs with a writer that this floor does not have. */
		begin = __atomic_load_n(&shared.sequence, __ATOMIC_ACQUIRE);
		value = quiesce_load_relaxed(&quiesce_load_relaxed(&t->ptr)->field);
		__atomic_thread_fence(__ATOMIC_ACQUIRE); /* raw: the acquire before the second load. */
	} while (quiesce_unlikely((begin & 1) || quiesce_load_relaxed(&shared.sequence) != begin));
	return value;
}

OP_PADS(OP_LOOP, seqlock)

static const struct op_read seqlock_read = {
	.loop = { seqlock_loop0, seqlock_loop1, seqlock_loop2, seqlock_loop3 },
};

TYPE(seqlock, .rank = 1500, .groups = REPORT_READ | FAMILY_ALL,
	.what = "a sequence lock's read side (the object must never be freed)",
	.read = &seqlock_read);
