/* SPDX-License-Identifier: MIT */
/* queue_boost.cpp - Boost's lock-free queue and stack of pointers, whose nodes never go back to malloc(). */
#include <boost/lockfree/queue.hpp>
#include <boost/lockfree/stack.hpp>

#include "types/queue.h"
#include "registry.h"

namespace {

constexpr std::size_t NODES = 8192; /* that they begin with; they allocate more */
boost::lockfree::queue<queue_node *> queue(NODES);
boost::lockfree::stack<queue_node *> stack(NODES);

int create(queue_node *)
{
	return 0;
}

template <class Container> inline void put(Container &to, queue_node *node)
{
	if (!to.push(node))
		abort();
}

template <class Container> inline queue_node *get(Container &from, uint64_t *ret_value)
{
	queue_node *node = nullptr;

	if (!from.pop(node))
		return nullptr;
	*ret_value = node->value;
	return node;
}

inline void queue_put(queue_node *node)
{
	put(queue, node);
}

inline queue_node *queue_get(uint64_t *ret_value)
{
	return get(queue, ret_value);
}

inline void stack_put(queue_node *node)
{
	put(stack, node);
}

inline queue_node *stack_get(uint64_t *ret_value)
{
	return get(stack, ret_value);
}

QUEUE_LOOPS(queue, queue_put, queue_get)
QUEUE_LOOPS(stack, stack_put, stack_get)
QUEUE_MESSAGES(queue, queue_put, queue_get, free)
QUEUE_MESSAGES(stack, stack_put, stack_get, free)

const queue_op queue_sides = { .create = create, QUEUE_LOOPS_OF(queue), QUEUE_MESSAGES_OF(queue) };
const queue_op stack_sides = { .create = create, QUEUE_LOOPS_OF(stack), QUEUE_MESSAGES_OF(stack) };

TYPE(boost_queue, .rank = 1620, .what = "boost::lockfree::queue of pointers", .queues = &queue_sides);
TYPE(boost_stack, .rank = 1630, .what = "boost::lockfree::stack of pointers", .queues = &stack_sides);

} // namespace
