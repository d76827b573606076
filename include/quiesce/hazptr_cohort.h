/* SPDX-License-Identifier: MIT */
/* quiesce/hazptr_cohort.h - cohorts: retire objects into a group, and wait for the group.
 * Included by hazptr.h.
 *
 *	static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;
 *
 *	call_hazptr_cohort(&cohort, &node->hazptr, node_free);  // while the structure lives
 *	synchronize_hazptr_cohort(&cohort);                     // its nodes are reclaimed; destroy it
 */
#ifndef QUIESCE_HAZPTR_COHORT_H
#define QUIESCE_HAZPTR_COHORT_H

#include <quiesce/hazptr.h>

QUIESCE_BEGIN_DECLS

/* A cohort is a group of objects that are retired, such as those of a structure that will be
 * destroyed. */
struct hazptr_cohort {
	struct hazptr_head *list, *back[2]; /* private */
	uint64_t nr;
	uint32_t lock, wake_seq, inside[2], idx, waiter;
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
 * Any number of threads may retire into a cohort.  They share one list, so each call takes a locked
 * instruction.  Only this call and synchronize_hazptr_cohort() reclaim the objects: callbacks run
 * in the caller, once per batch, so it must hold no lock that they take.  If a callback ends its
 * thread, the rest of its batch is left to the next one.
 * A batch is full by number alone, that of quiesce_set_hazptr_batch() (1024 objects), and not by
 * HAZPTR_BATCH_BYTES: a cohort of objects of 1 MiB keeps a GiB of them.  Where objects are large,
 * set smaller batches, or call synchronize_hazptr_cohort() when as many bytes wait as may.
 * Context: as call_hazptr_inline(); may wait for the cohort's lock, which is held for short times. */
QUIESCE_PLAIN void call_hazptr_cohort(struct hazptr_cohort *cohort, struct hazptr_head *head,
				      void (*func)(struct hazptr_head *head))
{
	QUIESCE__CALL_HAZPTR_COHORT(cohort, head, func);
}

/** synchronize_hazptr_cohort - wait until everything retired into @cohort before the call is
 * reclaimed, and what the callbacks of those objects retire into @cohort, and so on.
 *
 * It does not wait for objects that other threads retire meanwhile, so it ends even while they keep
 * retiring.  Concurrent callers wait one after the other.  Runs callbacks in the caller.
 * Context: as hazptr_barrier(), but also in callbacks: of another cohort, of call_hazptr(),
 *   call_rcu() and the like, so a cohort may be a member of a retired object.  Then no thread may
 *   wait for that callback while it protects a member.  In a callback of this cohort, or of one
 *   that such a callback waits for: reported, aborts.
 * After the call, once no thread retires into @cohort any more, its memory may be freed. */
QUIESCE_PLAIN void synchronize_hazptr_cohort(struct hazptr_cohort *cohort) { quiesce_synchronize_hazptr_cohort(cohort); }

QUIESCE_END_DECLS

#endif
