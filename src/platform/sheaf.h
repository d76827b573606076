/* SPDX-License-Identifier: MIT */
/* sheaf.h - move several objects into or out of the sheaf of the thread's id, in a restartable sequence by a call.
 *
 * The id is the concurrency id, or the CPU number if the kernel or the program selects that (count.h).  The sequence first
 * checks a word of the cache, "closed".  Where there are no sequences nothing is moved.
 */
#ifndef QUIESCE_SHEAF_H
#define QUIESCE_SHEAF_H

#include "platform/count.h"

#include <quiesce/detail/sheaf.h>

struct quiesce__sheaf_row {
	const uint64_t *closed;
	char *base;     /* the sheaf of id 0 */
	uint64_t limit; /* most objects of a sheaf */
	void **object;
	uint64_t nr;    /* objects to move, at least 1 */
};

/* Move the last objects of the sheaf to the row, or the first objects of the row to the sheaf.  Returns how many; 0 also if
 * *@closed is not 0, or there is no sheaf for this id.  Both are acquires of
 * the word, and adding is a release. */
#if defined(QUIESCE_SIM)
uint64_t quiesce__sheaf_take_sim(const struct quiesce__sheaf_row *row, bool acquire, const char *label);
uint64_t quiesce__sheaf_add_sim(const struct quiesce__sheaf_row *row, bool acquire, bool release, const char *label);
#define quiesce_sheaf_take(label, row) quiesce__sheaf_take_sim((row), !quiesce_weakened(label, ACQUIRE), #label)
#define quiesce_sheaf_add(label, row) \
	quiesce__sheaf_add_sim((row), !quiesce_weakened(label, ACQUIRE), !quiesce_weakened(label, RELEASE), #label)
#else
uint64_t quiesce__sheaf_take(const struct quiesce__sheaf_row *row);
uint64_t quiesce__sheaf_add(const struct quiesce__sheaf_row *row);
#define quiesce_sheaf_take(label, row) quiesce__sheaf_take(row)
#define quiesce_sheaf_add(label, row) quiesce__sheaf_add(row)
#endif

#endif
