/* SPDX-License-Identifier: MIT */
/* value_queue_calls.c - pushes and pops of a queue of values: claim, copy, publish.  value_queue.c has the theory. */
#include "queue/value_queue.h"
#include "runtime/core.h"

#include <string.h>

/* Copy from 9 to 15 bytes: both ends, which overlap, so that no branch depends on the size. */
QUIESCE_LOCAL void copy_words(char *to, const char *from, size_t size)
{
	memcpy(to, from, 8);
	memcpy(to + size - 8, from + size - 8, 8);
}

/* Copy from 16 to 64 bytes: the same with two ends or four. */
QUIESCE_LOCAL void copy_blocks(char *to, const char *from, size_t size)
{
	if (size > 32) {
		memcpy(to + 16, from + 16, 16);
		memcpy(to + size - 32, from + size - 32, 16);
	}
	memcpy(to, from, 16);
	memcpy(to + size - 16, from + size - 16, 16);
}

/* Values of most sizes up to 64 bytes are copied in less time than a call of memcpy() takes. */
QUIESCE_LOCAL void copy(void *to, const void *from, size_t size)
{
	if (quiesce_likely(size == 8))
		memcpy(to, from, 8);
	else if (size - 16 <= 64 - 16)
		copy_blocks(to, from, size);
	else if (size == 4)
		memcpy(to, from, 4);
	else if (size - 9 <= 15 - 9)
		copy_words(to, from, size);
	else
		memcpy(to, from, size);
}

/* An attempt that neither waits nor changes rings.  If it succeeds, the caller is in a section. */
QUIESCE_LOCAL bool push_at_once(struct value_queue *q, struct quiesce__vq_claim *claim)
{
	vq_enter(q);
	claim->ring = vq_push_ring(q);
	if (quiesce_likely(vq_try_push(claim->ring, 1, claim) > 0))
		return true;
	vq_leave(q);
	return false;
}

QUIESCE_LOCAL bool pop_at_once(struct value_queue *q, struct quiesce__vq_claim *claim)
{
	vq_enter(q);
	claim->ring = vq_pop_ring(q);
	if (quiesce_likely(vq_try_pop(claim->ring, 1, claim) > 0))
		return true;
	vq_leave(q);
	return false;
}

QUIESCE_LOCAL void push_end(struct value_queue *q, const struct quiesce__vq_claim *claim)
{
	vq_fill_cell(claim->number, claim->lap);
	vq_pushed(q, claim, 1);
}

QUIESCE_LOCAL void pop_end(struct value_queue *q, const struct quiesce__vq_claim *claim)
{
	vq_empty_cell(claim->number, claim->lap + vq_capacity(claim->ring));
	vq_popped(q, claim, 1);
}

/* Claim one cell; 0 or an error.  @call, made at @caller, is for reports. */
static QUIESCE_COLD int wait_push(struct value_queue *q, uint64_t timeout_ns, const char *call, const void *caller,
				 struct quiesce__vq_claim *claim)
{
	struct vq_wait wait = { .call = call, .caller = caller, .timeout_ns = timeout_ns };
	int64_t got = quiesce__vq_wait_push(q, 1, &wait, claim);

	return got > 0 ? 0 : (int)got;
}

static QUIESCE_COLD int wait_pop(struct value_queue *q, uint64_t timeout_ns, const char *call, const void *caller,
				 struct quiesce__vq_claim *claim)
{
	struct vq_wait wait = { .call = call, .caller = caller, .timeout_ns = timeout_ns };
	int64_t got = quiesce__vq_wait_pop(q, 1, &wait, claim);

	return got > 0 ? 0 : (int)got;
}

/* The claims of the slow halves are their own, so that those of the fast ones stay in registers. */
static QUIESCE_COLD int push_slow(struct value_queue *q, const void *value, uint64_t timeout_ns, const char *call, const void *caller)
{
	struct quiesce__vq_claim claim;
	int err = wait_push(q, timeout_ns, call, caller, &claim);

	if (err)
		return err;
	copy(claim.cell, value, q->size);
	push_end(q, &claim);
	return 0;
}

static QUIESCE_COLD int pop_slow(struct value_queue *q, void *ret_value, uint64_t timeout_ns, const char *call, const void *caller)
{
	struct quiesce__vq_claim claim;
	int err = wait_pop(q, timeout_ns, call, caller, &claim);

	if (err)
		return err;
	copy(ret_value, claim.cell, q->size);
	pop_end(q, &claim);
	return 0;
}

/* Inlined into the function whose caller is reported. */
QUIESCE_LOCAL int push(struct value_queue *q, const void *value, uint64_t timeout_ns, const char *call)
{
	struct quiesce__vq_claim claim;

	if (quiesce_unlikely(!push_at_once(q, &claim)))
		return push_slow(q, value, timeout_ns, call, quiesce__caller());
	copy(claim.cell, value, q->size);
	push_end(q, &claim);
	return 0;
}

/* Inlined into the function whose caller is reported. */
QUIESCE_LOCAL int pop(struct value_queue *q, void *ret_value, uint64_t timeout_ns, const char *call)
{
	struct quiesce__vq_claim claim;

	if (quiesce_unlikely(!pop_at_once(q, &claim)))
		return pop_slow(q, ret_value, timeout_ns, call, quiesce__caller());
	copy(ret_value, claim.cell, q->size);
	pop_end(q, &claim);
	return 0;
}

int quiesce__vq_push_begin(struct value_queue *q, uint64_t timeout_ns, struct quiesce__vq_claim *claim)
{
	return quiesce_likely(push_at_once(q, claim)) ? 0 : wait_push(q, timeout_ns, "push()", quiesce__caller(), claim);
}

void quiesce__vq_push_end(struct value_queue *q, const struct quiesce__vq_claim *claim) { push_end(q, claim); }

int quiesce__vq_pop_begin(struct value_queue *q, uint64_t timeout_ns, struct quiesce__vq_claim *claim)
{
	return quiesce_likely(pop_at_once(q, claim)) ? 0 : wait_pop(q, timeout_ns, "pop()", quiesce__caller(), claim);
}

void quiesce__vq_pop_end(struct value_queue *q, const struct quiesce__vq_claim *claim) { pop_end(q, claim); }

int quiesce_value_queue_push(struct value_queue *q, const void *value)
{
	return push(q, value, PLATFORM_FOREVER, "value_queue_push()");
}

int quiesce_value_queue_push_try(struct value_queue *q, const void *value)
{
	return push(q, value, 0, "value_queue_push_try()");
}

int quiesce_value_queue_pop(struct value_queue *q, void *ret_value)
{
	return pop(q, ret_value, PLATFORM_FOREVER, "value_queue_pop()");
}

int quiesce_value_queue_pop_try(struct value_queue *q, void *ret_value)
{
	return pop(q, ret_value, 0, "value_queue_pop_try()");
}

int quiesce_value_queue_push_timeout(struct value_queue *q, const void *value, uint64_t timeout_ns)
{
	return push(q, value, timeout_ns, "value_queue_push_timeout()");
}

int quiesce_value_queue_pop_timeout(struct value_queue *q, void *ret_value, uint64_t timeout_ns)
{
	return pop(q, ret_value, timeout_ns, "value_queue_pop_timeout()");
}

/* Fill in and publish the @nr claimed cells. */
QUIESCE_LOCAL void fill_cells(const struct quiesce__vq_claim *claim, const char *from, size_t size, uint64_t nr)
{
	struct vq_walk walk = vq_walk_from(claim->ring, claim->cell, claim->lap, vq_stride(size));

	for (; nr; nr--, from += size, vq_step(&walk)) {
		copy(walk.cell, from, size);
		vq_fill_cell(vq_number_here(&walk), walk.lap);
	}
}

/* Read and publish the @nr claimed cells. */
QUIESCE_LOCAL void empty_cells(const struct quiesce__vq_claim *claim, char *to, size_t size, uint64_t nr)
{
	struct vq_walk walk = vq_walk_from(claim->ring, claim->cell, claim->lap, vq_stride(size));

	for (; nr; nr--, to += size, vq_step(&walk)) {
		copy(to, walk.cell, size);
		vq_empty_cell(vq_number_here(&walk), walk.lap + walk.capacity);
	}
}

static long push_many(struct value_queue *q, const char *from, size_t nr, uint64_t timeout_ns, const char *call, const void *caller)
{
	struct vq_wait wait = { .call = call, .caller = caller, .timeout_ns = timeout_ns };
	struct quiesce__vq_claim claim;
	const size_t size = q->size;
	size_t done = 0;
	int64_t got;

	for (; done < nr; done += (size_t)got, from += (size_t)got * size) {
		got = quiesce__vq_claim_push(q, nr - done, &claim);
		if (got < 0 && timeout_ns)
			got = quiesce__vq_wait_push(q, nr - done, &wait, &claim);
		if (got < 0)
			return done ? (long)done : (long)got;
		if (size == sizeof(uint64_t)) /* a loop of its own, without the size */
			fill_cells(&claim, from, sizeof(uint64_t), (uint64_t)got);
		else
			fill_cells(&claim, from, size, (uint64_t)got);
		vq_pushed(q, &claim, (uint64_t)got);
	}
	return (long)done;
}

static long pop_many(struct value_queue *q, char *to, size_t max, uint64_t timeout_ns, const char *call, const void *caller)
{
	struct vq_wait wait = { .call = call, .caller = caller, .timeout_ns = timeout_ns };
	struct quiesce__vq_claim claim;
	int64_t got = max ? quiesce__vq_claim_pop(q, max, &claim) : 0;
	const size_t size = q->size;

	if (got < 0 && timeout_ns)
		got = quiesce__vq_wait_pop(q, max, &wait, &claim);
	if (got <= 0)
		return (long)got;
	if (size == sizeof(uint64_t)) /* again without the size */
		empty_cells(&claim, to, sizeof(uint64_t), (uint64_t)got);
	else
		empty_cells(&claim, to, size, (uint64_t)got);
	vq_popped(q, &claim, (uint64_t)got);
	return (long)got;
}

long quiesce_value_queue_push_many(struct value_queue *q, const void *values, size_t nr)
{
	return push_many(q, values, nr, 0, "value_queue_push_many()", quiesce__caller());
}

long quiesce_value_queue_pop_many(struct value_queue *q, void *ret_values, size_t max)
{
	return pop_many(q, ret_values, max, 0, "value_queue_pop_many()", quiesce__caller());
}

long quiesce_value_queue_push_many_timeout(struct value_queue *q, const void *values, size_t nr, uint64_t timeout_ns)
{
	return push_many(q, values, nr, timeout_ns, "value_queue_push_many_timeout()", quiesce__caller());
}

long quiesce_value_queue_pop_many_timeout(struct value_queue *q, void *ret_values, size_t max, uint64_t timeout_ns)
{
	return pop_many(q, ret_values, max, timeout_ns, "value_queue_pop_many_timeout()", quiesce__caller());
}
