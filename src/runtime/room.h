/* SPDX-License-Identifier: MIT */
/* room.h - room for an array that grows and never moves. */
#ifndef QUIESCE_ROOM_H
#define QUIESCE_ROOM_H

#include "core.h"

#define QUIESCE_ROOM_STEP ((size_t)65536) /* in which memory is added */

struct quiesce__room {
	char *start;
	size_t first; /* bytes whose addresses are the library's */
	size_t there; /* those beyond are added up to here */
	bool adding;  /* beyond; under the lock */
	bool closed;  /* nothing can be added beyond, for good; written under the lock */
	bool failed;  /* the last attempt to add something failed; then the next one is made at @retry_at */
	uint64_t retry_at;
	struct quiesce__lock lock; /* guards what is added beyond; signals are blocked while it is held */
};

/* Room for @bytes, of which the first @sure are sure to be there when memory is; none of it may be used yet.  False: no room. */
bool quiesce__room_init(struct quiesce__room *room, size_t sure, size_t bytes);
/* Make the bytes from @offset, a multiple of the step, usable, a step of them; false: not now. */
bool quiesce__room_add(struct quiesce__room *room, size_t offset);
void quiesce__room_fork_child(struct quiesce__room *room);

#endif
