/* SPDX-License-Identifier: MIT */
/* queue_std.cpp - the standard library's containers under a mutex: the usual first solution. */
#include <deque>
#include <mutex>
#include <new>
#include <vector>

#include "types/queue.h"

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

constexpr op type_of(const char *name, const char *what, const queue_op *queues)
{
	op type{};

	type.name = name;
	type.what = what;
	type.queues = queues;
	return type;
}

constexpr queue_op deque_queue = { create, deque_pairs, deque_produce, deque_consume, nullptr, false, nullptr };
constexpr queue_op vector_queue = { create, vector_pairs, vector_produce, vector_consume, nullptr, false, nullptr };

} // namespace

const op queue_op_std_deque = type_of("std_deque", "std::deque of pointers under std::mutex, first in first out", &deque_queue);
const op queue_op_std_vector = type_of("std_vector", "std::vector of pointers under std::mutex, last in first out", &vector_queue);
