/* SPDX-License-Identifier: MIT */
/* qsbr.c - a separate RCU, whose readers report when they are quiescent.
 *
 *   reader                                     updater
 *   word = gp; full fence       (online)       unlink                      (the caller)
 *   ... reads ...                              full fence                  QS1
 *   gp != word?  word = gp      (release)      number = gp + 2, raised by this updater or by a later one
 *                full fence                    every word: 0, or not older than number?  (acquire, QS2)
 *   ... reads ...                              completed = number, unless it is newer    QS3
 *
 * I1. A thread whose word is older than the number may have found what was unlinked, so the updater waits for it.
 * I2. A thread whose word is the number, or newer, has read gp after it reached the number: after its fence it sees the unlinking.
 * I3. A thread that is found offline, or not registered, sees the unlinking when it comes online: it and the updater have a fence (QS1).
 *     So an entry that was passed is not scanned again, and entries beyond those of the first scan are not scanned at all.
 * I4. Each updater scans for itself, and depends on no other one; the first updater to have passed all words completes the number
 *     for the others.  An updater may be completed by another one whose fence was before this one's unlinking, so each executes a second
 *     fence, after it has raised gp or found it raised, and before it loads the words.  256 updaters at once walk the words 256 times, but
 *     updaters that arrive during a walk raise gp once for all of them, and a reader writes one cache line in each grace period.
 * I5. An updater sleeps until a holdout is quiescent: it sets a flag in that thread's block, which stays while it is
 *     visited.  The thread wakes all updaters that sleep, and these scan again.
 *
 * QS1  word set, then the section's reads          | unlink, then gp read and raised, then words read
 * QS2  the reads before, then word set             | word read, then the caller frees
 * QS3  gp raised, then words read, then completed  | unlink, then gp read, then completed read, then another caller frees
 * QS4  word set, then waiting read                 | waiting set, then the word read
 *
 * Paper: M. Desnoyers et al., "User-Level Implementations of Read-Copy Update", IEEE TPDS 23(2), 2012.  A number of 64 bits instead of
 * two phases needs one walk and no lock around a grace period.
 */
#include <quiesce/detail/qsbr.h>

#include "qsbr.h"
#include "runtime/report.h"
#include "runtime/wait_policy.h"

#include <errno.h>

#define SLEEP_MAX_NS 50000000u

struct quiesce_qsbr_v1 quiesce_qsbr_v1 __attribute__((aligned(128))) = { .gp = 1, .reserved = { 0 } };

static struct {
	uint64_t completed; /* the newest number that all words have passed */
	uint32_t woken;     /* futex of all updaters that sleep; changes with every wake-up */
} qsbr __attribute__((aligned(QUIESCE_CACHELINE))) = { .completed = 1 };

struct wait {
	uint64_t number, reap_at;
	uint32_t at, nr; /* entries before @at have been passed */
	uint32_t tid;    /* thread of the last holdout; 0: not known */
	struct quiesce__wait_policy stalls;
};

/* ---- threads ---- */

void quiesce__qsbr_wake(void)
{
	quiesce__init();
	quiesce_store_relaxed(&quiesce__self()->qsbr_waiting, 0); /* Relaxed: an updater loads @woken before it sets this. */
	/* QS4: full, pairs with QS4 in sleep_once() */
	quiesce_fetch_add(QS4, &qsbr.woken, 1u);
	if (!QUIESCE_MUTANT(qsbr_wake_lost))
		platform_futex_wake(&qsbr.woken, INT32_MAX);
	quiesce__count(wakeups);
}

void quiesce__qsbr_quiescent_slow(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	uint64_t gp = quiesce_load_relaxed(&quiesce_qsbr_v1.gp); /* Relaxed: the fence follows. */

	quiesce__init();
	if (!quiesce_load_relaxed(&self->qsbr_word)) /* Relaxed: the thread's own word. */
		return; /* a thread that is offline is quiescent */
	/* QS2: release, pairs with QS2 in quiesce__qsbr_blocks() */
	quiesce_store_release(QS2, &self->qsbr_word, gp);
	/* QS1: full, pairs with QS1 in raise_number() */
	/* QS4: full, pairs with QS4 in request_wake_up() */
	quiesce_fence_full(QS1);
	if (quiesce_load_relaxed(&self->qsbr_waiting)) /* Relaxed: QS4 orders it. */
		quiesce__qsbr_wake();
}

int quiesce_qsbr_register(uint32_t layout)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	quiesce__init();
	if (!quiesce__reader_ensure(self, layout))
		return -ENOMEM;
	self->qsbr_registered = 1;
	quiesce__qsbr_online();
	return 0;
}

void quiesce_qsbr_unregister(void)
{
	quiesce__qsbr_offline();
	quiesce__self()->qsbr_registered = 0;
}

void quiesce__qsbr_thread_end(struct quiesce_tls_v1 *self)
{
	if (self->qsbr_registered)
		quiesce_qsbr_unregister();
}

/* ---- updaters ---- */

static bool is_older(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

/* Return a number that was raised after the call began: by the caller, or by another updater. */
static uint64_t raise_number(void)
{
	uint64_t gp;

	quiesce__init();
	quiesce__fix_mode();
	/* QS1: full, pairs with QS1 in quiesce__qsbr_online() and quiesce__qsbr_quiescent_slow() */
	quiesce_fence_full(QS1);
	gp = quiesce_load_relaxed(&quiesce_qsbr_v1.gp); /* Relaxed: QS1 is before, the exchange after. */
	if (QUIESCE_MUTANT(qsbr_number_now))
		return gp;
	/* QS1: pairs with QS1 in quiesce__qsbr_online() and quiesce__qsbr_quiescent_slow() */
	if (quiesce_cmpxchg(QS1, &quiesce_qsbr_v1.gp, &gp, gp + 2))
		gp += 2;
	/* An updater that finds this number, and then finds it completed, relies on the words that the caller loads after this. */
	/* QS3: full, pairs with QS3 in is_completed() */
	quiesce_fence_full(QS3);
	return gp;
}

static bool is_completed(uint64_t number)
{
	/* QS3: acquire, pairs with QS3 in complete() */
	return !is_older(quiesce_load_acquire(QS3, &qsbr.completed), number);
}

static void complete(uint64_t number)
{
	uint64_t old = quiesce_load_relaxed(&qsbr.completed); /* Relaxed: the exchange decides. */

	/* QS3: release, pairs with QS3 in is_completed() */
	while (is_older(old, number) && !quiesce_cmpxchg(QS3, &qsbr.completed, &old, number))
		;
}

static bool quiesce__qsbr_blocks(const struct quiesce_tls_v1 *tls, uint64_t number)
{
	/* QS2: acquire, pairs with QS2 in quiesce__qsbr_quiescent_slow() and quiesce__qsbr_offline() */
	uint64_t word = quiesce_load_acquire(QS2, &tls->qsbr_word);

	return word && is_older(word, number) && !QUIESCE_MUTANT(qsbr_no_wait);
}

static void begin(struct wait *w, uint64_t number)
{
	*w = (struct wait){ .number = number, .nr = quiesce__readers_nr() };
}

static bool is_holdout(struct quiesce__reader *r, struct quiesce_tls_v1 *tls, void *arg)
{
	struct wait *w = arg;

	/* While an entry is visited its owner keeps it, so the number is that of the thread with this word. */
	w->tid = quiesce__reader_tid(r);
	return quiesce__qsbr_blocks(tls, w->number);
}

static bool scan_words(void *wait)
{
	struct wait *w = wait;

	if (is_completed(w->number))
		return true;
	w->at = quiesce__readers_walk(w->at, w->nr, is_holdout, w);
	if (w->at < w->nr)
		return false;
	complete(w->number);
	return true;
}

/* Report the holdout that the last scan found. */
static QUIESCE_COLD void report_stall(const struct wait *w, uint64_t now)
{
	struct quiesce__report r;

	quiesce__report_stall(&r, "urcu_qsbr_synchronize_rcu", NULL, now - w->stalls.start);
	quiesce__report_thread(&r, w->tid, quiesce__tid());
	quiesce__report_add(&r, ", which is online and reports no quiescent state");
	quiesce__report_end(&r);
}

static void check_stall(struct wait *w, uint64_t now)
{
	if (quiesce__wait_policy_take_report(&w->stalls, now))
		report_stall(w, now);
	if (now >= w->reap_at)
		w->reap_at = quiesce__readers_reap(now, &w->at, scan_words, w);
}

/* Request a wake-up of a holdout; false: the thread is none, or was quiescent by then. */
static bool request_wake_up(struct quiesce__reader *r, struct quiesce_tls_v1 *tls, void *arg)
{
	if (!is_holdout(r, tls, arg))
		return false;
	quiesce_store_relaxed(&tls->qsbr_waiting, 1); /* Relaxed: the fence follows. */
	/* QS4: full, pairs with QS4 in quiesce__qsbr_offline() and quiesce__qsbr_quiescent_slow() */
	quiesce_fence_full(QS4);
	return is_holdout(r, tls, arg);
}

static void sleep_once(struct wait *w)
{
	/* QS4: acquire, pairs with QS4 in quiesce__qsbr_wake() */
	uint32_t woken = quiesce_load_acquire(QS4, &qsbr.woken);

	w->at = quiesce__readers_walk(w->at, w->nr, request_wake_up, w);
	if (w->at >= w->nr)
		return;
	quiesce__count(sleeps);
	platform_futex_wait(&qsbr.woken, woken, SLEEP_MAX_NS);
}

static void wait_for(uint64_t number)
{
	struct wait w;

	begin(&w, number);
	if (quiesce__wait_spin(scan_words, &w))
		return;
	w.stalls.start = platform_now_ns();
	w.reap_at = w.stalls.start + QUIESCE_REAP_NS;
	do {
		check_stall(&w, platform_now_ns());
		sleep_once(&w);
	} while (!scan_words(&w));
}

void quiesce_qsbr_synchronize(void)
{
	bool online = quiesce__qsbr_ongoing();

	if (online)
		quiesce__qsbr_offline();
	wait_for(raise_number());
	if (online)
		quiesce__qsbr_online();
	else
		/* QS3: full, pairs with the caller */
		quiesce_fence_full(QS3);
	quiesce__count(grace_periods);
}

/* ---- cookies ---- */

uint64_t quiesce_qsbr_start_poll(void)
{
	return raise_number();
}

int quiesce_qsbr_poll(uint64_t cookie)
{
	struct wait w;

	quiesce__init();
	begin(&w, cookie);
	if (!scan_words(&w))
		return false;
	/* QS3: full, pairs with the caller */
	quiesce_fence_full(QS3);
	return true;
}
