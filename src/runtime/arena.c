/* SPDX-License-Identifier: MIT */
/* arena.c - address space for an array that grows and never moves.
 *
 * Reserved address space counts towards the size of the process, and mlockall() treats it as memory, of which
 * an ordinary user may lock a few megabytes.  So little is reserved; the addresses after it are left free,
 * where the kernel maps nothing by itself, and are mapped when they are needed.
 *
 * I1. Nothing is mapped over another mapping.  Where the next addresses are taken the arena is closed for good.
 * I2. The reserved bytes may be committed by several threads at once: a commit can be repeated.  Bytes beyond
 *     them are mapped by one thread at a time, because a second thread could not distinguish the first one's mapping
 *     from a foreign one.
 * I3. Bytes beyond the reserved ones are mapped in order, and stay.
 * I4. A child that was forked during such a mapping does not know whether it was made, and maps nothing more.
 * I5. Callers try again whenever they need memory.  In a closed arena they make no system call; where there was no memory, all
 *     of them together make one attempt in RETRY_NS.
 */
#include "arena.h"

#include <errno.h>

#include "pace.h"

#define RETRY_NS 10000000u

bool quiesce__arena_init(struct quiesce__arena *arena, size_t reserved, size_t bytes)
{
	reserved = (reserved + QUIESCE_ARENA_INCREMENT - 1) / QUIESCE_ARENA_INCREMENT * QUIESCE_ARENA_INCREMENT;
	*arena = (struct quiesce__arena){
		.start = platform_arena_reserve(reserved, bytes > reserved ? bytes : reserved), .reserved = reserved, .mapped = reserved,
	};
	return arena->start != NULL;
}

static bool is_mapped(const struct quiesce__arena *arena, size_t offset)
{
	return offset < quiesce_load_relaxed(&arena->mapped); /* Relaxed: a thread that reads an old value only uses less than is mapped. */
}

static bool is_closed(const struct quiesce__arena *arena)
{
	return quiesce_load_relaxed(&arena->closed); /* Relaxed: a thread that reads it late finds the same out by itself. */
}

/* Map further increments until @offset is usable.  Under the lock. */
static bool extend_locked(struct quiesce__arena *arena, size_t offset)
{
	while (!is_mapped(arena, offset) && !is_closed(arena)) {
		size_t mapped = quiesce_load_relaxed(&arena->mapped); /* Relaxed: under the lock. */
		int err;

		arena->extending = true;
		err = platform_arena_extend(arena->start + mapped, QUIESCE_ARENA_INCREMENT);
		if (!err)
			quiesce_store_relaxed(&arena->mapped, mapped + QUIESCE_ARENA_INCREMENT); /* Relaxed: as in is_mapped(). */
		if (err == -EEXIST)
			quiesce_store_relaxed(&arena->closed, true); /* Relaxed: as in is_closed(). */
		arena->extending = false;
		if (err)
			break;
	}
	return is_mapped(arena, offset);
}

static bool lock_and_extend(struct quiesce__arena *arena, size_t offset)
{
	struct platform_sigmask mask;
	bool extended;

	platform_signals_block(&mask);
	quiesce__lock(&arena->lock);
	extended = extend_locked(arena, offset);
	quiesce__unlock(&arena->lock);
	platform_signals_restore(&mask);
	return extended;
}

bool quiesce__arena_extend(struct quiesce__arena *arena, size_t offset)
{
	bool beyond = offset >= arena->reserved, extended;

	if (beyond && (is_mapped(arena, offset) || is_closed(arena)))
		return is_mapped(arena, offset);
	/* Relaxed: an attempt too many does no harm. */
	if (quiesce_load_relaxed(&arena->failed) && !quiesce__pace_claim(&arena->retry_at, RETRY_NS))
		return false;
	extended = beyond ? lock_and_extend(arena, offset) : platform_commit(arena->start + offset, QUIESCE_ARENA_INCREMENT) == 0;
	if (!extended)
		quiesce__pace_begin(&arena->retry_at, RETRY_NS);
	quiesce_store_relaxed(&arena->failed, !extended); /* Relaxed: as above. */
	return extended;
}

void quiesce__arena_fork_child(struct quiesce__arena *arena)
{
	quiesce__lock_reset(&arena->lock, false);
	arena->closed |= arena->extending;
	arena->extending = arena->failed = false;
}
