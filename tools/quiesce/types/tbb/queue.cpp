/* SPDX-License-Identifier: MIT */
/* queue.cpp - oneTBB's queues of pointers; the bounded one has a bound that no cell reaches. */
#include <oneapi/tbb/concurrent_queue.h>

#include "types/queue.h"

extern "C" {
#include "registry.h"
}

namespace {

tbb::concurrent_queue<queue_node *> unbounded;
tbb::concurrent_bounded_queue<queue_node *> bounded;
constexpr std::ptrdiff_t BOUND = 1 << 20;

int create(queue_node *)
{
	unbounded.clear();
	bounded.clear();
	bounded.set_capacity(BOUND);
	return 0;
}

template <class Queue> inline queue_node *get(Queue &from, uint64_t *ret_value)
{
	queue_node *node = nullptr;

	if (!from.try_pop(node))
		return nullptr;
	*ret_value = node->value;
	return node;
}

inline void unbounded_put(queue_node *node)
{
	unbounded.push(node);
}

inline queue_node *unbounded_get(uint64_t *ret_value)
{
	return get(unbounded, ret_value);
}

inline void bounded_put(queue_node *node)
{
	bounded.push(node);
}

inline queue_node *bounded_get(uint64_t *ret_value)
{
	return get(bounded, ret_value);
}

QUEUE_LOOPS(unbounded, unbounded_put, unbounded_get)
QUEUE_LOOPS(bounded, bounded_put, bounded_get)
QUEUE_MESSAGES(unbounded, unbounded_put, unbounded_get, free)
QUEUE_MESSAGES(bounded, bounded_put, bounded_get, free)

const queue_op unbounded_queue = { .create = create, QUEUE_LOOPS_OF(unbounded), QUEUE_MESSAGES_OF(unbounded) };
const queue_op bounded_queue = { .create = create, QUEUE_LOOPS_OF(bounded), QUEUE_MESSAGES_OF(bounded) };

TYPE(tbb_queue, .rank = 1300, .what = "oneTBB's concurrent_queue of pointers", .queues = &unbounded_queue);
TYPE(tbb_bounded_queue, .rank = 1310, .what = "oneTBB's concurrent_bounded_queue of pointers", .queues = &bounded_queue);

} // namespace
