/* SPDX-License-Identifier: MIT */
/* holdouts.c - find the holdouts of a grace period, which are the readers that it waits for, force yields, and sleep until none is left.
 *
 *   updater                                   holdout
 *   wake_requested = 1, pending++  (RU7)
 *   set the SLOW bit in its reader word
 *   reader word still blocks?
 *   sleep while pending > 0, timed            unlock: SLOW seen: clear the reader word
 *                                             wake_requested taken?  (RU7)  pending--, last one wakes
 *   scan the reader words again <-------------
 *
 * I1. A reader word that was found not to block is not scanned again: sections that set it later began after the fence, and find the new
 *     pointer, whatever number they have.  So a scan resumes where the one before stopped, and ends at the last entry that blocked when
 *     all holdouts got a request.
 * I2. Whenever the waiter sleeps, pending == wake_requested flags set + decrements in progress.  While the waiter makes a
 *     request, pending is higher by one.  It is only a reason to sleep: the reader words alone end the wait.
 * I3. The SLOW bit is lost if it is set between the owner's load of its reader word and the plain store that follows.  So no sleep is
 *     longer than 8 ms (wait_policy.c), and the waiter repeats the request after each scan.  This is the price of a reader without a
 *     wake-up test.
 * I4. No scan is repeated without bound: the waiter spins for a bounded number of scans, then sleeps.
 * I5. One thread at a time waits here, the leader of rcu_gp.c (state.led): pending and force_not_before are those of its wait, so the last
 *     reader wakes one thread.  Threads that run a grace period alone only watch, and change neither.
 *
 * RU7  wake_requested set, then word read | word cleared, then wake_requested read, and taken
 * RU8  see rcu.c
 */
#include "rcu.h"

#include "garbage.h"
#include "platform/owned.h"
#include "platform/probe.h"
#include "runtime/wait_policy.h"

#define FORCE_NORMAL_NS 50000u
#define FORCE_DEFERRED_NS 10000000u /* enough for some time slices of other threads */
#define SPIN_EXPEDITED_NS 100000u
#define POST_NS 1000000u       /* interval at which a waiter posts its notice for the hook */
#define MAX_FUTILE_WINDOWS 16u /* after so many windows of yields without effect the holdout is assumed to sleep */
#define PAUSE_RATIO 4u         /* pause by window before it: readers yield at most a fifth of the time, for normal waits */
#define WATCH_MIN_NS 500000u /* first interval between two scans of a waiter that requests no wake-up */
#define WATCH_MAX_NS 8000000u /* longest such interval; each is twice the one before */

struct wait {
	const char *call;
	enum quiesce__urgency urgency; /* urgency that the caller wants */
	uint64_t number;      /* number of the grace period */
	uint32_t at, nr;      /* entries before @at, and from @nr on, do not block */
	uint32_t requested;   /* only entries before this one can have requests */
	uint64_t cpus;        /* CPUs of the holdouts, as in struct quiesce__yield */
	uint64_t first_cpu;   /* CPU of the first holdout, in the same form */
	/* These describe the last call of made_progress(), which judges a window of forced yields. */
	uint32_t judged_at;   /* entry of the first holdout */
	uint32_t nr_futile;   /* number of windows in a row after which it was still the first */
	uint64_t yields;      /* forced yields in the process */
	struct quiesce__wait_policy policy;
	uint64_t reap_at, post_at;
};

static uint32_t pending; /* number of requests for a wake-up that no reader has taken (I2); futex of the waiter */
/* The urgency that followers want of the present wait, with the number of the grace period that they need, by its parity.  By the number,
 * a request that was stored after its wait had ended is ignored. */
static uint64_t raised[2];
static uint64_t force_not_before; /* time until which readers are not forced to yield, after a window of yields (I5) */

static bool is_holdout(struct quiesce__reader *r, struct quiesce_tls_v1 *tls, void *arg)
{
	struct wait *w = arg;

	(void)r;
	if (quiesce__rcu_blocks(tls, w->number))
		return true;
	if (QUIESCE_MUTANT(gp_stops_at_first_idle))
		w->nr = 0;
	return QUIESCE_MUTANT(gp_stops_at_first_idle);
}

/* Advance @at to the first entry that blocks; true if there is none. */
static bool scan(void *wait)
{
	struct wait *w = wait;
	uint32_t nr = w->nr;

	if (QUIESCE_MUTANT(gp_skips_last_reader) && nr)
		nr--;
	if (QUIESCE_MUTANT(gp_no_wait))
		return true;
	w->at = quiesce__readers_walk(w->at, nr, is_holdout, w);
	return w->at >= (QUIESCE_MUTANT(gp_stops_at_first_idle) ? w->nr : nr);
}

/* Withdraw the request in @r if its owner has not taken it. */
static void withdraw_request(struct quiesce__reader *r)
{
	/* RU7: full, pairs with RU7 in quiesce__holdouts_notify() */
	if (quiesce_xchg(RU7, &r->wake_requested, 0))
		quiesce_fetch_add_relaxed(&pending, (uint32_t)-1); /* Relaxed: only a reason to sleep (I2). */
}

static void request(struct wait *w, struct quiesce__reader *r, struct quiesce_tls_v1 *tls)
{
	quiesce_fetch_add_relaxed(&pending, 1u); /* Relaxed: only a reason to sleep (I2). */
	/* RU7: full, pairs with RU7 in quiesce__holdouts_notify() */
	if (quiesce_xchg(RU7, &r->wake_requested, 1))
		quiesce_fetch_add_relaxed(&pending, (uint32_t)-1); /* Relaxed: I2.  The request was set already, and counted. */
	if (!quiesce__rcu_request(tls, w->number))
		withdraw_request(r);
}

static uint64_t cpu_of(const struct quiesce_tls_v1 *tls)
{
	uint32_t cpu = platform_cpu_of((const char *)tls - (const char *)quiesce__self());

	return cpu == PLATFORM_NO_CPU ? QUIESCE_ALL_CPUS : 1ull << cpu % 64;
}

static bool request_if_holdout(struct quiesce__reader *r, struct quiesce_tls_v1 *tls, void *arg)
{
	struct wait *w = arg;

	if (!quiesce__rcu_blocks(tls, w->number))
		return false;
	w->nr = (uint32_t)(r - quiesce__readers.entry) + 1;
	w->cpus |= cpu_of(tls);
	w->first_cpu = w->first_cpu ? w->first_cpu : w->cpus;
	request(w, r, tls);
	return false;
}

/* Request a wake-up of each holdout; the request is withdrawn if its holdout has left meanwhile. */
static void request_all(struct wait *w)
{
	uint32_t nr = w->nr;

	w->cpus = w->first_cpu = 0;
	w->nr = w->at;
	quiesce__readers_walk(w->at, nr, request_if_holdout, w);
}

/* Withdraw the requests of readers that left without taking them. */
static void withdraw_requests(struct wait *w)
{
	struct quiesce__readers *rs = &quiesce__readers;

	for (uint32_t i = 0; i < w->requested; i++)
		/* Relaxed: withdraw_request() decides. */
		if (quiesce_load_relaxed(&rs->entry[i].wake_requested))
			withdraw_request(&rs->entry[i]);
}

void quiesce__holdouts_notify(struct quiesce__reader *r)
{
	/* While readers are forced to yield, each unlock calls this, also in threads that no waiter waits for.  Entries of other threads
	 * are on the same cache line, so the flag is loaded before it is exchanged. */
	/* RU7: full, pairs with RU7 in request() */
	quiesce_fence_full(RU7);
	if (!quiesce_load_relaxed(&r->wake_requested)) /* Relaxed: the fence precedes it. */
		return;
	/* RU7: full, pairs with RU7 in withdraw_request() */
	if (!quiesce_xchg(RU7, &r->wake_requested, 0) || QUIESCE_MUTANT(wake_lost))
		return;
	/* Relaxed: I2; the wake-up is a fence. */
	if (quiesce_fetch_add_relaxed(&pending, (uint32_t)-1) == 1) {
		quiesce__count(wakeups);
		platform_futex_wake(&pending, 1);
	}
}

/* True if the window of forced yields helped: the first holdout has left since the last call.  For MAX_FUTILE_WINDOWS calls it is
 * enough that threads have yielded on the CPUs of the holdouts, where these do not run then.  Such a holdout waits for a CPU
 * behind threads that do not yield, or it sleeps for longer, and the waiter cannot distinguish the two. */
static bool made_progress(void *arg)
{
	struct wait *w = arg;
	uint64_t yields = quiesce__yields();
	bool yielded = yields != w->yields;

	w->nr_futile = w->at == w->judged_at ? w->nr_futile + 1 : 0;
	w->judged_at = w->at;
	w->yields = yields;
	return !w->nr_futile || (yielded && w->nr_futile < MAX_FUTILE_WINDOWS);
}

/* Return the CPUs on which threads are to yield: those on which the holdouts last ran.  If yields there did not help, the
 * scheduler may have moved a holdout, so threads yield on all CPUs. */
static uint64_t cpus_to_yield(const struct wait *w)
{
	return w->policy.backoff_ns ? QUIESCE_ALL_CPUS : w->cpus;
}

/* ---- reports ---- */

struct holdout {
	const struct wait *wait;
	uint32_t tid;     /* thread of the first holdout; 0: it has just left */
	const void *site; /* debug build: where its section began */
	uint64_t since;   /* debug build: when its section began */
	uint32_t others;  /* number of other holdouts */
};

/* Relaxed throughout: a report needs no order. */
static bool count_holdout(struct quiesce__reader *r, struct quiesce_tls_v1 *tls, void *arg)
{
	struct holdout *h = arg;

	if (!quiesce__rcu_blocks(tls, h->wait->number))
		return false;
	if (h->tid) {
		h->others++;
		return false;
	}
	h->tid = quiesce_load_relaxed(&r->tid);
	h->site = quiesce_load_relaxed(&tls->site);
	h->since = quiesce_load_relaxed(&tls->since);
	return false;
}

static struct holdout first_holdout(const struct wait *w)
{
	struct holdout h = { .wait = w };

	quiesce__readers_walk(w->at, w->nr, count_holdout, &h);
	return h;
}

static void report_holdouts(const struct wait *w, struct quiesce__report *r)
{
	const uint64_t *unregistered = quiesce__readers.unregistered;
	struct holdout h = first_holdout(w);

	if (w->at >= w->nr) {
		/* Relaxed: a report. */
		quiesce__report_add(r, "%llu sections of threads that are not registered",
				    (unsigned long long)(quiesce_load_relaxed(unregistered) + quiesce_load_relaxed(unregistered + 1)));
		return;
	}
	if (!h.tid) {
		quiesce__report_add(r, "a thread that has just left its section");
		return;
	}
	quiesce__report_thread(r, h.tid, quiesce__tid());
	quiesce__report_since(r, h.since, h.site);
	if (h.others)
		quiesce__report_add(r, ", and %u more", h.others);
}

static void report_stall(const struct wait *w, uint64_t now)
{
	struct quiesce__report r;

	quiesce__report_stall(&r, w->call, NULL, now - w->policy.start);
	report_holdouts(w, &r);
	quiesce__rcu_report_behind(&r);
	quiesce__report_end(&r);
}

static void report_garbage(const struct wait *w, uint64_t now)
{
	struct quiesce__report r;

	quiesce__rcu_report_garbage(&r);
	quiesce__report_add(&r, ": a grace period has waited for %llu ms for ", (unsigned long long)((now - w->policy.start) / 1000000));
	report_holdouts(w, &r);
	quiesce__report_end(&r);
}

static void check_stall(struct wait *w, uint64_t now)
{
	if (now >= w->reap_at && w->at < w->nr)
		w->reap_at = quiesce__readers_reap(now, &w->at, scan, w);
	if (now >= w->post_at && w->at < w->nr) {
		w->post_at = now + POST_NS;
		quiesce__holdout_hook_post(w->number, w->policy.start);
	}
	if (quiesce__wait_policy_take_report(&w->policy, now))
		report_stall(w, now);
	if (quiesce__garbage_take_report(QUIESCE_GARBAGE_RCU, quiesce__garbage_rcu()))
		report_garbage(w, now);
}

static uint64_t request_of(uint64_t number, enum quiesce__urgency how)
{
	return number << 16 | (uint64_t)how; /* numbers have 48 bits */
}

/* Return the urgency in @request if that is for the grace period @number or a later one; else QUIESCE_DEFERRED. */
static uint32_t urgency_from(uint64_t request, uint64_t number)
{
	return (int64_t)(request - request_of(number, QUIESCE_DEFERRED)) >= 0 ? (uint32_t)(request % (1u << 16)) : QUIESCE_DEFERRED;
}

static enum quiesce__urgency urgency(const struct wait *w)
{
	/* Relaxed: hints. */
	uint32_t a = urgency_from(quiesce_load_relaxed(&raised[0]), w->number);
	uint32_t b = urgency_from(quiesce_load_relaxed(&raised[1]), w->number), others = a > b ? a : b;

	return others > (uint32_t)w->urgency ? (enum quiesce__urgency)others : w->urgency;
}

static void apply_policy(struct wait *w, uint64_t now)
{
	enum quiesce__urgency how = urgency(w);

	w->policy.expedited |= how == QUIESCE_EXPEDITED;
	w->policy.force_after_ns = how != QUIESCE_DEFERRED ? FORCE_NORMAL_NS : FORCE_DEFERRED_NS;
	quiesce_store_relaxed(&quiesce__rcu_yield.cpus, cpus_to_yield(w)); /* Relaxed: readers may see the request a little late. */
	quiesce__wait_policy_step(&w->policy, now);
}

static void sleep_once(struct wait *w)
{
	uint64_t now = platform_now_ns(), ns;
	uint32_t left;

	apply_policy(w, now);
	check_stall(w, now);
	left = quiesce_load_relaxed(&pending); /* Relaxed: the reader words decide (I2). */
	if (!left)
		return;
	quiesce__count(sleeps);
	ns = quiesce__wait_policy_sleep(&w->policy, now);
	quiesce__rcu_scan_by(now + ns);
	platform_futex_wait(&pending, left, ns);
}

static void wait_begin(struct wait *w, uint64_t number, const char *call)
{
	*w = (struct wait){ .number = number, .call = call };
	w->policy = (struct quiesce__wait_policy){
		.yield = &quiesce__rcu_yield, .force_yield = quiesce__rcu_force_yield,
		.helped = made_progress, .arg = w, .not_before = &force_not_before,
		.pause = PAUSE_RATIO,
	};
	w->nr = w->requested = quiesce__readers_nr();
}

/* Begin to measure the wait, since the spin is over: from here on, it may force yields, post a notice for the hook, and be reported. */
static void start_clock(struct wait *w)
{
	w->yields = quiesce__yields();
	w->judged_at = w->at;
	w->policy.start = platform_now_ns();
	w->reap_at = w->policy.start + QUIESCE_REAP_NS;
	w->post_at = w->policy.start + POST_NS;
}

/* Sleep in steps until the count of unregistered readers is 0; these are few and rare, so they wake no waiter. */
static void wait_for_count(struct wait *w, const uint64_t *count)
{
	uint32_t never = 0;

	if (!w->policy.start)
		start_clock(w);
	/* RU8: acquire, pairs with RU8 in quiesce__unregistered_leave() */
	while (quiesce_load_acquire(RU8, count)) {
		uint64_t now = platform_now_ns();

		check_stall(w, now);
		quiesce__rcu_scan_by(now + FORCE_NORMAL_NS);
		platform_futex_wait(&never, 0, FORCE_NORMAL_NS);
	}
}

/* Wait until the count that new sections do not use is 0, direct new sections to it, then wait
 * until the other is 0: so no new section joins a count while it is waited for.  A section that
 * chose before the change and counts after it is newer than the fence, and need not be waited for. */
static void wait_for_unregistered(struct wait *w)
{
	struct quiesce__readers *rs = &quiesce__readers;
	uint32_t idx = quiesce_load_relaxed(&rs->idx) & 1; /* Relaxed: the updater's own. */

	if (QUIESCE_MUTANT(gp_ignores_unregistered))
		return;
	wait_for_count(w, &rs->unregistered[!idx]);
	/* RU8: acquire, pairs with RU8 in quiesce__unregistered_leave() */
	if (!quiesce_load_acquire(RU8, &rs->unregistered[idx]))
		return;
	quiesce_store_relaxed(&rs->idx, !idx); /* Relaxed: a reader that sees it late only prolongs the wait. */
	wait_for_count(w, &rs->unregistered[idx]);
}

/* Spin for longer in an expedited wait: where all CPUs are busy, a waiter that has slept waits long for a CPU.  But a holdout
 * that ran last on the waiter's own CPU cannot run while the waiter spins. */
static bool scan_for_longer(struct wait *w)
{
	if (urgency(w) != QUIESCE_EXPEDITED || (w->first_cpu & 1ull << platform_cpu() % 64))
		return false;
	while (platform_now_ns() < w->policy.start + SPIN_EXPEDITED_NS)
		if (quiesce__wait_spin(scan, w))
			return true;
	return false;
}

static QUIESCE_COLD void probe_holdout(const struct wait *w)
{
	struct holdout h = first_holdout(w);

	quiesce_probe(reader_found, h.tid, h.others, w->number);
}

static void wait_for_readers(struct wait *w)
{
	start_clock(w);
	request_all(w);
	if (quiesce_probe_listens(reader_found))
		probe_holdout(w);
	if (!scan_for_longer(w))
		while (!scan(w)) {
			sleep_once(w);
			if (scan(w))
				break;
			request_all(w);
		}
	withdraw_requests(w);
}

void quiesce__holdouts_wait(uint64_t number, enum quiesce__urgency urgency, const char *call)
{
	struct wait w;

	sim__alone(&pending, true); /* one wait at a time (I5) */
	wait_begin(&w, number, call);
	w.urgency = urgency;
	if (!quiesce__wait_spin(scan, &w))
		wait_for_readers(&w);
	quiesce__wait_policy_end(&w.policy);
	wait_for_unregistered(&w);
	sim__alone(&pending, false);
}

/* True if each of the two counts has been seen to be 0 once; new sections are directed to the first one that has. */
static bool check_unregistered(uint32_t *empty)
{
	struct quiesce__readers *rs = &quiesce__readers;

	for (uint32_t i = 0; i < 2; i++)
		/* RU8: acquire, pairs with RU8 in quiesce__unregistered_leave() */
		if (!quiesce_load_acquire(RU8, &rs->unregistered[i]))
			*empty |= 1u << i;
	if (*empty == 1 || *empty == 2)
		quiesce_store_relaxed(&rs->idx, *empty - 1); /* Relaxed: a reader that sees it late only prolongs the wait. */
	return *empty == 3 || QUIESCE_MUTANT(gp_ignores_unregistered);
}

bool quiesce__holdouts_try(uint64_t number, uint32_t *empty)
{
	struct wait w;

	wait_begin(&w, number, NULL);
	return check_unregistered(empty) && scan(&w);
}

bool quiesce__holdouts_watch(uint64_t number, const char *call, bool (*stop)(uint64_t cookie), uint64_t cookie)
{
	uint32_t never = 0, empty = 0;
	uint64_t ns = WATCH_MIN_NS;
	struct wait w;

	wait_begin(&w, number, call);
	start_clock(&w);
	while (!scan(&w) || !check_unregistered(&empty)) {
		uint64_t now = platform_now_ns();

		if (stop(cookie)) {
			quiesce__holdout_hook_withdraw(number);
			return false;
		}
		quiesce__rcu_force_yield(false); /* a leader that does not run cannot end the yields that it has forced */
		check_stall(&w, now);
		quiesce__rcu_scan_by(now + ns);
		quiesce__count(sleeps);
		platform_futex_wait(&never, 0, ns);
		ns = 2 * ns < WATCH_MAX_NS ? 2 * ns : WATCH_MAX_NS;
	}
	return true;
}

void quiesce__holdouts_raise_urgency(uint64_t number, enum quiesce__urgency how)
{
	/* The request is a hint, which may get lost: followers raise the urgency again, and the waiter's sleep is timed. */
	if (urgency_from(quiesce_load_relaxed(&raised[number & 1]), number) >= (uint32_t)how) /* Relaxed: a hint. */
		return;
	quiesce_store_relaxed(&raised[number & 1], request_of(number, how)); /* Relaxed: a hint. */
	platform_futex_wake(&pending, 1);
}

void quiesce__holdouts_fork_child(void)
{
	raised[0] = raised[1] = 0;
	pending = 0;
	force_not_before = 0;
}
