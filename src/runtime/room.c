/* SPDX-License-Identifier: MIT */
/* room.c - address space for an array that grows and never moves.
 *
 * Reserved address space counts towards the size of the process, and mlockall() treats it as memory, of which
 * an ordinary user may lock a few megabytes.  So little is reserved; the addresses after it are left free,
 * where the kernel maps nothing by itself, and are mapped when they are needed.
 *
 * I1. Nothing is mapped over another mapping.  Where one is in the way the room is closed for good.
 * I2. The reserved bytes may be committed by several threads at once: a commit can be repeated.  Bytes beyond
 *     them are mapped by one thread at a time, because a second thread could not distinguish the first one's mapping
 *     from a foreign one.
 * I3. Bytes beyond the reserved ones are added in order, and stay.
 * I4. A child that was forked during such a mapping does not know whether it was made, and maps nothing more.
 * I5. Callers come back as often as they need memory.  In a closed room they make no system call; where there was no memory, all
 *     of them together make one attempt in RETRY_NS.
 */
#include "room.h"

#include <errno.h>

#include "pace.h"

#define RETRY_NS 10000000u

bool quiesce__room_init(struct quiesce__room *room, size_t reserved, size_t bytes)
{
	reserved = (reserved + QUIESCE_ROOM_STEP - 1) / QUIESCE_ROOM_STEP * QUIESCE_ROOM_STEP;
	*room = (struct quiesce__room){ .start = platform_room(reserved, bytes > reserved ? bytes : reserved), .reserved = reserved,
					.mapped = reserved };
	return room->start != NULL;
}

static bool is_mapped(const struct quiesce__room *room, size_t offset)
{
	return offset < quiesce_load_relaxed(&room->mapped); /* Relaxed: a thread that reads an old value only uses less than is mapped. */
}

static bool is_closed(const struct quiesce__room *room)
{
	return quiesce_load_relaxed(&room->closed); /* Relaxed: a thread that reads it late finds the same out by itself. */
}

/* Map further steps until @offset is usable.  Under the lock. */
static bool add_beyond(struct quiesce__room *room, size_t offset)
{
	while (!is_mapped(room, offset) && !is_closed(room)) {
		size_t mapped = quiesce_load_relaxed(&room->mapped); /* Relaxed: under the lock. */
		int err;

		room->adding = true;
		err = platform_room_extend(room->start + mapped, QUIESCE_ROOM_STEP);
		if (!err)
			quiesce_store_relaxed(&room->mapped, mapped + QUIESCE_ROOM_STEP); /* Relaxed: as in is_mapped(). */
		if (err == -EEXIST)
			quiesce_store_relaxed(&room->closed, true); /* Relaxed: as in is_closed(). */
		room->adding = false;
		if (err)
			break;
	}
	return is_mapped(room, offset);
}

static bool lock_and_add(struct quiesce__room *room, size_t offset)
{
	struct platform_sigmask mask;
	bool added;

	platform_signals_block(&mask);
	quiesce__lock(&room->lock);
	added = add_beyond(room, offset);
	quiesce__unlock(&room->lock);
	platform_signals_restore(&mask);
	return added;
}

bool quiesce__room_add(struct quiesce__room *room, size_t offset)
{
	bool beyond = offset >= room->reserved, added;

	if (beyond && (is_mapped(room, offset) || is_closed(room)))
		return is_mapped(room, offset);
	/* Relaxed: an attempt too many does no harm. */
	if (quiesce_load_relaxed(&room->failed) && !quiesce__pace(&room->retry_at, RETRY_NS))
		return false;
	added = beyond ? lock_and_add(room, offset) : platform_commit(room->start + offset, QUIESCE_ROOM_STEP) == 0;
	if (!added)
		quiesce__pace_begin(&room->retry_at, RETRY_NS);
	quiesce_store_relaxed(&room->failed, !added); /* Relaxed: as above. */
	return added;
}

void quiesce__room_fork_child(struct quiesce__room *room)
{
	quiesce__lock_reset(&room->lock, false);
	room->closed |= room->adding;
	room->adding = room->failed = false;
}
