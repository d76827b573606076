/* SPDX-License-Identifier: MIT */
/* worker.c - the thread that makes the passes.
 *
 * I1. It sleeps only after a fence and one more look at the lists.  Who lists a queue or wants a pass executes a fence, too,
 *     before it looks whether the worker sleeps; that is rare, so neither of the two need be a heavy one.
 * I2. It makes a pass if something is listed, or if somebody wants one newer than the last that was made; it does not look
 *     at whether those that it woke have run.
 * I3. Small batches wait for more, a millisecond.  But what callbacks retired is gone on with at once, as chains of objects
 *     of which each retires the next take a pass for each; not where a callback queues its own object again, and for a part of
 *     the time only, because two may do that for each other.
 * I4. Nobody waits for free().  So where a pass found little, and only objects of kfree_rcu() have come since, the next one is made PACE_NS
 *     later: a thread that retires slowly does not pay an interrupt of all CPUs for each object.  That sleep ends early when a
 *     callback is queued, which the program may wait for, when a queue has QUIESCE_PACED objects, when somebody waits, and above the
 *     ceiling.  Because it is long, it begins as the one of I1.
 *
 * CB9  queue listed, then sleep read        | asleep, then lists read
 * CB4  the thread's last word               | started again
 *
 * Of passes, see pass.c.
 */
#include "queue.h"
#include "rcu.h"
#include "reclaim.h"
#include "runtime/overdue.h"
#include "runtime/pace.h"
#include "runtime/thread.h"

#define BATCH_NS 1000000u /* the worker gathers this long, or less where queues fill quickly, at least */
#define BATCH_MIN_NS 50000u
#define PACE_NS 50000000u /* from a pass to the next one's grace period, if nobody waits and little is retired */
#define CHAIN_NS 400000u  /* and goes on so long, without, with what callbacks retired */
#define CHAIN_IPI_FACTOR 8u     /* a pass that takes longer than CHEAP_NS, because it interrupts others, counts so many times */
#define CHEAP_NS 8000u
#define STOP_STEP_NS 2000000u

struct quiesce__worker quiesce__worker;

/* The worker's own. */
static uint64_t chain_left; /* of CHAIN_NS */
static uint64_t batch_ns;   /* BATCH_MIN_NS to BATCH_NS */
static uint64_t paced_until; /* 0: the last pass found much */

bool quiesce__gp_wanted(void)
{
	uint64_t cookie = quiesce_load_relaxed(&quiesce__worker.gp_wanted); /* Relaxed: CB9. */

	return cookie && !quiesce__rcu_cookie_done(cookie);
}

bool quiesce__gp_overdue(uint64_t cookie)
{
	uint64_t wanted = quiesce_load_relaxed(&quiesce__worker.gp_wanted); /* Relaxed: a hint. */

	return wanted && (int64_t)((wanted << 16) - (cookie << 16)) >= 0 && quiesce__pace(&quiesce__worker.gp_due, QUIESCE_OVERDUE_NS);
}

/* Does somebody wait for a pass? */
static bool any_waiter(void)
{
	/* Relaxed: CB9. */
	return quiesce__pass_wanted() || quiesce_load_relaxed(&quiesce__worker.stop) || quiesce__gp_wanted();
}

/* Relaxed: best-effort hints, or CB9. */
static bool must_not_batch(void)
{
	return quiesce_load_relaxed(&quiesce__worker.urgent) || quiesce_load_relaxed(&quiesce__worker.filled) || any_waiter();
}

/* ---- sleeping ---- */

void quiesce__worker_wake(void)
{
	/* CB9: full, pairs with CB9 in worker_sleep() */
	if (quiesce_xchg(CB9, &quiesce__worker.sleep, QUIESCE_AWAKE) != QUIESCE_AWAKE)
		platform_futex_wake(&quiesce__worker.sleep, 1);
	else
		quiesce__rcu_raise_urgency(QUIESCE_NORMAL); /* it may be in a grace period */
}

void quiesce__worker_wake_for_sure(void)
{
	quiesce__worker_wake();
	if (!QUIESCE_MUTANT(cb_trusts_waker))
		platform_futex_wake(&quiesce__worker.sleep, 1);
}

/* Relaxed: as above. */
static bool must_not_pace(void)
{
	return must_not_batch() || quiesce_load_relaxed(&quiesce__worker.prompt);
}

void quiesce__worker_prompt(void)
{
	if (QUIESCE_MUTANT(cb_prompt_lost))
		return;
	if (!quiesce_load_relaxed(&quiesce__worker.prompt)) { /* Relaxed: the fence. */
		quiesce_store_relaxed(&quiesce__worker.prompt, 1); /* Relaxed: the fence follows. */
		/* CB9: full, pairs with CB9 in worker_sleep() */
		quiesce_fence_full(CB9);
	}
	if (quiesce_load_relaxed(&quiesce__worker.sleep) == QUIESCE_PACING) /* Relaxed: CB9. */
		quiesce__worker_wake();
}

static void worker_sleep(uint32_t how, uint64_t ns)
{
	bool may_sleep = true;

	quiesce_store_relaxed(&quiesce__worker.sleep, how); /* Relaxed: the fence follows. */
	if (how != QUIESCE_BATCHING && !QUIESCE_MUTANT(cb_sleep_unchecked)) {
		/* CB9: full, pairs with CB9 in wake_if_asleep() */
		quiesce_fence_full(CB9);
		may_sleep = how == QUIESCE_ASLEEP ? !quiesce__queues_listed() : !must_not_pace();
	}
	if (may_sleep && !any_waiter())
		platform_futex_wait(&quiesce__worker.sleep, how, ns);
	quiesce_store_relaxed(&quiesce__worker.sleep, QUIESCE_AWAKE); /* Relaxed: the worker looks next. */
}

/* ---- working ---- */

/* Did callbacks of the last pass retire something, other than themselves? */
static bool chain_continues(void)
{
	const struct quiesce__queue *own = quiesce__self()->queue;

	if (!own || quiesce__pass_requeued())
		return false;
	return quiesce_load_relaxed(&own->callbacks.queued) != own->running.taken || /* Relaxed: the thread's own. */
	       quiesce_load_relaxed(&own->frees.queued) != own->frees_snap.nr;       /* Relaxed: the thread's own. */
}

/* I4. */
static bool is_paced(uint64_t now)
{
	uint64_t ceiling = quiesce_load_relaxed(&quiesce__settings.ceiling); /* Relaxed: a setting. */

	/* Relaxed: a best-effort hint. */
	return now + batch_ns < paced_until && !quiesce_load_relaxed(&quiesce__worker.prompt) &&
	       !quiesce__garbage_above(ceiling / 2) && !QUIESCE_MUTANT(cb_unpaced);
}

/* Gather for a while, unless there is a reason not to. */
static void batch(void)
{
	uint64_t now = platform_now_ns();

	if (must_not_batch() || (chain_left && chain_continues()))
		return;
	chain_left = CHAIN_NS;
	if (is_paced(now))
		worker_sleep(QUIESCE_PACING, paced_until - now);
	else
		worker_sleep(QUIESCE_BATCHING, batch_ns);
}

/* So that the next pass finds queues well filled: by itself, because an owner that wakes the worker pays for it. */
static void adapt(void)
{
	uint64_t most = quiesce__pass_most();
	uint64_t ns = most ? batch_ns * QUIESCE_WELL_FILLED / most : BATCH_NS;

	if (ns > 2 * batch_ns)
		ns = 2 * batch_ns;
	batch_ns = ns < BATCH_MIN_NS ? BATCH_MIN_NS : ns > BATCH_NS ? BATCH_NS : ns;
}

static void pass(void)
{
	uint64_t ns = platform_now_ns(), now, most;

	quiesce__lock(&quiesce__pass.lock);
	quiesce__pass_run(true);
	adapt();
	most = quiesce__pass_most();
	quiesce__unlock(&quiesce__pass.lock);
	quiesce__rcu_check_garbage();
	now = platform_now_ns();
	if (most)
		paced_until = most < QUIESCE_PACED ? now + PACE_NS : 0;
	ns = now - ns;
	if (ns > CHEAP_NS)
		ns *= CHAIN_IPI_FACTOR;
	chain_left -= ns < chain_left ? ns : chain_left;
}

static void worker_step(void)
{
	uint64_t now = platform_now_ns(), due = quiesce__visit_due();

	if (quiesce__queues_listed() || any_waiter()) {
		batch();
		pass();
	} else if (due <= now) {
		pass();
	} else {
		worker_sleep(QUIESCE_ASLEEP, due == PLATFORM_FOREVER ? due : due - now);
	}
}

/* ---- the thread ---- */

static bool worker_start(void);

static void worker_main(void)
{
	batch_ns = BATCH_NS;
	paced_until = 0;
	quiesce__self()->state |= QUIESCE_TLS_WORKER;
	quiesce_store_relaxed(&quiesce__worker.running, QUIESCE_WORKER_RUNS); /* Relaxed: it only ever helps. */
	while (!quiesce_load_relaxed(&quiesce__worker.stop)) /* Relaxed: woken after it was set. */
		worker_step();
}

/* Asked to stop, or a callback has ended it. */
static void worker_over(void)
{
	quiesce__self()->state &= ~QUIESCE_TLS_WORKER; /* a destructor may fork yet, and the child has no worker */
	/* CB4: full, pairs with CB4 in quiesce__worker_stop() */
	quiesce_xchg(CB4, &quiesce__worker.running, QUIESCE_WORKER_NONE);
	/* CB9: full, pairs with CB9 in wake_if_asleep() */
	quiesce_fence_full(CB9);
	/* Somebody may have queued, or begun to wait, trusting in this thread. */
	if (quiesce__queues_listed() || quiesce__pass_wanted() || quiesce__gp_wanted() ||
	    quiesce__visit_due() != PLATFORM_FOREVER)
		worker_start();
	platform_futex_wake(&quiesce__worker.running, INT32_MAX);
}

bool quiesce__reclaim_has_worker(void)
{
	return quiesce_load_relaxed(&quiesce__worker.running) != QUIESCE_WORKER_NONE; /* Relaxed: it only ever helps. */
}

static bool worker_start(void)
{
	struct quiesce__worker *w = &quiesce__worker;
	uint32_t none = QUIESCE_WORKER_NONE;

	/* CB4: full, pairs with CB4 in worker_over() */
	if (!quiesce_cmpxchg(CB4, &w->running, &none, QUIESCE_WORKER_STARTS))
		return true;
	quiesce_store_relaxed(&w->stop, 0); /* Relaxed: before the thread begins. */
	if (quiesce__thread_start(QUIESCE_THREAD_WORKER, worker_main, worker_over))
		return true;
	/* Relaxed: owners that trusted in this start come back. */
	quiesce_store_relaxed(&w->running, QUIESCE_WORKER_NONE);
	return false;
}

bool quiesce__worker_ensure(void)
{
	if (quiesce_likely(quiesce__reclaim_has_worker()))
		return true;
	quiesce__init();
	if (!quiesce__thread_may_start(QUIESCE_THREAD_WORKER))
		return false;
	return worker_start();
}

void quiesce__report_no_worker(void)
{
	static uint32_t reported;

	/* Relaxed: only how often matters. */
	if (!quiesce_load_relaxed(&reported) && !quiesce_fetch_add_relaxed(&reported, 1u))
		quiesce__say("no worker thread can be started, and garbage is above its ceiling: callbacks wait for "
			     "rcu_barrier() or rcu_throttle()");
}

bool quiesce__worker_stop(uint64_t deadline)
{
	struct quiesce__worker *w = &quiesce__worker;
	uint32_t running;

	quiesce_store_relaxed(&w->stop, 1); /* Relaxed: the wake-up is a fence. */
	/* CB4: acquire, pairs with CB4 in worker_over() */
	while ((running = quiesce_load_acquire(CB4, &w->running))) {
		if (!quiesce_load_relaxed(&w->stop)) /* Relaxed: asked again soon. */
			return false; /* somebody queued meanwhile and has started another: leave it to them */
		if (deadline && platform_now_ns() >= deadline)
			break; /* it will end when it can */
		quiesce__worker_wake();
		platform_futex_wait(&w->running, running, STOP_STEP_NS);
	}
	return true;
}

void quiesce__reclaim_request_gp(uint64_t cookie)
{
	uint64_t old;

	quiesce__fork_check(); /* first: it forgets what the parent wanted */
	if (!quiesce__gp_wanted())
		quiesce__pace_begin(&quiesce__worker.gp_due, QUIESCE_OVERDUE_NS);
	old = quiesce_load_relaxed(&quiesce__worker.gp_wanted); /* Relaxed: the exchange decides. */
	/* The latest cookie covers the earlier ones. */
	while (!old || (int64_t)((cookie << 16) - (old << 16)) > 0)
		/* CB9: full, pairs with CB9 in worker_sleep() */
		if (quiesce_cmpxchg(CB9, &quiesce__worker.gp_wanted, &old, cookie))
			break;
	if (quiesce__worker_ensure())
		quiesce__worker_wake();
}
