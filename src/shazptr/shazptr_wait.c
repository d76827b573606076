/* SPDX-License-Identifier: MIT */
/* shazptr_wait.c - waiting until no older guard protects an address.
 *
 *   reader                              updater
 *   slot = address   (light fence)      unlink                            (the caller)
 *   load the pointer again              heavy fence                  SH1
 *   ... use the object ...              load every slot in use       SH2
 *   slot = 0         (release)          no slot has the address: return; else join the queue
 *
 * W1. A guard that was set after the updater's heavy fence does not matter: its reader finds the object
 *     unlinked.  So the wait is over once each slot has been seen without an older guard.
 * W5. One thread leads: it scans repeatedly, and may make readers yield.  The lead changes under the lock.  While there is a waiter, a
 *     thread leads, or is requested to lead, or the scan thread has been woken for it.
 * W8. Waiters are completed under the lock, and woken without it.  A follower sleeps no longer than it takes
 *     to find the leader overdue: so no waiter depends on a leader that does not run, whether that leader was
 *     about to scan, to wake a completed waiter, or to pass on the lead.  Followers check for an overdue leader
 *     one after the other, by rank; the last follower left checks first.
 * Of the numbers W1 to W8, shazptr_scan.c has W2 to W4, W6 and W7, about the scans, and this file has the others, about the waiters.
 *
 * SH1  slot set, then the object found     | unlinked, then slots read
 * SH2  the guard's accesses, then cleared  | slot read, then the caller frees
 * SH5  completed stored under the lock     | completed loaded, then the waiter returns
 * SH6, SH8  see shazptr.c
 */
#include "shazptr.h"
#include "platform/probe.h"
#include "runtime/overdue.h"
#include "runtime/thread.h"

#define STOP_POLL_NS 1000000u
#define SCAN_MAX_NS 8000000u

static uint32_t nr_following; /* number of followers, which wait to be completed (W8) */

/* ---- the self-scan ---- */

static bool blocks(uintptr_t value, uintptr_t address)
{
	if (quiesce__same_address(value, 0))
		return false;
	return quiesce__same_address(value, address) || quiesce__same_address(value, (uintptr_t)SHAZPTR_WILDCARD) ||
	       quiesce__same_address(address, (uintptr_t)SHAZPTR_WILDCARD);
}

static bool group_blocks(const uintptr_t *group, uint32_t words, uintptr_t address)
{
	for (uint32_t k = 0, nr = quiesce__slots_used(group, words); k < nr; k++)
		if (quiesce_unlikely(blocks(quiesce__slot_read(group + k), address)))
			return true;
	return false;
}

static bool is_held_now(uintptr_t address)
{
	struct quiesce__slot_range range[QUIESCE_NR_RANGES];
	uintptr_t *group;

	quiesce__slots_ranges(range);
	for (uint32_t i = 0; i < QUIESCE_NR_RANGES; i++)
		quiesce__for_each_group(group, &range[i])
			if (group_blocks(group, range[i].words, address))
				return true;
	return quiesce__slots_fallback(0) || quiesce__slots_fallback(1);
}

/* ---- the thread ---- */

bool quiesce__shazptr_thread_running(void)
{
	return quiesce_load_relaxed(&quiesce__shazptr_scan.running) != 0; /* Relaxed: a hint. */
}

/* Under the lock, while no thread leads: true if a waiter is left, or an overdue leader has left readers yielding. */
static bool needs_leader(void)
{
	return quiesce__shazptr_scan.queue || quiesce__shazptr_scan.scanned_for || quiesce__shazptr_scan.policy.forced_at;
}

/* True if a waiter is left.  If none is, the caller stops leading. */
static bool keep_or_drop_lead(void)
{
	bool left;

	quiesce__lock(&quiesce__shazptr_scan.lock);
	left = quiesce__shazptr_scan.scanned_for || quiesce__shazptr_scan.queue;
	if (!left)
		quiesce__shazptr_scan_idle();
	quiesce__shazptr_scan.leading = left;
	quiesce__unlock(&quiesce__shazptr_scan.lock);
	return left;
}

/* Lead, or sleep until a waiter needs a leader. */
static void thread_step(void)
{
	bool work;

	quiesce__lock(&quiesce__shazptr_scan.lock);
	work = !quiesce__shazptr_scan.leading && needs_leader();
	quiesce__shazptr_scan.leading |= work;
	quiesce_store_relaxed(&quiesce__shazptr_scan.idle, !work); /* Relaxed: under the lock. */
	quiesce__unlock(&quiesce__shazptr_scan.lock);
	if (!work) {
		platform_futex_wait(&quiesce__shazptr_scan.idle, 1, PLATFORM_FOREVER);
		return;
	}
	do
		quiesce__shazptr_lead(NULL);
	while (keep_or_drop_lead());
}

/* Wake the scan thread if it is idle.  The store and the wake-up are under one hold of the lock: otherwise a caller that
 * is preempted between the two would keep the thread asleep, because later callers would find the word cleared. */
static void wake_thread(void)
{
	quiesce__lock(&quiesce__shazptr_scan.lock);
	if (quiesce_load_relaxed(&quiesce__shazptr_scan.idle)) { /* Relaxed: under the lock. */
		quiesce_store_relaxed(&quiesce__shazptr_scan.idle, 0); /* Relaxed: as above. */
		platform_futex_wake(&quiesce__shazptr_scan.idle, 1);
	}
	quiesce__unlock(&quiesce__shazptr_scan.lock);
}

static bool ensure_thread(void);

/* Take the lead if a waiter is left and no thread leads; true if the caller leads now. */
static bool take_lead_if_needed(void)
{
	bool lead;

	quiesce__lock(&quiesce__shazptr_scan.lock);
	lead = !quiesce__shazptr_scan.leading && needs_leader();
	quiesce__shazptr_scan.leading |= lead;
	quiesce__unlock(&quiesce__shazptr_scan.lock);
	return lead;
}

/* Pass the lead to the scan thread, or to another waiter if that thread cannot be started. */
static void pass_lead(void)
{
	struct quiesce__shazptr_completed completed = { .nr = 0 };
	struct quiesce__waiter *next = NULL;
	bool thread = ensure_thread();

	quiesce__lock(&quiesce__shazptr_scan.lock);
	if (!thread)
		next = quiesce__shazptr_scan.scanned_for ? quiesce__shazptr_scan.scanned_for : quiesce__shazptr_scan.queue;
	quiesce__shazptr_scan.leading = next != NULL;
	if (next)
		quiesce__shazptr_complete(next, QUIESCE_LEADS, &completed);
	quiesce__unlock(&quiesce__shazptr_scan.lock);
	if (next)
		quiesce__shazptr_wake(&completed);
	else
		wake_thread();
}

/* Stop leading.  The scan thread may end just as the lead is passed to it.  It clears @running, then checks under the
 * lock for waiters without a leader; the caller gives up the lead, then reads @running: so one of the two takes the
 * lead again. */
static void stop_leading(void)
{
	bool leads = true;

	while (leads && keep_or_drop_lead()) {
		pass_lead();
		leads = !quiesce__shazptr_thread_running() && take_lead_if_needed();
	}
}

static void thread_main(void)
{
	while (!quiesce_load_relaxed(&quiesce__shazptr_scan.stop)) /* Relaxed: woken after it was set. */
		thread_step();
}

static void thread_exit(void)
{
	quiesce_store_relaxed(&quiesce__shazptr_scan.running, 0); /* Relaxed: the lock orders it before the check. */
	/* A caller may have begun to wait because it found this thread running. */
	if (take_lead_if_needed())
		stop_leading();
	platform_futex_wake(&quiesce__shazptr_scan.running, INT32_MAX);
}

/* Start the scan thread unless it runs; true if it runs now. */
static bool ensure_thread(void)
{
	uint32_t none = 0;

	if (quiesce_likely(quiesce__shazptr_thread_running()))
		return true;
	if (!quiesce__thread_claim_start(QUIESCE_THREAD_SCAN))
		return false;
	/* SH5: full, pairs with SH5 in ensure_thread() */
	if (!quiesce_cmpxchg(SH5, &quiesce__shazptr_scan.running, &none, 1))
		return true;
	quiesce_store_relaxed(&quiesce__shazptr_scan.stop, 0); /* Relaxed: before the thread begins. */
	if (quiesce__thread_start(QUIESCE_THREAD_SCAN, thread_main, thread_exit))
		return true;
	quiesce_store_relaxed(&quiesce__shazptr_scan.running, 0); /* Relaxed: a caller that found it set checks it again. */
	return false;
}

/* ---- callers ---- */

/* The leader has not scanned when it should have: scan in its place.  True: no thread led any more, so the caller leads now. */
static bool scan_for_leader(uint64_t scans, uint64_t now, uint64_t ns, struct quiesce__wait_policy *stalls)
{
	quiesce__shazptr_scan_if_late(scans, now + ns);
	if (quiesce__wait_policy_take_report(stalls, now))
		quiesce__shazptr_report_stall(now);
	return take_lead_if_needed();
}

/* Returns how much later than the first follower the follower of @rank checks for an overdue leader.  Fewer followers
 * may be left than when it joined. */
static uint64_t check_delay(uint32_t rank)
{
	uint32_t nr = quiesce_load_relaxed(&nr_following); /* Relaxed: a guess. */

	return quiesce__overdue_delay(nr > rank || QUIESCE_MUTANT(scan_rank_kept) ? rank : nr ? nr - 1 : 0);
}

/* Sleep until the wait is over, or the caller leads: QUIESCE_LEADS. */
static uint32_t wait_for_completion(struct quiesce__waiter *me, uint32_t rank)
{
	struct quiesce__wait_policy stalls = { .start = me->start };
	struct quiesce__overdue late = { .since = 0 };
	uint64_t ns = QUIESCE_OVERDUE_NS;
	uint32_t state = QUIESCE_WAITS;

	/* SH5: full, pairs with SH5 in quiesce__shazptr_complete() */
	quiesce_cmpxchg(SH5, &me->state, &state, QUIESCE_WAITS_ASLEEP);
	for (;;) {
		uint64_t now, at;

		/* SH5: acquire, pairs with SH5 in quiesce__shazptr_complete() */
		state = quiesce_load_acquire(SH5, &me->state);
		if (state == QUIESCE_COMPLETED)
			return state;
		/* SH5: full, pairs with SH5 in quiesce__shazptr_complete() */
		if (state == QUIESCE_LEADS && quiesce_cmpxchg(SH5, &me->state, &state, QUIESCE_WAITS))
			return QUIESCE_LEADS;
		now = platform_now_ns();
		/* Relaxed: a guess. */
		at = quiesce__overdue_at(&late, now, quiesce_load_relaxed(&quiesce__shazptr_scan.nr_finished),
				      quiesce_load_relaxed(&quiesce__shazptr_scan.due));
		if (now >= at && !QUIESCE_MUTANT(scan_trusts_leader)) {
			if (scan_for_leader(late.progress, now, ns, &stalls))
				return QUIESCE_LEADS;
			ns = ns < SCAN_MAX_NS ? 2 * ns : ns;
			continue;
		}
		platform_futex_wait(&me->state, QUIESCE_WAITS_ASLEEP, (at > now ? at - now : QUIESCE_OVERDUE_NS) + check_delay(rank));
	}
}

static uint32_t follow(struct quiesce__waiter *me)
{
	uint32_t rank = quiesce_fetch_add_relaxed(&nr_following, 1u); /* Relaxed: a guess. */
	uint32_t state = wait_for_completion(me, rank);

	quiesce_fetch_add_relaxed(&nr_following, (uint32_t)-1); /* Relaxed: a guess. */
	return state;
}

/* Queue @me; true if the caller leads now. */
static bool join_queue(struct quiesce__waiter *me, bool may_lead)
{
	bool leads;

	quiesce__lock(&quiesce__shazptr_scan.lock);
	me->fences = quiesce__shazptr_scan.fences;
	me->next = quiesce__shazptr_scan.queue;
	quiesce__shazptr_scan.queue = me;
	leads = may_lead && !quiesce__shazptr_scan.leading;
	quiesce__shazptr_scan.leading |= leads;
	quiesce__unlock(&quiesce__shazptr_scan.lock);
	return leads;
}

/* A short wait is over before a thread could be woken: so a caller that finds no leader leads for a few scans before
 * it passes on the lead. */
static void wait_in_queue(struct quiesce__waiter *me, bool thread_only)
{
	if (join_queue(me, !thread_only || !ensure_thread())) {
		quiesce__shazptr_lead_briefly();
		stop_leading();
	} else {
		wake_thread();
		quiesce__shazptr_notify(); /* the leader may be asleep */
		if (!quiesce__shazptr_thread_running() && take_lead_if_needed())
			stop_leading();
	}
	while (follow(me) == QUIESCE_LEADS) {
		quiesce__shazptr_lead(me);
		stop_leading();
	}
}

static bool wait_is_misuse(uintptr_t address, const void *caller)
{
	const void *slot = quiesce__hazptr_held_by_me(address);
	struct platform_location here;

	if (slot)
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER,
				"synchronize_hazptr(%p) at %s by the thread that protects it in slot %p would wait for itself",
				(void *)address, platform_location(caller, &here), slot);
	else if (quiesce__shazptr_held_by_me(address))
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER,
				"synchronize_shazptr(%p) at %s by a thread that holds a guard of it would wait for itself",
				(void *)address, platform_location(caller, &here));
	else
		return false;
	return true;
}

static void wait_for(struct quiesce__waiter *me, bool thread_only)
{
	quiesce__count(shazptr_blocked);
	me->tid = quiesce__tid();
	me->start = platform_now_ns();
	quiesce_probe(object_wait_begin, me->address, me->call);
	wait_in_queue(me, thread_only);
	quiesce_probe(object_wait_end, me->address, platform_now_ns() - me->start);
}

/* The caller has scanned already, so no scan of its own comes first; the leader executes the fence for this waiter. */
void quiesce__shazptr_wait_for(uintptr_t address, const char *call)
{
	struct quiesce__waiter me = { .address = address, .state = QUIESCE_WAITS, .call = call };

	quiesce__count(shazptr_waits);
	if (!wait_is_misuse(address, quiesce__caller()))
		wait_for(&me, false);
}

void quiesce_synchronize_shazptr(const void *ptr)
{
	struct quiesce__waiter me = { .address = (uintptr_t)ptr, .state = QUIESCE_WAITS, .call = "synchronize_shazptr" };
	bool skip;

	if (!ptr)
		return;
	quiesce__init();
	quiesce__fix_mode();
	quiesce__count(shazptr_waits);
	skip = quiesce_load_relaxed(&quiesce__settings.skip_self_scan); /* Relaxed: a setting. */
	if (!skip) {
		/* If is_held_now() misses a guard, its reader sees that the object was unlinked; if the reader misses that,
		 * the guard is seen. */
		/* SH1: pairs with SH1 in quiesce__shazptr_claim() and quiesce__claim_cas() */
		/* SH6: pairs with SH6 in take_new(), quiesce__raise_to() and quiesce__raise_used() */
		/* SH8: pairs with SH8 in claim_fallback() */
		quiesce_fence_heavy_shared(SH1);
		if (quiesce_likely(!is_held_now(me.address)))
			return;
	}
	if (wait_is_misuse(me.address, quiesce__caller()))
		return;
	me.fenced = !skip;
	wait_for(&me, skip);
}

bool quiesce__shazptr_stop_thread(uint64_t deadline)
{
	uint32_t running;

	quiesce_store_relaxed(&quiesce__shazptr_scan.stop, 1); /* Relaxed: the lock in wake_thread() orders it. */
	while ((running = quiesce_load_relaxed(&quiesce__shazptr_scan.running))) { /* Relaxed: nothing that the thread wrote is used. */
		if (!quiesce_load_relaxed(&quiesce__shazptr_scan.stop)) /* Relaxed: read again soon. */
			return false; /* another caller has started the thread again */
		if (deadline && platform_now_ns() >= deadline)
			break; /* the thread will end when no waiter is left */
		wake_thread();
		platform_futex_wait(&quiesce__shazptr_scan.running, running, STOP_POLL_NS);
	}
	return true;
}

/* ---- fork ---- */

void quiesce__shazptr_fork_prepare(void)
{
	quiesce__lock(&quiesce__shazptr_scan.lock);
}

void quiesce__shazptr_fork_parent(void)
{
	quiesce__unlock(&quiesce__shazptr_scan.lock);
}

/* The child has none of the parent's waiters, and no scan thread. */
void quiesce__shazptr_fork_child(void)
{
	uint64_t scan_nr = quiesce__shazptr_scan.scan_nr;

	quiesce__lock_reset(&quiesce__shazptr_scan.lock, false);
	nr_following = 0;
	quiesce__shazptr_scan = (struct quiesce__shazptr_scan){ .scan_nr = scan_nr };
}
