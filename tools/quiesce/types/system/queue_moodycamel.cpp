/* SPDX-License-Identifier: MIT */
/* queue_moodycamel.cpp - the queue of Cameron Desrochers, moodycamel::ConcurrentQueue, of pointers: a queue for each producer, of
 * blocks that it keeps. */
#include <concurrentqueue/concurrentqueue.h>

#include <new>
#include <optional>

#include "types/queue.h"
#include "registry.h"

namespace {

using queue_type = moodycamel::ConcurrentQueue<queue_node *>;

std::optional<queue_type> queue;

int create(queue_node *)
{
	queue.emplace();
	return 0;
}

/* ---- as it is used first: an element a call, no tokens ---- */

inline void single_put(queue_node *node)
{
	if (!queue->enqueue(node))
		abort();
}

inline queue_node *single_get(uint64_t *ret_value)
{
	queue_node *node = nullptr;

	if (!queue->try_dequeue(node))
		return nullptr;
	*ret_value = node->value;
	return node;
}

QUEUE_LOOPS(single, single_put, single_get)
QUEUE_MESSAGES(single, single_put, single_get, free)

/* ---- as it is fastest: a token for each thread, a call for each burst ---- */

struct tokens {
	moodycamel::ProducerToken producer{ *queue };
	moodycamel::ConsumerToken consumer{ *queue };
};
thread_local std::optional<tokens> mine;

void bulk_send(queue_hand *hand, uint32_t nr)
{
	queue_node *node[QUEUE_BATCH];

	for (uint32_t i = 0; i < nr; i++)
		node[i] = queue_message(hand);
	if (!queue->enqueue_bulk(mine->producer, node, nr))
		abort();
	hand->nr_put += nr;
}

uint32_t bulk_receive(queue_hand *hand, uint32_t nr)
{
	queue_node *node[QUEUE_BATCH];
	auto got = static_cast<uint32_t>(queue->try_dequeue_bulk(mine->consumer, node, nr));

	for (uint32_t i = 0; i < got; i++) {
		hand->sum_got += node[i]->value;
		free(node[i]);
	}
	hand->nr_empty += got < nr;
	hand->nr_got += got;
	return got;
}

void enter()
{
	mine.emplace();
}

void leave()
{
	mine.reset();
}

const queue_op single_queue = { .create = create, QUEUE_LOOPS_OF(single), QUEUE_MESSAGES_OF(single), .may_miss = true };
const queue_op bulk_queue = { .create = create, QUEUE_MESSAGES_OF(bulk), .may_miss = true };

TYPE(moodycamel, .rank = 1600, .what = "moodycamel's ConcurrentQueue of pointers: not first in first out between producers",
     .queues = &single_queue);
TYPE(moodycamel_bulk, .rank = 1610, .what = "moodycamel's ConcurrentQueue: a token for each thread, one call for each burst of messages",
     .queues = &bulk_queue, .thread_enter = enter, .thread_exit = leave);

} // namespace
