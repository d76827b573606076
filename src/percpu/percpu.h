/* SPDX-License-Identifier: MIT */
/* percpu.h - per-CPU counters: allocation, counting by a call, and sums. */
#ifndef QUIESCE_SRC_PERCPU_H
#define QUIESCE_SRC_PERCPU_H

#include "runtime/core.h"
#include "platform/count.h"

/* Start value of each word: in test builds counters overflow almost at once. */
#if defined(QUIESCE_SIM) || defined(QUIESCE_PERTURB) || defined(QUIESCE_DEBUG_WRAP)
#define QUIESCE_PERCPU_START (UINT64_MAX - 1)
#else
#define QUIESCE_PERCPU_START 0
#endif

/* Allocate the sets of @percpu, @words words each, unless it has them.  Any thread may call this at any time,
 * also in a signal handler.  Returns 0 or -ENOMEM; without sets all threads count in the set that the object
 * itself contains. */
int quiesce__percpu_open(struct quiesce_percpu *percpu, uint32_t words);
/* Free the sets; no thread counts there any more. */
void quiesce__percpu_close(struct quiesce_percpu *percpu);
/* Value for a word "open", by which inline code finds the sets; 0 if inline code cannot count in sequences,
 * or there are no sets. */
uint64_t quiesce__percpu_open_word(const struct quiesce_percpu *percpu);
uint64_t quiesce__percpu_open_word_of(const char *base);

/* 4096 zeroed bytes for each id, for an object that is to have more than counters there; those of an id are at the same
 * distance from the base as a set.  The base is @offset bytes, less than 4096, from the beginning of a page: with
 * different offsets the same words of many objects are in different sets of the first-level cache.
 * _get: false: no memory, or no addresses. */
struct quiesce__percpu_pages {
	char *base;
	char *start;  /* the mapping, which has one page more than there are ids, for any offset */
	size_t bytes;
	size_t nr;    /* ids whose bytes may be read */
};
bool quiesce__percpu_pages_get(struct quiesce__percpu_pages *ret, size_t offset);
void quiesce__percpu_pages_put(struct quiesce__percpu_pages *pages);
/* The page, or set, of the calling thread's id, less than the number of ids; a hint. */
size_t quiesce__percpu_set_of_thread(void);

/* Add one to word @index of the set of the thread's id, in a sequence or by a locked instruction; or to
 * @shared, the object's own set, if there are no sets or none for this id.  A release; also a full fence if
 * it returns true. */
bool quiesce__percpu_add(struct quiesce_percpu *percpu, uint64_t *shared, uint32_t index);

/* Return a number that has grown by one for each count of word @index in the set where the calling thread counts, and
 * that begins elsewhere for each set; a hint, as the thread may have moved since it counted. */
uint64_t quiesce__percpu_tick(const struct quiesce_percpu *percpu, const uint64_t *shared, uint32_t index);

/* quiesce__percpu_tick() of a word that the calling thread has just counted inline, by @open. */
static inline uint64_t quiesce__percpu_tick_open(const uint64_t *open, uint32_t index)
{
	int64_t id = quiesce__claim_id();
	uint64_t base = quiesce_load_relaxed(open); /* Relaxed: a hint. */

	if (quiesce_unlikely(id < 0 || !base)) /* closed meanwhile */
		return 1;
	/* Relaxed: a hint. */
	return (uint64_t)id +
	       quiesce_load_relaxed((const uint64_t *)(uintptr_t)(((uint64_t)id << QUIESCE_PERCPU_SHIFT) - base) + index);
}

/* Return how many counts word @entered has that word @left has not.  Sums @left first: each count there has
 * its partner among @entered, which is summed later.  So zero means that all that had entered before the call
 * have left, and that what they did is visible.  Any other number may include threads that enter during the
 * call. */
uint64_t quiesce__percpu_inside(const struct quiesce_percpu *percpu, const uint64_t *shared, uint32_t entered, uint32_t left);

/* Return in @ret the sums of the four words since the start, in one pass over the sets.  Counts made during the call may be missed in one
 * word and included in another. */
void quiesce__percpu_sums(const struct quiesce_percpu *percpu, const uint64_t *shared, uint64_t ret[4]);

/* Number of sets that a sum reads; 0 if there are none. */
uint64_t quiesce__percpu_nr_sets(const struct quiesce_percpu *percpu);

/* Words that close, for counts of a process without sequences: word 0 of each set holds an even number, to which
 * threads add by locked instructions, and a low bit, closed.  A closed word does not change until it is opened, so
 * that the sum over closed words is exact, without a fence, whatever other threads do.  One thread at a time closes
 * or opens the words of an object.
 * _word_add: add @delta, an even number, to the word of the thread's id; false if that is closed, or there are no
 * sets.  _words_close, _words_sum: return the sum. */
bool quiesce__percpu_word_add(const struct quiesce_percpu *percpu, uint64_t delta);
uint64_t quiesce__percpu_words_close(const struct quiesce_percpu *percpu);
void quiesce__percpu_words_open(const struct quiesce_percpu *percpu);
uint64_t quiesce__percpu_words_sum(const struct quiesce_percpu *percpu);

/* In a child of fork(): count every holder as left, because the child has none of these threads. */
void quiesce__percpu_count_all_left(struct quiesce_percpu *percpu, uint64_t *shared, uint32_t entered, uint32_t left);

/* Return the number of counts in word @index since the start; counts made during the call may be missed. */
uint64_t quiesce__percpu_total(const struct quiesce_percpu *percpu, const uint64_t *shared, uint32_t index);

/* True if threads of this process count in restartable sequences; valid once a counter has been allocated. */
static inline bool quiesce__percpu_uses_sequences(void)
{
	return quiesce__sequences.area != 0;
}

void quiesce__percpu_fork_prepare(void);
void quiesce__percpu_fork_parent(void);
void quiesce__percpu_fork_child(void);

#endif
