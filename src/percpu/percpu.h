/* SPDX-License-Identifier: MIT */
/* percpu.h - counters per id: where they come from, the slow way to count, and sums. */
#ifndef QUIESCE_SRC_PERCPU_H
#define QUIESCE_SRC_PERCPU_H

#include "runtime/core.h"
#include "platform/count.h"

/* Words start here: where the library is tested they overflow at once. */
#if defined(QUIESCE_SIM) || defined(QUIESCE_PERTURB) || defined(QUIESCE_DEBUG_WRAP)
#define QUIESCE_PERCPU_START (UINT64_MAX - 1)
#else
#define QUIESCE_PERCPU_START 0
#endif

/* Allocate @percpu's sets, of @words words, unless it has them: any thread may come first, also in a
 * signal handler.  0 or -ENOMEM; the object works without, as a set that all share. */
int quiesce__percpu_open(struct quiesce_percpu *percpu, uint32_t words);
/* Give them back; nobody counts there any more. */
void quiesce__percpu_close(struct quiesce_percpu *percpu);
/* For a word "open": where programs may count now; 0: they cannot, or the sets are not there. */
uint64_t quiesce__percpu_open_word(const struct quiesce_percpu *percpu);

/* Add one to word @index: in a set, in a sequence or by a locked instruction; in @shared, the object's own set, if there
 * are none, or none for the thread's id.  A release; true: and a full fence. */
bool quiesce__percpu_add(struct quiesce_percpu *percpu, uint64_t *shared, uint32_t index);

/* How many have counted in word @entered and not in word @left.  Those who left are summed first: whoever is
 * among them is then among those who entered, so zero means that all who were there before the call have left,
 * and what they did before is visible.  A number that includes who came meanwhile, else. */
uint64_t quiesce__percpu_inside(const struct quiesce_percpu *percpu, const uint64_t *shared, uint32_t entered, uint32_t left);

/* How many sets a sum reads. */
uint64_t quiesce__percpu_nr(const struct quiesce_percpu *percpu);

/* In a child of fork(): who is inside has left, because the child has none of these threads. */
void quiesce__percpu_all_left(struct quiesce_percpu *percpu, uint64_t *shared, uint32_t entered, uint32_t left);

/* How many have counted in word @index, ever; less than that if some do now. */
uint64_t quiesce__percpu_total(const struct quiesce_percpu *percpu, const uint64_t *shared, uint32_t index);

/* Does any thread of this process count in restartable sequences?  Known when there are counters. */
static inline bool quiesce__percpu_sequences(void)
{
	return quiesce__sequences.area != 0;
}

void quiesce__percpu_fork_prepare(void);
void quiesce__percpu_fork_parent(void);
void quiesce__percpu_fork_child(void);

#endif
