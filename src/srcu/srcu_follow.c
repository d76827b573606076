/* SPDX-License-Identifier: MIT */
/* srcu_follow.c - followers: waiters for the leader's grace period, which run their own if the leader is overdue.
 *
 * I1. A follower's own grace period has its own number, its own fence, and its own record of the indexes seen empty since:
 *     the proof in srcu.c holds for each grace period.  The number completed is a maximum.
 * I2. Only the leader flips the index, as long as it runs: two threads that flip could delay each other without end.  For
 *     the same reason one follower at a time, or nearly so, goes on alone; it publishes until when the others wait for it.
 * I3. A follower requests nothing of readers: requests are the leader's.
 * I4. Waiters are completed, and withdraw, under the lock: so no waiter depends on a thread that is about to complete it.
 *
 * SR1, SR3, SR4, SR5  see srcu.c
 */
#include "srcu.h"

#define CHECK_MIN_NS 500000u
#define CHECK_MAX_NS 8000000u

/* ---- completion ---- */

/* Under the lock: complete @w, whose memory may be gone afterwards.  Returns the bit of the futex word to wake. */
static uint32_t complete_waiter(struct quiesce__srcu_usage *u, struct quiesce__srcu_waiter *w, uint32_t state)
{
	uint32_t parity = w->needed & 1;

	/* SR5: release, pairs with SR5 in sleep_until_completed() */
	quiesce_store_release(SR5, &w->state, state);
	/* SR5: release, pairs with SR5 in sleep_until_completed() */
	quiesce_store_release(SR5, &u->wake_seq[parity], u->wake_seq[parity] + 1);
	return 1u << parity;
}

static void wake_completed(struct quiesce__srcu_usage *u, uint32_t to_wake)
{
	for (uint32_t i = 0; i < 2; i++)
		if (to_wake & 1u << i)
			platform_futex_wake(&u->wake_seq[i], INT32_MAX);
}

/* Under the lock: complete all waiters whose grace period is over; returns the bits of the futex words to wake. */
static uint32_t complete_done(struct quiesce__srcu_usage *u)
{
	struct quiesce__srcu_waiter **at = &u->waiters, *w;
	uint32_t expedite = 0, to_wake = 0;

	while ((w = *at)) {
		if ((int64_t)(u->completed - w->needed) < 0) {
			expedite |= w->expedited;
			at = &w->next;
			continue;
		}
		*at = w->next;
		to_wake |= complete_waiter(u, w, QUIESCE_SRCU_COMPLETED);
	}
	quiesce_store_relaxed(&u->expedite, expedite); /* Relaxed: a hint. */
	return to_wake;
}

/* Under the lock, without a leader: withdraw requests of an overtaken grace period, as no other thread will. */
static void withdraw_requests(struct srcu_struct *ssp)
{
	for (uint32_t i = 0; i < 2 && !QUIESCE_MUTANT(srcu_request_stays); i++)
		quiesce__srcu_request_one(ssp, i, 0);
}

void quiesce__srcu_publish(struct quiesce__srcu_usage *u, uint64_t number)
{
	uint32_t to_wake;

	quiesce_store_relaxed(&u->inherited, 0); /* Relaxed: I7. */
	quiesce__lock(&u->lock);
	if ((int64_t)(number - u->completed) > 0 || QUIESCE_MUTANT(srcu_completes_older))
		/* SR3: release, pairs with SR3 in quiesce__srcu_done() */
		quiesce_store_release(SR3, &u->completed, number);
	if (!u->led)
		withdraw_requests(quiesce__srcu_domain(u));
	to_wake = complete_done(u);
	quiesce__unlock(&u->lock);
	quiesce__count(srcu_grace_periods);
	wake_completed(u, to_wake);
}

/* Stop leading; the oldest waiter, if there is one, becomes the leader. */
void quiesce__srcu_hand_over(struct quiesce__srcu_usage *u)
{
	struct quiesce__srcu_waiter **at = &u->waiters, *next;
	uint32_t to_wake = 0;

	quiesce__lock(&u->lock);
	while (*at && (*at)->next)
		at = &(*at)->next;
	next = *at;
	*at = NULL;
	u->led = next != NULL;
	if (next)
		to_wake = complete_waiter(u, next, QUIESCE_SRCU_LEADS);
	else if ((int64_t)(u->completed - u->number) >= 0)
		withdraw_requests(quiesce__srcu_domain(u));
	quiesce__unlock(&u->lock);
	wake_completed(u, to_wake);
}

/* ---- grace periods of followers ---- */

/* Time from which the leader is overdue. */
static uint64_t overdue_at(const struct quiesce__srcu_usage *u, struct quiesce__overdue *late, uint64_t now)
{
	/* Relaxed throughout: an estimate. */
	uint64_t progress = quiesce_load_relaxed(&u->begun) + quiesce_load_relaxed(&u->completed);

	return quiesce__overdue_at(late, now, progress, quiesce_load_relaxed(&u->due));
}

static void begin(struct quiesce__srcu_usage *u, struct quiesce__srcu_alone *a)
{
	quiesce__lock(&u->lock);
	a->number = u->begun + 1;
	a->seen = 0;
	quiesce_store_relaxed(&u->begun, a->number); /* Relaxed: the fence follows. */
	quiesce__unlock(&u->lock);
	/* If a reader misses what was unlinked, the sum includes its count; if the sum misses the count, the reader
	 * sees the unlinking. */
	/* SR1: pairs with SR1 in srcu_read_lock() */
	/* SR4: pairs with SR4 in quiesce__srcu_cookie() */
	quiesce_fence_heavy_shared(SR1);
}

/* Check the counts once; true if the grace period is over.  @may_flip: the leader is overdue, so the index may be
 * flipped. */
static bool check_readers(struct srcu_struct *ssp, struct quiesce__srcu_alone *a, bool may_flip)
{
	uint64_t active = quiesce_load_relaxed(&ssp->idx); /* Relaxed: readers may see the flip late. */
	uint64_t left[2] = { 0, 0 }; /* the leader's sums are its own */

	a->seen = quiesce__srcu_check(ssp, a->seen, left);
	if (may_flip && a->seen == 1u << !active)
		quiesce_store_relaxed(&ssp->idx, !active); /* Relaxed: readers may see the flip late. */
	return a->seen == QUIESCE_SRCU_SEEN_BOTH;
}

static bool is_led(struct quiesce__srcu_usage *u)
{
	bool led;

	quiesce__lock(&u->lock);
	led = u->led;
	quiesce__unlock(&u->lock);
	return led;
}

/* The index whose readers delay @a. */
static uint32_t awaited_index(const struct srcu_struct *ssp, const struct quiesce__srcu_alone *a)
{
	return a->seen ? quiesce__srcu_unseen_index(a->seen) : !quiesce_load_relaxed(&ssp->idx); /* Relaxed: a report. */
}

void quiesce__srcu_wait_alone(struct srcu_struct *ssp, struct quiesce__srcu_usage *u, const char *call, uint64_t needed)
{
	struct quiesce__wait_policy p = { .start = platform_now_ns() };
	struct quiesce__srcu_alone a;
	uint32_t never = 0;
	uint64_t ns = CHECK_MIN_NS;

	begin(u, &a);
	/* Relaxed: an estimate. */
	while (!check_readers(ssp, &a, platform_now_ns() >= quiesce_load_relaxed(&u->due) + QUIESCE_OVERDUE_NS)) {
		uint64_t now = platform_now_ns();

		if (quiesce__srcu_done(u, needed) || !is_led(u))
			return;
		if (quiesce__wait_policy_take_report(&p, now))
			quiesce__srcu_report_stall(ssp, call, awaited_index(ssp, &a), now - p.start);
		quiesce_store_relaxed(&u->alone_until, now + ns + QUIESCE_OVERDUE_NS); /* Relaxed: a hint. */
		quiesce__count(sleeps);
		platform_futex_wait(&never, 0, ns);
		ns = 2 * ns < CHECK_MAX_NS ? 2 * ns : CHECK_MAX_NS;
	}
	quiesce__srcu_publish(u, a.number);
}

bool quiesce__srcu_try_alone(struct srcu_struct *ssp, struct quiesce__srcu_usage *u)
{
	uint64_t now = platform_now_ns();

	if (now < overdue_at(u, &u->late, now))
		return false;
	if (quiesce__srcu_done(u, u->alone.number))
		begin(u, &u->alone);
	if (!check_readers(ssp, &u->alone, true))
		return false;
	quiesce__srcu_publish(u, u->alone.number);
	return true;
}

/* ---- followers ---- */

/* Withdraw @me, to go on alone; false if it has been completed, or another follower goes on alone. */
static bool withdraw(struct quiesce__srcu_usage *u, struct quiesce__srcu_waiter *me, uint64_t now)
{
	struct quiesce__srcu_waiter **at = &u->waiters;
	bool may;

	if (QUIESCE_MUTANT(srcu_trusts_leader))
		return false;
	quiesce__lock(&u->lock);
	/* Relaxed: under the lock; and a hint. */
	may = quiesce_load_relaxed(&me->state) == QUIESCE_SRCU_WAITS && now >= quiesce_load_relaxed(&u->alone_until);
	if (may) {
		while (*at != me)
			at = &(*at)->next;
		*at = me->next;
		quiesce_store_relaxed(&u->alone_until, now + QUIESCE_OVERDUE_NS); /* Relaxed: a hint. */
	}
	quiesce__unlock(&u->lock);
	return may;
}

/* Sleep until completed, or until the leader is overdue: QUIESCE_SRCU_ALONE. */
static uint32_t sleep_until_completed(struct srcu_struct *ssp, struct quiesce__srcu_usage *u, struct quiesce__srcu_waiter *me)
{
	struct quiesce__overdue late = { .since = 0 };

	if (me->expedited)
		quiesce__srcu_wake_leader(ssp);
	for (;;) {
		/* SR5: acquire, pairs with SR5 in complete_waiter() */
		uint32_t seq = quiesce_load_acquire(SR5, &u->wake_seq[me->needed & 1]);
		/* SR5: acquire, pairs with SR5 in complete_waiter() */
		uint32_t state = quiesce_load_acquire(SR5, &me->state);
		uint64_t now, at;

		if (state != QUIESCE_SRCU_WAITS)
			return state;
		now = platform_now_ns();
		at = overdue_at(u, &late, now);
		if (now >= at && withdraw(u, me, now))
			return QUIESCE_SRCU_ALONE;
		platform_futex_wait(&u->wake_seq[me->needed & 1], seq,
				    (at > now ? at - now : QUIESCE_OVERDUE_NS) + quiesce__overdue_delay(me->rank));
	}
}

/* Returns QUIESCE_SRCU_COMPLETED if the grace period of @me is over, QUIESCE_SRCU_LEADS if the caller is the leader
 * now, or QUIESCE_SRCU_ALONE if the leader is overdue. */
uint32_t quiesce__srcu_join(struct srcu_struct *ssp, struct quiesce__srcu_usage *u, struct quiesce__srcu_waiter *me)
{
	quiesce__lock(&u->lock);
	if (!me->needed)
		me->needed = u->begun + 1; /* a grace period that begins later: I4 of srcu.c */
	if (QUIESCE_MUTANT(srcu_shares_running) && u->begun != u->completed)
		me->needed--;
	if (!u->led) {
		u->led = true;
		quiesce__unlock(&u->lock);
		return QUIESCE_SRCU_LEADS;
	}
	me->state = QUIESCE_SRCU_WAITS;
	me->next = u->waiters;
	me->rank = me->next ? me->next->rank + 1 : 0;
	u->waiters = me;
	if (me->expedited)
		quiesce_store_relaxed(&u->expedite, 1); /* Relaxed: a hint. */
	quiesce__unlock(&u->lock);
	return sleep_until_completed(ssp, u, me);
}
