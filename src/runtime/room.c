/* SPDX-License-Identifier: MIT */
/* room.c - room for an array that grows and never moves.
 *
 * What is reserved counts: as part of the process's size, and for mlockall() as if it were memory, which an ordinary user may lock
 * some megabytes of.  So few bytes are reserved; what follows them is left free, where the kernel puts nothing by itself, and is
 * mapped when it is needed.
 *
 * I1. Nothing is mapped over what somebody else has mapped there: then the room is as full as where there is no memory.
 * I2. The first bytes are made usable by whoever needs them, several at once as it may be: that can be repeated.  Those beyond are
 *     mapped by one thread at a time, because a second one could not tell its own mapping from a stranger's.
 * I3. Bytes beyond are added in order, and stay.
 * I4. A child whose parent was adding something does not know whether that is there, and adds nothing more.
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
	return offset < quiesce_load_relaxed(&room->there); /* Relaxed: a thread that reads it late can use what is mapped. */
}

/* Under the lock. */
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
