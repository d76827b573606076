/* SPDX-License-Identifier: MIT */
/* srcu_callbacks.c - call_srcu(), srcu_barrier(), and polling: the helper's work for a domain.
 *
 *   call_srcu():  queued++, push to the thread's list; a caller that finds it empty starts the job
 *   a step:       take all lists -> a cookie -> try the grace period -> run, those of a list oldest first -> nr_run++ each
 *   Without a helper the job stays listed, and callers that may wait take the steps: see quiesce__jobs_take_steps().
 *
 * I1. A callback is removed before it runs and counted after it has returned.  The callbacks to run next are in @taken
 *     alone, so after a fork no callback runs twice.
 * I2. One thread at a time takes a step (@step_lock).  All lists are empty, or the job is listed, or a step of it is being
 *     taken, or a caller that found a list empty is about to list it.  Such callers of shards start the job once for each
 *     take: @starting is cleared before the lists are loaded (SL1), so that a caller whose callback this take misses starts
 *     it again.  A step that has not taken the lists is followed by one that does.  In call_srcu() no thread waits, and no
 *     callback runs.
 * I3. Takes are numbered.  One begins when no taken callback is left, so @done is the number of the last one all of whose callbacks
 *     have run.  srcu_barrier() waits until @done exceeds the value that @takes had: of the callbacks pushed before, the next take
 *     finds all that no earlier one took (SL1).  Or until all callbacks of the domain have run: @nr_run is loaded first, and each
 *     callback in it was counted in @queued before it was pushed.
 * I4. The cookie is taken after the lists: their objects were unlinked before.
 * I5. A callback that ends its thread counts as run; the rest stays in @taken, for the next step of the job.
 *
 * SR7  see srcu_lists.c
 * SR8  a callback has run, then counted | srcu_barrier() returns
 * SL1  see srcu_lists.c
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

/* The holder of @step_lock has the state of its step here, on its stack. */
struct step {
	struct quiesce__run run;
	struct quiesce__srcu_usage *u;
	bool took;   /* the lists were taken in this step */
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
	/* SR8: release, pairs with SR8 in quiesce__srcu_pending() */
	quiesce_store_release(SR8, &u->nr_run, run + !QUIESCE_MUTANT(srcu_barrier_early));
	if (!u->taken)
		quiesce__srcu_end_take(u);
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

	s->took = quiesce__srcu_take(u);
	if (s->took && !u->taken)
		wake_barriers(u);
	if (u->taken) {
		if (!QUIESCE_MUTANT(srcu_no_gp) && !quiesce__srcu_try(ssp, u->cookie, may_request))
			return false;
		run_some(s);
	}
	return wanted_is_over(u) || quiesce__srcu_try(ssp, quiesce_load_relaxed(&u->wanted), may_request); /* Relaxed: a hint. */
}

/* True if lists may have callbacks for which no caller will start the job (I2). */
static bool must_take(const struct step *s)
{
	const struct quiesce__srcu_usage *u = s->u;

	if (u->taken || s->took || QUIESCE_MUTANT(srcu_untaken_done))
		return false;
	return quiesce_load_relaxed(&u->own.first) || quiesce_load_relaxed(&u->shards); /* Relaxed: hints. */
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
	bool over;

	/* If there is a helper, holdouts are requested to wake it. */
	over = advance(s, quiesce__helper_running());
	if (over || must_take(s)) {
		u->delay_ns = 0;
		ns = u->taken || must_take(s) ? QUIESCE_JOB_AT_ONCE : QUIESCE_JOB_DONE;
	} else {
		ns = retry_ns(u);
		if (!u->taken || quiesce__srcu_inherits(u))
			ns |= QUIESCE_JOB_OPTIONAL;
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

/* Count a push to @own that follows one of another thread.  Relaxed throughout: hints. */
static void note_push(struct quiesce__srcu_usage *u)
{
	uint32_t tid = quiesce__tid();

	if (quiesce_likely(quiesce_load_relaxed(&u->last) == tid))
		return;
	quiesce_store_relaxed(&u->last, tid);
	quiesce_store_relaxed(&u->meets, quiesce_load_relaxed(&u->meets) + 1);
}

/* Returns true if the list was empty. */
static bool push(struct quiesce__srcu_usage *u, const struct quiesce__srcu_place *place, struct rcu_head *head)
{
	struct quiesce__srcu_list *list = place->list;
	struct rcu_head *old = quiesce_load_relaxed(&list->first); /* Relaxed: the exchange decides. */

	quiesce__srcu_add(place, &place->sums->queued, 1); /* I3 */
	if (list == &u->own)
		note_push(u);
	do
		head->next = old;
	/* SR7: full, pairs with SR7 in take_list() */
	while (!quiesce_cmpxchg(SR7, &list->first, &old, head));
	return !old;
}

/* A caller that found @list empty: true if it is to start the job (I2). */
static bool claim_start(struct quiesce__srcu_usage *u, const struct quiesce__srcu_list *list)
{
	if (list == &u->own)
		return true;
	if (quiesce_load_relaxed(&u->starting)) /* Relaxed: the exchange in push() is a full fence, as is SL1 in begin_take(). */
		return false;
	quiesce_store_relaxed(&u->starting, 1); /* Relaxed: two callers may start the job. */
	return true;
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
	struct quiesce__srcu_place place;
	bool above;

	if (!quiesce__srcu_exists(ssp, "call_srcu"))
		return;
	u = quiesce__srcu_prepare(ssp);
	if (quiesce_unlikely(!head || !func)) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "call_srcu() with a NULL %s", head ? "function" : "rcu_head");
		return;
	}
	head->func = func;
	place = quiesce__srcu_place_of_thread(u);
	above = quiesce__srcu_count_queued(u, &place, bytes);
	if (push(u, &place, head) && claim_start(u, place.list))
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

	return quiesce__srcu_queued(u) - run;
}

/* For callbacks that have not been taken the job is due at once (I2). */
void quiesce__srcu_schedule(struct quiesce__srcu_usage *u)
{
	/* Relaxed: hints. */
	if (quiesce_load_relaxed(&u->takes) != quiesce_load_relaxed(&u->done) || quiesce_load_relaxed(&u->own.first) || !wanted_is_over(u))
		quiesce__srcu_start_job(u);
}

static bool all_run(const struct quiesce__srcu_usage *u, uint64_t take)
{
	/* SR8: acquire, pairs with SR8 in quiesce__srcu_end_take() */
	return (int64_t)(quiesce_load_acquire(SR8, &u->done) - take) >= 0 || !quiesce__srcu_pending(u);
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
	uint64_t take; /* number of the take after which all callbacks that the caller knows of have been taken */
};

/* quiesce__srcu_wait() requests wake-ups from readers, so the grace period is as short as it can be. */
static void wait_until_run(struct quiesce__run *run)
{
	const struct wait *w = (const struct wait *)run;
	struct srcu_struct *ssp = w->ssp;
	struct quiesce__srcu_usage *u = quiesce__srcu_usage(ssp);
	uint64_t take = w->take;
	struct quiesce__wait_policy stalls = { .start = platform_now_ns() };

	for (uint64_t ns = RETRY_NS; !all_run(u, take); ns = ns < CHECK_MAX_NS / 2 ? 2 * ns : CHECK_MAX_NS) {
		/* SR8: acquire, pairs with SR8 in wake_barriers() */
		uint32_t word = quiesce_load_acquire(SR8, &u->done_word);

		quiesce__srcu_start_job(u);
		quiesce__jobs_take_steps();
		if (all_run(u, take))
			return;
		quiesce__srcu_wait(ssp, "srcu_barrier", false); /* this starts the job, too */
		quiesce__jobs_take_steps();
		if (!all_run(u, take))
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
	if (barrier_is_misuse(ssp, u) || !quiesce__srcu_pending(u))
		return;
	/* SL1: full, pairs with SL1 in begin_take() */
	quiesce_fence_full(SL1);
	w.take = quiesce_load_relaxed(&u->takes) + !QUIESCE_MUTANT(srcu_barrier_this_take); /* Relaxed: SL1. */
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
	quiesce__srcu_take_inherited(u);
	u->nr_taken = quiesce__heads_count(u->taken);
	left += u->nr_taken;
	/* Relaxed throughout: only this thread knows the domain. */
	quiesce_store_relaxed(&u->nr_run, quiesce__srcu_queued(u) - left);
	quiesce__srcu_garbage_fork_child(u, quiesce__srcu_pending(u));
	quiesce_store_relaxed(&u->starting, 0);
	quiesce_store_relaxed(&u->takes, quiesce_load_relaxed(&u->takes) + 1);
	quiesce_store_relaxed(&u->done, quiesce_load_relaxed(&u->takes) - (left != 0));
	if (u->taken)
		u->cookie = u->begun + 1;
	if (!u->job.step)
		u->job.step = quiesce__srcu_step;
}
