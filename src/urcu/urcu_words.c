/* SPDX-License-Identifier: MIT */
/* urcu_words.c - grace periods over the words of liburcu's inlined readers.
 *
 * The code that liburcu's headers inline into programs, which the library cannot change:
 *
 *   lock     ctr's low half 0?  ctr = gp (the whole word), fence;  else ctr + 1
 *   unlock   low half 1?  fence, ctr - 1, fence, and if futex is -1: futex = 0, wake one;  else ctr - 1
 *   qsbr     quiescent: gp != ctr?  fence, ctr = gp, fence, and if waiting: waiting = 0, fence, futex -1?  0, wake one;  fence
 *            offline: fence, ctr = 0, fence, and wake as if quiescent;  online: ctr = gp, fence
 *
 * Its fences are compiler barriers in LIGHT domains where the process has a membarrier, else full.
 * liburcu counts phases in one bit of the high half, waits for two of them, and so needs two or three membarriers.  Here the high half is
 * the number of the grace period, so one wait and one membarrier are enough, as in rcu_gp.c:
 *
 *   reader                             updater
 *   ctr = gp; light fence              unlink                        (the caller)
 *   ... section ...                    started = number              UW3
 *   ctr - 1                            heavy fence                   UW1
 *                                      gp = number
 *                                      every ctr: low half 0, or of this number?  (acquire, UW2)
 *                                      completed = number            UW2
 *
 * I1. A ctr that is inside a section and has another number was set before gp reached this one: the updater waits for it.  Grace periods
 *     do not overlap (@driving), so another number is an older one.  Numbers wrap after 2^32: a thread would have to stop between the load
 *     and the store of "ctr = gp" for exactly so many grace periods, which takes hours, to be taken for a later reader.
 * I2. A ctr with this number was set by a reader that loaded gp after the fence.  So the interrupt of that fence came before, and all later
 *     loads see the unlinking, on any CPU.  But the inlined unlock is a plain store, which is a release (UW2) only on a CPU that keeps it
 *     after the loads before it, as x86 does.  Others would need a second heavy fence after the last scan, so these domains are for x86.
 * I3. A reader that a scan has passed (@passed) is not scanned again: I2 holds for its later sections, or the fence makes them see the
 *     unlinking.
 * I4. The state of a grace period outlives the thread that began it: a poller leaves it as it is.
 * I5. To sleep, the waiter sets futex to -1, executes a heavy fence, and scans again (UW4).  Any unlock wakes it, so it sets futex anew
 *     before each sleep.  The inlined wake-up is one for a futex that processes may share, and so is the sleep.  Where readers wake no
 *     waiter, sleeps are timed.  A wake-up by a reader that is no holdout costs that reader a system call and the waiter a heavy fence,
 *     so after some of these the waiter sleeps for a limited time, with futex 0.
 * I6. If no thread but the caller is registered, there is no reader to wait for and no need of a heavy fence: a thread that has
 *     unregistered did so under @lock before, and one that registers later takes @lock after the caller.
 * I7. A forked child keeps the records of the thread that has forked.  If other threads of the child call the library first, the records
 *     of the parent stay until that thread calls it.  A grace period that had begun continues in the child; its number may not have been
 *     written to gp yet.
 * I8. @lock is held with signals enabled, so a handler must not add a record.  bp, whose readers register by themselves, blocks signals.
 *
 * UW1  ctr set, then the section's reads       | unlink, then ctrs read
 * UW2  the section's accesses, then ctr        | ctr read, then completed; completed read, then the caller frees
 * UW3  unlink, then started read (a cookie)    | started, then ctrs read
 * UW4  ctr cleared, then futex or waiting read | futex and waiting set, then ctrs read
 */
#include <quiesce/detail/urcu_words.h>

#include "rcu/rcu.h"
#include "runtime/readers.h"
#include "runtime/report.h"
#include "runtime/wait_policy.h"
#include "urcu_words.h"

#define SLEEP_MIN_NS 20000u   /* first sleep where readers wake no waiter */
#define SLEEP_MAX_NS 1000000u
#define SLEEP_WOKEN_NS 50000000u
#define BACKOFF_PART 4u /* a sleep without wake-ups adds at most a fourth to the wait so far */
#if defined(QUIESCE_SIM)
#define MAX_SPURIOUS 0u
#else
#define MAX_SPURIOUS 8u
#endif
#define ASLEEP UINT32_MAX

static struct quiesce_urcu_domain *domains; /* constructors add them */
static struct quiesce__lock domains_lock;

struct wait {
	struct quiesce_urcu_domain *d;
	struct quiesce__wait_policy stalls;
	uint64_t now, sleep_ns;
	uint32_t nr_spurious; /* number of wake-ups after which all holdouts were still there */
};

/* ---- domains and records ---- */

int quiesce_urcu_domain_add(struct quiesce_urcu_domain *d)
{
	quiesce__init();
	quiesce__fix_mode();
	quiesce__lock(&domains_lock);
	d->next = domains;
	domains = d;
	quiesce__unlock(&domains_lock);
	return (int)quiesce_load_relaxed(&quiesce__fixed.light); /* Relaxed: fixed from the first use on. */
}

void quiesce_urcu_record_add(struct quiesce_urcu_domain *d, struct quiesce_urcu_record *r)
{
	quiesce__init();
	r->owner = quiesce__self();
	r->tid = quiesce__tid();
	r->passed = 0;
	quiesce__lock(&d->lock);
	r->next = d->records;
	r->at = &d->records;
	if (r->next)
		r->next->at = &r->next;
	d->records = r;
	quiesce__unlock(&d->lock);
}

void quiesce_urcu_record_remove(struct quiesce_urcu_domain *d, struct quiesce_urcu_record *r)
{
	quiesce__init();
	quiesce__lock(&d->lock);
	*r->at = r->next;
	if (r->next)
		r->next->at = r->at;
	quiesce__unlock(&d->lock);
}

/* ---- grace periods; the caller holds @driving ---- */

static uint64_t word_of(const struct quiesce_urcu_domain *d, uint64_t number)
{
	return d->kind == QUIESCE_URCU_QUIET ? number << 1 | 1 : number << 32 | 1;
}

static void fence_before_scan(const struct quiesce_urcu_domain *d)
{
	if (d->kind == QUIESCE_URCU_LIGHT)
		/* UW1: pairs with UW1 in quiesce__urcu_fence() */
		/* UW3: pairs with UW3 in quiesce_urcu_cookie() */
		quiesce_fence_heavy(UW1);
	else
		/* UW1: full, pairs with UW1 in quiesce__urcu_fence() */
		/* UW3: full, pairs with UW3 in quiesce_urcu_cookie() */
		quiesce_fence_full(UW1);
}

static void fence_before_sleep(const struct quiesce_urcu_domain *d)
{
	if (d->kind == QUIESCE_URCU_LIGHT)
		/* UW4: pairs with UW4 in quiesce__urcu_fence_before_wake() */
		quiesce_fence_heavy(UW4);
	else
		/* UW4: full, pairs with UW4 in quiesce__urcu_fence_before_wake() */
		quiesce_fence_full(UW4);
}

/* True if another thread is registered.  A thread that registers later takes the lock after the caller, and so sees the unlinking; the
 * sections of a thread that has left are over. */
static bool any_other_thread(struct quiesce_urcu_domain *d)
{
	bool any = false;

	quiesce__lock(&d->lock);
	for (const struct quiesce_urcu_record *r = d->records; r && !any; r = r->next)
		any = r->owner != quiesce__self();
	quiesce__unlock(&d->lock);
	return any;
}

/* Continue the grace period that is not over, or begin the next one.  @others: other threads are registered, or were just now. */
static void begin(struct quiesce_urcu_domain *d, bool others)
{
	if (d->started != d->completed)
		return;
	quiesce_store_relaxed(&d->started, d->started + 1); /* Relaxed: UW1 follows. */
	if (QUIESCE_MUTANT(urcu_gp_first))
		quiesce_store_relaxed(d->gp, word_of(d, d->started)); /* Relaxed: a mutant. */
	if ((others || any_other_thread(d)) && !QUIESCE_MUTANT(urcu_others_unfenced))
		fence_before_scan(d); /* UW3, too; where no other thread is registered, the lock takes the place of this fence */
	quiesce_store_relaxed(d->gp, word_of(d, d->started)); /* Relaxed: I2. */
}

static bool blocks(const struct quiesce_urcu_domain *d, const struct quiesce_urcu_record *r)
{
	/* UW2: acquire, pairs with UW2 in quiesce__urcu_unlock() and set_word() */
	uint64_t word = quiesce_load_acquire(UW2, r->word);

	if (QUIESCE_MUTANT(urcu_no_wait))
		return false;
	if (d->kind == QUIESCE_URCU_QUIET)
		return word && word != word_of(d, d->started);
	return (uint32_t)word && word >> 32 != (uint32_t)d->started;
}

/* A scan returns the holdouts that it found. */
struct scan_result {
	uint32_t nr;  /* number of holdouts */
	uint32_t tid; /* thread of the first of these */
};

/* A scan stops at the first holdout, or counts all of them, or also requests that each of them wakes the waiter. */
enum scan_mode { SCAN_TO_FIRST, SCAN_ALL, SCAN_AND_ASK };

/* Scan the records; the caller holds the lock. */
static struct scan_result scan_records(struct quiesce_urcu_domain *d, enum scan_mode how)
{
	struct scan_result seen = { 0, 0 };

	for (struct quiesce_urcu_record *r = d->records; r; r = r->next) {
		if (r->passed == d->started)
			continue;
		if (!blocks(d, r)) {
			r->passed = d->started;
			continue;
		}
		if (how == SCAN_AND_ASK && r->waiting)
			quiesce_store_relaxed(r->waiting, 1); /* Relaxed: UW4 follows. */
		if (!seen.nr++)
			seen.tid = r->tid;
		if (how == SCAN_TO_FIRST)
			break;
	}
	return seen;
}

static struct scan_result scan(struct quiesce_urcu_domain *d, enum scan_mode how)
{
	struct scan_result seen;

	quiesce__lock(&d->lock);
	seen = scan_records(d, how);
	quiesce__unlock(&d->lock);
	return seen;
}

static bool all_passed(void *d)
{
	return !scan(d, SCAN_TO_FIRST).nr;
}

static void complete(struct quiesce_urcu_domain *d)
{
	if (d->futex)
		quiesce_store_relaxed(d->futex, 0); /* Relaxed: a reader that wakes needlessly does no harm. */
	/* UW2: release, pairs with UW2 in is_done() */
	quiesce_store_release(UW2, &d->completed, d->started);
	quiesce__count(grace_periods);
}

static bool is_done(const struct quiesce_urcu_domain *d, uint64_t cookie)
{
	/* UW2: acquire, pairs with UW2 in complete() */
	return (int64_t)(quiesce_load_acquire(UW2, &d->completed) - cookie) >= 0;
}

/* ---- sleeping ---- */

static QUIESCE_COLD void report_stall(const struct wait *w, uint32_t tid)
{
	struct quiesce__report r;

	quiesce__report_stall(&r, w->d->call, NULL, w->now - w->stalls.start);
	quiesce__report_thread(&r, tid, quiesce__tid());
	quiesce__report_end(&r);
}

static void check_stall(struct wait *w, uint32_t tid)
{
	w->now = platform_now_ns();
	if (quiesce__wait_policy_take_report(&w->stalls, w->now))
		report_stall(w, tid);
}

static void sleep_timed(uint64_t ns)
{
	uint32_t never = 0;

	quiesce__count(sleeps);
	platform_futex_wait(&never, 0, ns);
}

/* Sleep for a limited time, in a domain whose readers wake no waiter. */
static void sleep_unwoken(struct wait *w)
{
	sleep_timed(w->sleep_ns);
	w->sleep_ns = w->sleep_ns < SLEEP_MAX_NS ? 2 * w->sleep_ns : SLEEP_MAX_NS;
}

/* Sleep until an unlock wakes the waiter; there were @nr holdouts.  After too many wake-ups by other readers, back off for a time in
 * which unlocks wake no waiter. */
static void sleep_until_woken(struct wait *w, uint32_t nr)
{
	struct quiesce_urcu_domain *d = w->d;
	uint64_t ns = (w->now - w->stalls.start) / BACKOFF_PART;

	quiesce__count(sleeps);
	platform_futex_wait_shared(d->futex, ASLEEP, SLEEP_WOKEN_NS);
	if (scan(d, SCAN_ALL).nr == nr && ++w->nr_spurious > MAX_SPURIOUS)
		sleep_timed(ns < SLEEP_MAX_NS ? ns : SLEEP_MAX_NS);
}

/* Request wake-ups of the holdouts, and sleep; true if all have passed. */
static bool sleep_once(struct wait *w)
{
	struct quiesce_urcu_domain *d = w->d;
	struct scan_result seen;

	if (d->futex)
		quiesce_store_relaxed(d->futex, ASLEEP); /* Relaxed: UW4 follows. */
	seen = scan(d, d->futex ? SCAN_AND_ASK : SCAN_TO_FIRST);
	if (!seen.nr)
		return true;
	check_stall(w, seen.tid);
	if (!d->futex) {
		sleep_unwoken(w);
		return all_passed(d);
	}
	if (!QUIESCE_MUTANT(urcu_sleeps_unfenced))
		fence_before_sleep(d);
	if (all_passed(d))
		return true;
	sleep_until_woken(w, seen.nr);
	return all_passed(d);
}

static void wait_for_readers(struct quiesce_urcu_domain *d)
{
	struct wait w = { .d = d, .stalls = { .start = platform_now_ns() }, .sleep_ns = SLEEP_MIN_NS };

	while (!sleep_once(&w))
		;
}

/* ---- callers ---- */

uint64_t quiesce_urcu_cookie(struct quiesce_urcu_domain *d)
{
	quiesce__init();
	/* UW3: full, pairs with UW3 in fence_before_scan() */
	quiesce_fence_full(UW3);
	/* Relaxed: UW3 orders it. */
	return quiesce_load_relaxed(&d->started) + !QUIESCE_MUTANT(urcu_cookie_now);
}

void quiesce_urcu_wait(struct quiesce_urcu_domain *d)
{
	uint64_t cookie;

	quiesce__init();
	cookie = quiesce_urcu_cookie(d);
	if (QUIESCE_MUTANT(urcu_alone_unlocked) ? !d->records : !any_other_thread(d))
		return;
	quiesce__lock(&d->driving);
	while (!is_done(d, cookie)) {
		begin(d, true);
		if (!quiesce__wait_spin(all_passed, d))
			wait_for_readers(d);
		complete(d);
	}
	quiesce__unlock(&d->driving);
}

int quiesce_urcu_poll(struct quiesce_urcu_domain *d, uint64_t cookie)
{
	quiesce__init();
	if (is_done(d, cookie))
		return true;
	if (!quiesce__trylock(&d->driving))
		return false; /* a waiter completes this grace period, or the one before it */
	while (!is_done(d, cookie)) {
		begin(d, false);
		if (!all_passed(d))
			break;
		complete(d);
	}
	quiesce__unlock(&d->driving);
	return is_done(d, cookie);
}

/* ---- fork ---- */

void quiesce__urcu_fork_prepare(void)
{
	quiesce__lock(&domains_lock);
	for (struct quiesce_urcu_domain *d = domains; d; d = d->next)
		quiesce__lock(&d->lock);
}

void quiesce__urcu_fork_parent(void)
{
	for (struct quiesce_urcu_domain *d = domains; d; d = d->next)
		quiesce__unlock(&d->lock);
	quiesce__unlock(&domains_lock);
}

/* Mark all records as the parent's, and repair the links back, which a thread may have been about to change. */
static void mark_inherited(struct quiesce_urcu_domain *d)
{
	struct quiesce_urcu_record **at = &d->records;

	if (!quiesce__fork_survivor && QUIESCE_MUTANT(fork_records_dropped))
		d->records = NULL;
	for (; *at; at = &(*at)->next) {
		(*at)->at = at;
		(*at)->tid = QUIESCE_TID_INHERITED;
	}
}

void quiesce__urcu_fork_child(void)
{
	quiesce__lock_reset(&domains_lock, false);
	for (struct quiesce_urcu_domain *d = domains; d; d = d->next) {
		quiesce__lock_reset(&d->lock, false);
		quiesce__lock_reset(&d->driving, false);
		if (d->futex)
			quiesce_store_relaxed(d->futex, 0); /* Relaxed: no other thread is inside the library. */
		quiesce_store_relaxed(d->gp, word_of(d, d->started)); /* Relaxed: no other thread is inside the library. */
		mark_inherited(d);
	}
}

/* Remove the parent's records, except those of @self: the others are in memory of threads that the child does not have. */
static void forget_others(struct quiesce_urcu_domain *d, const struct quiesce_tls_v1 *self)
{
	struct quiesce_urcu_record *next;

	quiesce__lock(&d->lock);
	for (struct quiesce_urcu_record *r = d->records; r; r = next) {
		next = r->next;
		if (r->tid != QUIESCE_TID_INHERITED)
			continue;
		if (r->owner == self) {
			r->tid = quiesce__tid();
			continue;
		}
		*r->at = next;
		if (next)
			next->at = r->at;
	}
	quiesce__unlock(&d->lock);
}

void quiesce__urcu_fork_survivor(struct quiesce_tls_v1 *self)
{
	quiesce__lock(&domains_lock);
	for (struct quiesce_urcu_domain *d = domains; d; d = d->next)
		forget_others(d, self);
	quiesce__unlock(&domains_lock);
}
