/* SPDX-License-Identifier: MIT */
/* hazptr_cohort.c - objects that are retired together, and the wait for them.
 *
 *              list           back[0]       back[1]
 *   pushed by  all retirers   reclaimers that counted in index 0, in index 1: protected objects, and objects that their callbacks retire
 *
 * I1. Retirers take the list now and then and reclaim it, several at a time, so that reclaiming keeps up with
 *     retiring.
 * I2. Lists are taken, and protected objects put back, under the lock; inside[] counts the reclaimers in
 *     between, by the index that was current when they entered.
 * I3. One waiter at a time.  It makes the other index current and takes the list in one step: objects retired
 *     before are then held by the waiter, by reclaimers counted in the old index, or in back[] of it.
 *     Later reclaimers belong to the new index, and what they take, put back or retire does not matter: so the
 *     wait ends, however many arrive.  When no reclaimer is counted in the old index and its back[] is empty, all
 *     those objects have been reclaimed, and the objects that their callbacks retired.
 * I4. A callback may wait for another cohort, that of the object it destroys, so a thread may run callbacks
 *     of several cohorts, nested.  All of its runs (runtime/run.c) count: an object that is retired into the
 *     cohort of any of them goes to back[] of that cohort, I3.
 * I5. The index that is not current is empty when a wait begins, unless an earlier wait was misuse and gave
 *     up, or a callback ended its thread.
 * I6. The objects that a thread holds are in its struct reclaimer or struct waiter: if a callback ends the
 *     thread they go to back[].
 */
#include "hazptr.h"

#include "runtime/run.h"

static struct quiesce__lock *lock_of(struct hazptr_cohort *cohort)
{
	return (struct quiesce__lock *)&cohort->lock;
}

/* Wake the waiters, which check again.  Under the lock, because a waiter may destroy the cohort as soon as it
 * takes the lock. */
static void wake_waiters(struct hazptr_cohort *cohort)
{
	quiesce_store_relaxed(&cohort->wake_seq, cohort->wake_seq + 1); /* Relaxed: under the lock. */
	platform_futex_wake(&cohort->wake_seq, INT32_MAX);
}

/* Release the lock, and sleep until woken. */
static void unlock_and_sleep(struct hazptr_cohort *cohort)
{
	uint32_t seq = quiesce_load_relaxed(&cohort->wake_seq); /* Relaxed: under the lock. */

	quiesce__unlock(lock_of(cohort));
	platform_futex_wait(&cohort->wake_seq, seq, PLATFORM_FOREVER);
}

/* The list for objects that callbacks of @cohort retire into it, if the calling thread runs one; else NULL. */
static struct hazptr_head **back_of(const struct hazptr_cohort *cohort)
{
	bool found = false;

	for (const struct quiesce__run *r = quiesce__self()->runs; r; r = r->outer) {
		if (r->back == &cohort->back[0] || r->back == &cohort->back[1])
			return (struct hazptr_head **)(uintptr_t)r->back;
		found |= r->back != NULL;
		if (QUIESCE_MUTANT(cohort_outer_fresh) && found)
			break;
	}
	return NULL;
}

/* Run callbacks outside the gate, unless this thread is in another callback. */
static void call(struct hazptr_head **ready, uint32_t nr)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	uint32_t ungated = self->state & QUIESCE_TLS_CALLBACKS ? 0 : QUIESCE_TLS_UNGATED;

	self->state |= ungated;
	quiesce__hazptr_run_list(ready, nr);
	self->state &= ~ungated;
}

/* ---- retirers ---- */

/* The list to which the caller pushes objects that it retires. */
static struct hazptr_head **list_of(struct hazptr_cohort *cohort)
{
	struct hazptr_head **back = back_of(cohort);

	return back && !QUIESCE_MUTANT(cohort_child_fresh) ? back : &cohort->list;
}

struct reclaimer {
	struct quiesce__run run;
	struct hazptr_cohort *cohort;
	uint32_t idx;
	struct quiesce__reclaim parts[2]; /* objects not scanned yet are in kept */
};

static void reclaim_lists(struct quiesce__run *run)
{
	struct reclaimer *in = (struct reclaimer *)run;

	for (uint32_t i = 0; i < 2; i++)
		if (in->parts[i].kept) {
			quiesce__hazptr_partition(in->parts[i].kept, &in->parts[i]);
			call(&in->parts[i].ready, UINT32_MAX);
		}
}

static void put_back(struct reclaimer *in)
{
	struct hazptr_cohort *cohort = in->cohort;
	struct hazptr_head **back;

	quiesce__lock(lock_of(cohort));
	back = &cohort->back[QUIESCE_MUTANT(cohort_back_fresh) ? cohort->idx : in->idx];
	for (uint32_t i = 0; i < 2; i++) {
		if (!QUIESCE_MUTANT(cohort_ended_lost))
			quiesce__hazptr_push_list(back, in->parts[i].ready); /* filled only if a callback has ended the thread */
		quiesce__hazptr_push_list(back, in->parts[i].kept);
	}
	cohort->inside[in->idx]--;
	wake_waiters(cohort);
	quiesce__unlock(lock_of(cohort));
}

static void reclaim_ended(struct quiesce__run *run)
{
	quiesce__hazptr_list_ended(run);
	put_back((struct reclaimer *)run);
}

/* A retirer that completes a batch reclaims what is not protected. */
static void reclaim_some(struct hazptr_cohort *cohort)
{
	struct reclaimer in = { .run.call = "call_hazptr_cohort()", .cohort = cohort };

	quiesce__lock(lock_of(cohort));
	in.idx = cohort->idx;
	in.run.back = &cohort->back[in.idx];
	in.parts[0].kept = quiesce__hazptr_take(&cohort->list);
	in.parts[1].kept = quiesce__hazptr_take(&cohort->back[in.idx]);
	cohort->inside[in.idx]++;
	quiesce__unlock(lock_of(cohort));
	quiesce__run(&in.run, reclaim_lists, reclaim_ended);
	put_back(&in);
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
	quiesce__fix_mode();
	head->func = func;
	quiesce__hazptr_count_pushed();
	nr = quiesce_fetch_add_relaxed(&cohort->nr, (uint64_t)1) + 1; /* Relaxed: when to scan is a policy. */
	quiesce__hazptr_push(list_of(cohort), head); /* the last access to @cohort, unless the batch is complete */
	if (nr % quiesce__cohort_batch() || (quiesce__self()->state & QUIESCE_TLS_IN_HAZPTR))
		return;
	reclaim_some(cohort);
}

/* ---- the waiter ---- */

struct waiter {
	struct quiesce__run run;
	struct hazptr_cohort *cohort;
	uint32_t idx; /* current when the wait began */
	struct quiesce__reclaim parts;
};

/* Push the objects that the caller holds to the list of the index that is drained. */
static void hand_back(struct waiter *w)
{
	struct hazptr_head **back = (struct hazptr_head **)(uintptr_t)w->run.back;

	quiesce__hazptr_push_list(back, w->parts.ready);
	quiesce__hazptr_push_list(back, w->parts.kept);
	w->parts = (struct quiesce__reclaim){ NULL, NULL };
}

/* Reclaim all of @parts->kept, waiting as needed.  False if a wait was misuse. */
static bool reclaim_all(struct waiter *w)
{
	struct quiesce__reclaim *parts = &w->parts;

	while (parts->kept) {
		quiesce__hazptr_partition(parts->kept, parts);
		call(&parts->ready, UINT32_MAX);
		if (!parts->kept)
			break;
		if (!quiesce__hazptr_wait_for(parts->kept, "synchronize_hazptr_cohort")) {
			hand_back(w);
			return false;
		}
		call(&parts->kept, 1); /* the wait has proved that the object is not protected */
	}
	return true;
}

/* Reclaim until back[@idx] is empty and no reclaimer is counted in @idx.  @was_current: @idx was current until now, and the
 * whole list belongs to it.  False if a wait was misuse. */
static bool drain(struct waiter *w, uint32_t idx, bool was_current)
{
	struct hazptr_cohort *cohort = w->cohort;

	w->run.back = &cohort->back[idx];
	for (;; was_current = false) {
		struct hazptr_head *list;

		quiesce__lock(lock_of(cohort));
		if (was_current)
			cohort->idx = !idx;
		list = quiesce__hazptr_take(was_current ? &cohort->list : &cohort->back[idx]);
		if (!list && !was_current && !cohort->inside[idx]) {
			quiesce__unlock(lock_of(cohort));
			return true;
		}
		if (!list && !was_current) {
			unlock_and_sleep(cohort);
			continue;
		}
		quiesce__unlock(lock_of(cohort));
		w->parts.kept = list;
		if (!reclaim_all(w))
			return false;
	}
}

/* Become the one waiter; returns the current index. */
static uint32_t begin_wait(struct hazptr_cohort *cohort)
{
	uint32_t idx;

	quiesce__lock(lock_of(cohort));
	while (cohort->waiter) {
		unlock_and_sleep(cohort);
		quiesce__lock(lock_of(cohort));
	}
	cohort->waiter = 1;
	idx = cohort->idx;
	quiesce__unlock(lock_of(cohort));
	return idx;
}

static void end_wait(struct hazptr_cohort *cohort)
{
	quiesce__lock(lock_of(cohort));
	cohort->waiter = 0;
	wake_waiters(cohort);
	quiesce__unlock(lock_of(cohort));
}

static void wait_in_run(struct quiesce__run *run)
{
	struct waiter *w = (struct waiter *)run;

	if (drain(w, !w->idx, false)) /* I5 */
		drain(w, w->idx, true);
}

static void wait_ended(struct quiesce__run *run)
{
	struct waiter *w = (struct waiter *)run;

	quiesce__hazptr_list_ended(run);
	hand_back(w);
	end_wait(w->cohort);
}

void quiesce_synchronize_hazptr_cohort(struct hazptr_cohort *cohort)
{
	struct waiter w = { .run.call = "call_hazptr_cohort()", .cohort = cohort };

	if (quiesce_unlikely(!cohort)) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "synchronize_hazptr_cohort() with a NULL cohort");
		return;
	}
	quiesce__init();
	if (back_of(cohort)) {
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_CALLBACK,
				"synchronize_hazptr_cohort() inside a callback of the cohort would wait for itself");
		return;
	}
	w.idx = begin_wait(cohort);
	quiesce__run(&w.run, wait_in_run, wait_ended);
	end_wait(cohort);
}
