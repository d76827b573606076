/* SPDX-License-Identifier: MIT */
/* quiesce/ds/value_queue.h - a queue of values, bounded or not, with any number of pushers and takers.
 *
 * Use to hand numbers, pointers or small structures from threads to threads: values are copied, and
 * memory is allocated only when an unbounded queue grows.  Use wfcqueue.h or lfqueue.h for objects
 * that have a node in them.
 *
 *	struct value_queue jobs;
 *	struct job *j;
 *
 *	value_queue_init(&jobs, sizeof(j), 1000);       // 1024 pointers; 0: unbounded
 *
 *	value_queue_push(&jobs, &j);                    // any thread; waits while it is full
 *
 *	while (value_queue_pop(&jobs, &j) == 0)         // any thread; waits while it is empty
 *		work_on(j);
 *
 *	value_queue_close(&jobs);                       // pops return what is left, then -EPIPE
 *
 * Values are of one size, from 1 byte on.  They are copied as bytes, aligned to 8, and to 16 from 16
 * bytes on.
 *
 * Order.  Elements are popped in the order of their pushes (linearizable): a push takes effect when
 * it claims its cell, a pop when it claims the oldest element.  A pop of an element makes visible all
 * that precedes its push.  -EAGAIN means that the queue was empty, or full, at one moment of the
 * call; -EBUSY that it was not, but the thread that pushed the oldest element is still copying it,
 * or, for a push to a bounded queue, the thread that pops the next cell's: it claims nothing about
 * elements behind.  Calls that wait do so until that thread has finished.
 *
 * Progress.  Calls without a wait are lock-free with the exception of -EBUSY: a thread that is preempted
 * while it copies delays the pops of later elements, and, if it pops from a bounded queue, the push
 * to its cell one lap later, -EBUSY, also if the queue is empty by then.  One that is killed there
 * blocks them for ever.  A sleeper that was woken and does not run delays the wakes of others by at
 * most 1 ms and 8 pushes, the last of which wakes the next one, or until a push has to wait.
 *
 * Sleep.  A call that waits pauses for some microseconds, then sleeps on a futex.  Pushes and pops pay
 * nothing for that unless a thread sleeps.  A push of many wakes a thread for each element; pushes
 * that follow leave the rest to the woken thread, which wakes two more if there are further elements,
 * until it has not run for 1 ms.  The same holds for pops and the sleepers of a full queue.
 * Timeouts are in nanoseconds of CLOCK_MONOTONIC from the call on, and for calls of many values from
 * their first wait on: they limit waits, not copies; a wait for a copying thread may take 2 ms longer.
 *
 * Memory.  A bounded queue has one array, of a power of two cells.  An unbounded one begins with 64
 * cells, fewer if values are large, and goes on to a larger array when all are in use: of at most 4096
 * cells and 4 MiB, and of at least 4.  So a queue that does not become longer than that allocates
 * nothing more, and keeps memory for its greatest length; a longer one allocates an array for as many
 * pushes.  If a taker is preempted in its copy until pushes have come to its cell again, which is one
 * lap of the array, the push goes on to an array of the same size.  Arrays that were emptied are freed
 * after a grace period.
 *
 * Context of all calls: any thread, not signal handlers.  No call is a cancellation point.  Not in
 * read-side sections if the call may wait: one that has to wait in a section of RCU is reported, and
 * returns -EAGAIN or -EBUSY if the program goes on.  In a child of fork() a queue is usable if no other
 * thread was inside a call, except asleep; else only value_queue_destroy() is.
 *
 * Proof: docs/design/value_queue.md; tests/litmus/VQ*.litmus; docs/ordering.md.
 */
#ifndef QUIESCE_DS_VALUE_QUEUE_H
#define QUIESCE_DS_VALUE_QUEUE_H

#include <quiesce/detail/value_queue.h> // the structures

QUIESCE_BEGIN_DECLS

QUIESCE_API int quiesce_value_queue_init(struct value_queue *q, size_t size, size_t capacity);
QUIESCE_API void quiesce_value_queue_destroy(struct value_queue *q, void (*drop)(void *value, void *arg), void *arg);
QUIESCE_API int quiesce_value_queue_push(struct value_queue *q, const void *value);
QUIESCE_API int quiesce_value_queue_push_try(struct value_queue *q, const void *value);
QUIESCE_API int quiesce_value_queue_push_timeout(struct value_queue *q, const void *value, uint64_t timeout_ns);
QUIESCE_API long quiesce_value_queue_push_many(struct value_queue *q, const void *values, size_t nr);
QUIESCE_API long quiesce_value_queue_push_many_timeout(struct value_queue *q, const void *values, size_t nr, uint64_t timeout_ns);
QUIESCE_API int quiesce_value_queue_pop(struct value_queue *q, void *ret_value);
QUIESCE_API int quiesce_value_queue_pop_try(struct value_queue *q, void *ret_value);
QUIESCE_API int quiesce_value_queue_pop_timeout(struct value_queue *q, void *ret_value, uint64_t timeout_ns);
QUIESCE_API long quiesce_value_queue_pop_many(struct value_queue *q, void *ret_values, size_t max);
QUIESCE_API long quiesce_value_queue_pop_many_timeout(struct value_queue *q, void *ret_values, size_t max, uint64_t timeout_ns);
QUIESCE_API void quiesce_value_queue_close(struct value_queue *q);
QUIESCE_API bool quiesce_value_queue_is_closed(const struct value_queue *q);
QUIESCE_API size_t quiesce_value_queue_count(const struct value_queue *q);

/** value_queue_init - initialise an empty queue of values of @size bytes.
 * @capacity: the number of values that it has space for, rounded up to a power of two; 0: unbounded.
 *
 * Context: no other thread has it.
 * Return: 0; -ENOMEM; -EINVAL: @size is 0 or above 1 GiB, or @capacity above 2^32. */
QUIESCE_PLAIN int value_queue_init(struct value_queue *q, size_t size, size_t capacity)
{
	return quiesce_value_queue_init(q, size, capacity);
}

/** value_queue_destroy - free the memory of a queue.
 * @drop: called with each value that is still inside, oldest first; NULL: they are forgotten.
 *
 * Context: no other thread has it: all calls have returned, also those of the pushes whose elements
 *   were popped. */
QUIESCE_PLAIN void value_queue_destroy(struct value_queue *q, void (*drop)(void *value, void *arg), void *arg)
{
	quiesce_value_queue_destroy(q, drop, arg);
}

/** value_queue_push - append a copy of *@value; wait while a bounded queue is full.
 *
 * Cost: one locked compare-and-exchange of the tail, and the line of a cell; unbounded: a read-side
 *   section.  If a thread sleeps for an element: a system call, unless it has been woken already.
 * Return: 0; -EPIPE: the queue is closed; -ENOMEM, unbounded only.  Nothing was appended then.
 * Orders: release. */
QUIESCE_PLAIN int value_queue_push(struct value_queue *q, const void *value) { return quiesce_value_queue_push(q, value); }

/** value_queue_push_try - append a copy of *@value without waiting.
 * Cost and order: as value_queue_push().
 * Return: as value_queue_push(), and -EAGAIN: it is full; -EBUSY: the next cell is being
 *   emptied, and the queue may have no element. */
QUIESCE_PLAIN int value_queue_push_try(struct value_queue *q, const void *value)
{
	return quiesce_value_queue_push_try(q, value);
}

/** value_queue_push_timeout - append a copy of *@value, waiting at most @timeout_ns; 0: as
 * value_queue_push_try(), UINT64_MAX: for ever.
 * Cost and order: as value_queue_push().
 * Return: as value_queue_push(), and -ETIMEDOUT. */
QUIESCE_PLAIN int value_queue_push_timeout(struct value_queue *q, const void *value, uint64_t timeout_ns)
{
	return quiesce_value_queue_push_timeout(q, value, timeout_ns);
}

/** value_queue_push_many - append copies of the @nr values of an array without waiting, as many as
 * there is space for.  They keep their order; other threads' may come between them.
 *
 * Cost: one locked compare-and-exchange for as many free cells as there are in succession.
 * Return: their number; if that would be 0: the error, as value_queue_push_try(); 0 if @nr is 0.
 * Orders: release. */
QUIESCE_PLAIN long value_queue_push_many(struct value_queue *q, const void *values, size_t nr)
{
	return quiesce_value_queue_push_many(q, values, nr);
}

/** value_queue_push_many_timeout - append copies of all @nr values of an array, waiting for space for
 * at most @timeout_ns; 0: as value_queue_push_many(), UINT64_MAX: for ever.
 *
 * Cost and order: as value_queue_push_many().
 * Return: how many were appended: less than @nr if the time ended, the queue is closed, or there is
 *   no memory; if that would be 0: the error, as value_queue_push_timeout(). */
QUIESCE_PLAIN long value_queue_push_many_timeout(struct value_queue *q, const void *values, size_t nr, uint64_t timeout_ns)
{
	return quiesce_value_queue_push_many_timeout(q, values, nr, timeout_ns);
}

/** value_queue_pop - take the oldest element into *@ret_value; wait while there is none.
 *
 * Cost: one locked compare-and-exchange of the head, and the line of a cell; unbounded: a read-side
 *   section.  If a thread sleeps for space: a system call, unless it has been woken already.
 * Return: 0; -EPIPE: the queue is closed and empty.
 * Orders: acquire. */
QUIESCE_PLAIN int value_queue_pop(struct value_queue *q, void *ret_value) { return quiesce_value_queue_pop(q, ret_value); }

/** value_queue_pop_try - take the oldest element without waiting.
 * Cost and order: as value_queue_pop().  If there is none, reads the line of the tail.
 * Return: as value_queue_pop(), and -EAGAIN: it is empty; -EBUSY: the oldest element is being copied. */
QUIESCE_PLAIN int value_queue_pop_try(struct value_queue *q, void *ret_value)
{
	return quiesce_value_queue_pop_try(q, ret_value);
}

/** value_queue_pop_timeout - take the oldest element, waiting at most @timeout_ns; 0: as
 * value_queue_pop_try(), UINT64_MAX: for ever.
 * Cost and order: as value_queue_pop().
 * Return: as value_queue_pop(), and -ETIMEDOUT. */
QUIESCE_PLAIN int value_queue_pop_timeout(struct value_queue *q, void *ret_value, uint64_t timeout_ns)
{
	return quiesce_value_queue_pop_timeout(q, ret_value, timeout_ns);
}

/** value_queue_pop_many - take the oldest elements, at most @max, without waiting; they were pushed
 * in succession.  There may be more behind them.
 *
 * Cost: one locked compare-and-exchange.
 * Return: their number; if that would be 0: the error, as value_queue_pop_try(); 0 if @max is 0.
 * Orders: acquire. */
QUIESCE_PLAIN long value_queue_pop_many(struct value_queue *q, void *ret_values, size_t max)
{
	return quiesce_value_queue_pop_many(q, ret_values, max);
}

/** value_queue_pop_many_timeout - take the oldest elements, at most @max, waiting until there is one for
 * at most @timeout_ns; 0: as value_queue_pop_many(), UINT64_MAX: for ever.
 *
 * Cost and order: as value_queue_pop_many().
 * Return: their number; if that would be 0: the error, as value_queue_pop_timeout(). */
QUIESCE_PLAIN long value_queue_pop_many_timeout(struct value_queue *q, void *ret_values, size_t max, uint64_t timeout_ns)
{
	return quiesce_value_queue_pop_many_timeout(q, ret_values, max, timeout_ns);
}

/** value_queue_close - let further pushes fail, and pops when what is inside has been taken.  All
 * sleepers are woken.  A queue that is closed already remains so.
 *
 * Orders: release; a call that returns -EPIPE: acquire. */
QUIESCE_PLAIN void value_queue_close(struct value_queue *q) { quiesce_value_queue_close(q); }

/** value_queue_is_closed - test whether the queue was closed; it may still have elements. */
QUIESCE_PLAIN bool value_queue_is_closed(const struct value_queue *q) { return quiesce_value_queue_is_closed(q); }

/** value_queue_count - estimate the number of elements.
 * Cost: reads the lines of head and tail; unbounded: of each array.
 * Orders: nothing. */
QUIESCE_PLAIN size_t value_queue_count(const struct value_queue *q) { return quiesce_value_queue_count(q); }

QUIESCE_END_DECLS

#endif
