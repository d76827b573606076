/* SPDX-License-Identifier: MIT */
/* barrier.c - the safe points of callers: rcu_barrier(), which waits for callbacks, and rcu_throttle(), which waits for less garbage.
 *
 * At a safe point the caller holds no lock that readers or callbacks take.  So where no worker thread can be had, callbacks run in these
 * calls.
 *
 * CB4, CB7  see pass.c
 * CB9  see worker.c
 */
#include "platform/probe.h"
#include "runtime/helper.h"
#include "queue.h"
#include "rcu.h"
#include "reclaim.h"
#include "runtime/run.h"
#include "runtime/thread.h"
#include "runtime/wait_policy.h"

#define PASS_POLL_NS 2000000u /* longest sleep of a caller without a worker, while another caller makes a pass */
#define RECHECK_NS 100000000u /* longest sleep of a caller with a worker, which may have ended, or never begun */
#define MAX_PASSES_HERE 8u    /* most passes that rcu_throttle() makes without a worker, as callbacks may retire more objects */

int64_t quiesce__garbage;
int64_t quiesce__garbage_srcu;

/* ---- reports ---- */

void quiesce__rcu_report_garbage(struct quiesce__report *r)
{
	struct quiesce_stats stats = { .readers = 0 };

	quiesce__reclaim_stats(&stats);
	quiesce__report_garbage(r, "call_rcu() and kfree_rcu()", quiesce__garbage_rcu(), stats.garbage_objects);
}

/* Report which thread makes the pass, and the callback that it is in; if it waits for readers, the report of that wait names these. */
static void report_pass(struct quiesce__report *r)
{
	uint32_t tid = quiesce__lock_holder(&quiesce__pass.lock);
	uintptr_t func;
	const struct quiesce__reclaimer *busy = quiesce__reclaimer_in_callback(&func);

	if (!tid) {
		quiesce__report_add(r, "the thread \"quiesce\", which has not begun with what is queued");
		return;
	}
	quiesce__report_thread(r, busy && busy->tid ? busy->tid : tid, quiesce__tid());
	if (busy)
		quiesce__report_code(r, ", in the callback ", (const void *)func);
	else
		quiesce__report_add(r, ", which waits for readers or frees objects");
}

void quiesce__rcu_check_garbage(void)
{
	struct quiesce__report r;

	if (!quiesce__garbage_take_report(QUIESCE_GARBAGE_RCU, quiesce__garbage_rcu()))
		return;
	quiesce__rcu_report_garbage(&r);
	quiesce__report_add(&r, " wait for ");
	report_pass(&r);
	quiesce__report_end(&r);
}

/* Report a stall, if a report is due.  @call waits for what is queued since @p->start. */
static void check_stall(struct quiesce__wait_policy *p, const char *call)
{
	struct quiesce_stats stats = { .readers = 0 };
	uint64_t now = platform_now_ns();
	struct quiesce__report r;

	quiesce__rcu_check_garbage();
	if (!quiesce__wait_policy_take_report(p, now))
		return;
	quiesce__reclaim_stats(&stats);
	quiesce__report_stall(&r, call, NULL, now - p->start);
	report_pass(&r);
	quiesce__report_add(&r, "; %llu objects (%llu bytes) are queued", (unsigned long long)stats.garbage_objects,
			    (unsigned long long)stats.garbage_bytes);
	quiesce__report_end(&r);
}

/* ---- a pass ---- */

/* True if pass @number has ended. */
static bool pass_done(uint64_t number)
{
	/* CB4: acquire, pairs with CB4 in pass_end() */
	return (int64_t)(quiesce_load_acquire(CB4, &quiesce__pass.done) - number) >= 0;
}

/* True if pass @number, or a newer one, has ended and ran callbacks. */
static bool pass_ran(uint64_t number)
{
	/* CB4: acquire, pairs with CB4 in pass_end() */
	return (int64_t)(quiesce_load_acquire(CB4, &quiesce__pass.ran_callbacks) - number) >= 0;
}

bool quiesce__pass_wanted(void)
{
	return !pass_ran(quiesce_load_relaxed(&quiesce__pass.wanted)); /* Relaxed: its waiter wakes the worker. */
}

static void want_pass(uint64_t number)
{
	uint64_t wanted = quiesce_load_relaxed(&quiesce__pass.wanted); /* Relaxed: the exchange decides. */

	while ((int64_t)(number - wanted) > 0)
		/* CB9: full, pairs with CB9 in worker_sleep() */
		if (quiesce_cmpxchg(CB9, &quiesce__pass.wanted, &wanted, number))
			break;
}

/* A caller waits for a pass; where there is no worker, callbacks run in the wait. */
struct pass_wait {
	struct quiesce__run run;
	const char *call;
	uint64_t number, deadline;
	uint32_t generation; /* generation of forks in which the caller is counted in pass.waiting */
	bool done;
};

static void count_waiter(struct pass_wait *w)
{
	w->generation = quiesce__generation();
	/* CB4: full, pairs with CB4 in pass_end() */
	quiesce_fetch_add(CB4, &quiesce__pass.waiting, 1u);
}

/* Count the caller again, if a callback in the wait has forked and this is the child, which counts no waiter of the parent. */
static void recount_waiter(struct pass_wait *w)
{
	if (w->generation == quiesce__generation())
		return;
	count_waiter(w);
	want_pass(w->number);
}

static bool wait_for_pass(struct pass_wait *w)
{
	struct quiesce__wait_policy stalls = { .start = platform_now_ns() };
	uint64_t number = w->number, deadline = w->deadline;

	for (; !pass_ran(number); recount_waiter(w)) {
		/* CB4: acquire, pairs with CB4 in pass_end() */
		uint32_t word = quiesce_load_acquire(CB4, &quiesce__pass.done_word);
		uint64_t now = deadline ? platform_now_ns() : 0;

		if (deadline && now >= deadline)
			return false;
		if (!quiesce__worker_ensure()) {
			quiesce__pass_make_here(true);
			if (!pass_ran(number))
				platform_futex_wait(&quiesce__pass.done_word, word, PASS_POLL_NS);
			continue;
		}
		quiesce__worker_wake_for_sure();
		if (!pass_ran(number))
			platform_futex_wait(&quiesce__pass.done_word, word,
					    deadline && deadline - now < RECHECK_NS ? deadline - now : RECHECK_NS);
		check_stall(&stalls, w->call);
	}
	return true;
}

static void wait_in_run(struct quiesce__run *run)
{
	struct pass_wait *w = (struct pass_wait *)run;

	w->done = wait_for_pass(w);
}

static void uncount_waiter(const struct pass_wait *w)
{
	if (w->generation == quiesce__generation())
		quiesce_fetch_add_relaxed(&quiesce__pass.waiting, (uint32_t)-1); /* Relaxed: a pass that sees it late wakes needlessly. */
}

static void wait_ended(struct quiesce__run *run)
{
	if (!QUIESCE_MUTANT(cb_ended_waits))
		uncount_waiter((const struct pass_wait *)run);
}

bool quiesce__pass_wait(const char *call, uint64_t deadline)
{
	struct pass_wait w = { .call = call, .deadline = deadline };

	count_waiter(&w);
	/* CB7: full, pairs with CB7 in pass_begin() */
	quiesce_fence_full(CB7);
	w.number = quiesce_load_relaxed(&quiesce__pass.begun) + 1; /* Relaxed: CB7 orders it. */
	if (QUIESCE_MUTANT(cb_barrier_early))
		w.number--;
	want_pass(w.number);
	quiesce__run(&w.run, wait_in_run, wait_ended);
	uncount_waiter(&w);
	return w.done;
}

/* The checks are made between two loads of the number of the newest pass, which has ended.  If the number has not changed, no pass was
 * made meanwhile, so an object that waits is in the lists, or carried over, or ready and left to its owner. */
bool quiesce__nothing_queued(void)
{
	uint64_t begun = quiesce_load_relaxed(&quiesce__pass.begun); /* Relaxed: compared again. */

	if (!pass_done(begun) || quiesce__queues_listed() || quiesce__pass_carries() ||
	    quiesce__visit_due() != PLATFORM_FOREVER)
		return false;
	/* CB7: full, pairs with CB7 in pass_begin() */
	quiesce_fence_full(CB7);
	return quiesce_load_relaxed(&quiesce__pass.begun) == begun; /* Relaxed: CB7 orders it. */
}

/* ---- rcu_barrier() ---- */

bool quiesce__barrier_is_misuse(const char *call, const void *caller)
{
	struct platform_location here;

	if (quiesce__rcu_wait_is_misuse(call, caller))
		return true;
	if (quiesce__self()->state & (QUIESCE_TLS_CALLBACKS | QUIESCE_TLS_IN_HEAP)) {
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_CALLBACK, "%s at %s inside a callback%s would wait for itself", call,
				platform_location(caller, &here),
				quiesce__self()->state & QUIESCE_TLS_IN_HEAP ? ", or in a free() of the library's," : "");
		return true;
	}
	return false;
}

void quiesce_rcu_barrier(void)
{
	quiesce__init();
	if (quiesce__barrier_is_misuse("rcu_barrier()", quiesce__caller()))
		return;
	quiesce__jobs_take_steps();
	if (!quiesce__nothing_queued())
		quiesce__pass_wait("rcu_barrier", 0);
}

/* True if a worker could not be started, and none runs now; one that is being started may fail, too. */
static bool lacks_worker(void)
{
	return quiesce__thread_failed(QUIESCE_THREAD_WORKER) && !quiesce__worker_runs();
}

/* Make passes in this thread until nothing is queued, or MAX_PASSES_HERE are made. */
static void make_passes(void)
{
	for (uint32_t i = 0; i < MAX_PASSES_HERE && !quiesce__nothing_queued(); i++)
		quiesce__pass_make_here(true);
}

void quiesce__free_without_worker(void)
{
	if (quiesce_likely(!lacks_worker()))
		return;
	if (!(quiesce__self()->state & (QUIESCE_TLS_CALLBACKS | QUIESCE_TLS_IN_HEAP)) && !quiesce__nothing_queued())
		quiesce__pass_make_here(false);
}

/* ---- rcu_throttle() ---- */

static struct {
	uint32_t waiting; /* number of callers that wait for less garbage */
	uint32_t word;    /* futex of these callers; it changes when garbage is below the ceiling */
} throttle;

bool quiesce__throttled(void)
{
	return quiesce_load_relaxed(&throttle.waiting) != 0; /* Relaxed: the sleep of a caller is timed. */
}

void quiesce__throttle_wake(void)
{
	/* Relaxed: a caller that has just begun to wait checks again after a timed sleep. */
	if (quiesce_likely(!quiesce_load_relaxed(&throttle.waiting)) || quiesce__garbage_above_ceiling())
		return;
	quiesce_fetch_add_relaxed(&throttle.word, 1u); /* Relaxed: the wake-up is a fence. */
	platform_futex_wake(&throttle.word, INT32_MAX);
}

/* Have the worker make a pass now, with an expedited grace period; a caller repeats this until there is less garbage. */
static void urge_worker(bool safe_point)
{
	quiesce_store_relaxed(&quiesce__worker.urgent, 1); /* Relaxed: a best-effort hint. */
	if (quiesce__worker_ensure())
		quiesce__worker_wake_for_sure();
	else
		quiesce__pass_make_here(safe_point);
	quiesce__helper_wake();
	if (safe_point)
		quiesce__jobs_take_steps();
}

/* True if there is no thread that runs callbacks, so that they wait for a caller that may run them. */
static bool callbacks_need_caller(void)
{
	return !quiesce__reclaim_has_worker() || quiesce__jobs_need_caller();
}

struct throttle_wait {
	struct quiesce__run run;
	const char *call;
	uint64_t max_ns;
	uint32_t generation; /* generation of forks in which the caller is counted in throttle.waiting */
	bool safe_point;     /* callbacks may run in the caller */
};

static void count_throttled(struct throttle_wait *t)
{
	t->generation = quiesce__generation();
	quiesce_fetch_add_relaxed(&throttle.waiting, 1u); /* Relaxed: the sleep is timed. */
}

/* Wait until garbage is below the ceiling, or for max_ns; at a safe point callbacks may run in the wait. */
static void throttle_in_run(struct quiesce__run *run)
{
	struct throttle_wait *t = (struct throttle_wait *)run;
	uint64_t begin = platform_now_ns(), ns = 0, max_ns = t->max_ns;
	struct quiesce__wait_policy stalls = { .start = begin };

	for (; ns < max_ns && quiesce__garbage_above_ceiling(); ns = platform_now_ns() - begin) {
		uint32_t word = quiesce_load_relaxed(&throttle.word); /* Relaxed: the sleep is timed. */

		urge_worker(t->safe_point);
		if (!t->safe_point && callbacks_need_caller())
			break;
		if (t->generation != quiesce__generation())
			count_throttled(t); /* a callback has forked */
		ns = max_ns - ns;
		if (quiesce__garbage_above_ceiling())
			platform_futex_wait(&throttle.word, word, ns < RECHECK_NS ? ns : RECHECK_NS);
		check_stall(&stalls, t->call);
	}
}

static void uncount_throttled(struct quiesce__run *run)
{
	if (((const struct throttle_wait *)run)->generation == quiesce__generation())
		quiesce_fetch_add_relaxed(&throttle.waiting, (uint32_t)-1); /* Relaxed: the sleep is timed. */
}

QUIESCE_COLD void quiesce__throttle(const char *call, uint64_t max_ns, bool safe_point)
{
	struct throttle_wait t = { .call = call, .max_ns = max_ns, .safe_point = safe_point };
	uint64_t since = quiesce_probe_clock(throttle_end);

	quiesce__count(backpressure);
	quiesce_probe(throttle_begin, call, quiesce__garbage_rcu());
	count_throttled(&t);
	quiesce__run(&t.run, throttle_in_run, uncount_throttled);
	uncount_throttled(&t.run);
	quiesce_probe(throttle_end, call, quiesce_probe_since(since));
}

/* True if the sum of garbage needs what the owner of @queue has not reported: a quantum, or bytes that exceed the ceiling with the sum. */
static bool report_is_due(const struct quiesce__queue *queue)
{
	/* Relaxed: settings. */
	uint64_t bytes = quiesce__queue_bytes(queue) - queue->reported, ceiling = quiesce_load_relaxed(&quiesce__settings.ceiling);

	if (bytes >= quiesce_load_relaxed(&quiesce__queues.report_bytes)) /* Relaxed: a policy. */
		return true;
	if (QUIESCE_MUTANT(cb_throttle_unreported))
		return false;
	return ceiling && (bytes >= ceiling || quiesce__garbage_above(ceiling - bytes));
}

void quiesce_rcu_throttle(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	quiesce__init();
	if (quiesce__rcu_wait_is_misuse("rcu_throttle()", quiesce__caller()))
		return;
	if (self->state & (QUIESCE_TLS_CALLBACKS | QUIESCE_TLS_IN_HEAP))
		return;
	if (self->queue && report_is_due(self->queue))
		quiesce__queue_report_own(self->queue);
	quiesce__jobs_take_steps();
	if (quiesce_unlikely(!quiesce__worker_runs()) && !quiesce__nothing_queued() && (!quiesce__worker_ensure() || lacks_worker()))
		make_passes();
	if (quiesce_unlikely(quiesce__garbage_above_ceiling()))
		quiesce__throttle("rcu_throttle", PLATFORM_FOREVER, true);
}

void quiesce__throttle_fork_child(void)
{
	throttle.waiting = 0;
}
