/* SPDX-License-Identifier: MIT */
/* value_queue.h - private: rings of cells, and the claims of their cells, for value_queue.c, value_queue_calls.c and value_queue_wait.c. */
#ifndef QUIESCE_QUEUE_VALUE_QUEUE_H
#define QUIESCE_QUEUE_VALUE_QUEUE_H

#include "platform/platform.h"

#include <quiesce/ds/value_queue.h>
#include <quiesce/rcu.h>

#include <errno.h>

/* A position has the number of an element of the ring above these bits. */
#define VQ_UNIT 8u
#define VQ_AGAIN 1u   /* a later claim here wakes a sleeper, if the one that was woken does not run */
#define VQ_WAITERS 2u /* the next claim here wakes a sleeper */
#define VQ_CLOSED 4u  /* flag of a tail of which no further claim succeeds */
#define VQ_FLAGS (VQ_AGAIN | VQ_WAITERS | VQ_CLOSED)
#if defined(QUIESCE_SIM)
#define VQ_AGAIN_CELLS 2u
#else
#define VQ_AGAIN_CELLS 8u /* the claim of the last of so many cells clears VQ_AGAIN */
#endif
#define VQ_FULL 1u /* flag in the number of a cell that has an element */

#define VQ_NEXT_RING 0 /* a claim returns this if the ring is closed */

/* The successor of the last ring of a queue that is closed or bounded. */
#define VQ_ENDED ((struct quiesce__vq_ring *)1)

struct quiesce__vq_ring {
	uint64_t index_bits; /* bits of a position that select the cell */
	uint32_t scale;      /* bytes of a cell, in units of 8 */
	uint32_t number;     /* offset of the number in a cell */
	struct quiesce__vq_ring *next; /* NULL, then once a ring or VQ_ENDED */
	struct rcu_head rcu;
	void *block; /* the block of the heap that has the ring; NULL if the ring has pages or lines of its own */
	char pad[2 * QUIESCE_CACHELINE - sizeof(uint64_t) - 2 * sizeof(uint32_t) - 2 * sizeof(void *) - sizeof(struct rcu_head)];
	uint64_t tail; /* position of the next push, and flags; pushers advance it */
	char after_tail[2 * QUIESCE_CACHELINE - sizeof(uint64_t)];
	uint64_t head; /* position of the next pop, and flags; takers advance it */
	char after_head[2 * QUIESCE_CACHELINE - sizeof(uint64_t)];
	/* A cell has a value, and its number at the end. */
	unsigned char cells[] __attribute__((aligned(16)));
};

QUIESCE_LOCAL uint64_t vq_place(uint64_t word)
{
	return word & ~(uint64_t)VQ_FLAGS;
}

/* Return the flags of @word by which its exchange wakes sleepers. */
QUIESCE_LOCAL uint64_t vq_wakes(uint64_t word)
{
	return word & (VQ_WAITERS | VQ_AGAIN);
}

/* Return VQ_AGAIN if a claim of @nr cells from @word on leaves it to a later claim, which is all that it has to do then. */
QUIESCE_LOCAL uint64_t vq_kept(uint64_t word, uint64_t nr)
{
	if (quiesce_likely(!(word & VQ_AGAIN)) || word & VQ_WAITERS)
		return 0;
	return (word ^ (word + nr * VQ_UNIT)) & -(uint64_t)(VQ_AGAIN_CELLS * VQ_UNIT) && !QUIESCE_MUTANT(vq_keeps_again) ? 0 : VQ_AGAIN;
}

/* Return the tail or head after a claim of @nr cells from @word on. */
QUIESCE_LOCAL uint64_t vq_after(uint64_t word, uint64_t nr)
{
	return (vq_place(word) + nr * VQ_UNIT) | vq_kept(word, nr);
}

/* Return the number of elements from position @head to position @tail, in units. */
QUIESCE_LOCAL uint64_t vq_between(uint64_t head, uint64_t tail)
{
	return vq_place(tail) - vq_place(head);
}

/* Return the bytes of a cell: values of 16 bytes and more are aligned to 16, and the number is at the end. */
QUIESCE_LOCAL size_t vq_stride(size_t size)
{
	size_t align = size < 16 ? sizeof(uint64_t) : 16;

	return (size + sizeof(uint64_t) + align - 1) & ~(align - 1);
}

QUIESCE_LOCAL uint64_t vq_capacity(const struct quiesce__vq_ring *ring)
{
	return ring->index_bits + VQ_UNIT;
}

/* A bounded queue has one ring for ever, so its callers need no section. */
QUIESCE_LOCAL void vq_enter(const struct value_queue *q)
{
	if (q->grows)
		rcu_read_lock();
}

QUIESCE_LOCAL void vq_leave(const struct value_queue *q)
{
	if (q->grows)
		rcu_read_unlock();
}

/* A thread that was woken has run: claims need not wake another one in its place. */
QUIESCE_LOCAL void vq_runs(struct quiesce__vq_sleepers *sleepers)
{
	quiesce_store_relaxed(&sleepers->since, 0); /* Relaxed: a thread that loads the time wakes another one needlessly. */
}

/* Wake up to @nr sleepers.  The caller has cleared VQ_WAITERS, or has closed the queue, and published what they wait for. */
void quiesce__vq_wake(struct quiesce__vq_sleepers *sleepers, uint32_t nr);
/* The claim of @nr cells, which are published, has cleared @flags, VQ_WAITERS, VQ_AGAIN or both: wake as many sleepers, and set
 * VQ_AGAIN if there are more. */
void quiesce__vq_wake_takers(struct value_queue *q, uint64_t flags, uint64_t nr);
void quiesce__vq_wake_pushers(struct value_queue *q, uint64_t flags, uint64_t nr);

QUIESCE_LOCAL void *vq_cell_at(const struct quiesce__vq_ring *ring, uint64_t at)
{
	return (unsigned char *)ring->cells + (at & ring->index_bits) * ring->scale;
}

QUIESCE_LOCAL uint64_t *vq_number_of(const struct quiesce__vq_ring *ring, void *cell)
{
	return (uint64_t *)(void *)((char *)cell + ring->number);
}

QUIESCE_LOCAL uint64_t vq_lap_of(const struct quiesce__vq_ring *ring, uint64_t at)
{
	return vq_place(at) & ~ring->index_bits;
}

QUIESCE_LOCAL struct quiesce__vq_ring *vq_push_ring(const struct value_queue *q)
{
	/* VQ3: acquire, pairs with VQ3 in advance() */
	return quiesce_load_acquire(VQ3, &q->push_ring);
}

QUIESCE_LOCAL struct quiesce__vq_ring *vq_pop_ring(const struct value_queue *q)
{
	/* VQ3: acquire, pairs with VQ3 in advance() */
	return quiesce_load_acquire(VQ3, &q->pop_ring);
}

QUIESCE_LOCAL bool vq_is_free(const uint64_t *number, uint64_t lap)
{
	/* VQ2: acquire, pairs with VQ2 in vq_empty_cell() */
	return quiesce_load_acquire(VQ2, number) == lap;
}

QUIESCE_LOCAL bool vq_is_full(const uint64_t *number, uint64_t lap)
{
	/* VQ1: acquire, pairs with VQ1 in vq_fill_cell() */
	return quiesce_load_acquire(VQ1, number) == lap + VQ_FULL;
}

QUIESCE_LOCAL void vq_fill_cell(uint64_t *number, uint64_t lap)
{
	/* VQ1: release, pairs with VQ1 in vq_is_full() */
	quiesce_store_release(VQ1, number, lap + VQ_FULL);
}

QUIESCE_LOCAL void vq_empty_cell(uint64_t *number, uint64_t next_lap)
{
	/* VQ2: release, pairs with VQ2 in vq_is_free() */
	quiesce_store_release(VQ2, number, next_lap);
}

/* Cells in succession, from @cell on. */
struct vq_walk {
	char *cell, *first, *end; /* end: of the ring, where first comes next */
	size_t stride, number;    /* offset of the number */
	uint64_t lap, capacity;
};

/* Begin at @cell of @ring, which is of @lap. */
QUIESCE_LOCAL struct vq_walk vq_walk_from(const struct quiesce__vq_ring *ring, void *cell, uint64_t lap, size_t stride)
{
	char *first = (char *)vq_cell_at(ring, 0);

	return (struct vq_walk){ .cell = cell, .first = first, .end = first + vq_capacity(ring) / VQ_UNIT * stride, .stride = stride,
		.number = stride - sizeof(uint64_t), .lap = lap, .capacity = vq_capacity(ring) };
}

QUIESCE_LOCAL void vq_step(struct vq_walk *walk)
{
	walk->cell += walk->stride;
	if (quiesce_unlikely(walk->cell == walk->end)) {
		walk->cell = walk->first;
		walk->lap += walk->capacity;
	}
}

QUIESCE_LOCAL uint64_t *vq_number_here(const struct vq_walk *walk)
{
	return (uint64_t *)(void *)(walk->cell + walk->number);
}

/* Return how many cells of @ring from @claim on are free, or have elements, at most @max: the first one is. */
QUIESCE_LOCAL uint64_t vq_count_cells(const struct quiesce__vq_ring *ring, const struct quiesce__vq_claim *claim, uint64_t max,
			    bool (*test)(const uint64_t *number, uint64_t lap))
{
	struct vq_walk walk = vq_walk_from(ring, claim->cell, claim->lap, (size_t)ring->scale * VQ_UNIT);
	uint64_t nr;

	for (nr = 1; nr < max; nr++) {
		vq_step(&walk);
		if (!test(vq_number_here(&walk), walk.lap))
			break;
	}
	return nr;
}

/* Claim the next free cells of @ring, at most @max; returns their number, VQ_NEXT_RING, or an error. */
QUIESCE_LOCAL int64_t vq_try_push(struct quiesce__vq_ring *ring, uint64_t max, struct quiesce__vq_claim *claim)
{
	uint64_t tail, nr;

	do {
		/* VQ5: acquire, pairs with VQ5 in vq_try_push() and close_ring() */
		tail = quiesce_load_acquire(VQ5, &ring->tail);
		if (quiesce_unlikely(tail & VQ_CLOSED))
			return VQ_NEXT_RING;
		claim->at = tail;
		claim->cell = vq_cell_at(ring, tail);
		claim->number = vq_number_of(ring, claim->cell);
		claim->lap = vq_lap_of(ring, tail);
		nr = 0;
		if (quiesce_likely(vq_is_free(claim->number, claim->lap))) {
			nr = max == 1 ? 1 : vq_count_cells(ring, claim, max, vq_is_free);
			/* VQ5: release, pairs with VQ5 in vq_try_push() and vq_try_pop() */
			if (quiesce_likely(quiesce_cmpxchg(VQ5, &ring->tail, &tail, vq_after(tail, nr))))
				return (int64_t)nr;
		/* Relaxed: the tail was loaded before (VQ5, I2). */
		} else if (vq_between(quiesce_load_relaxed(&ring->head), tail) == vq_capacity(ring)) {
			return -EAGAIN;
		}
	} while (nr || quiesce_load_relaxed(&ring->tail) != tail); /* Relaxed: a hint. */
	return -EBUSY;
}

/* Claim the next elements of @ring, at most @max; returns their number, VQ_NEXT_RING, or an error. */
QUIESCE_LOCAL int64_t vq_try_pop(struct quiesce__vq_ring *ring, uint64_t max, struct quiesce__vq_claim *claim)
{
	uint64_t head, tail, nr;

	do {
		/* VQ5: acquire, pairs with VQ5 in vq_try_pop() */
		head = quiesce_load_acquire(VQ5, &ring->head);
		claim->at = head;
		claim->cell = vq_cell_at(ring, head);
		claim->number = vq_number_of(ring, claim->cell);
		claim->lap = vq_lap_of(ring, head);
		nr = 0;
		if (quiesce_likely(vq_is_full(claim->number, claim->lap))) {
			nr = max == 1 ? 1 : vq_count_cells(ring, claim, max, vq_is_full);
			/* VQ5: release, pairs with VQ5 in vq_try_pop() */
			if (quiesce_likely(quiesce_cmpxchg(VQ5, &ring->head, &head, vq_after(head, nr))))
				return (int64_t)nr;
			continue;
		}
		/* VQ5: acquire, pairs with VQ5 in vq_try_push() and close_ring() */
		tail = quiesce_load_acquire(VQ5, &ring->tail);
		if (vq_place(tail) == vq_place(head))
			return tail & VQ_CLOSED ? VQ_NEXT_RING : -EAGAIN;
	} while (nr || quiesce_load_relaxed(&ring->head) != head); /* Relaxed: a hint. */
	return -EBUSY;
}

/* The @nr claimed cells are published: leave the section, and wake threads if some sleep. */
QUIESCE_LOCAL void vq_pushed(struct value_queue *q, const struct quiesce__vq_claim *claim, uint64_t nr)
{
	uint64_t flags = QUIESCE_MUTANT(vq_mute) ? 0 : vq_wakes(claim->at);

	vq_leave(q);
	if (quiesce_unlikely(flags) && !vq_kept(claim->at, nr))
		quiesce__vq_wake_takers(q, flags, nr);
}

QUIESCE_LOCAL void vq_popped(struct value_queue *q, const struct quiesce__vq_claim *claim, uint64_t nr)
{
	uint64_t flags = QUIESCE_MUTANT(vq_mute) ? 0 : vq_wakes(claim->at);

	vq_leave(q);
	if (quiesce_unlikely(flags) && !vq_kept(claim->at, nr))
		quiesce__vq_wake_pushers(q, flags, nr);
}

/* Claim cells for a push or a pop, without waiting, and with growth; returns their number, and the caller is in a
 * section; or an error. */
int64_t quiesce__vq_claim_push(struct value_queue *q, uint64_t max, struct quiesce__vq_claim *claim);
int64_t quiesce__vq_claim_pop(struct value_queue *q, uint64_t max, struct quiesce__vq_claim *claim);
/* A call that waits keeps the time that it has left here, and how it has waited. */
struct vq_wait {
	/* The report of a wait in a section names the call, and its place in the program. */
	const char *call;
	const void *caller;
	uint64_t timeout_ns, deadline;
	uint32_t spins, pauses;
	bool slept;
};

/* Claim cells in the same way, after waiting for them within the time that @wait has left. */
int64_t quiesce__vq_wait_push(struct value_queue *q, uint64_t max, struct vq_wait *wait, struct quiesce__vq_claim *claim);
int64_t quiesce__vq_wait_pop(struct value_queue *q, uint64_t max, struct vq_wait *wait, struct quiesce__vq_claim *claim);
/* Sleep until the queue may have an element, or space, at most @ns.  Outside of sections. */
void quiesce__vq_sleep_empty(struct value_queue *q, uint64_t ns);
void quiesce__vq_sleep_full(struct value_queue *q, uint64_t ns);

#endif
