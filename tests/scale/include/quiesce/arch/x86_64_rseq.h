/* SPDX-License-Identifier: MIT */
/* quiesce/arch/x86_64_rseq.h - the restartable sequences of the library in C, for the modelled machine.
 *
 * Each makes the accesses of memory that the assembly of the library's file of this name makes, in its order, and no other.
 * sequences.py compares the two: MODEL lines name the operands of the assembly.
 */
#ifndef QUIESCE_ARCH_X86_64_RSEQ_H
#define QUIESCE_ARCH_X86_64_RSEQ_H

#include <stdbool.h>

void scale_sequence_begin(void);
void scale_sequence_end(void);

#define QUIESCE__SCALE_AREA 512 /* SCALE_RSEQ_OFFSET */
#define QUIESCE__SCALE_ID (QUIESCE__SCALE_AREA + 24)

QUIESCE_LOCAL void quiesce__pin(void) {}

/* This is QUIESCE_RSEQ_ENTER, which stores the pointer to the sequence. */
QUIESCE_LOCAL void quiesce__scale_enter(void)
{
	scale_sequence_begin();
	quiesce_store_relaxed((uint64_t *)(void *)quiesce__thread_at(QUIESCE__SCALE_AREA + 8), (uint64_t)1); /* Relaxed: the model's. */
}

QUIESCE_LOCAL uint64_t quiesce__scale_id(void)
{
	return quiesce_load_relaxed((uint32_t *)(void *)quiesce__thread_at(QUIESCE__SCALE_ID)); /* Relaxed: the model's. */
}

/* A claim loads the id, that of the cached slot, the address of the slot, and the slot, which it then stores. */
QUIESCE_FAST uintptr_t *quiesce__claim_rseq(const struct quiesce__cached_slot *cached, uintptr_t value)
{
	uintptr_t *slot = NULL;

	quiesce__scale_enter();
	if (quiesce__scale_id() == quiesce_load_relaxed(&cached->id)) { /* Relaxed: the model's. */
		slot = quiesce_load_relaxed(&cached->slot); /* Relaxed: the model's. */
		if (quiesce_load_relaxed(slot)) /* Relaxed: the model's. */
			slot = NULL;
		else
			quiesce_store_relaxed(slot, value); /* Relaxed: the model's. */
	}
	scale_sequence_end();
	return slot;
}

/* A count loads the id and the word "open", and changes the counter. */
QUIESCE_LOCAL bool quiesce__scale_count(const uint64_t *open, size_t offset, unsigned int shift)
{
	uint64_t id, from, *word;

	quiesce__scale_enter();
	id = quiesce__scale_id();
	from = quiesce_load_relaxed(open); /* Relaxed: the model's. */
	if (from) {
		word = (uint64_t *)(uintptr_t)((id << shift) - from + offset);
		quiesce_store_relaxed(word, quiesce_load_relaxed(word) + 1); /* Relaxed: the model's. */
	}
	scale_sequence_end();
	return from;
}

#define QUIESCE_COUNT_WORD(offset) offset
#define QUIESCE_COUNT_RSEQ(offset) return quiesce__scale_count(open, offset, QUIESCE_PERCPU_SHIFT)

/* A pop loads the id, the word "open", the number of objects and the object, and stores the number. */
#define QUIESCE_SHEAF_POP(open, ret_object, ret_done)                                                                       \
	uint64_t id_, from_, nr_ = 0, *sheaf_;                                                                              \
	quiesce__scale_enter();                                                                                             \
	id_ = quiesce__scale_id();                                                                                          \
	from_ = quiesce_load_relaxed(open); /* Relaxed: the model's. */                                                     \
	sheaf_ = (uint64_t *)(uintptr_t)((id_ << QUIESCE_PERCPU_SHIFT) - from_);                                            \
	(ret_object) = NULL;                                                                                                \
	(ret_done) = from_ && (nr_ = quiesce_load_relaxed(sheaf_)) != 0; /* Relaxed: the model's. */                        \
	if (ret_done) {                                                                                                     \
		(ret_object) = (void *)(uintptr_t)quiesce_load_relaxed(&sheaf_[nr_ + 1]); /* Relaxed: the model's. */       \
		quiesce_store_relaxed(sheaf_, nr_ - 1); /* Relaxed: the model's. */                                         \
	}                                                                                                                   \
	scale_sequence_end()

/* A push loads the id, the word "open", the number of objects and their limit, and stores the object and the number. */
#define QUIESCE_SHEAF_PUSH(open, limit_at, pushed, ret_done)                                                                \
	uint64_t id_, from_, nr_ = 0, *sheaf_;                                                                              \
	quiesce__scale_enter();                                                                                             \
	id_ = quiesce__scale_id();                                                                                          \
	from_ = quiesce_load_relaxed(open); /* Relaxed: the model's. */                                                     \
	sheaf_ = (uint64_t *)(uintptr_t)((id_ << QUIESCE_PERCPU_SHIFT) - from_);                                            \
	(ret_done) = from_ && (nr_ = quiesce_load_relaxed(sheaf_)) < quiesce_load_relaxed(limit_at); /* Relaxed: the model's. */ \
	if (ret_done) {                                                                                                     \
		quiesce_store_relaxed(&sheaf_[nr_ + 2], (uint64_t)(uintptr_t)(pushed)); /* Relaxed: the model's. */         \
		quiesce_store_relaxed(sheaf_, nr_ + 1); /* Relaxed: the model's. */                                         \
	}                                                                                                                   \
	scale_sequence_end()

#endif
