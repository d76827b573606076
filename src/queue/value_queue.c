/* SPDX-License-Identifier: MIT */
/* value_queue.c - a queue of values in rings of cells, with any number of pushers and takers.
 *
 * Idea.  A position counts the pushes to a ring, and selects a cell.  Each cell has a number (Vyukov's bounded queue):
 *
 *	lap        the cell is free for the push at position lap + index
 *	lap + 1    it has the element of that push
 *	lap + capacity = the next lap, after the pop
 *
 * A push that finds its cell free claims it by a compare-and-exchange of the tail, fills it in, and publishes it by a store
 * of its number; a pop does the same with the head.  Zeroed memory is an empty ring.
 *
 *	pop_ring -> [CLOSED, full] -> [CLOSED, full] -> [half full] <- push_ring
 *
 * A bounded queue has one ring.  In an unbounded one, a pusher that finds no free cell links a further ring, a larger one if
 * this one is full, and closes it by a flag in its tail.  A taker that finds a closed ring empty goes on to the next, and
 * retires this one.
 *
 * I1. A cell's number is stored only by the thread that has claimed its position: so if a compare-and-exchange of the tail
 *     or head succeeds, the number is what was loaded before it.
 * I2. head <= tail <= head + capacity, and both only grow.  So if the tail is where the head was before, the ring was empty
 *     when the tail was loaded; and full if the head is a capacity behind where the tail was before.
 * I3. A ring gets its successor before it is closed; the tail of a closed ring does not change any more.
 * I4. push_ring passes a ring before pop_ring does, and then the ring is retired: readers that begin later do not find it.
 * I5. Elements are pushed to the last ring and popped from the first ring that is not drained: the order is that of the tails.
 * I6. A queue is closed when its last ring is, whose successor is VQ_ENDED.
 *
 * VQ1  element written, then its cell's number | number loaded, then the element
 * VQ2  element read, then its cell's number    | number loaded, then the cell written
 * VQ3  ring filled in, then linked             | ring loaded, then its fields
 * VQ4  see value_queue_wait.c
 * VQ5  head, tail or successor stored, then tail or head exchanged | tail or head loaded, then the other, or the successor
 *
 * D. Vyukov: Bounded MPMC queue.  1024cores.net, 2010.  A. Morrison, Y. Afek: Fast concurrent queues for x86 processors.
 * PPoPP 2013 (rings that are closed and linked).
 */
#include "queue/value_queue.h"

#include "queue/wait_link.h"
#include "rcu/rcu.h"

#include <string.h>

/* An unbounded queue begins with FIRST_CELLS, of at most FIRST_BYTES, and grows up to MAX_CELLS, of at most MAX_BYTES; MIN_CELLS
 * of any size are never too many. */
#if defined(QUIESCE_SIM)
#define FIRST_CELLS 1u
#define MAX_CELLS 2u
#define SPINS 1u
#elif defined(QUIESCE_PERTURB) /* rings change often under torture */
#define FIRST_CELLS 2u
#define MAX_CELLS 8u
#define SPINS 20u
#else
#define FIRST_CELLS 64u
#define MAX_CELLS 4096u
#define SPINS 200u /* some microseconds: where each side has a CPU, the other one is there by then, and a sleep and a wake take longer */
#endif
#define MIN_CELLS 4u
#define FIRST_BYTES (1u << 16)
#define MAX_BYTES (1u << 22)
#define MAX_SIZE ((size_t)1 << 30)
#define MAX_CAPACITY ((size_t)1 << 32)

static struct quiesce__vq_ring *next_of(const struct quiesce__vq_ring *ring)
{
	/* VQ3: acquire, pairs with VQ3 in link_next() */
	return quiesce_load_acquire(VQ3, &ring->next);
}

/* ---- rings ---- */

static size_t bytes_of(const struct quiesce__vq_ring *ring)
{
	return sizeof *ring + vq_capacity(ring) * ring->scale;
}

/* Rings of an unbounded queue come and go: they are blocks of the heap, which stay mapped, and only the numbers are zeroed. */
static struct quiesce__vq_ring *ring_in_block(size_t bytes, size_t cells, size_t stride)
{
	char *block = platform_block_get(bytes + QUIESCE_CACHELINE);
	struct quiesce__vq_ring *ring;

	if (!block)
		return NULL;
	ring = (struct quiesce__vq_ring *)(void *)(block + -(uintptr_t)block % QUIESCE_CACHELINE);
	memset(ring, 0, sizeof *ring);
	ring->block = block;
	for (size_t i = 1; i <= cells; i++)
		memset(ring->cells + i * stride - sizeof(uint64_t), 0, sizeof(uint64_t));
	return ring;
}

/* @cells is a power of two. */
static struct quiesce__vq_ring *ring_create(size_t size, size_t cells, bool grows)
{
	size_t stride = vq_stride(size), bytes;
	struct quiesce__vq_ring *ring;

	if (__builtin_mul_overflow(stride, cells, &bytes) || __builtin_add_overflow(bytes, sizeof *ring, &bytes))
		return NULL;
	ring = grows ? ring_in_block(bytes, cells, stride) : platform_lines_get(bytes);
	if (!ring)
		return NULL;
	ring->index_bits = (cells - 1) * VQ_UNIT;
	ring->scale = stride / VQ_UNIT;
	ring->number = stride - sizeof(uint64_t);
	ring->next = grows ? NULL : VQ_ENDED;
	return ring;
}

static void ring_free(struct quiesce__vq_ring *ring)
{
	if (ring->block)
		platform_block_put(ring->block, bytes_of(ring) + QUIESCE_CACHELINE);
	else
		platform_lines_put(ring, bytes_of(ring));
}

static void ring_free_rcu(struct rcu_head *rcu)
{
	ring_free((struct quiesce__vq_ring *)(void *)((char *)rcu - offsetof(struct quiesce__vq_ring, rcu)));
}

/* Set VQ_CLOSED in the tail of @ring, which has a successor. */
static void close_ring(struct value_queue *q, struct quiesce__vq_ring *ring)
{
	uint64_t tail = quiesce_load_relaxed(&ring->tail); /* Relaxed: the exchange decides. */

	while (!(tail & VQ_CLOSED)) {
		/* VQ5: release, pairs with VQ5 in vq_try_push(), vq_try_pop(), quiesce_value_queue_is_closed() and flag_last() */
		if (!quiesce_cmpxchg(VQ5, &ring->tail, &tail, vq_place(tail) | VQ_CLOSED))
			continue;
		if (vq_wakes(tail) && !QUIESCE_MUTANT(vq_ring_mute))
			quiesce__vq_wake_takers(q, vq_wakes(tail), 1);
		return;
	}
}

/* Link @next behind @ring; false if it has a successor already. */
static bool link_next(struct quiesce__vq_ring *ring, struct quiesce__vq_ring *next)
{
	struct quiesce__vq_ring *none = NULL;

	/* VQ3: release, pairs with VQ3 in next_of() and flag_last() */
	return quiesce_cmpxchg(VQ3, &ring->next, &none, next);
}

/* Advance @where from @ring to @next; false if it was not at @ring. */
static bool advance(struct quiesce__vq_ring **where, struct quiesce__vq_ring *ring, struct quiesce__vq_ring *next)
{
	/* VQ3: release, pairs with VQ3 in vq_push_ring() and vq_pop_ring() */
	return quiesce_cmpxchg(VQ3, where, &ring, next);
}

/* Return the number of cells of the ring behind @ring: twice as many, if elements fill more than half of it, and not because
 * a taker stops in its copy.  So a queue whose length is steady comes to a ring that has space for it, and changes it no more. */
static size_t next_cells(const struct quiesce__vq_ring *ring)
{
	size_t cells = vq_capacity(ring) / VQ_UNIT;
	uint64_t head = quiesce_load_relaxed(&ring->head); /* Relaxed: an estimate. */

	if (2 * cells > MAX_CELLS || (2 * cells > MIN_CELLS && 2 * vq_capacity(ring) * ring->scale > MAX_BYTES))
		return cells;
	/* Relaxed: the same. */
	return 2 * vq_between(head, quiesce_load_relaxed(&ring->tail)) > vq_capacity(ring) ? 2 * cells : cells;
}

/* A push finds no free cell in @ring: close it, behind it a fresh one.  0, or -ENOMEM, and nothing has changed. */
static int grow(struct value_queue *q, struct quiesce__vq_ring *ring)
{
	struct quiesce__vq_ring *fresh;

	if (!next_of(ring)) {
		fresh = ring_create(q->size, next_cells(ring), true);
		if (!fresh)
			return -ENOMEM;
		if (!link_next(ring, fresh))
			ring_free(fresh);
	}
	close_ring(q, ring);
	return 0;
}

/* @ring is closed: pushers go on to the next; 0 or -EPIPE. */
static int next_push_ring(struct value_queue *q, struct quiesce__vq_ring *ring)
{
	struct quiesce__vq_ring *next = next_of(ring);

	if (next == VQ_ENDED)
		return -EPIPE;
	(void)advance(&q->push_ring, ring, next);
	return 0;
}

/* @ring is closed and drained: takers go on to the next; 0 or -EPIPE. */
static int next_pop_ring(struct value_queue *q, struct quiesce__vq_ring *ring)
{
	struct quiesce__vq_ring *next = next_of(ring);

	if (next == VQ_ENDED)
		return -EPIPE;
	(void)advance(&q->push_ring, ring, next); /* I4 */
	if (advance(&q->pop_ring, ring, next)) {
		if (QUIESCE_MUTANT(vq_no_gp))
			ring_free(ring);
		else /* in a section, where this does not wait */
			quiesce_call_rcu(&ring->rcu, ring_free_rcu, bytes_of(ring));
	}
	return 0;
}

/* ---- claims ---- */

int64_t quiesce__vq_claim_push(struct value_queue *q, uint64_t max, struct quiesce__vq_claim *claim)
{
	struct quiesce__vq_ring *ring;
	int64_t nr;

	vq_enter(q);
	for (;;) {
		ring = vq_push_ring(q);
		nr = vq_try_push(ring, max, claim);
		claim->ring = ring;
		if (quiesce_likely(nr > 0))
			return nr;
		if (nr == VQ_NEXT_RING)
			nr = next_push_ring(q, ring);
		else if (q->grows)
			nr = grow(q, ring);
		if (nr) {
			vq_leave(q);
			return nr;
		}
	}
}

int64_t quiesce__vq_claim_pop(struct value_queue *q, uint64_t max, struct quiesce__vq_claim *claim)
{
	struct quiesce__vq_ring *ring;
	int64_t nr;

	vq_enter(q);
	for (;;) {
		ring = vq_pop_ring(q);
		nr = vq_try_pop(ring, max, claim);
		claim->ring = ring;
		if (quiesce_likely(nr > 0))
			return nr;
		if (nr == VQ_NEXT_RING)
			nr = next_pop_ring(q, ring);
		if (nr) {
			vq_leave(q);
			return nr;
		}
	}
}

/* ---- waits ---- */

/* Return how long the caller may still wait; 0: no longer. */
static uint64_t time_left(struct vq_wait *w)
{
	uint64_t now;

	if (w->timeout_ns == PLATFORM_FOREVER)
		return PLATFORM_FOREVER;
	now = platform_now_ns();
	if (!w->deadline)
		w->deadline = w->timeout_ns < UINT64_MAX - now ? now + w->timeout_ns : UINT64_MAX;
	return now < w->deadline ? w->deadline - now : 0;
}

/* Wait after @err, until a new attempt makes sense: 0, or the error to return. */
static int wait_after(struct value_queue *q, int64_t err, struct vq_wait *w, struct quiesce__vq_sleepers *sleepers,
		      void (*sleep)(struct value_queue *q, uint64_t ns))
{
	uint64_t ns;

	if (w->timeout_ns == 0 || (err != -EAGAIN && err != -EBUSY))
		return (int)err;
	if (quiesce__rcu_sleep_is_misuse(w->call, w->caller))
		return (int)err;
	ns = time_left(w);
	if (!ns) {
		/* The caller may have been woken for the element or the cell that it does not wait for: another thread does. */
		if (err == -EBUSY && w->slept)
			quiesce__vq_wake(sleepers, 1);
		return -ETIMEDOUT;
	}
	if (err == -EBUSY)
		quiesce__link_pause(w->pauses < UINT32_MAX ? w->pauses++ : w->pauses);
	else if (w->spins < SPINS) {
		w->spins++;
		quiesce_cpu_relax();
	} else {
		if (w->slept)
			vq_runs(sleepers);
		w->slept = true;
		sleep(q, ns);
	}
	return 0;
}

QUIESCE_COLD int64_t quiesce__vq_wait_push(struct value_queue *q, uint64_t max, struct vq_wait *w, struct quiesce__vq_claim *claim)
{
	int64_t nr;
	int err;

	for (w->spins = w->pauses = 0, w->slept = false; (nr = quiesce__vq_claim_push(q, max, claim)) < 0;) {
		err = wait_after(q, nr, w, &q->pushers, quiesce__vq_sleep_full);
		if (err)
			return err;
	}
	if (w->slept)
		vq_runs(&q->pushers);
	return nr;
}

QUIESCE_COLD int64_t quiesce__vq_wait_pop(struct value_queue *q, uint64_t max, struct vq_wait *w, struct quiesce__vq_claim *claim)
{
	int64_t nr;
	int err;

	for (w->spins = w->pauses = 0, w->slept = false; (nr = quiesce__vq_claim_pop(q, max, claim)) < 0;) {
		err = wait_after(q, nr, w, &q->takers, quiesce__vq_sleep_empty);
		if (err)
			return err;
	}
	if (w->slept)
		vq_runs(&q->takers);
	return nr;
}

/* ---- life and end ---- */

void quiesce_value_queue_close(struct value_queue *q)
{
	struct quiesce__vq_ring *ring, *next;

	vq_enter(q);
	for (ring = vq_push_ring(q);; ring = next) {
		(void)link_next(ring, VQ_ENDED);
		close_ring(q, ring);
		next = next_of(ring);
		if (next == VQ_ENDED)
			break;
	}
	vq_leave(q);
	if (QUIESCE_MUTANT(vq_close_mute))
		return;
	quiesce__vq_wake(&q->takers, INT32_MAX);
	quiesce__vq_wake(&q->pushers, INT32_MAX);
}

bool quiesce_value_queue_is_closed(const struct value_queue *q)
{
	const struct quiesce__vq_ring *ring;
	bool closed;

	vq_enter(q);
	/* VQ5: acquire, pairs with VQ5 in close_ring() */
	for (ring = vq_push_ring(q); (closed = quiesce_load_acquire(VQ5, &ring->tail) & VQ_CLOSED); ring = next_of(ring))
		if (next_of(ring) == VQ_ENDED)
			break;
	vq_leave(q);
	return closed;
}

size_t quiesce_value_queue_count(const struct value_queue *q)
{
	const struct quiesce__vq_ring *ring;
	uint64_t nr = 0, head, tail;

	vq_enter(q);
	for (ring = vq_pop_ring(q); ring && ring != VQ_ENDED; ring = next_of(ring)) {
		head = vq_place(quiesce_load_relaxed(&ring->head)); /* Relaxed: an estimate. */
		tail = vq_place(quiesce_load_relaxed(&ring->tail)); /* Relaxed: the same. */
		nr += tail > head ? (tail - head) / VQ_UNIT : 0;
	}
	vq_leave(q);
	return (size_t)nr;
}

int quiesce_value_queue_init(struct value_queue *q, size_t size, size_t capacity)
{
	size_t cells;

	if (!size || size > MAX_SIZE || capacity > MAX_CAPACITY)
		return -EINVAL;
	for (cells = capacity ? 1 : FIRST_CELLS; cells < capacity;)
		cells *= 2;
	while (!capacity && cells > 1 && cells * size > FIRST_BYTES)
		cells /= 2;
	*q = (struct value_queue){ .size = size, .grows = !capacity };
	q->push_ring = q->pop_ring = ring_create(size, cells, q->grows);
	return q->push_ring ? 0 : -ENOMEM;
}

/* No other thread has the queue, so a cell without an element belongs to a thread that does not exist any more. */
void quiesce_value_queue_destroy(struct value_queue *q, void (*drop)(void *value, void *arg), void *arg)
{
	struct quiesce__vq_ring *ring, *next;
	uint64_t at, tail;

	for (ring = q->pop_ring; ring && ring != VQ_ENDED; ring = next) {
		next = next_of(ring);
		tail = vq_place(quiesce_load_relaxed(&ring->tail)); /* Relaxed: no other thread has it. */
		at = vq_place(quiesce_load_relaxed(&ring->head)); /* Relaxed: the same. */
		for (; drop && at != tail; at += VQ_UNIT)
			if (vq_is_full(vq_number_of(ring, vq_cell_at(ring, at)), vq_lap_of(ring, at)))
				drop(vq_cell_at(ring, at), arg);
		ring_free(ring);
	}
	q->push_ring = q->pop_ring = NULL;
}
