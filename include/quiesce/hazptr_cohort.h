/* SPDX-License-Identifier: MIT */
/* quiesce/hazptr_cohort.h - cohorts: retire objects into a group, and wait for the group.  Included by hazptr.h.
 *
 *	static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;
 *
 *	call_hazptr_cohort(&cohort, &node->hazptr, node_free);  // while the structure lives
 *	synchronize_hazptr_cohort(&cohort);                     // all of its nodes are gone; it may be destroyed
 */
#ifndef QUIESCE_HAZPTR_COHORT_H
#define QUIESCE_HAZPTR_COHORT_H

#include <quiesce/hazptr.h>

QUIESCE_BEGIN_DECLS

/* Objects that are retired together, such as those of one structure that will be destroyed. */
struct hazptr_cohort {
	struct hazptr_head *list, *back[2]; /* private */
	uint64_t nr;
	uint32_t lock, gone, inside[2], side, waiter;
};
#define HAZPTR_COHORT_INIT { NULL, { NULL, NULL }, 0, 0, 0, { 0, 0 }, 0, 0 }

QUIESCE_API void quiesce_call_hazptr_cohort(struct hazptr_cohort *cohort, struct hazptr_head *head,
					    void (*func)(struct hazptr_head *head));
QUIESCE_API void quiesce__call_hazptr_cohort_debug(struct hazptr_cohort *cohort, struct hazptr_head *head,
						   void (*func)(struct hazptr_head *head));
#ifdef QUIESCE_DEBUG
#define QUIESCE__CALL_HAZPTR_COHORT quiesce__call_hazptr_cohort_debug
#else
#define QUIESCE__CALL_HAZPTR_COHORT quiesce_call_hazptr_cohort
#endif
QUIESCE_API void quiesce_synchronize_hazptr_cohort(struct hazptr_cohort *cohort);

/** call_hazptr_cohort - call_hazptr() into @cohort.
 *
 * Any number of threads may retire into a cohort.  They share one list, so each call takes a locked instruction.
 * Nothing but these two calls reclaims what is in it: callbacks run in the caller, once per batch, so it must hold no
 * lock that they take.  What is left of a batch whose callback ends its thread is the next batch's.
 * Context: as call_hazptr_inline(); it may wait for the cohort's lock, which is short. */
static inline void call_hazptr_cohort(struct hazptr_cohort *cohort, struct hazptr_head *head,
				      void (*func)(struct hazptr_head *head))
{
	QUIESCE__CALL_HAZPTR_COHORT(cohort, head, func);
}

/** synchronize_hazptr_cohort - wait until everything that was retired into @cohort before the call has been reclaimed,
 *   and what its callbacks retire into @cohort, and so on.
 *
 * It does not wait for what other threads retire meanwhile, so it ends beside threads that go on retiring.  Several may call
 * it at once; they go one after the other.
 * Runs callbacks in the caller.  Context: as hazptr_barrier(), but also in callbacks: of another cohort, of call_hazptr(),
 * call_rcu() and the like, so a cohort may be a member of a retired object.  Then nobody may wait for that callback while
 * they protect a member.  In a callback of this very cohort, or of one that such a callback waits for: reported, aborts.
 * Afterwards, if nobody retires into it any more, its memory may go away. */
static inline void synchronize_hazptr_cohort(struct hazptr_cohort *cohort) { quiesce_synchronize_hazptr_cohort(cohort); }

QUIESCE_END_DECLS

#endif
