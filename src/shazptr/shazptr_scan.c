/* SPDX-License-Identifier: MIT */
/* shazptr_scan.c - scans of the slots for all waiters, as a rule by the leader (shazptr_wait.c).
 *
 *   take the queue and number this scan; a waiter's first scan tags every slot that holds the waiter's address
 *   scan again: a slot without the tag has been cleared since
 *
 * Of the numbers W1 to W8, shazptr_wait.c has W1, W5 and W8, about the waiters, and this file has the others, about the scans.
 *
 * W2. A tag is set in a slot by compare-and-exchange from the same address, and cleared with the address.  So a
 *     slot with a tag of scan n holds a guard that was there in scan n.
 * W3. A waiter whose first scan was number n is blocked only by tags of scan n and of earlier scans: a slot
 *     with a later tag was without a tag before that, so it was cleared after the waiter's fence.  This needs
 *     no help from readers, however often they protect the same address again.
 * W4. The tag requests that the slot's holder wakes the scanner.  The request is lost if the tag is set between the
 *     holder's load of its slot and the store that clears the slot; so no sleep is longer than 8 ms.
 * W6. A fallback guard blocks every waiter.  New fallback guards are counted in one of two counts.  When the
 *     other count is 0, the two change places, which is a flip: two flips after a waiter's fence, all fallback
 *     guards from before the fence are gone.
 * W7. A scan begins and ends under the lock.  So another thread may make the next scan, and if the leader does
 *     not run, another waiter scans.
 *
 * SH1  slot set, then the object found      | queue taken, then slots read
 * SH2  the guard's accesses, then cleared   | slot read, then completed
 * SH5  completed stored under the lock      | completed loaded, then the waiter returns
 * SH7  tag set, asleep set, then slots read | slot cleared, then asleep taken
 */
#include "shazptr.h"

#define SPINS 16u       /* scans of a caller that leads, before it passes the lead to the scan thread */
#define SPIN_PAUSES 8u
#define PAUSE_RATIO 1u /* readers yield at most half of the time, because guards block few waits */

struct quiesce__shazptr_scan quiesce__shazptr_scan;
static struct quiesce__shazptr_scan *const scan = &quiesce__shazptr_scan;
struct quiesce__yield quiesce__slots_yield __attribute__((aligned(QUIESCE_CACHELINE))) = { .cpus = QUIESCE_ALL_CPUS };

/* ---- one scan: all of it under the lock ---- */

static struct quiesce__waiter **bucket_of(uintptr_t address)
{
	return &scan->bucket[(address >> 4 ^ address >> 12) % QUIESCE_SHAZPTR_BUCKETS];
}

static void add_waiter(struct quiesce__waiter *w)
{
	bool any = quiesce__same_address(w->address, (uintptr_t)SHAZPTR_WILDCARD);
	struct quiesce__waiter **at = any ? &scan->wildcards : bucket_of(w->address);

	w->bucket_next = *at;
	*at = w;
}

/* Put all waiters of @scanned_for into buckets, for this scan. */
static void sort_waiters(void)
{
	scan->wildcards = NULL;
	for (uint32_t i = 0; i < QUIESCE_SHAZPTR_BUCKETS; i++)
		scan->bucket[i] = NULL;
	for (struct quiesce__waiter *w = scan->scanned_for; w; w = w->next) {
		w->blocked = false;
		add_waiter(w);
	}
}

/* A slot that a scan reads. */
struct scanned {
	uintptr_t *slot;
	uint64_t *tagged_in; /* word beside the slot: number of the scan that set its tag */
};

/* Call @fn for every waiter that a guard of @address may block; true if @fn returned true for one of them. */
static bool for_each_match(uintptr_t address, bool (*fn)(struct quiesce__waiter *, struct scanned), struct scanned at)
{
	bool any = false;

	if (quiesce__same_address(address, (uintptr_t)SHAZPTR_WILDCARD)) {
		for (struct quiesce__waiter *w = scan->scanned_for; w; w = w->next)
			any |= fn(w, at);
		return any;
	}
	for (struct quiesce__waiter *w = scan->wildcards; w; w = w->bucket_next)
		any |= fn(w, at);
	for (struct quiesce__waiter *w = *bucket_of(address); w; w = w->bucket_next)
		if (quiesce__same_address(w->address, address))
			any |= fn(w, at);
	return any;
}

static bool is_new(struct quiesce__waiter *w, struct scanned at)
{
	(void)at;
	return w->first_scan == scan->scan_nr;
}

static bool block(struct quiesce__waiter *w, struct scanned at)
{
	/* Relaxed: written under the lock; the slot's owner may set it to 0, which can only block more waiters. */
	if (quiesce_load_relaxed(at.tagged_in) > w->first_scan && !QUIESCE_MUTANT(scan_forgets_first_scan))
		return false; /* W3 */
	w->blocked = true;
	w->by = at.slot;
	return true;
}

/* Set the tag in the slot @at, which held @value; false if the slot has been cleared since. */
static bool tag(struct scanned at, uintptr_t value)
{
	/* SH7: full, pairs with SH7 in quiesce__shazptr_notify() */
	if (!quiesce_cmpxchg(SH7, at.slot, &value, value | QUIESCE_SLOT_TAG)) {
		quiesce__slot_read(at.slot); /* orders this scan after the clear */
		return false;
	}
	quiesce_store_relaxed(at.tagged_in, scan->scan_nr); /* Relaxed: as in block(). */
	return true;
}

static void scan_slot(struct scanned at, bool first)
{
	uintptr_t value = quiesce__slot_read(at.slot), address = value & ~QUIESCE_SLOT_TAG;

	if (quiesce_likely(!address))
		return;
	if (!(value & QUIESCE_SLOT_TAG)) {
		/* A guard without a tag blocks only waiters whose first scan this is. */
		if (!first || !for_each_match(address, is_new, at) || !tag(at, value))
			return;
	}
	if (for_each_match(address, block, at))
		/* Relaxed: under the lock. */
		quiesce_store_relaxed(&scan->nr_blocking, scan->nr_blocking + 1);
}

static void scan_group(uintptr_t *group, uint32_t words, bool first)
{
	for (uint32_t k = 0, nr = quiesce__slots_used(group, words); k < nr; k++)
		scan_slot((struct scanned){ group + k, (uint64_t *)group + words + k }, first);
}

static void scan_slots(bool first)
{
	struct quiesce__slot_range range[QUIESCE_NR_RANGES];
	uintptr_t *group;

	quiesce__slots_ranges(range);
	for (uint32_t i = 0; i < QUIESCE_NR_RANGES; i++) {
		if (QUIESCE_MUTANT(scan_skips_last_line) && range[i].nr)
			range[i].nr--;
		quiesce__for_each_group(group, &range[i])
			scan_group(group, range[i].words, first);
	}
}

/* Flip the counts if that is due, and mark the waiters that fallback guards block (W6). */
static void check_fallback(void)
{
	uint32_t idx = quiesce_load_relaxed(&quiesce__slots.fallback_idx) & 1; /* Relaxed: under the lock. */
	uint32_t old = quiesce__slots_fallback(!idx), now = quiesce__slots_fallback(idx);

	if (!old && !now)
		scan->fallback_flips += 2; /* without any fallback guard, two flips would pass at once */
	if (!old) {
		/* Relaxed: a guard that is counted in the former count delays a flip. */
		quiesce_store_relaxed(&quiesce__slots.fallback_idx, !idx);
		scan->fallback_flips++;
	}
	if (QUIESCE_MUTANT(scan_ignores_fallback))
		return;
	for (struct quiesce__waiter *w = scan->scanned_for; w; w = w->next)
		if (scan->fallback_flips < w->fallback_until && !w->blocked) {
			w->blocked = true;
			w->by = NULL;
		}
}

/* Make the request @bit to all holders of slots, or withdraw it with -@bit.  Relaxed: if a holder sees the request late, the next
 * scan finds its slot; if it sees the request for too long, its call has no effect. */
static void request(uint64_t bit)
{
	quiesce_fetch_add_relaxed(&quiesce_shazptr_v1.requests, bit); /* Relaxed: as above. */
	quiesce_fetch_add_relaxed(&quiesce_shazptr_v1.hazptr_slow, bit); /* Relaxed: as above. */
}

/* Request that the holders of tagged slots wake the scanner, or withdraw that when no tag is needed any more. */
static void request_wakes(bool on)
{
	if (on != scan->requested)
		request(on ? QUIESCE_SLOTS_WAIT : -QUIESCE_SLOTS_WAIT);
	scan->requested = on;
}

/* Execute the fence of the waiters that have executed none, without the lock. */
static void fence_for_queue(void)
{
	const struct quiesce__waiter *unfenced = scan->queue;
	uint64_t number;

	while (unfenced && unfenced->fenced)
		unfenced = unfenced->next;
	if (!unfenced)
		return;
	number = ++scan->fences; /* later waiters record this number: the fence may be too early for them */
	quiesce__unlock(&scan->lock);
	/* For all waiters in the queue: if the scan misses a guard, its reader sees that the object was unlinked; if the reader
	 * misses that, the scan sees the guard. */
	/* SH1: pairs with SH1 in quiesce__shazptr_claim() and quiesce__claim_cas() */
	quiesce_fence_heavy(SH1);
	quiesce__lock(&scan->lock);
	for (struct quiesce__waiter *w = scan->queue; w; w = w->next)
		w->fenced |= w->fences < number || QUIESCE_MUTANT(scan_fences_late);
}

/* Move waiters whose fence has been executed from @queue to @scanned_for; true if there were any. */
static bool take_queue(void)
{
	struct quiesce__waiter *w = scan->queue, *next;
	bool any = false;

	scan->queue = NULL;
	scan->scan_nr++;
	for (; w; w = next) {
		struct quiesce__waiter **to = w->fenced ? &scan->scanned_for : &scan->queue;

		next = w->next;
		any |= w->fenced;
		w->first_scan = scan->scan_nr;
		w->fallback_until = scan->fallback_flips + 2;
		w->next = *to;
		*to = w;
	}
	return any;
}

void quiesce__shazptr_complete(struct quiesce__waiter *w, uint32_t state, struct quiesce__shazptr_completed *completed)
{
	/* SH5: full, pairs with SH5 in wait_for_completion() */
	uint32_t was = quiesce_xchg(SH5, &w->state, state);

	if (was == QUIESCE_WAITS_ASLEEP)
		completed->asleep[completed->nr++] = &w->state;
	if (was == QUIESCE_LEADS && !QUIESCE_MUTANT(scan_completed_leads))
		scan->leading = false; /* @w had been given the lead, and returns instead */
}

/* A completed waiter may have returned by now: to wake an address on which no thread sleeps does no harm. */
void quiesce__shazptr_wake(const struct quiesce__shazptr_completed *completed)
{
	for (uint32_t i = 0; i < completed->nr; i++)
		platform_futex_wake(completed->asleep[i], 1);
}

/* Complete waiters that are not blocked, and find the oldest of the others; false: not all could be completed in this call. */
static bool complete_some(struct quiesce__shazptr_completed *completed)
{
	struct quiesce__waiter **at = &scan->scanned_for, *w;
	uint64_t oldest = UINT64_MAX;

	completed->nr = 0;
	while ((w = *at)) {
		if (w->blocked && !QUIESCE_MUTANT(scan_no_wait)) {
			if (w->start < oldest)
				oldest = w->start;
			at = &w->next;
			continue;
		}
		if (completed->nr == QUIESCE_SHAZPTR_WAKE_MAX)
			return false;
		*at = w->next;
		quiesce_store_relaxed(&scan->nr_done, scan->nr_done + 1); /* Relaxed: under the lock. */
		quiesce__shazptr_complete(w, QUIESCE_COMPLETED, completed);
	}
	quiesce_store_relaxed(&scan->oldest, oldest); /* Relaxed: as above. */
	return true;
}

/* Complete all waiters that this scan found not blocked, and release the lock; true if @scanned_for is empty.  The lock may be
 * released in between, because a waiter there that is not blocked stays so. */
static bool finish_scan(void)
{
	struct quiesce__shazptr_completed completed;
	bool all, left;

	quiesce_store_relaxed(&scan->nr_finished, scan->nr_finished + 1); /* Relaxed: under the lock. */
	do {
		all = complete_some(&completed);
		left = scan->scanned_for != NULL;
		if (!left)
			request_wakes(false);
		quiesce__unlock(&scan->lock);
		quiesce__shazptr_wake(&completed);
		if (!all)
			quiesce__lock(&scan->lock);
	} while (!all);
	return !left;
}

/* Scan once; the caller holds the lock, which is released.  True if no waiter is left to scan for. */
static bool scan_locked(void)
{
	bool first;

	fence_for_queue();
	first = take_queue();
	if (!scan->scanned_for) {
		quiesce__unlock(&scan->lock);
		return true;
	}
	request_wakes(true);
	sort_waiters();
	quiesce_store_relaxed(&scan->nr_blocking, 0); /* Relaxed: under the lock. */
	scan_slots(first);
	check_fallback();
	quiesce__count(scans);
	return finish_scan();
}

void quiesce__shazptr_scan_if_late(uint64_t scans, uint64_t due)
{
	quiesce__lock(&scan->lock);
	if (quiesce_load_relaxed(&scan->nr_finished) != scans) { /* Relaxed: under the lock. */
		quiesce__unlock(&scan->lock);
		return;
	}
	quiesce_store_relaxed(&scan->due, due); /* Relaxed: a hint. */
	scan_locked();
}

/* ---- functions of the leader ---- */

/* One scan for all waiters; true if none is left. */
bool quiesce__shazptr_scan_once(void)
{
	quiesce__lock(&scan->lock);
	return scan_locked();
}

void quiesce__shazptr_scan_idle(void)
{
	quiesce__wait_policy_end(&scan->policy);
	scan->policy = (struct quiesce__wait_policy){ .start = 0 };
}

/* ---- sleeping ---- */

static void force_readers(bool on)
{
	request(on ? QUIESCE_SLOTS_YIELD : -QUIESCE_SLOTS_YIELD);
}

/* True if fewer slots block than at the last call, or a waiter has been completed since. */
static bool made_progress(void *unused)
{
	/* Relaxed: an additional scan does no harm. */
	uint32_t blocking = quiesce_load_relaxed(&scan->nr_blocking);
	uint32_t done = quiesce_load_relaxed(&scan->nr_done);
	bool better = blocking < scan->nr_blocking_before || done != scan->nr_done_before;

	(void)unused;
	scan->nr_blocking_before = blocking;
	scan->nr_done_before = done;
	return better;
}

/* Make readers yield, or report the oldest wait, if that is due; returns the time. */
static uint64_t apply_policy(void)
{
	struct quiesce__wait_policy *p = &scan->policy;
	uint64_t now = platform_now_ns();                      /* after the scan, so that every waiter began before */
	uint64_t oldest = quiesce_load_relaxed(&scan->oldest); /* Relaxed: it may just have ended. */

	p->yield = &quiesce__slots_yield;
	p->force_yield = force_readers;
	p->helped = made_progress;
	p->pause = PAUSE_RATIO;
	p->not_before = &scan->force_not_before;
	if (oldest > now)
		return now;
	if (oldest != p->start) {
		p->start = oldest;
		p->stall_at = 0;
	}
	quiesce__wait_policy_step(p, now);
	if (quiesce__wait_policy_take_report(p, now))
		quiesce__shazptr_report_stall(now);
	return now;
}

/* True if the wait of @me is over; @me is NULL for the scan thread, which waits for nothing itself. */
static bool is_done(const struct quiesce__waiter *me)
{
	return me && quiesce_load_relaxed(&me->state) == QUIESCE_COMPLETED; /* Relaxed: wait_for_completion() follows. */
}

/* Scan, then sleep until a clear wakes this thread or the next scan is due. */
static void sleep_once(const struct quiesce__waiter *me)
{
	/* SH7: full, pairs with SH7 in quiesce__shazptr_notify() */
	quiesce_xchg(SH7, &scan->asleep, 1);
	if (!quiesce__shazptr_scan_once() && !is_done(me)) {
		uint64_t now = apply_policy(), ns = quiesce__wait_policy_sleep(&scan->policy, now);

		quiesce_store_relaxed(&scan->due, now + ns); /* Relaxed: a hint. */
		platform_futex_wait(&scan->asleep, 1, ns);
	}
	quiesce_store_relaxed(&scan->asleep, 0); /* Relaxed: a holder that finds it set wakes a thread needlessly. */
}

void quiesce__shazptr_notify(void)
{
	/* SH7: full, pairs with SH7 in sleep_once() */
	if (!quiesce_xchg(SH7, &scan->asleep, 0) || QUIESCE_MUTANT(scan_wake_lost))
		return;
	quiesce__count(wakeups);
	platform_futex_wake(&scan->asleep, 1);
}

/* Scan and sleep until no waiter is left, or @me is completed. */
void quiesce__shazptr_lead(const struct quiesce__waiter *me)
{
	while (!quiesce__shazptr_scan_once() && !is_done(me))
		sleep_once(me);
}

void quiesce__shazptr_lead_briefly(void)
{
	for (uint32_t i = 0; i < SPINS; i++) {
		if (quiesce__shazptr_scan_once())
			return;
		for (uint32_t k = 0; k < SPIN_PAUSES; k++)
			quiesce_cpu_relax();
	}
	/* Now, not in the scan thread: readers may have to yield before that thread gets a CPU. */
	apply_policy();
}
