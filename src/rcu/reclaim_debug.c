/* SPDX-License-Identifier: MIT */
/* reclaim_debug.c - call_rcu() and kfree_rcu() of programs built with QUIESCE_DEBUG, which report an object that is queued twice. */
#include "reclaim_debug.h"

#include "reclaim.h"

#include "runtime/debug_pending.h"
#include "runtime/object.h"
#include "runtime/run.h"

/* Called in place of the program's function, which may also be the offset of an object for free(). */
void quiesce__rcu_run_recorded(struct rcu_head *head)
{
	const struct quiesce__run *run = quiesce__self()->runs;
	uintptr_t func = quiesce__pending_take(head), *named = run ? run->named : NULL;

	/* Relaxed: for reports, which are to name the program's function.  Callbacks of SRCU have no @named, only their run. */
	if (func && named && quiesce_load_relaxed(named) == (uintptr_t)quiesce__rcu_run_recorded)
		quiesce_store_relaxed(named, func); /* Relaxed: for reports. */
	else
		quiesce__run_record_func(func);
	if (func > QUIESCE_KFREE_OFFSET_MAX)
		((void (*)(struct rcu_head *))func)(head);
	else if (func)
		quiesce__object_free_in_heap((char *)head - (func - 1));
}

void quiesce__call_rcu_debug(struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes)
{
	const char *call = (uintptr_t)func <= QUIESCE_KFREE_OFFSET_MAX ? "kfree_rcu()" : "call_rcu()";
	enum quiesce__pending how = QUIESCE_PENDING_UNRECORDED;

	if (head && func)
		how = quiesce__pending_add(head, (uintptr_t)func, call, quiesce__caller());
	if (how != QUIESCE_PENDING_TWICE)
		quiesce_call_rcu(head, how == QUIESCE_PENDING_RECORDED ? quiesce__rcu_run_recorded : func, bytes);
}
