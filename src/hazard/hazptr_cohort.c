/* SPDX-License-Identifier: MIT */
/* hazptr_cohort.c - objects that are retired into a group, and waiting for the group.
 *
 *              list        back[0]     back[1]
 *   pushed:    by all      by those inside of side 0, of side 1: what was protected, and what their callbacks retire
 *
 * I1. Whoever retires takes the list now and then and reclaims it, several at a time, so that
 *     reclaiming keeps up with retiring.
 * I2. Lists are taken, and what is protected is put back, under the lock; inside[] counts who is in between, by the side
 *     that was the current one when they came.
 * I3. One waits at a time.  It makes the other side the current one and takes the list in one step: what was retired before
 *     is then in its hands, in those of who is inside of the old side, or in back[] of that.  Whoever comes later is of the new
 *     side, and what they take, put back or retire is of no concern: so the wait ends, however many come.
 *     When nobody is inside of the old side and its back[] is empty, all of it has been reclaimed, descendants included.
 * I4. A callback may wait for another cohort, that of what it destroys, so one thread may be running callbacks of several, one
 *     inside the other.  self->cohorts has them all: what is retired into any of them goes to its back[], I3.
 * I5. Of the side that is not the current one nothing is left when a wait begins, unless an earlier wait was misuse and gave up.
 */
#include "hazptr.h"

static struct quiesce__lock *lock_of(struct hazptr_cohort *cohort)
{
	return (struct quiesce__lock *)&cohort->lock;
}

/* Who sleeps looks again.  Under the lock, because who waits may destroy the cohort as soon as it gets it. */
static void wake_waiters(struct hazptr_cohort *cohort)
{
	quiesce_store_relaxed(&cohort->gone, cohort->gone + 1); /* Relaxed: under the lock. */
	platform_futex_wake(&cohort->gone, INT32_MAX);
}

/* Let go of the lock, and sleep until woken. */
static void unlock_and_sleep(struct hazptr_cohort *cohort)
{
	uint32_t gone = quiesce_load_relaxed(&cohort->gone); /* Relaxed: under the lock. */

	quiesce__unlock(lock_of(cohort));
	platform_futex_wait(&cohort->gone, gone, PLATFORM_FOREVER);
}

/* On the stack of who runs callbacks: what they retire into the cohort goes to @back. */
struct running {
	struct hazptr_head **back;
	const struct running *outer; /* the callback that waits for this cohort is one of that */
};

/* Where what the calling thread's callbacks retire into @cohort goes; NULL: it is running none of that. */
static struct hazptr_head **back_of(const struct hazptr_cohort *cohort)
{
	const struct running *r = (const struct running *)quiesce__self()->cohorts;

	for (; r; r = QUIESCE_MUTANT(cohort_outer_fresh) ? NULL : r->outer)
		if (r->back == &cohort->back[0] || r->back == &cohort->back[1])
			return r->back;
	return NULL;
}

/* Outside the gate, unless in another callback. */
static void run(struct hazptr_head **ready, uint32_t nr, struct hazptr_head **back)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	uint32_t ungated = self->state & QUIESCE_TLS_CALLBACKS ? 0 : QUIESCE_TLS_UNGATED;
	struct running here = { back, (const struct running *)self->cohorts };

	self->state |= ungated;
	self->cohorts = &here;
	quiesce__hazptr_run_list(ready, nr);
	self->cohorts = here.outer;
	self->state &= ~ungated;
}

/* ---- who retires ---- */

/* Where to push what the caller retires. */
static struct hazptr_head **list_of(struct hazptr_cohort *cohort)
{
	struct hazptr_head **back = back_of(cohort);

	return back && !QUIESCE_MUTANT(cohort_child_fresh) ? back : &cohort->list;
}

/* One that completes a batch: reclaim what may be reclaimed. */
static void reclaim_some(struct hazptr_cohort *cohort)
{
	struct quiesce__reclaim parts[2];
	struct hazptr_head *list[2], **back;
	uint32_t side;

	quiesce__lock(lock_of(cohort));
	side = cohort->side;
	list[0] = quiesce__hazptr_take(&cohort->list);
	list[1] = quiesce__hazptr_take(&cohort->back[side]);
	cohort->inside[side]++;
	quiesce__unlock(lock_of(cohort));
	for (uint32_t i = 0; i < 2; i++) {
		parts[i].kept = NULL;
		if (!list[i])
			continue;
		quiesce__hazptr_part(list[i], &parts[i]);
		run(&parts[i].ready, UINT32_MAX, &cohort->back[side]);
	}
	quiesce__lock(lock_of(cohort));
	back = &cohort->back[QUIESCE_MUTANT(cohort_back_fresh) ? cohort->side : side];
	quiesce__hazptr_push_list(back, parts[0].kept);
	quiesce__hazptr_push_list(back, parts[1].kept);
	cohort->inside[side]--;
	wake_waiters(cohort);
	quiesce__unlock(lock_of(cohort));
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
	nr = quiesce_fetch_add_relaxed(&cohort->nr, (uint64_t)1) + 1; /* Relaxed: when to look is a policy. */
	quiesce__hazptr_push(list_of(cohort), head); /* the last touch, unless there is a batch */
	if (nr % quiesce__batch_least(NULL) || (quiesce__self()->state & QUIESCE_TLS_IN_HAZPTR))
		return;
	reclaim_some(cohort);
}

/* ---- who waits ---- */

/* All of @list, of @side.  False if the wait was misuse. */
static bool reclaim_all(struct hazptr_cohort *cohort, uint32_t side, struct hazptr_head *list)
{
	struct hazptr_head **back = &cohort->back[side];
	struct quiesce__reclaim parts;

	while (list) {
		quiesce__hazptr_part(list, &parts);
		run(&parts.ready, UINT32_MAX, back);
		list = parts.kept;
		if (!list)
			break;
		if (!quiesce__hazptr_wait_for(list, "synchronize_hazptr_cohort")) {
			quiesce__hazptr_push_list(back, list);
			return false;
		}
		run(&list, 1, back); /* the wait has proved it */
	}
	return true;
}

/* Until @side is empty and nobody is inside of it.  @turn: it was the current one till now, and all of the list is its. */
static bool drain(struct hazptr_cohort *cohort, uint32_t side, bool turn)
{
	for (;; turn = false) {
		struct hazptr_head *list;

		quiesce__lock(lock_of(cohort));
		if (turn)
			cohort->side = !side;
		list = quiesce__hazptr_take(turn ? &cohort->list : &cohort->back[side]);
		if (!list && !turn && !cohort->inside[side]) {
			quiesce__unlock(lock_of(cohort));
			return true;
		}
		if (!list && !turn) {
			unlock_and_sleep(cohort);
			continue;
		}
		quiesce__unlock(lock_of(cohort));
		if (!reclaim_all(cohort, side, list))
			return false;
	}
}

/* Be the one that waits.  Returns the current side. */
static uint32_t begin_wait(struct hazptr_cohort *cohort)
{
	uint32_t side;

	quiesce__lock(lock_of(cohort));
	while (cohort->waiter) {
		unlock_and_sleep(cohort);
		quiesce__lock(lock_of(cohort));
	}
	cohort->waiter = 1;
	side = cohort->side;
	quiesce__unlock(lock_of(cohort));
	return side;
}

static void end_wait(struct hazptr_cohort *cohort)
{
	quiesce__lock(lock_of(cohort));
	cohort->waiter = 0;
	wake_waiters(cohort);
	quiesce__unlock(lock_of(cohort));
}

void quiesce_synchronize_hazptr_cohort(struct hazptr_cohort *cohort)
{
	uint32_t side;

	if (quiesce_unlikely(!cohort)) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "synchronize_hazptr_cohort() with a NULL cohort");
		return;
	}
	quiesce__init();
	quiesce__fork_check();
	if (back_of(cohort)) {
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_CALLBACK,
				"synchronize_hazptr_cohort() inside a callback of the cohort would wait for itself");
		return;
	}
	side = begin_wait(cohort);
	if (drain(cohort, !side, false)) /* I5 */
		drain(cohort, side, true);
	end_wait(cohort);
}
