/* SPDX-License-Identifier: MIT */
/* srcu_debug.c - checked calls, for programs that are built with QUIESCE_DEBUG: which thread is in which domain,
 * whether the end of a section has a beginning, and which callbacks are queued twice. */
#include "srcu.h"

#include "rcu/reclaim_debug.h"
#include "runtime/debug_pending.h"
#include "runtime/held.h"

int quiesce__srcu_lock_debug(struct srcu_struct *ssp)
{
	int idx = quiesce__srcu_read_lock(ssp);

	quiesce__held_add(ssp, QUIESCE_HELD_SRCU, quiesce__caller());
	return idx;
}

/* True if a section with index @idx may be open.  The check uses the counts, not the records of this thread: so it
 * knows sections that release builds or other threads have entered, but a section of another thread can hide a
 * mistake. */
static bool may_be_inside(struct srcu_struct *ssp, int idx, const char *call, const void *site)
{
	struct platform_location here;

	if (quiesce_unlikely(idx & ~1)) {
		quiesce__srcu_bad_index(ssp, idx);
		return false;
	}
	if (quiesce_likely(quiesce__srcu_inside(ssp, (uint32_t)idx) != 0))
		return true;
	quiesce__misuse(QUIESCE_MISUSE_UNBALANCED_UNLOCK, "%s(%s, %d) at %s: no section with that index is open, %s", call,
			quiesce__srcu_name(ssp), idx, platform_location(site, &here),
			quiesce__srcu_inside(ssp, !idx) ? "but one with the other" : "nor one with the other");
	return false;
}

void quiesce__srcu_unlock_debug(struct srcu_struct *ssp, int idx)
{
	if (!may_be_inside(ssp, idx, "srcu_read_unlock", quiesce__caller()))
		return;
	quiesce__held_remove(ssp, QUIESCE_HELD_SRCU);
	quiesce__srcu_read_unlock(ssp, idx);
}

void quiesce__srcu_up_debug(struct srcu_struct *ssp, int idx)
{
	if (may_be_inside(ssp, idx, "srcu_up_read", quiesce__caller()))
		quiesce__srcu_read_unlock(ssp, idx);
}

int quiesce__srcu_held_debug(const struct srcu_struct *ssp)
{
	return quiesce__held_by_me(ssp, QUIESCE_HELD_SRCU);
}

/* A section that began here may have been ended by a part of the program that is a release build: if the domain has
 * no reader, it was, and the records are removed. */
static bool still_inside(struct srcu_struct *ssp)
{
	if (quiesce__srcu_inside(ssp, 0) || quiesce__srcu_inside(ssp, 1))
		return true;
	while (quiesce__held_by_me(ssp, QUIESCE_HELD_SRCU))
		quiesce__held_remove(ssp, QUIESCE_HELD_SRCU);
	return false;
}

bool quiesce__srcu_wait_is_misuse(struct srcu_struct *ssp, const char *what)
{
	const void *began = quiesce__held_since(ssp, QUIESCE_HELD_SRCU);
	struct platform_location where;

	if (!began || !still_inside(ssp))
		return false;
	quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER,
			"%s(%s) inside a section of that domain would wait for itself; the section began at %s", what,
			quiesce__srcu_name(ssp), platform_location(began, &where));
	return true;
}

void quiesce__call_srcu_debug(struct srcu_struct *ssp, struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes)
{
	enum quiesce__pending how = QUIESCE_PENDING_UNRECORDED;

	if (ssp && head && func)
		how = quiesce__pending_add(head, (uintptr_t)func, "call_srcu()", quiesce__caller());
	if (how != QUIESCE_PENDING_TWICE)
		quiesce_call_srcu(ssp, head, how == QUIESCE_PENDING_RECORDED ? quiesce__rcu_run_recorded : func, bytes);
}
