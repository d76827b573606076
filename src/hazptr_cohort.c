/* SPDX-License-Identifier: MIT */
/* hazptr_cohort.c - objects that are retired into a group, and waiting for the group.
 *
 * I1. Who reclaims holds the cohort's lock until the callbacks have returned, so who waits
 *     under the lock has waited for them too.
 */
#include "hazptr.h"

static struct quiesce__lock *lock_of(struct hazptr_cohort *cohort)
{
	return (struct quiesce__lock *)&cohort->lock;
}

/* Under the lock: one look; true if nothing is left. */
static bool reclaim(struct hazptr_cohort *cohort, bool wait)
{
	struct hazptr_head *list = quiesce__hazptr_take(&cohort->list), *next;
	struct quiesce__reclaim parts;

	if (!list)
		return true;
	quiesce__hazptr_part(list, &parts);
	quiesce__hazptr_run_list(&parts.ready, UINT32_MAX);
	if (wait && parts.kept)
		quiesce__hazptr_wait_for(parts.kept);
	for (; parts.kept; parts.kept = next) {
		next = parts.kept->next;
		quiesce__hazptr_push(&cohort->list, parts.kept);
	}
	return false;
}

void quiesce_call_hazptr_cohort(struct hazptr_cohort *cohort, struct hazptr_head *head, void (*func)(struct hazptr_head *head))
{
	uint64_t nr;

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
	quiesce__hazptr_push(&cohort->list, head);
	nr = quiesce_fetch_add_relaxed(&cohort->nr, (uint64_t)1) + 1; /* Relaxed: when to look is a policy. */
	if (nr % QUIESCE_HAZPTR_BATCH || (quiesce__self()->state & QUIESCE_TLS_IN_HAZPTR) || !quiesce__trylock(lock_of(cohort)))
		return;
	reclaim(cohort, false);
	quiesce__unlock(lock_of(cohort));
}

void quiesce_synchronize_hazptr_cohort(struct hazptr_cohort *cohort)
{
	quiesce__init();
	quiesce__fork_check();
	if (quiesce__self()->state & QUIESCE_TLS_CALLBACKS) {
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_CALLBACK,
				"synchronize_hazptr_cohort() inside a callback would wait for itself");
		return;
	}
	quiesce__lock(lock_of(cohort));
	while (!reclaim(cohort, true))
		;
	quiesce__unlock(lock_of(cohort));
}
