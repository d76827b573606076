/* SPDX-License-Identifier: MIT */
/* room.c - address space for an array that grows and never moves.
 *
 * Reserved address space counts towards the size of the process, and mlockall() treats it as memory, of which
 * an ordinary user may lock a few megabytes.  So little is reserved; the addresses after it are left free,
 * where the kernel maps nothing by itself, and are mapped when they are needed.
 *
 * I1. Nothing is mapped over another mapping: where one is in the way, the array cannot grow, as where memory
 *     is exhausted.
 * I2. The reserved bytes may be committed by several threads at once: a commit can be repeated.  Bytes beyond
 *     them are mapped by one thread at a time, because a second thread could not distinguish the first one's mapping
 *     from a foreign one.
 * I3. Bytes beyond the reserved ones are added in order, and stay.
 * I4. A child that was forked during such a mapping does not know whether it was made, and maps nothing more.
 */
#include "room.h"

bool quiesce__room_init(struct quiesce__room *room, size_t sure, size_t bytes)
{
	sure = (sure + QUIESCE_ROOM_STEP - 1) / QUIESCE_ROOM_STEP * QUIESCE_ROOM_STEP;
	*room = (struct quiesce__room){ .start = platform_room(sure, bytes > sure ? bytes : sure), .first = sure, .there = sure };
	return room->start != NULL;
}

static bool is_there(const struct quiesce__room *room, size_t offset)
{
	return offset < quiesce_load_relaxed(&room->there); /* Relaxed: a thread that reads an old value only uses less than is mapped. */
}

/* Map further steps until @offset is usable.  Under the lock. */
static bool add_beyond(struct quiesce__room *room, size_t offset)
{
	while (!is_there(room, offset) && !room->closed) {
		size_t there = quiesce_load_relaxed(&room->there); /* Relaxed: under the lock. */

		room->adding = true;
		if (platform_room_extend(room->start + there, QUIESCE_ROOM_STEP) == 0)
			quiesce_store_relaxed(&room->there, there + QUIESCE_ROOM_STEP); /* Relaxed: as in is_there(). */
		room->adding = false;
		if (!is_there(room, there))
			break;
	}
	return is_there(room, offset);
}

bool quiesce__room_add(struct quiesce__room *room, size_t offset)
{
	struct platform_sigmask mask;
	bool added;

	if (offset < room->first)
		return platform_commit(room->start + offset, QUIESCE_ROOM_STEP) == 0;
	if (is_there(room, offset))
		return true;
	platform_signals_block(&mask);
	quiesce__lock(&room->lock);
	added = add_beyond(room, offset);
	quiesce__unlock(&room->lock);
	platform_signals_restore(&mask);
	return added;
}

void quiesce__room_fork_child(struct quiesce__room *room)
{
	quiesce__lock_reset(&room->lock, false);
	room->closed |= room->adding;
	room->adding = false;
}
