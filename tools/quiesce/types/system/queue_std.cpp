/* SPDX-License-Identifier: MIT */
/* queue_std.cpp - the standard library's containers under a mutex: the usual first solution. */
#include <deque>
#include <mutex>
#include <new>
#include <vector>

#include "types/queue.h"
#include "registry.h"

namespace {

std::mutex mutex;
std::deque<queue_node *> deque;
std::vector<queue_node *> vector;

int create(queue_node *)
{
	deque.clear();
	vector.clear();
	return 0;
}

inline void deque_put(queue_node *node)
{
	std::lock_guard<std::mutex> lock(mutex);

	deque.push_back(node);
}

inline queue_node *deque_get(uint64_t *ret_value)
{
	std::lock_guard<std::mutex> lock(mutex);
	queue_node *node = deque.empty() ? nullptr : deque.front();

	if (node) {
		deque.pop_front();
		*ret_value = node->value;
	}
	return node;
}

inline void vector_put(queue_node *node)
{
	std::lock_guard<std::mutex> lock(mutex);

	vector.push_back(node);
}

inline queue_node *vector_get(uint64_t *ret_value)
{
	std::lock_guard<std::mutex> lock(mutex);
	queue_node *node = vector.empty() ? nullptr : vector.back();

	if (node) {
		vector.pop_back();
		*ret_value = node->value;
	}
	return node;
}

QUEUE_LOOPS(deque, deque_put, deque_get)
QUEUE_LOOPS(vector, vector_put, vector_get)
QUEUE_MESSAGES(deque, deque_put, deque_get, free)
QUEUE_MESSAGES(vector, vector_put, vector_get, free)

const queue_op deque_queue = { .create = create, QUEUE_LOOPS_OF(deque), QUEUE_MESSAGES_OF(deque) };
const queue_op vector_queue = { .create = create, QUEUE_LOOPS_OF(vector), QUEUE_MESSAGES_OF(vector) };

TYPE(std_deque, .rank = 500, .what = "std::deque of pointers under std::mutex, first in first out", .queues = &deque_queue);
TYPE(std_vector, .rank = 510, .what = "std::vector of pointers under std::mutex, last in first out", .queues = &vector_queue);

} // namespace
