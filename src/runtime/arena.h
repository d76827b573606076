/* SPDX-License-Identifier: MIT */
/* arena.h - address space for an array that grows and never moves. */
#ifndef QUIESCE_ARENA_H
#define QUIESCE_ARENA_H

#include "core.h"

#define QUIESCE_ARENA_INCREMENT ((size_t)65536) /* number of bytes that become usable at a time */

struct quiesce__arena {
	char *start;
	size_t reserved; /* bytes of reserved address space */
	size_t mapped;   /* bytes that are reserved or mapped */
	bool extending;  /* a mapping beyond the reserved bytes is being made; under the lock */
	bool closed;     /* no more can ever be mapped beyond the reserved bytes; written under the lock */
	bool failed;     /* the last attempt to map more failed; the next one is made at @retry_at */
	uint64_t retry_at;
	struct quiesce__lock lock; /* guards mappings beyond the reserved bytes; signals are blocked while it is held */
};

/* Reserve address space for @bytes, of which the first @reserved are guaranteed as long as memory is available;
 * none is usable yet.  False: no address space. */
bool quiesce__arena_init(struct quiesce__arena *arena, size_t reserved, size_t bytes);
/* Make one increment of bytes from @offset, a multiple of the increment, usable; false: not now. */
bool quiesce__arena_extend(struct quiesce__arena *arena, size_t offset);
void quiesce__arena_fork_child(struct quiesce__arena *arena);

#endif
