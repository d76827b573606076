/* SPDX-License-Identifier: MIT */
/* shazptr_wait.c - waiting until no older guard protects an address.
 *
 *   reader                              updater
 *   slot = address   (light fence)      unlink                            (the caller)
 *   find the object again               heavy fence                  SH1
 *   ... use it ...                      look at every slot in use    SH2
 *   slot = 0         (release)          nobody has the address: return; else join the queue
 *
 * I1. An address in a slot that was set after the updater's heavy fence is harmless: its reader
 *     found the object unlinked.  So each slot needs to be seen without an older guard once.
 * I5. One leads, looks again and again, and may ask readers to yield; leading passes on under the lock.
 * I8. Waiters are completed under the lock, and who is completed sleeps no longer than it takes to find a leader late: so nobody
 *     depends on one that does not run, whether it is about to look, to wake or to pass on.  Followers check for that one after the
 *     other, by rank, and the last one that is left is the first.
 * I2 to I4, I6 and I7, of the looks, are in shazptr_scan.c.
 *
 * SH1  slot set, then the object found     | unlinked, then slots read
 * SH2  the guard's accesses, then cleared  | slot read, then the caller frees
 * SH5  the wait is over, completed under the lock | the waiter returns
 */
#include "shazptr.h"
#include "runtime/overdue.h"
#include "runtime/thread.h"

#define STOP_STEP_NS 1000000u
#define LOOK_MAX_NS 8000000u

static uint32_t nr_following; /* callers that wait for their completion: I8 */

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

static bool held_now(uintptr_t address)
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

/* Under the lock, and nobody leads: does anybody wait, or has a leader that was late left readers yielding? */
static bool anything_to_lead(void)
{
	return quiesce__shazptr_scan.queue || quiesce__shazptr_scan.list || quiesce__shazptr_scan.policy.forced_at;
}

/* Is anybody left waiting?  If not, the caller leads no more. */
static bool go_on(void)
{
	bool left;

	quiesce__lock(&quiesce__shazptr_scan.lock);
	left = quiesce__shazptr_scan.list || quiesce__shazptr_scan.queue;
	if (!left)
		quiesce__shazptr_scan_idle();
	quiesce__shazptr_scan.leading = left;
	quiesce__unlock(&quiesce__shazptr_scan.lock);
	return left;
}

/* Lead, or sleep until there is something to lead. */
static void thread_step(void)
{
	bool work;

	quiesce__lock(&quiesce__shazptr_scan.lock);
	work = !quiesce__shazptr_scan.leading && anything_to_lead();
	quiesce__shazptr_scan.leading |= work;
	quiesce_store_relaxed(&quiesce__shazptr_scan.idle, !work); /* Relaxed: under the lock. */
	quiesce__unlock(&quiesce__shazptr_scan.lock);
	if (!work) {
		platform_futex_wait(&quiesce__shazptr_scan.idle, 1, PLATFORM_FOREVER);
		return;
	}
	do
		quiesce__shazptr_lead(NULL);
	while (go_on());
}

/* Under the lock: who has taken the request to wake, and does not run, would keep the thread asleep. */
static void wake_thread(void)
{
	quiesce__lock(&quiesce__shazptr_scan.lock);
	if (quiesce_load_relaxed(&quiesce__shazptr_scan.idle)) { /* Relaxed: under the lock. */
		quiesce_store_relaxed(&quiesce__shazptr_scan.idle, 0); /* Relaxed: as above. */
		platform_futex_wake(&quiesce__shazptr_scan.idle, 1);
	}
	quiesce__unlock(&quiesce__shazptr_scan.lock);
}

static bool have_thread(void);

/* Is anybody left waiting whom nobody leads?  Then the caller does. */
static bool lead_who_is_left(void)
{
	bool lead;

	quiesce__lock(&quiesce__shazptr_scan.lock);
	lead = !quiesce__shazptr_scan.leading && anything_to_lead();
	quiesce__shazptr_scan.leading |= lead;
	quiesce__unlock(&quiesce__shazptr_scan.lock);
	return lead;
}

/* Leave it to the thread, or if there is none to another waiter. */
static void pass_on(void)
{
	struct quiesce__shazptr_completed completed = { .nr = 0 };
	struct quiesce__waiter *next = NULL;
	bool thread = have_thread();

	quiesce__lock(&quiesce__shazptr_scan.lock);
	if (!thread)
		next = quiesce__shazptr_scan.list ? quiesce__shazptr_scan.list : quiesce__shazptr_scan.queue;
	quiesce__shazptr_scan.leading = next != NULL;
	if (next)
		quiesce__shazptr_complete(next, QUIESCE_LEADS, &completed);
	quiesce__unlock(&quiesce__shazptr_scan.lock);
	if (next)
		quiesce__shazptr_wake(&completed);
	else
		wake_thread();
}

/* Stop leading.  The thread may end just when it is trusted: it looks, under the lock, after it
 * has said so, and so do we. */
static void stop_leading(void)
{
	bool leads = true;

	while (leads && go_on()) {
		pass_on();
		leads = !quiesce__shazptr_thread_running() && lead_who_is_left();
	}
}

static void thread_main(void)
{
	while (!quiesce_load_relaxed(&quiesce__shazptr_scan.stop)) /* Relaxed: woken after it was set. */
		thread_step();
}

static void thread_over(void)
{
	quiesce_store_relaxed(&quiesce__shazptr_scan.running, 0); /* Relaxed: the lock orders it before the look. */
	/* Somebody may have begun to wait, trusting in this thread. */
	if (lead_who_is_left())
		stop_leading();
	platform_futex_wake(&quiesce__shazptr_scan.running, INT32_MAX);
}

/* Is there a thread?  Try to start it. */
static bool have_thread(void)
{
	uint32_t none = 0;

	if (quiesce_likely(quiesce__shazptr_thread_running()))
		return true;
	if (!quiesce__thread_may_start(QUIESCE_THREAD_SCAN))
		return false;
	/* SH5: full, pairs with SH5 in have_thread() */
	if (!quiesce_cmpxchg(SH5, &quiesce__shazptr_scan.running, &none, 1))
		return true;
	quiesce_store_relaxed(&quiesce__shazptr_scan.stop, 0); /* Relaxed: before the thread begins. */
	if (quiesce__thread_start(QUIESCE_THREAD_SCAN, thread_main, thread_over))
		return true;
	quiesce_store_relaxed(&quiesce__shazptr_scan.running, 0);  /* Relaxed: who trusted in it finds no thread when it looks again. */
	return false;
}

/* ---- callers ---- */

/* Who leads has not looked when it should have: look in its place.  True: nobody leads any more, so the caller does. */
static bool scan_instead(uint64_t looks, uint64_t now, uint64_t ns, struct quiesce__wait_policy *stalls)
{
	quiesce__shazptr_scan_if_late(looks, now + ns);
	if (quiesce__wait_policy_stalled(stalls, now))
		quiesce__shazptr_report_stall(now);
	return lead_who_is_left();
}

/* So much later than the first follower one of @rank checks whether the leader is late.  Others may have gone since it came. */
static uint64_t turn_of(uint32_t rank)
{
	uint32_t nr = quiesce_load_relaxed(&nr_following); /* Relaxed: a guess. */

	return quiesce__overdue_turn(nr > rank || QUIESCE_MUTANT(scan_rank_kept) ? rank : nr ? nr - 1 : 0);
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
		at = quiesce__overdue_at(&late, now, quiesce_load_relaxed(&quiesce__shazptr_scan.scans),
				      quiesce_load_relaxed(&quiesce__shazptr_scan.due));
		if (now >= at && !QUIESCE_MUTANT(scan_trusts_leader)) {
			if (scan_instead(late.progress, now, ns, &stalls))
				return QUIESCE_LEADS;
			ns = ns < LOOK_MAX_NS ? 2 * ns : ns;
			continue;
		}
		platform_futex_wait(&me->state, QUIESCE_WAITS_ASLEEP, (at > now ? at - now : QUIESCE_OVERDUE_NS) + turn_of(rank));
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
static bool enter_queue(struct quiesce__waiter *me, bool may_lead)
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

/* A short wait is over before a thread could be woken: look some times first, if nobody leads. */
static void wait_in_queue(struct quiesce__waiter *me, bool thread_only)
{
	if (enter_queue(me, !thread_only || !have_thread())) {
		quiesce__shazptr_lead_for_a_while();
		stop_leading();
	} else {
		wake_thread();
		quiesce__shazptr_notify(); /* who leads may be asleep */
		if (!quiesce__shazptr_thread_running() && lead_who_is_left())
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
	struct platform_place here;

	if (slot)
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER,
				"synchronize_hazptr(%p) at %s by the thread that protects it in slot %p would wait for itself",
				(void *)address, platform_place(caller, &here), slot);
	else if (quiesce__shazptr_held_by_me(address))
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER,
				"synchronize_shazptr(%p) at %s by a thread that holds a guard of it would wait for itself",
				(void *)address, platform_place(caller, &here));
	else
		return false;
	return true;
}

static void wait_for(struct quiesce__waiter *me, bool thread_only)
{
	quiesce__count(shazptr_blocked);
	me->tid = quiesce__tid();
	me->start = platform_now_ns();
	wait_in_queue(me, thread_only);
}

/* No look first: there was one, and who leads fences for all. */
void quiesce__shazptr_wait_for(uintptr_t address, const char *call)
{
	struct quiesce__waiter me = { .address = address, .state = QUIESCE_WAITS, .call = call };

	quiesce__count(shazptr_waits);
	if (!wait_is_misuse(address, __builtin_return_address(0)))
		wait_for(&me, false);
}

void quiesce_synchronize_shazptr(const void *ptr)
{
	struct quiesce__waiter me = { .address = (uintptr_t)ptr, .state = QUIESCE_WAITS, .call = "synchronize_shazptr" };
	bool skip;

	if (!ptr)
		return;
	quiesce__init();
	quiesce__fork_check();
	quiesce__used();
	quiesce__count(shazptr_waits);
	skip = quiesce_load_relaxed(&quiesce__settings.skip_self_scan); /* Relaxed: a setting. */
	if (!skip) {
		/* If held_now() misses a guard, its reader sees that the object was unlinked; if the reader misses that,
		 * the guard is seen. */
		/* SH1: pairs with SH1 in quiesce__shazptr_claim() and quiesce__claim_cas() */
		/* SH6: pairs with SH6 in take_new(), quiesce__raise_to() and quiesce__raise_used() */
		/* SH8: pairs with SH8 in claim_fallback() */
		quiesce_fence_heavy_shared(SH1);
		if (quiesce_likely(!held_now(me.address)))
			return;
	}
	if (wait_is_misuse(me.address, __builtin_return_address(0)))
		return;
	me.fenced = !skip;
	wait_for(&me, skip);
}

bool quiesce__shazptr_stop_thread(uint64_t deadline)
{
	uint32_t running;

	quiesce_store_relaxed(&quiesce__shazptr_scan.stop, 1); /* Relaxed: the lock in wake_thread() orders it. */
	while ((running = quiesce_load_relaxed(&quiesce__shazptr_scan.running))) { /* Relaxed: the thread is done with everything else. */
		if (!quiesce_load_relaxed(&quiesce__shazptr_scan.stop)) /* Relaxed: read again soon. */
			return false; /* somebody has started another */
		if (deadline && platform_now_ns() >= deadline)
			break; /* it will end when nobody waits */
		wake_thread();
		platform_futex_wait(&quiesce__shazptr_scan.running, running, STOP_STEP_NS);
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

/* The waiters and the thread are the parent's. */
void quiesce__shazptr_fork_child(void)
{
	uint64_t epoch = quiesce__shazptr_scan.epoch;

	quiesce__lock_reset(&quiesce__shazptr_scan.lock, false);
	nr_following = 0;
	quiesce__shazptr_scan = (struct quiesce__shazptr_scan){ .epoch = epoch };
}
