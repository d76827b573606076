/* SPDX-License-Identifier: MIT */
/* queue.h - queues and stacks: the types of queuescale.
 *
 * A type is two inline functions, put and get, from which QUEUE_LOOPS() makes the loops that are timed.  A get
 * returns a node that the caller may use again; with some types this is not the node that was put with the value.
 *
 * In the loops of messages, QUEUE_MESSAGES(), each element comes from malloc(), and the thread that gets it frees it or has it
 * freed.  A type has either of these loops, or both.
 */
#ifndef QUIESCE_TOOL_QUEUE_H
#define QUIESCE_TOOL_QUEUE_H

#include <stdlib.h>
#include <string.h>

#include "op.h"

#define QUEUE_BATCH 1024 /* nodes of a thread; it waits for readers at most once for so many */

/* A node fills one cache line, in the loops of nodes; a message has the alignment that malloc() gives. */
struct queue_node {
	void *space[4]; /* used by the type; aligned to at least 16 bytes */
	uint64_t value;
	uint64_t unused[3];
};

/* The nodes and counts of one thread. */
struct queue_hand {
	struct queue_node *fresh[QUEUE_BATCH], *used[QUEUE_BATCH];
	uint32_t nr_fresh, nr_used;
	uint64_t next; /* value of the next node */
	uint64_t nr_put, sum_put, nr_got, sum_got, nr_empty; /* nr_empty: number of gets that found nothing */
};

struct queue_op {
	/* Makes the only queue.  Returns 0 or -errno; @stub is for types that keep a node of their own. */
	int (*create)(struct queue_node *stub);
	/* Puts all of @hand->fresh, with a get after each; afterwards these nodes, or as many others, are in @used. */
	void (*pairs)(struct queue_hand *hand);
	/* Puts all of @hand->fresh. */
	void (*produce)(struct queue_hand *hand);
	/* Gets nodes until the queue is empty or @used is full. */
	void (*consume)(struct queue_hand *hand);
	/* A node from a get may be put again only after this wait; NULL: at once. */
	void (*wait)(void);
	/* Allocates and puts @nr messages. */
	void (*send)(struct queue_hand *hand, uint32_t nr);
	/* Gets at most @nr messages and frees them.  Returns their number. */
	uint32_t (*receive)(struct queue_hand *hand, uint32_t nr);
	/* Returns when everything that this thread retired is freed.  NULL: it was freed at once. */
	void (*drain)(void);
	bool may_miss;    /* true: a get may miss a node that is there */
	const char *peer; /* name of the type that it is compared with; NULL: none */
};

#define QUEUE_PUT(hand, i, put)                                   \
	do {                                                      \
		struct queue_node *node_ = (hand)->fresh[i];      \
		node_->value = (hand)->next++;                    \
		(hand)->sum_put += node_->value;                  \
		put(node_);                                       \
	} while (0)

/* @get(&value) returns a node, or NULL. */
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

/* Fills in a new message, which @memory is for. */
static inline struct queue_node *queue_fill(struct queue_hand *hand, void *memory)
{
	struct queue_node *message = (struct queue_node *)memory;

	if (!message)
		abort();
	message->value = hand->next++;
	hand->sum_put += message->value;
	return message;
}

static inline struct queue_node *queue_message(struct queue_hand *hand)
{
	return queue_fill(hand, malloc(sizeof(struct queue_node)));
}

/* @release(node) frees a message, or lets it be freed when its readers have left. */
#define QUEUE_MESSAGES(name, put, get, release) QUEUE_MESSAGES_FROM(name, queue_message, put, get, release)
/* The messages are made by @make(hand), not by malloc(). */
#define QUEUE_MESSAGES_FROM(name, make, put, get, release)                             \
	static void name##_send(struct queue_hand *hand, uint32_t nr)                  \
	{                                                                              \
		for (uint32_t i = 0; i < nr; i++)                                      \
			put(make(hand));                                               \
		hand->nr_put += nr;                                                    \
	}                                                                              \
	static uint32_t name##_receive(struct queue_hand *hand, uint32_t nr)           \
	{                                                                              \
		struct queue_node *node_;                                              \
		uint64_t value_ = 0;                                                   \
		uint32_t i_ = 0;                                                       \
                                                                                       \
		for (; i_ < nr && (node_ = get(&value_)); i_++) {                      \
			hand->sum_got += value_;                                       \
			release(node_);                                                \
		}                                                                      \
		hand->nr_empty += i_ < nr;                                             \
		hand->nr_got += i_;                                                    \
		return i_;                                                             \
	}

/* Defines the calls and the loops of a queue whose gets return the node that was put: PUT is a statement on @node, POP
 * an expression between BEFORE and AFTER, the lock or section that gets need. */
#define QUEUE_OF(name, INIT, PUT, BEFORE, POP, AFTER)                                  \
	static int name##_create(struct queue_node *stub)                              \
	{                                                                              \
		(void)stub;                                                            \
		INIT;                                                                  \
		return 0;                                                              \
	}                                                                              \
	static inline void name##_put(struct queue_node *node)                         \
	{                                                                              \
		PUT;                                                                   \
	}                                                                              \
	static inline struct queue_node *name##_get(uint64_t *ret_value)               \
	{                                                                              \
		struct queue_node *node;                                               \
                                                                                       \
		BEFORE;                                                                \
		node = (struct queue_node *)(void *)(POP);                             \
		AFTER;                                                                 \
		if (node)                                                              \
			*ret_value = node->value;                                      \
		return node;                                                           \
	}                                                                              \
	QUEUE_LOOPS(name, name##_put, name##_get)
#define QUEUE_AS(type, node) ((struct type *)(void *)(node))
#define QUEUE_CALLS(name) .create = name##_create, QUEUE_LOOPS_OF(name)

/* The members of a queue_op that QUEUE_LOOPS() defines. */
#define QUEUE_LOOPS_OF(name) .pairs = name##_pairs, .produce = name##_produce, .consume = name##_consume
/* The members that QUEUE_MESSAGES() defines. */
#define QUEUE_MESSAGES_OF(name) .send = name##_send, .receive = name##_receive

/* Puts words that all threads write into cache lines of their own. */
#define QUEUE_ALONE __attribute__((aligned(128)))

#endif
