/* SPDX-License-Identifier: MIT */
/* value_queues.h - shared by test_value_queue.c and test_value_queue_rings.c: a queue of words. */
#ifndef VALUE_QUEUES_H
#define VALUE_QUEUES_H

#include <quiesce/ds/value_queue.h>

#include "testing.h"

static void begin(struct value_queue *q, size_t size, size_t capacity)
{
	assert_int_equal(value_queue_init(q, size, capacity), 0);
}

static int put(struct value_queue *q, uint64_t value) { return value_queue_push_try(q, &value); }

static uint64_t take(struct value_queue *q)
{
	uint64_t value = 0;

	return value_queue_pop_try(q, &value) == 0 ? value : 0;
}

#endif
