/* SPDX-License-Identifier: MIT */
/* worker.c - the thread that makes the passes.
 *
 * I1. Before the worker sleeps it announces its sleep, executes a full fence, and checks the lists once more.  A thread that lists a queue
 *     or wants a pass executes a full fence, too, before it checks whether the worker sleeps.  Both are rare, so each executes its own
 *     fence, and neither a heavy one.
 * I2. The worker makes a pass if a queue is listed, or if a caller wants a newer pass than the last one.  It does not check whether the
 *     callers that it has woken have run.
 * I3. The worker waits up to a millisecond for a batch to grow.  But if callbacks have retired objects, it makes the next pass at once: a
 *     chain of objects, each of whose callbacks retires the next one, takes a pass for each.  It does so for a limited time only, as two
 *     objects may retire each other for ever, and not where a callback has queued its own object again.
 * I4. No caller waits for free().  So where a pass found few objects, and only objects of kfree_rcu() were queued since, the next one is
 *     made PACE_NS later: this pacing spares a thread that retires slowly an interrupt of all CPUs for each object.  It ends early when a
 *     callback is queued, which the program may wait for, when a queue has QUIESCE_PACED objects, when a caller waits, or when garbage
 *     is above the ceiling.  The sleep is long, so the worker goes to sleep as in I1; for a batch, it skips the fence and the check.
 *
 * CB9  queue listed, then sleep read        | asleep, then lists read
 * CB4  the worker's last access             | the next worker's first access
 *
 * The ledger of passes is in pass.c.
 */
#include "queue.h"
#include "rcu.h"
#include "reclaim.h"
#include "runtime/overdue.h"
#include "runtime/pace.h"
#include "runtime/thread.h"

#define BATCH_NS 1000000u   /* longest time that the worker waits for a batch to grow */
#define BATCH_MIN_NS 50000u /* shortest such time, where queues fill quickly */
#define PACE_NS 50000000u   /* time from a small pass to the next one's grace period, if pacing does not end early */
#define CHAIN_NS 400000u    /* time of passes that follow each other without batching, because callbacks retire objects */
#define CHAIN_IPI_FACTOR 8u /* factor by which a pass that interrupts other CPUs uses up more of CHAIN_NS */
#define CHEAP_NS 8000u      /* longest time of a pass that interrupts none */
#define STOP_POLL_NS 2000000u

struct quiesce__worker quiesce__worker;

/* Only the worker accesses these. */
static uint64_t chain_left;  /* time left of CHAIN_NS */
static uint64_t batch_ns;    /* time that the next batch may grow */
static uint64_t paced_until; /* time until which a small pass is put off; 0: the last pass was not small */

bool quiesce__gp_wanted(void)
{
	uint64_t cookie = quiesce_load_relaxed(&quiesce__worker.gp_wanted); /* Relaxed: CB9 orders it. */

	return cookie && !quiesce__rcu_cookie_done(cookie);
}

bool quiesce__gp_claim_overdue(uint64_t cookie)
{
	uint64_t wanted = quiesce_load_relaxed(&quiesce__worker.gp_wanted); /* Relaxed: a hint. */

	return wanted && (int64_t)((wanted << 16) - (cookie << 16)) >= 0 &&
	       quiesce__pace_claim(&quiesce__worker.gp_due, QUIESCE_OVERDUE_NS);
}

/* True if a caller waits for a pass, for a requested grace period, or for the end of the worker. */
static bool any_waiter(void)
{
	/* Relaxed: CB9 orders it. */
	return quiesce__pass_wanted() || quiesce_load_relaxed(&quiesce__worker.stop) || quiesce__gp_wanted();
}

/* True if the next pass must not wait for a batch to grow.  Relaxed: best-effort hints. */
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
		quiesce__rcu_raise_urgency(QUIESCE_NORMAL); /* the worker may be in a grace period, which the caller waits for */
}

void quiesce__worker_wake_for_sure(void)
{
	quiesce__worker_wake();
	if (!QUIESCE_MUTANT(cb_trusts_waker))
		platform_futex_wake(&quiesce__worker.sleep, 1);
}

/* True if the next pass must not be put off by pacing.  Relaxed: best-effort hints, or CB9. */
static bool must_not_pace(void)
{
	return must_not_batch() || quiesce_load_relaxed(&quiesce__worker.prompt);
}

void quiesce__worker_prompt(void)
{
	if (QUIESCE_MUTANT(cb_prompt_lost))
		return;
	if (!quiesce_load_relaxed(&quiesce__worker.prompt)) { /* Relaxed: the caller's fence precedes it. */
		quiesce_store_relaxed(&quiesce__worker.prompt, 1); /* Relaxed: the fence follows. */
		/* CB9: full, pairs with CB9 in worker_sleep() */
		quiesce_fence_full(CB9);
	}
	if (quiesce_load_relaxed(&quiesce__worker.sleep) == QUIESCE_PACING) /* Relaxed: CB9 orders it. */
		quiesce__worker_wake();
}

/* Sleep for @ns at most, in the state @how, unless there is work that this state does not put off. */
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
	quiesce_store_relaxed(&quiesce__worker.sleep, QUIESCE_AWAKE); /* Relaxed: the worker checks the lists next. */
}

/* ---- working ---- */

/* True if callbacks of the last pass have retired objects, and none has queued its own object again (I3). */
static bool is_chained(void)
{
	const struct quiesce__queue *own = quiesce__self()->queue;

	if (!own || quiesce__pass_requeued())
		return false;
	return quiesce_load_relaxed(&own->callbacks.queued) != own->running.taken || /* Relaxed: the thread's own. */
	       quiesce_load_relaxed(&own->frees.queued) != own->frees_snap.nr;       /* Relaxed: the thread's own. */
}

/* True if the next pass is to be put off (I4). */
static bool is_paced(uint64_t now)
{
	uint64_t ceiling = quiesce_load_relaxed(&quiesce__settings.ceiling); /* Relaxed: a setting. */

	/* Relaxed: a best-effort hint. */
	return now + batch_ns < paced_until && !quiesce_load_relaxed(&quiesce__worker.prompt) &&
	       !quiesce__garbage_above(ceiling / 2) && !QUIESCE_MUTANT(cb_unpaced);
}

/* Let the next pass wait, by pacing or for a batch to grow, unless a waiter or a chain needs it at once. */
static void delay_pass(void)
{
	uint64_t now = platform_now_ns();

	if (must_not_batch() || (chain_left && is_chained()))
		return;
	chain_left = CHAIN_NS;
	if (is_paced(now))
		worker_sleep(QUIESCE_PACING, paced_until - now);
	else
		worker_sleep(QUIESCE_BATCHING, batch_ns);
}

/* Adapt the time of a batch, so that the fullest queue of the next pass is well filled: an owner that finds its queue overfull has to wake
 * the worker, at its own expense. */
static void adapt_batch(void)
{
	uint64_t max_taken = quiesce__pass_max_taken();
	uint64_t ns = max_taken ? batch_ns * QUIESCE_WELL_FILLED / max_taken : BATCH_NS;

	if (ns > 2 * batch_ns)
		ns = 2 * batch_ns;
	batch_ns = ns < BATCH_MIN_NS ? BATCH_MIN_NS : ns > BATCH_NS ? BATCH_NS : ns;
}

/* Make a pass, and measure it for the next one. */
static void make_pass(void)
{
	uint64_t ns = platform_now_ns(), now, max_taken;

	quiesce__lock(&quiesce__pass.lock);
	quiesce__pass_run(true);
	adapt_batch();
	max_taken = quiesce__pass_max_taken();
	quiesce__unlock(&quiesce__pass.lock);
	quiesce__rcu_check_garbage();
	now = platform_now_ns();
	if (max_taken)
		paced_until = max_taken < QUIESCE_PACED ? now + PACE_NS : 0;
	ns = now - ns;
	if (ns > CHEAP_NS)
		ns *= CHAIN_IPI_FACTOR;
	chain_left -= ns < chain_left ? ns : chain_left;
}

static void worker_step(void)
{
	uint64_t now = platform_now_ns(), due = quiesce__visit_due();

	if (quiesce__queues_listed() || any_waiter()) {
		delay_pass();
		make_pass();
	} else if (due <= now) {
		make_pass();
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
	quiesce_store_relaxed(&quiesce__worker.running, QUIESCE_WORKER_RUNS); /* Relaxed: an owner that sees it late takes its slow path. */
	while (!quiesce_load_relaxed(&quiesce__worker.stop)) /* Relaxed: the worker is woken after it was set. */
		worker_step();
}

/* Called when the worker ends: a stop was requested, or a callback has ended its thread. */
static void worker_exit(void)
{
	quiesce__self()->state &= ~QUIESCE_TLS_WORKER; /* a destructor of this thread may fork, and the child has no worker then */
	/* CB4: full, pairs with CB4 in quiesce__worker_stop() */
	quiesce_xchg(CB4, &quiesce__worker.running, QUIESCE_WORKER_NONE);
	/* CB9: full, pairs with CB9 in wake_if_asleep() */
	quiesce_fence_full(CB9);
	/* A thread may have listed a queue, or begun to wait, while it saw this worker: then there must be a new one. */
	if (quiesce__queues_listed() || quiesce__pass_wanted() || quiesce__gp_wanted() ||
	    quiesce__visit_due() != PLATFORM_FOREVER)
		worker_start();
	platform_futex_wake(&quiesce__worker.running, INT32_MAX);
}

bool quiesce__reclaim_has_worker(void)
{
	/* Relaxed: worker_exit() makes up for a caller that relies on a worker that has just ended. */
	return quiesce_load_relaxed(&quiesce__worker.running) != QUIESCE_WORKER_NONE;
}

static bool worker_start(void)
{
	struct quiesce__worker *w = &quiesce__worker;
	uint32_t none = QUIESCE_WORKER_NONE;

	/* CB4: full, pairs with CB4 in worker_exit() */
	if (!quiesce_cmpxchg(CB4, &w->running, &none, QUIESCE_WORKER_STARTS))
		return true;
	quiesce_store_relaxed(&w->stop, 0); /* Relaxed: before the thread begins. */
	if (quiesce__thread_start(QUIESCE_THREAD_WORKER, worker_main, worker_exit))
		return true;
	/* Relaxed: owners that relied on this start try again in their next calls. */
	quiesce_store_relaxed(&w->running, QUIESCE_WORKER_NONE);
	return false;
}

bool quiesce__worker_ensure(void)
{
	if (quiesce_likely(quiesce__reclaim_has_worker()))
		return true;
	quiesce__init();
	if (!quiesce__thread_claim_start(QUIESCE_THREAD_WORKER))
		return false;
	return worker_start();
}

void quiesce__report_no_worker(void)
{
	static uint32_t reported;

	/* Relaxed: the exchange lets one thread report. */
	if (!quiesce_load_relaxed(&reported) && !quiesce_fetch_add_relaxed(&reported, 1u))
		quiesce__say("no worker thread can be started, and garbage is above its ceiling: callbacks wait for "
			     "rcu_barrier() or rcu_throttle()");
}

bool quiesce__worker_stop(uint64_t deadline)
{
	struct quiesce__worker *w = &quiesce__worker;
	uint32_t running;

	quiesce_store_relaxed(&w->stop, 1); /* Relaxed: the wake-up is a fence. */
	/* CB4: acquire, pairs with CB4 in worker_exit() */
	while ((running = quiesce_load_acquire(CB4, &w->running))) {
		if (!quiesce_load_relaxed(&w->stop)) /* Relaxed: loaded again after each sleep. */
			return false; /* a new worker was started meanwhile, for objects that were queued */
		if (deadline && platform_now_ns() >= deadline)
			break; /* the worker ends later, after its pass */
		quiesce__worker_wake();
		platform_futex_wait(&w->running, running, STOP_POLL_NS);
	}
	return true;
}

void quiesce__reclaim_request_gp(uint64_t cookie)
{
	uint64_t old;

	quiesce__init(); /* this comes first, because it clears the parent's request in a child */
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
