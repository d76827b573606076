/* SPDX-License-Identifier: MIT */
/* srcu_debug.c - sections of programs built with QUIESCE_DEBUG: which thread is in which domain. */
#include "srcu.h"

#include "runtime/held.h"

int quiesce__srcu_lock_debug(struct srcu_struct *ssp)
{
	int idx = quiesce__srcu_read_lock(ssp);

	quiesce__held_add(ssp, QUIESCE_HELD_SRCU, __builtin_return_address(0));
	return idx;
}

void quiesce__srcu_unlock_debug(struct srcu_struct *ssp, int idx)
{
	if (quiesce_unlikely(idx & ~1)) {
		quiesce__misuse(QUIESCE_MISUSE_UNBALANCED_UNLOCK, "srcu_read_unlock(%s) with %d, which no srcu_read_lock() returned",
				quiesce__srcu_name(ssp), idx);
		return;
	}
	quiesce__held_remove(ssp, QUIESCE_HELD_SRCU);
	quiesce__srcu_read_unlock(ssp, idx);
}

int quiesce__srcu_held_debug(const struct srcu_struct *ssp)
{
	return quiesce__held_by_me(ssp, QUIESCE_HELD_SRCU);
}

bool quiesce__srcu_wait_is_misuse(const struct srcu_struct *ssp, const char *what)
{
	if (!quiesce__held_by_me(ssp, QUIESCE_HELD_SRCU))
		return false;
	quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER, "%s(%s) inside a section of that domain would wait for itself", what,
			quiesce__srcu_name(ssp));
	return true;
}
