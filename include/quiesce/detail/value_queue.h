/* SPDX-License-Identifier: MIT */
/* quiesce/detail/value_queue.h - private: the structure of a queue of values, and the two halves of
 * a push and a pop, for callers that build and destroy values in place.
 *
 * ds/value_queue.h is the manual; src/queue/value_queue.c has the theory.
 */
#ifndef QUIESCE_DETAIL_VALUE_QUEUE_H
#define QUIESCE_DETAIL_VALUE_QUEUE_H

#include <quiesce/atomic.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

struct quiesce__vq_ring;

/* Threads that sleep until the queue has an element, or space. */
struct quiesce__vq_sleepers {
	uint32_t event; /* futex; changes before each wake */
	uint32_t nr;    /* threads that sleep or are about to */
	uint64_t since; /* time of the last wake, until the thread runs; then 0 */
	char pad[2 * QUIESCE_CACHELINE - 2 * sizeof(uint32_t) - sizeof(uint64_t)];
};

/* Private.  The words that change with each operation are in the rings. */
struct value_queue {
	struct quiesce__vq_ring *push_ring; /* the last ring, or one before */
	struct quiesce__vq_ring *pop_ring;  /* the first ring */
	size_t size;                        /* bytes of a value */
	bool grows;                         /* unbounded: rings are freed after a grace period */
	char pad[2 * QUIESCE_CACHELINE - 3 * sizeof(size_t) - sizeof(bool)];
	struct quiesce__vq_sleepers takers, pushers;
};

/* A cell that the caller has claimed: it fills it in or empties it, and then publishes it. */
struct quiesce__vq_claim {
	struct quiesce__vq_ring *ring;
	void *cell; /* its value */
	uint64_t *number;
	uint64_t lap, at; /* at: position and flags */
};

/* Claim a cell within @timeout_ns, 0: without waiting.  After a claim the caller is in a read-side
 * section if the queue is unbounded, until the end of the push or pop, and neither waits nor calls
 * code of the program that does. */
QUIESCE_API int quiesce__vq_push_begin(struct value_queue *q, uint64_t timeout_ns, struct quiesce__vq_claim *claim);
QUIESCE_API void quiesce__vq_push_end(struct value_queue *q, const struct quiesce__vq_claim *claim);
QUIESCE_API int quiesce__vq_pop_begin(struct value_queue *q, uint64_t timeout_ns, struct quiesce__vq_claim *claim);
QUIESCE_API void quiesce__vq_pop_end(struct value_queue *q, const struct quiesce__vq_claim *claim);

QUIESCE_END_DECLS

#endif
