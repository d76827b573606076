/* SPDX-License-Identifier: MIT */
/* count.h - count in a restartable sequence by a call, for code that cannot do it inline.
 *
 * The id is the concurrency id, or the CPU number if the kernel or the program selects that.  A sequence may
 * first check a word of the object, "closed".  Returns false if it did not count: there is no sequence, no
 * counter for this id, or *closed is not 0.  As in quiesce/detail/percpu.h a count is relaxed or a release,
 * and the check may be an acquire.
 */
#ifndef QUIESCE_COUNT_H
#define QUIESCE_COUNT_H

#include <quiesce/detail/percpu.h>

/* Offsets from the thread pointer, and the limit of the ids that have counters, in bytes; fixed before there
 * are counters. */
struct quiesce__sequences {
	int64_t area; /* 0: there are no sequences */
	int64_t id;
	uint64_t limit;
};
extern struct quiesce__sequences quiesce__sequences;

#if defined(QUIESCE_SIM)
/* A planted bug: the check comes before the sequence. */
#define QUIESCE_LOOKS_FIRST QUIESCE_MUTANT(count_looks_first)
bool quiesce__count_call_sim(const struct quiesce_percpu *percpu, size_t offset, const uint64_t *closed, bool acquire, bool release,
			     const char *label);
#define quiesce_count_relaxed(percpu, offset) /* Relaxed: the caller says why. */ \
	quiesce__count_call_sim(percpu, offset, NULL, false, false, "")
#define quiesce_count_release_always(label, percpu, offset) \
	quiesce__count_call_sim(percpu, offset, NULL, false, !quiesce_weakened(label, RELEASE), #label)
#define quiesce_count_unless(label, percpu, offset, closed) \
	quiesce__count_call_sim(percpu, offset, closed, !quiesce_weakened(label, ACQUIRE), false, #label)
#define quiesce_count_release_unless(label, percpu, offset, closed) \
	quiesce__count_call_sim(percpu, offset, closed, false, !quiesce_weakened(label, RELEASE), #label)
#else
bool quiesce__count_call(const struct quiesce_percpu *percpu, size_t offset, const uint64_t *closed);
static inline bool quiesce__count_if_any(const struct quiesce_percpu *percpu, size_t offset, const uint64_t *closed)
{
	return quiesce__sequences.area && quiesce__count_call(percpu, offset, closed);
}
#define quiesce_count_relaxed(percpu, offset) quiesce__count_if_any((percpu), (offset), NULL) /* Relaxed: a release is more. */
#define quiesce_count_release_always(label, percpu, offset) quiesce__count_if_any((percpu), (offset), NULL)
#define quiesce_count_unless(label, percpu, offset, closed) quiesce__count_if_any((percpu), (offset), (closed))
#define quiesce_count_release_unless(label, percpu, offset, closed) quiesce__count_if_any((percpu), (offset), (closed))
#endif

#endif
