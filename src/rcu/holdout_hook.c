/* SPDX-License-Identifier: MIT */
/* holdout_hook.c - the program's hook gets the holdouts of a grace period.
 *
 *   waiter:  sleeps for a while --> posts a notice in the slot, starts the job
 *   helper:  a step: from where the last one ended, find a reader that blocks the posted number --> call the hook --> the next step
 *
 * I1. The slot has one notice: the number of a grace period, and the time when a wait for it began.  It is a hint.  Waiters overwrite
 *     each other's notices, the newest wins, and each waiter repeats its notice while it waits.  The notice of a wait that is over has a
 *     completed number, and is ignored; a waiter that gives up withdraws its notice.  No waiter waits for its notice to be read.
 * I2. A reader is named only if its reader word, loaded in the step that calls the hook, while its thread cannot end, blocks the posted
 *     grace period.  The word of a thread that died remains, so the kernel is asked whether the thread still exists.
 * I3. A round visits each entry once, some entries in each step, and each step resumes where the previous one ended: so each
 *     holdout is named in time, however often the notice changes.
 * I4. The time at which a reader was last named is in the block of its thread, and goes away with it.  Only steps access it, one at a
 *     time.
 * I5. The hook and its argument change under the lock, with their version.  A step publishes the version that it uses, and clears it at
 *     its end; the caller that changes them waits while an older version is in use, unless it is in the hook itself.
 */
#include "holdouts.h"

#include "rcu.h"
#include "runtime/helper.h"
#include "runtime/run.h"

#include <errno.h>

#define NAME_AGAIN_NS 10000000u
#if defined(QUIESCE_SIM)
#define VISITS 1u
#else
#define VISITS 1024u /* most entries that a step visits */
#endif

static uint64_t step(struct quiesce__job *job);

static struct {
	struct quiesce__lock lock;
	void (*fn)(int tid, uint64_t waited_ns, void *arg);
	void *arg;
	uint32_t version; /* version of @fn and @arg */
	uint32_t used;    /* the version that a step uses; 0: none.  Futex of callers that wait for its end */
	bool awaited;     /* callers sleep on @used */
	const struct quiesce_tls_v1 *user; /* thread that takes that step; NULL: none */
	struct quiesce__job job;
	/* Waiters write the slot, and steps read it (I1). */
	uint64_t number; /* number of the grace period that a waiter posted; 0: no notice */
	uint64_t start;  /* when that wait began */
	/* Only steps access the state of the round (I3). */
	uint64_t visited_for; /* number of the grace period that the round is for */
	uint32_t at, left;    /* next entry to visit, and number of entries left in the round */
} hook = { .version = 1, .job = { .step = step } };

/* ---- waiters ---- */

void quiesce__holdout_hook_post(uint64_t number, uint64_t start)
{
	if (!quiesce_load_relaxed(&hook.fn)) /* Relaxed: a hint. */
		return;
	quiesce_store_relaxed(&hook.start, start);   /* Relaxed: a hint (I1); the time of another wait does as well. */
	quiesce_store_relaxed(&hook.number, number); /* Relaxed: a hint (I1). */
	quiesce__job_start(&hook.job);
}

void quiesce__holdout_hook_withdraw(uint64_t number)
{
	if (quiesce_load_relaxed(&hook.number) == number) /* Relaxed: a hint (I1). */
		quiesce_store_relaxed(&hook.number, 0);   /* Relaxed: a hint (I1). */
}

/* ---- the helper ---- */

struct hook_call {
	struct quiesce__run run;
	void (*fn)(int tid, uint64_t waited_ns, void *arg);
	void *arg;
	uint64_t number, now;
	uint32_t tid;
};

static bool name_if_holdout(struct quiesce__reader *r, struct quiesce_tls_v1 *tls, void *arg)
{
	struct hook_call *n = arg;
	uint64_t named_at = quiesce_load_relaxed(&tls->named_at); /* Relaxed: only steps access it (I4). */

	if (!quiesce__rcu_blocks(tls, n->number) && !QUIESCE_MUTANT(holdout_unblocking_named))
		return false;
	if (named_at && n->now - named_at < NAME_AGAIN_NS && !QUIESCE_MUTANT(holdout_named_again))
		return false;
	n->tid = quiesce__reader_tid(r);
	quiesce_store_relaxed(&tls->named_at, n->now); /* Relaxed: only steps access it (I4). */
	return n->tid != 0;
}

/* Find the next reader of this round to name, within the entries of one step; false: none in these. */
static bool find_holdout(struct hook_call *n)
{
	uint32_t nr = quiesce__readers_nr(), from, to;

	if (!hook.left || n->number != hook.visited_for)
		hook.left = nr;
	hook.visited_for = n->number;
	from = hook.at < nr ? hook.at : 0;
	to = nr - from < VISITS ? nr : from + VISITS;
	hook.at = quiesce__readers_walk(from, to, name_if_holdout, n);
	if (hook.at < to)
		hook.at++;
	else
		n->tid = 0;
	hook.left -= hook.at - from < hook.left ? hook.at - from : hook.left;
	return n->tid && (platform_thread_alive(n->tid) || QUIESCE_MUTANT(holdout_dead_named));
}

/* Publish that this step uses the hook; false: there is no hook, or no wait to name readers for. */
static bool begin_use(struct hook_call *n)
{
	n->number = quiesce_load_relaxed(&hook.number); /* Relaxed: a hint (I1). */
	/* Without a helper, callers with other waits run the steps, where the program does not expect its hook to be called. */
	if (!n->number || quiesce__rcu_cookie_done(n->number) || !quiesce__in_helper_thread())
		return false;
	quiesce__lock(&hook.lock);
	n->fn = hook.fn;
	n->arg = hook.arg;
	if (n->fn) {
		quiesce_store_relaxed(&hook.used, hook.version); /* Relaxed: under the lock. */
		hook.user = quiesce__self();
	}
	quiesce__unlock(&hook.lock);
	return n->fn != NULL;
}

static void end_use(struct quiesce__run *run)
{
	bool wake;

	(void)run;
	quiesce__lock(&hook.lock);
	quiesce_store_relaxed(&hook.used, 0); /* Relaxed: under the lock. */
	hook.user = NULL;
	wake = hook.awaited;
	hook.awaited = false;
	quiesce__unlock(&hook.lock);
	if (wake)
		platform_futex_wake(&hook.used, INT32_MAX);
}

static void call_hook(struct quiesce__run *run)
{
	struct hook_call *n = (struct hook_call *)run;

	n->fn((int)n->tid, platform_now_ns() - quiesce_load_relaxed(&hook.start), n->arg); /* Relaxed: a hint (I1). */
}

static uint64_t step(struct quiesce__job *job)
{
	struct hook_call n = { .run.call = "quiesce_set_holdout_hook()", .now = platform_now_ns() };

	(void)job;
	if (!begin_use(&n)) {
		hook.left = 0;
		return PLATFORM_FOREVER;
	}
	if (find_holdout(&n)) {
		n.run.func = (uintptr_t)n.fn;
		quiesce__helper_begin_callbacks();
		quiesce__run(&n.run, call_hook, end_use);
	}
	end_use(&n.run);
	return hook.left ? QUIESCE_JOB_AT_ONCE : PLATFORM_FOREVER;
}

/* ---- callers ---- */

/* Wait until no step uses a version older than @version.  The caller holds the lock, which is released during each sleep. */
static void await_older(uint32_t version)
{
	while (hook.used && (int32_t)(hook.used - version) < 0 && hook.user != quiesce__self()) {
		uint32_t used = hook.used;

		hook.awaited = true;
		quiesce__unlock(&hook.lock);
		platform_futex_wait(&hook.used, used, PLATFORM_FOREVER);
		quiesce__lock(&hook.lock);
	}
}

int quiesce_set_holdout_hook(void (*fn)(int tid, uint64_t waited_ns, void *arg), void *arg)
{
	quiesce__init();
	quiesce__lock(&hook.lock);
	/* The child of a fork between these stores must not call the old function with the new argument.  Relaxed: under the lock. */
	quiesce_store_relaxed(&hook.fn, NULL);
	quiesce_fence_compiler();
	hook.arg = arg;
	hook.version += hook.version == UINT32_MAX ? 2 : 1;
	quiesce_fence_compiler();
	quiesce_store_relaxed(&hook.fn, fn); /* Relaxed: under the lock. */
	if (!QUIESCE_MUTANT(holdout_hook_unwaited))
		await_older(hook.version);
	quiesce__unlock(&hook.lock);
	return !fn || quiesce__helper_ensure() ? 0 : -EAGAIN;
}

void quiesce__holdout_hook_fork_child(void)
{
	quiesce__lock_reset(&hook.lock, false);
	hook.number = hook.left = 0; /* the notice was for a wait of the parent */
	hook.awaited = false;
	if (hook.user != quiesce__fork_survivor)
		hook.user = NULL;
	if (!hook.user)
		hook.used = 0;
}
