/* SPDX-License-Identifier: MIT */
/* hazptr_cohort.c - objects that are retired into a group, and waiting for the group.
 *
 * I1. Whoever retires takes the list now and then and reclaims it, several at a time, so that
 *     reclaiming keeps up with retiring.
 * I2. The list is taken, and what is protected is put back, under the lock, and @inside counts who is in
 *     between: so when the list is empty and nobody is inside, everything has been reclaimed.
 */
#include "hazptr.h"

static struct quiesce__lock *lock_of(struct hazptr_cohort *cohort)
{
	return (struct quiesce__lock *)&cohort->lock;
}

/* Take what is there, to reclaim it; NULL: nothing.  @ret_gone: what to sleep on, and if nobody is inside either. */
static struct hazptr_head *enter(struct hazptr_cohort *cohort, uint32_t *ret_gone, bool *ret_done)
{
	struct hazptr_head *list;

	quiesce__lock(lock_of(cohort));
	list = quiesce__hazptr_take(&cohort->list);
	*ret_done = !list && !cohort->inside;
	*ret_gone = quiesce_load_relaxed(&cohort->gone); /* Relaxed: under the lock. */
	cohort->inside += list != NULL;
	quiesce__unlock(lock_of(cohort));
	return list;
}

static void leave(struct hazptr_cohort *cohort, struct hazptr_head *kept)
{
	quiesce__lock(lock_of(cohort));
	quiesce__hazptr_push_list(&cohort->list, kept);
	cohort->inside--;
	quiesce_store_relaxed(&cohort->gone, cohort->gone + 1); /* Relaxed: under the lock. */
	/* Under the lock, because who waits may destroy the cohort as soon as it gets it. */
	platform_futex_wake(&cohort->gone, INT32_MAX);
	quiesce__unlock(lock_of(cohort));
}

/* Outside the gate, unless in a callback of call_rcu(). */
static void run(struct hazptr_head **ready, uint32_t nr)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	uint32_t ungated = self->state & (QUIESCE_TLS_IN_CALLBACK | QUIESCE_TLS_HELPER) ? 0 : QUIESCE_TLS_UNGATED;

	self->state |= ungated;
	quiesce__hazptr_run_list(ready, nr);
	self->state &= ~ungated;
}

/* False if the wait was misuse. */
static bool reclaim(struct hazptr_cohort *cohort, struct hazptr_head *list, bool wait)
{
	struct quiesce__reclaim parts;
	bool waited = true;

	quiesce__hazptr_part(list, &parts);
	run(&parts.ready, UINT32_MAX);
	if (wait && parts.kept) {
		waited = quiesce__hazptr_wait_for(parts.kept);
		if (waited)
			run(&parts.kept, 1); /* the wait has proved it */
	}
	leave(cohort, parts.kept);
	return waited;
}

void quiesce_call_hazptr_cohort(struct hazptr_cohort *cohort, struct hazptr_head *head, void (*func)(struct hazptr_head *head))
{
	struct hazptr_head *list;
	uint32_t gone;
	uint64_t nr;
	bool done;

	if (quiesce_unlikely(!cohort || !head || !func)) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "call_hazptr_cohort() with a NULL %s",
				!cohort ? "cohort" : head ? "function" : "hazptr_head");
		return;
	}
	quiesce__init();
	quiesce__fork_check();
	quiesce__used();
	head->func = func;
	quiesce__hazptr_count_pushed();
	nr = quiesce_fetch_add_relaxed(&cohort->nr, (uint64_t)1) + 1; /* Relaxed: when to look is a policy. */
	quiesce__hazptr_push(&cohort->list, head); /* the last touch, unless there is a batch */
	if (nr % QUIESCE_HAZPTR_BATCH || (quiesce__self()->state & QUIESCE_TLS_IN_HAZPTR))
		return;
	list = enter(cohort, &gone, &done);
	if (list)
		reclaim(cohort, list, false);
}

void quiesce_synchronize_hazptr_cohort(struct hazptr_cohort *cohort)
{
	bool done = false;

	quiesce__init();
	quiesce__fork_check();
	if (quiesce__self()->state & QUIESCE_TLS_CALLBACKS) {
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_CALLBACK,
				"synchronize_hazptr_cohort() inside a callback would wait for itself");
		return;
	}
	while (!done) {
		uint32_t gone;
		struct hazptr_head *list = enter(cohort, &gone, &done);

		if (list && !reclaim(cohort, list, true))
			return;
		if (!list && !done)
			platform_futex_wait(&cohort->gone, gone, PLATFORM_FOREVER);
	}
}
