/* SPDX-License-Identifier: MIT */
/* srcu_callbacks.c - call_srcu(), srcu_barrier(), and polling: the helper's work for a domain.
 *
 *   call_srcu():  queued++, push to the list; a caller that finds the list empty starts the job
 *   a step:       take the list -> a cookie -> try the grace period -> run, oldest first -> nr_run++ each
 *   Without a helper the job stays listed, and callers that may wait take the steps: see quiesce__jobs_take_steps().
 *
 * I1. A callback is removed before it runs and counted after it has returned.  The callbacks to run next are in @taken
 *     alone, so after a fork no callback runs twice.
 * I2. One thread at a time takes a step (@step_lock).  The list is empty, or the job is listed, or a step of it is being
 *     taken, or the caller that found the list empty is about to list it.  In call_srcu() no thread waits, and no callback
 *     runs.
 * I3. srcu_barrier() waits until @nr_run has reached the value that @queued had.  That is enough, although a callback is
 *     counted before it is pushed: let C be pushed before the call.  Either all callbacks that have run were counted
 *     before the call: they are as many as those, so C is among them.  Or one of them, D, was counted after that; then D
 *     was pushed after C, and callbacks run in the order in which they were pushed, so C has run as well.
 * I4. The cookie is taken after the list: the objects of the list were unlinked before.
 * I5. A callback that ends its thread counts as run; the rest stays in @taken, for the next step of the job.
 * I6. The child of a fork without handlers may find a thread's reversal of the list half done: each object is in @list, or
 *     is reached from @rest, or from @reversed.  @rest_next is @rest, and the links are as they were, or it is the successor
 *     of @rest, whose own link may have been reversed already.
 *
 * SR7  object written, then pushed         | list taken, then read
 * SR8  a callback has run, then counted    | srcu_barrier() returns
 * SR3  see srcu.c
 */
#include "srcu.h"

#include "rcu/garbage.h"
#include "rcu/heads.h"
#include "runtime/pace.h"
#include "runtime/run.h"

#define CHUNK 64u /* most callbacks in one step; fork() waits for a step to end, up to a limit */
#define RETRY_URGENT_NS 250000u
#define RETRY_NS 1000000u
#define RETRY_MAX_NS 8000000u
#define THROTTLE_NS 20000000u
#define CHECK_MAX_NS 100000000u

/* ---- steps; under the lock @step_lock ---- */

/* Reverse the chain in @rest (newest first) into @reversed (oldest first); returns its length.  I6 needs this order. */
static uint64_t reverse(struct quiesce__srcu_usage *u)
{
	struct rcu_head *head;
	uint64_t nr = 0;

	/* Relaxed throughout: under the lock; atomic for the child of a fork. */
	for (; (head = quiesce_load_relaxed(&u->rest)); nr++) {
		quiesce_store_relaxed(&u->rest_next, head->next);
		quiesce_fence_compiler();
		quiesce_store_relaxed(&head->next, u->reversed);
		quiesce_fence_compiler();
		quiesce_store_relaxed(&u->reversed, head);
		quiesce_fence_compiler();
		quiesce_store_relaxed(&u->rest, u->rest_next);
		quiesce_fence_compiler();
	}
	return nr;
}

static void take_reversed(struct quiesce__srcu_usage *u)
{
	quiesce_store_relaxed(&u->taken, u->reversed); /* Relaxed: atomic for the child of a fork. */
	quiesce_fence_compiler();
	quiesce_store_relaxed(&u->reversed, NULL);     /* Relaxed: atomic for the child of a fork. */
}

/* Relaxed throughout: under the lock; other threads only test whether there is a callback. */
static void take(struct quiesce__srcu_usage *u)
{
	struct rcu_head *list = quiesce_load_relaxed(&u->list);
	uint64_t nr;

	if (u->taken || !list)
		return;
	do {
		quiesce_store_relaxed(&u->rest_next, list); /* the links stay as I6 describes */
		quiesce_fence_compiler();
		quiesce_store_relaxed(&u->rest, list);
	/* SR7: full, pairs with SR7 in push() */
	} while (!quiesce_cmpxchg(SR7, &u->list, &list, NULL));
	u->cookie = quiesce__srcu_cookie(u);
	nr = reverse(u);
	take_reversed(u);
	quiesce__srcu_bytes_taken(u, nr);
}

/* The holder of @step_lock has the state of its step here, on its stack. */
struct step {
	struct quiesce__run run;
	struct quiesce__srcu_usage *u;
	uint32_t nr; /* number of callbacks of this chunk that have been called */
	uint64_t ns; /* return value of the step */
};

/* Account for a callback that has run; @last: it is the last of the chunk. */
static void count_run(struct step *s, bool last)
{
	struct quiesce__srcu_usage *u = s->u;
	uint64_t run;

	/* The function may have forked, and this may be the child: another thread of the child may be
	 * reinitialising the counts, and it treats this thread as inside the function. */
	quiesce__srcu_prepare(quiesce__srcu_domain(u));
	if (last)
		quiesce__srcu_bytes_run(u, s->nr);
	quiesce__srcu_count_run();
	run = quiesce_load_relaxed(&u->nr_run); /* Relaxed: written under the lock. */
	/* SR8: release, pairs with SR8 in all_run() and quiesce__srcu_pending() */
	quiesce_store_release(SR8, &u->nr_run, run + !QUIESCE_MUTANT(srcu_barrier_early));
}

static void run_one(struct step *s)
{
	struct quiesce__srcu_usage *u = s->u;
	struct rcu_head *head = u->taken;

	u->taken = head->next;
	s->nr++;
	if (QUIESCE_MUTANT(srcu_barrier_early))
		quiesce_store_relaxed(&u->nr_run, quiesce_load_relaxed(&u->nr_run) + 1); /* Relaxed: a planted bug. */
	s->run.func = (uintptr_t)head->func;
	head->func(head);
	count_run(s, !u->taken || s->nr == CHUNK);
}

static void wake_barriers(struct quiesce__srcu_usage *u)
{
	/* SR8: full, pairs with SR8 in quiesce_srcu_barrier() */
	quiesce_fetch_add(SR8, &u->done_word, 1u);
	if (quiesce_load_relaxed(&u->waiting)) /* Relaxed: SR8. */
		platform_futex_wake(&u->done_word, INT32_MAX);
}

static void end_chunk(struct step *s)
{
	quiesce_store_relaxed(&s->u->runner, NULL); /* Relaxed: only this thread compares it with itself. */
	wake_barriers(s->u);
	quiesce__throttle_wake();
}

static void run_some(struct step *s)
{
	struct quiesce__srcu_usage *u = s->u;

	quiesce__helper_begin_callbacks();
	quiesce_store_relaxed(&u->runner, quiesce__self()); /* Relaxed: only this thread compares it with itself. */
	while (s->nr < CHUNK && u->taken)
		run_one(s);
	s->run.func = 0;
	end_chunk(s);
}

static bool wanted_is_over(const struct quiesce__srcu_usage *u)
{
	return quiesce__srcu_done(u, quiesce_load_relaxed(&u->wanted)); /* Relaxed: a hint. */
}

/* Advance without sleeping; true if nothing is left for which a grace period is needed. */
static bool advance(struct step *s, bool may_request)
{
	struct quiesce__srcu_usage *u = s->u;
	struct srcu_struct *ssp = quiesce__srcu_domain(u);

	take(u);
	if (u->taken) {
		if (!QUIESCE_MUTANT(srcu_no_gp) && !quiesce__srcu_try(ssp, u->cookie, may_request))
			return false;
		run_some(s);
	}
	return wanted_is_over(u) || quiesce__srcu_try(ssp, quiesce_load_relaxed(&u->wanted), may_request); /* Relaxed: a hint. */
}

static bool has_callbacks(const struct quiesce__srcu_usage *u)
{
	return u->taken || quiesce_load_relaxed(&u->list); /* Relaxed: the next pusher starts the job. */
}

/* Delay until the next step: doubled while there are holdouts; short if there is too much garbage. */
static uint64_t retry_ns(struct quiesce__srcu_usage *u)
{
	uint64_t ns = u->delay_ns ? u->delay_ns : RETRY_NS;

	quiesce__srcu_report_bytes(u);
	if (quiesce__garbage_above_ceiling())
		return RETRY_URGENT_NS;
	u->delay_ns = ns < RETRY_MAX_NS ? 2 * ns : ns;
	return ns;
}

static void step_locked(struct quiesce__run *run)
{
	struct step *s = (struct step *)run;
	struct quiesce__srcu_usage *u = s->u;
	uint64_t ns;

	/* If there is a helper, holdouts are requested to wake it. */
	if (!advance(s, quiesce__helper_running())) {
		ns = retry_ns(u);
		if (!quiesce__srcu_pending(u) || quiesce__srcu_inherits(u))
			ns |= QUIESCE_JOB_OPTIONAL;
	} else {
		u->delay_ns = 0;
		ns = has_callbacks(u) ? QUIESCE_JOB_AT_ONCE : QUIESCE_JOB_DONE;
	}
	if (ns != QUIESCE_JOB_DONE)
		quiesce__srcu_check_garbage(quiesce__srcu_domain(u));
	s->ns = ns;
}

/* I5: the callback has ended its thread. */
static void step_ended(struct quiesce__run *run)
{
	struct step *s = (struct step *)run;

	if (s->u->runner) {
		if (!QUIESCE_MUTANT(srcu_ended_uncounted))
			count_run(s, true);
		end_chunk(s);
	}
	quiesce__unlock(&s->u->step_lock);
}

uint64_t quiesce__srcu_step(struct quiesce__job *job)
{
	struct quiesce__srcu_usage *u = quiesce__srcu_of_job(job);
	struct step s = { .run.call = "call_srcu()", .u = u };

	quiesce__srcu_prepare(quiesce__srcu_domain(u)); /* the job may have been listed by the parent of this process */
	if (!quiesce__trylock(&u->step_lock))
		return RETRY_NS;
	quiesce__run(&s.run, step_locked, step_ended);
	quiesce__unlock(&u->step_lock);
	return s.ns;
}

/* ---- callers ---- */

void quiesce__srcu_start_job(struct quiesce__srcu_usage *u)
{
	quiesce__job_start(&u->job);
}

/* Returns true if the list was empty. */
static bool push(struct quiesce__srcu_usage *u, struct rcu_head *head)
{
	struct rcu_head *old = quiesce_load_relaxed(&u->list); /* Relaxed: the exchange decides. */

	/* Relaxed: the exchange follows; I3. */
	quiesce_fetch_add_relaxed(&u->queued, (uint64_t)1);
	do
		head->next = old;
	/* SR7: full, pairs with SR7 in take() */
	while (!quiesce_cmpxchg(SR7, &u->list, &old, head));
	return !old;
}

/* The process has too much garbage: expedite, and throttle the caller where that is allowed. */
static QUIESCE_COLD void expedite(struct quiesce__srcu_usage *u)
{
	const struct quiesce_tls_v1 *self = quiesce__self();

	quiesce_store_relaxed(&u->expedite, 1); /* Relaxed: a hint. */
	quiesce__srcu_start_job(u);
	/* The caller may be in a section of this domain.  Relaxed: a setting. */
	if (quiesce_load_relaxed(&quiesce__settings.throttle) && !rcu_read_lock_held() &&
	    !(self->state & (QUIESCE_TLS_CALLBACKS | QUIESCE_TLS_IN_HEAP)))
		quiesce__throttle("call_srcu", THROTTLE_NS, false);
}

void quiesce_call_srcu(struct srcu_struct *ssp, struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes)
{
	struct quiesce__srcu_usage *u;
	bool above;

	if (!quiesce__srcu_exists(ssp, "call_srcu"))
		return;
	u = quiesce__srcu_prepare(ssp);
	if (quiesce_unlikely(!head || !func)) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "call_srcu() with a NULL %s", head ? "function" : "rcu_head");
		return;
	}
	head->func = func;
	above = quiesce__srcu_count_queued(u, bytes);
	if (push(u, head))
		quiesce__srcu_start_job(u);
	else if (quiesce_unlikely(!quiesce__helper_running()))
		quiesce__helper_ensure();
	if (quiesce_unlikely(above))
		expedite(u);
}

uint64_t quiesce__srcu_pending(const struct quiesce__srcu_usage *u)
{
	/* SR8: acquire, pairs with SR8 in count_run() */
	uint64_t run = quiesce_load_acquire(SR8, &u->nr_run);

	return quiesce_load_relaxed(&u->queued) - run; /* Relaxed: callbacks that the caller knows of are included. */
}

void quiesce__srcu_schedule(struct quiesce__srcu_usage *u)
{
	if (quiesce__srcu_pending(u) || !wanted_is_over(u))
		quiesce__srcu_start_job(u);
}

static bool all_run(const struct quiesce__srcu_usage *u, uint64_t queued)
{
	/* SR8: acquire, pairs with SR8 in count_run() */
	return (int64_t)(quiesce_load_acquire(SR8, &u->nr_run) - queued) >= 0;
}

static bool barrier_is_misuse(struct srcu_struct *ssp, const struct quiesce__srcu_usage *u)
{
	if (quiesce__srcu_wait_is_misuse(ssp, "srcu_barrier"))
		return true;
	/* Callbacks of other kinds count too: their thread may be the one that this domain's callbacks need. */
	if (!(quiesce__self()->state & QUIESCE_TLS_CALLBACKS) &&
	    quiesce_load_relaxed(&u->runner) != quiesce__self()) /* Relaxed: only this thread sets it to itself. */
		return false;
	quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_CALLBACK, "srcu_barrier(%s) inside a callback would wait for itself",
			quiesce__srcu_name(ssp));
	return true;
}

/* If there is no helper, callbacks run in the wait. */
struct wait {
	struct quiesce__run run;
	struct srcu_struct *ssp;
	uint64_t queued;
};

/* quiesce__srcu_wait() requests wake-ups from readers, so the grace period is as short as it can be. */
static void wait_until_run(struct quiesce__run *run)
{
	const struct wait *w = (const struct wait *)run;
	struct srcu_struct *ssp = w->ssp;
	struct quiesce__srcu_usage *u = quiesce__srcu_usage(ssp);
	uint64_t queued = w->queued;
	struct quiesce__wait_policy stalls = { .start = platform_now_ns() };

	for (uint64_t ns = RETRY_NS; !all_run(u, queued); ns = ns < CHECK_MAX_NS / 2 ? 2 * ns : CHECK_MAX_NS) {
		/* SR8: acquire, pairs with SR8 in wake_barriers() */
		uint32_t word = quiesce_load_acquire(SR8, &u->done_word);

		quiesce__srcu_start_job(u);
		quiesce__jobs_take_steps();
		if (all_run(u, queued))
			return;
		quiesce__srcu_wait(ssp, "srcu_barrier", false); /* this starts the job, too */
		quiesce__jobs_take_steps();
		if (!all_run(u, queued))
			platform_futex_wait(&u->done_word, word, ns);
		if (quiesce__wait_policy_take_report(&stalls, platform_now_ns()))
			quiesce__srcu_report_barrier(ssp, platform_now_ns() - stalls.start);
	}
}

static void uncount_waiter(struct quiesce__run *run)
{
	const struct wait *w = (const struct wait *)run;

	quiesce_fetch_add_relaxed(&quiesce__srcu_usage(w->ssp)->waiting, (uint32_t)-1); /* Relaxed: a hint withdrawn. */
}

void quiesce_srcu_barrier(struct srcu_struct *ssp)
{
	struct quiesce__srcu_usage *u;
	struct wait w = { .ssp = ssp };

	if (!quiesce__srcu_exists(ssp, "srcu_barrier"))
		return;
	u = quiesce__srcu_prepare(ssp);
	w.queued = quiesce_load_relaxed(&u->queued); /* Relaxed: callbacks that the caller knows of are included. */
	if (barrier_is_misuse(ssp, u) || all_run(u, w.queued))
		return;
	/* SR8: full, pairs with SR8 in wake_barriers() */
	quiesce_fetch_add(SR8, &u->waiting, 1u);
	quiesce__run(&w.run, wait_until_run, uncount_waiter);
	uncount_waiter(&w.run);
}

/* ---- polling ---- */

struct rcu_gp_seq quiesce_get_state_synchronize_srcu(struct srcu_struct *ssp)
{
	struct rcu_gp_seq seq = { quiesce__srcu_cookie(quiesce__srcu_prepare(ssp)) };

	return seq;
}

struct rcu_gp_seq quiesce_start_poll_synchronize_srcu(struct srcu_struct *ssp)
{
	struct quiesce__srcu_usage *u = quiesce__srcu_prepare(ssp);
	struct rcu_gp_seq seq = { quiesce__srcu_cookie(u) };
	uint64_t old = quiesce_load_relaxed(&u->wanted); /* Relaxed: the exchange decides. */

	if (wanted_is_over(u))
		quiesce__pace_begin(&u->wanted_due, QUIESCE_OVERDUE_NS);
	/* The latest cookie covers all earlier ones. */
	while ((int64_t)(seq.value - old) > 0)
		/* SR7: full, pairs with SR7 in push() */
		if (quiesce_cmpxchg(SR7, &u->wanted, &old, seq.value))
			break;
	quiesce__srcu_start_job(u);
	return seq;
}

/* Claim a poller's part in the grace period: true if it is to advance that.  Without a helper it always is.  With one, only now and then,
 * and only if the cookie was requested and is overdue: the one thread that takes steps of a domain may be in a
 * callback, or may not have a CPU. */
static bool claim_part(struct quiesce__srcu_usage *u, uint64_t cookie)
{
	if (!quiesce__helper_running())
		return true;
	/* Relaxed: a hint. */
	return (int64_t)(quiesce_load_relaxed(&u->wanted) - cookie) >= 0 && quiesce__pace_claim(&u->wanted_due, QUIESCE_OVERDUE_NS) &&
	       !QUIESCE_MUTANT(srcu_poll_trusts_helper);
}

int quiesce_poll_state_synchronize_srcu(struct srcu_struct *ssp, struct rcu_gp_seq seq)
{
	struct quiesce__srcu_usage *u = quiesce__srcu_prepare(ssp);
	bool done = !seq.value || quiesce__srcu_done(u, seq.value);

	if (!done && claim_part(u, seq.value)) {
		done = quiesce__srcu_try(ssp, seq.value, false);
		quiesce__srcu_schedule(u);
	}
	if (done)
		/* SR3: full, pairs with the caller */
		quiesce_fence_full(SR3);
	return done;
}

/* ---- cleanup and fork ---- */

void quiesce__srcu_callbacks_stop(struct quiesce__srcu_usage *u)
{
	quiesce__job_cancel(&u->job);
}

/* Complete the reversal that the fork interrupted (I6). */
static void reverse_rest(struct quiesce__srcu_usage *u)
{
	struct rcu_head *head = u->rest;

	if (head && quiesce__heads_have(quiesce_load_relaxed(&u->list), head)) /* Relaxed: only this thread knows the domain. */
		u->rest = NULL;
	if (u->rest && u->rest_next != head) {
		if (u->reversed != head) {
			head->next = u->reversed;
			u->reversed = head;
		}
		u->rest = u->rest_next;
	}
	reverse(u);
	if (u->reversed)
		take_reversed(u);
}

/* A callback that is in no list has run, or was being run or queued by a thread that the child does not have. */
void quiesce__srcu_callbacks_fork_child(struct quiesce__srcu_usage *u)
{
	/* The callback that called fork() continues in the child.  Relaxed: a child that is in a callback enters
	 * here first, or the process ends. */
	bool mine = u->runner && u->runner == quiesce_load_relaxed(&quiesce__fork_survivor);
	uint64_t left = mine;

	quiesce__lock_reset(&u->step_lock, mine);
	if (!mine)
		u->runner = NULL;
	u->waiting = 0;
	if (!QUIESCE_MUTANT(srcu_reversal_lost))
		reverse_rest(u);
	/* Relaxed: only this thread knows the domain. */
	left += quiesce__heads_count(quiesce_load_relaxed(&u->list)) + quiesce__heads_count(u->taken);
	/* Relaxed: only this thread knows the domain. */
	quiesce_store_relaxed(&u->nr_run, quiesce_load_relaxed(&u->queued) - left);
	quiesce__srcu_garbage_fork_child(u, quiesce__srcu_pending(u));
	if (u->taken)
		u->cookie = u->begun + 1;
	if (!u->job.step)
		u->job.step = quiesce__srcu_step;
}
