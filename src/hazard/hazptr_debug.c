/* SPDX-License-Identifier: MIT */
/* hazptr_debug.c - slots of programs built with QUIESCE_DEBUG: which thread has taken which. */
#include <quiesce/detail/claim.h>

#include "runtime/held.h"

void quiesce__slot_taken_debug(const void *slot)
{
	if (slot)
		quiesce__held_add(slot, QUIESCE_HELD_SLOT, __builtin_return_address(0));
}

/* Before it is free: nobody has taken it again. */
void quiesce__slot_given_back_debug(const void *slot)
{
	quiesce__held_remove(slot, QUIESCE_HELD_SLOT);
}
