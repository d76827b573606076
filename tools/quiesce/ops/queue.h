/* SPDX-License-Identifier: MIT */
/* queue.h - queues and stacks: the types of queuescale.
 *
 * A type is two inline functions, put and get, of which QUEUE_LOOPS() makes the loops that are timed.  A get returns a node that the
 * caller may use again, which with some types is not the one whose value it got.
 */
#ifndef QUIESCE_TOOL_QUEUE_H
#define QUIESCE_TOOL_QUEUE_H

#include <string.h>

#include "op.h"

#define QUEUE_BATCH 1024 /* nodes of a hand; so often may one wait for readers */

/* One line of the cache. */
struct queue_node {
	void *space[4]; /* the type's, and at least 16 bytes aligned */
	uint64_t value;
} __attribute__((aligned(64)));

/* What one thread has. */
struct queue_hand {
	struct queue_node *fresh[QUEUE_BATCH], *used[QUEUE_BATCH];
	uint32_t nr_fresh, nr_used;
	uint64_t next; /* the value of the next node */
	uint64_t nr_put, sum_put, nr_got, sum_got, nr_empty; /* nr_empty: gets that found nothing */
};

struct queue_op {
	/* Of the only queue.  create: 0 or -errno; where it keeps a node of its own, that is @stub. */
	int (*create)(struct queue_node *stub);
	/* All of @hand->fresh are put, each followed by a get; then the same nodes, or as many, are in @used. */
	void (*pairs)(struct queue_hand *hand);
	/* All of @hand->fresh are put. */
	void (*produce)(struct queue_hand *hand);
	/* Gets until there is nothing, or @used is full. */
	void (*consume)(struct queue_hand *hand);
	/* A node that was got is used again only after this; NULL: at once. */
	void (*wait)(void);
	bool may_miss;    /* a get may find nothing although there is something */
	const char *peer; /* what it is compared with; NULL: nothing */
};

#define QUEUE_PUT(hand, i, put)                                   \
	do {                                                      \
		struct queue_node *node_ = (hand)->fresh[i];      \
		node_->value = (hand)->next++;                    \
		(hand)->sum_put += node_->value;                  \
		put(node_);                                       \
	} while (0)

/* @get(&value): a node, or NULL. */
#define QUEUE_GET(hand, get)                                      \
	({                                                        \
		uint64_t value_ = 0;                              \
		struct queue_node *node_ = get(&value_);          \
		if (node_) {                                      \
			(hand)->sum_got += value_;                \
			(hand)->used[(hand)->nr_used++] = node_;  \
			(hand)->nr_got++;                         \
		} else {                                          \
			(hand)->nr_empty++;                       \
		}                                                 \
		node_ != NULL;                                    \
	})

#define QUEUE_LOOPS(name, put, get)                                                    \
	static void name##_pairs(struct queue_hand *hand)                              \
	{                                                                              \
		for (uint32_t i = 0; i < hand->nr_fresh; i++) {                        \
			QUEUE_PUT(hand, i, put);                                       \
			(void)QUEUE_GET(hand, get);                                    \
		}                                                                      \
		hand->nr_put += hand->nr_fresh;                                        \
		hand->nr_fresh = 0;                                                    \
	}                                                                              \
	static void name##_produce(struct queue_hand *hand)                            \
	{                                                                              \
		for (uint32_t i = 0; i < hand->nr_fresh; i++)                          \
			QUEUE_PUT(hand, i, put);                                       \
		hand->nr_put += hand->nr_fresh;                                        \
		hand->nr_fresh = 0;                                                    \
	}                                                                              \
	static void name##_consume(struct queue_hand *hand)                            \
	{                                                                              \
		while (hand->nr_used < QUEUE_BATCH && QUEUE_GET(hand, get))            \
			;                                                              \
	}

/* The members of a queue_op. */
#define QUEUE_LOOPS_OF(name) .pairs = name##_pairs, .produce = name##_produce, .consume = name##_consume

/* Lines of their own for what all threads write. */
#define QUEUE_ALONE __attribute__((aligned(128)))

/* ---- the types ---- */

#ifdef HAVE_STD_SHARED_MUTEX
#define QUEUE_STD(X) X(std_deque) X(std_vector)
#else
#define QUEUE_STD(X)
#endif

/* Of peers, as in table.h. */
#define QUEUE_LIBURCU(P) P(liburcu_wfcq) P(liburcu_lfq) P(liburcu_wfs) P(liburcu_lfs)
#define QUEUE_CK(P) P(ck_fifo) P(ck_stack)
#define QUEUE_LIBCDS(P)
#define QUEUE_TBB(P)

/* In the order in which results are shown; row X is queue_op_X. */
#define QUEUE_TYPES(X, P) X(wfcqueue) X(lfqueue) X(wfstack) X(lfstack) QUEUE_STD(X) QUEUE_LIBURCU(P) QUEUE_CK(P) X(busted)

#define QUEUE_HERE(name) &queue_op_##name,
#define QUEUE_DECLARE(name) extern const struct op queue_op_##name;
#ifdef __cplusplus
extern "C" {
#endif
QUEUE_TYPES(QUEUE_DECLARE, QUEUE_DECLARE)
#ifdef __cplusplus
}
#endif

#endif
