/* SPDX-License-Identifier: MIT */
/* rcu_gp.c - grace periods: their numbers, the leader that runs one for all callers, and callers that run one without it.
 *
 *   reader                               updater
 *   word = gp            (light fence)   unlink                 (the caller)
 *   ... section ...                      number = ++started     RU9
 *   word = 0             (release)       heavy fence            RU1
 *                                        gp = number, unless gp is newer
 *                                        every word: outside, or number not older?  (acquire, RU2)
 *                                        completed = number, unless completed is newer  RU5
 *
 * Each grace period has a number.  A caller's cookie is the number of the grace period that completes it, with COOKIE_VALID set, which
 * comparisons ignore.  gp is quiesce_rcu_v1.gp.  The reader word of a thread, rcu_word in its block, has the number of its section, or
 * says that the thread is outside of any.
 *
 * I1. An older number in a reader word was loaded from gp before gp reached the updater's number, so the updater waits for that section,
 *     which may have begun before the unlinking.  The word may be stored much later (I4).
 * I2. A reader word with the updater's number, or a newer one, was set after the heavy fence of that number took effect in the reader.
 *     That number was taken no earlier than the updater's, and the updater's after the unlinking.  So the section sees the unlinking, and
 *     the scan ignores it.  This needs gp to advance after the fence.
 * I3. A reader word that was set before the heavy fence took effect in the reader is visible to the scan.
 * I4. A reader that stores an old number late only makes an updater wait needlessly.
 * I5. A caller needs a number that is taken after the call began: its cookie, or a newer one.  As a rule one thread at a time
 *     leads, and the others follow: when the leader is done, one of the callers that arrived meanwhile leads for all of these.
 * I6. No caller depends on a thread that does not run.  A leader announces when it scans next.  While it is overdue, one follower in each
 *     millisecond runs a grace period alone, with a number and a fence of its own; such a follower requests no wake-up, because
 *     only the leader makes requests.  Grace periods overlap then, so gp and completed are maxima.
 * I7. A poller that takes part in grace periods does not lead, and no caller follows it: it has a number and a fence of its own, which
 *     later pollers continue with, and it does not wait for readers.  While a leader is not overdue, pollers leave the work to it.
 * I8. Because the unlock is a release and the scan an acquire, no closing fence is needed.
 *
 * RU1  word set, then the section's reads        | unlink, then words are read
 * RU2  the section's accesses, then word cleared | word read, then the caller frees
 * RU3  object initialised, then published        | pointer loaded, then the object used
 * RU5  scan over, then completed                 | completed read, then the poller frees
 * RU6  unlink, then started read (a cookie)      | started set, then words are read
 * RU9  unlink, then the number taken (started)   | a newer number taken, then its fence
 * GP1  completed, led; then waiting read         | waiting raised, then completed, led read
 * GP2  the leader's last store                   | the next leader's first load
 * RU7  see holdouts.c
 *
 * Paper: M. Desnoyers et al., "User-Level Implementations of Read-Copy Update", IEEE TPDS 23(2), 2012, has the idea of a reader without
 * fences; docs/design/rcu.md argues for the numbering and the single membarrier, which are ours.
 */
#include "rcu.h"

#include "platform/probe.h"
#include "reclaim.h"
#include "runtime/overdue.h"

#if defined(QUIESCE_DEBUG_WRAP) || defined(QUIESCE_SIM)
#define FIRST_NUMBER (0xffffffffffffull - 2) /* numbers wrap soon, so that wrapping is tested */
#else
#define FIRST_NUMBER 1ull
#endif
#define WORD(number) ((number) << 16 | 1)
#define COOKIE_VALID (1ull << 48) /* distinguishes a cookie from that of get_completed_synchronize_rcu() */

#define SCAN_NS 1000u           /* allowance for each reader, after which the leader counts as overdue */

struct quiesce_rcu_v1 quiesce_rcu_v1 __attribute__((aligned(128))) = { .gp = WORD(FIRST_NUMBER), .reserved = { 0 } };

/* Followers by the parity of the number that they need: those with an even one, and those with an odd one. */
struct followers {
	uint32_t waiting; /* number of followers */
	uint32_t word;    /* futex of the followers; it changes when they are to check state.completed and state.led */
};

static struct {
	uint64_t started;   /* the newest number taken */
	uint64_t completed; /* the newest number whose grace period is over */
	uint64_t due;       /* time by which the leader scans next */
	uint32_t led;       /* 1: there is a leader */
	uint32_t nr_tries;  /* number of times that a follower has tried to take the right to run a grace period alone */
	struct followers followers[2]; /* by parity */
} state __attribute__((aligned(QUIESCE_CACHELINE))) = { .started = FIRST_NUMBER, .completed = FIRST_NUMBER };

/* Compare numbers, which have 48 bits and wrap. */
static bool is_older(uint64_t a, uint64_t b)
{
	return (int64_t)((a << 16) - (b << 16)) < 0;
}

/* ---- readers, as the scan finds them ---- */

bool quiesce__rcu_blocks(struct quiesce_tls_v1 *tls, uint64_t number)
{
	/* RU2: acquire, pairs with RU2 in rcu_read_tryunlock() */
	uint64_t word = quiesce_load_acquire(RU2, &tls->rcu_word);

	if (!(word & QUIESCE_RCU_DEPTH))
		return false;
	if (QUIESCE_MUTANT(gp_blocks_current))
		return !is_older(number, word >> 16);
	return is_older(word >> 16, number);
}

bool quiesce__rcu_request(struct quiesce_tls_v1 *tls, uint64_t number)
{
	while (quiesce__rcu_blocks(tls, number)) {
		/* Relaxed: the exchange decides. */
		uint64_t word = quiesce_load_relaxed(&tls->rcu_word);

		if (!(word & QUIESCE_RCU_DEPTH))
			continue;
		/* RU7: full, pairs with RU7 in quiesce__holdouts_notify() */
		if ((word & QUIESCE_RCU_SLOW) || quiesce_cmpxchg(RU7, &tls->rcu_word, &word, word | QUIESCE_RCU_SLOW))
			return quiesce__rcu_blocks(tls, number);
	}
	return false;
}

void quiesce__rcu_force_yield(bool on)
{
	/* Relaxed: the exchange decides, and readers may see the bit late. */
	uint64_t word = quiesce_load_relaxed(&quiesce_rcu_v1.gp);

	while (on != !!(word & QUIESCE_RCU_SLOW))
		/* Relaxed: the exchange keeps the number, and the bit is a request that may be seen late. */
		if (quiesce_cmpxchg_relaxed(&quiesce_rcu_v1.gp, &word, word ^ QUIESCE_RCU_SLOW))
			break;
}

void quiesce__rcu_scan_by(uint64_t when)
{
	quiesce_store_relaxed(&state.due, when); /* Relaxed: a follower that sees it late runs a needless grace period. */
}

void quiesce__rcu_report_behind(struct quiesce__report *r)
{
	/* Relaxed: a report. */
	uint32_t callers = quiesce_load_relaxed(&state.followers[0].waiting) + quiesce_load_relaxed(&state.followers[1].waiting);
	struct quiesce_stats stats = { .readers = 0 };

	quiesce__reclaim_stats(&stats);
	quiesce__report_add(r, "; behind it %u more callers, and %llu objects (%llu bytes) of call_rcu() and kfree_rcu()", callers,
			    (unsigned long long)stats.garbage_objects, (unsigned long long)stats.garbage_bytes);
}

struct quiesce__yield quiesce__rcu_yield __attribute__((aligned(QUIESCE_CACHELINE)));

/* ---- a grace period ---- */

static void publish(uint64_t number)
{
	uint64_t word = quiesce_load_relaxed(&quiesce_rcu_v1.gp); /* Relaxed: the exchange decides. */

	while (is_older(word >> 16, number))
		/* Relaxed: I2 needs this store after the heavy fence RU1, which precedes it; a newer number has its own. */
		if (quiesce_cmpxchg_relaxed(&quiesce_rcu_v1.gp, &word, WORD(number) | (word & QUIESCE_RCU_SLOW)))
			break;
}

/* Begin the next grace period, and return its number. */
static uint64_t gp_advance(void)
{
	/* RU9: full, pairs with RU9 in gp_advance() of another thread */
	uint64_t number = quiesce_fetch_add(RU9, &state.started, (uint64_t)1) + 1;

	if (QUIESCE_MUTANT(gp_advance_before_fence))
		publish(number);
	/* If the scan misses a reader's word, the reader's section sees the unlinking that precedes this fence; if the section misses
	 * the unlinking, the scan sees its word, with an older number, and waits for it. */
	/* RU1: pairs with RU1 in rcu_read_lock() */
	/* RU6: pairs with RU6 in quiesce__rcu_cookie() */
	quiesce_fence_heavy(RU1);
	publish(number);
	return number;
}

/* The same for a caller that must not wait: 0, or -errno of the fence.  A number without a fence is not published, and never completed
 * by itself, but by a later one. */
static int gp_try_advance(uint64_t *ret_number)
{
	/* RU9: full, pairs with RU9 in gp_advance() */
	uint64_t number = quiesce_fetch_add(RU9, &state.started, (uint64_t)1) + 1;
	/* RU1: pairs with RU1 in rcu_read_lock() */
	/* RU6: pairs with RU6 in quiesce__rcu_cookie() */
	int err = quiesce_fence_heavy_try(RU1);

	if (err)
		return err;
	publish(number);
	*ret_number = number;
	return 0;
}

static void wake(struct followers *f, uint32_t nr)
{
	/* GP1: full, pairs with GP1 in follow() */
	quiesce_fetch_add(GP1, &f->word, 1u);
	if (quiesce_load_relaxed(&f->waiting)) /* Relaxed: GP1 orders it. */
		platform_futex_wake(&f->word, nr);
}

/* Advance state.completed to @number, unless it is newer, and wake the followers that need @number or one that was skipped. */
static void gp_complete(uint64_t number)
{
	uint64_t before = quiesce_load_relaxed(&state.completed); /* Relaxed: the exchange decides. */

	quiesce__count(grace_periods);
	while (is_older(before, number) || QUIESCE_MUTANT(gp_completes_older)) {
		/* RU5: full, pairs with RU5 in quiesce__rcu_cookie_done() */
		if (!quiesce_cmpxchg(RU5, &state.completed, &before, number))
			continue;
		wake(&state.followers[number & 1], INT32_MAX);
		if (number != before + 1)
			wake(&state.followers[~number & 1], INT32_MAX);
		break;
	}
}

void quiesce__rcu_raise_urgency(enum quiesce__urgency urgency)
{
	/* Relaxed: hints.  Without a leader, the urgency would go to the next wait. */
	if (quiesce_load_relaxed(&state.led))
		quiesce__holdouts_raise_urgency(quiesce_load_relaxed(&state.started), urgency); /* Relaxed: a hint. */
}

/* ---- leading ---- */

static bool take_lead(void)
{
	uint32_t none = 0;

	if (quiesce_load_relaxed(&state.led)) /* Relaxed: the exchange decides. */
		return false;
	/* GP2: full, pairs with GP2 in hand_over() */
	return quiesce_cmpxchg(GP2, &state.led, &none, 1u);
}

/* Wake one of the callers that arrived while @number ran, to lead next; or, if other threads took numbers meanwhile, all followers, of
 * which the first leads. */
static void hand_over(uint64_t number)
{
	bool newest = quiesce_load_relaxed(&state.started) == number; /* Relaxed: followers sleep for a limited time. */

	/* GP2: full, pairs with GP2 in take_lead() */
	quiesce_xchg(GP2, &state.led, 0);
	wake(&state.followers[~number & 1], newest ? 1 : INT32_MAX);
	if (!newest)
		wake(&state.followers[number & 1], INT32_MAX);
}

static void gp_lead(enum quiesce__urgency urgency, const char *call)
{
	uint64_t number, since = quiesce_probe_clock(gp_end);

	quiesce__rcu_scan_by(platform_now_ns() + quiesce__readers_nr() * SCAN_NS);
	quiesce_probe(gp_begin, call, urgency);
	number = gp_advance();
	if (QUIESCE_MUTANT(gp_completed_early))
		quiesce_store_relaxed(&state.completed, number);
	quiesce__holdouts_wait(number, urgency, call);
	/* Followers are completed before the hand-over, so that one that calls again at once shares the next grace period. */
	gp_complete(number);
	quiesce_probe(gp_end, call, number, quiesce_probe_since(since));
	hand_over(number);
}

/* ---- without the leader ---- */

/* True if a follower need not finish its own grace period: the cookie is done, or there is no leader any more, and the follower can lead,
 * with wake-ups and forced yields. */
static bool need_not_finish(uint64_t cookie)
{
	return quiesce__rcu_cookie_done(cookie) || !quiesce_load_relaxed(&state.led); /* Relaxed: a hint. */
}

static void gp_alone(uint64_t cookie, const char *call)
{
	uint64_t number = gp_advance();

	if (quiesce__holdouts_watch(number, call, need_not_finish, cookie))
		gp_complete(number);
}

/* ---- following ---- */

/* Return the time from which the leader, or a follower that runs a grace period alone, counts as overdue. */
static uint64_t overdue_at(struct quiesce__overdue *late, uint64_t now)
{
	/* Relaxed throughout: an estimate. */
	uint64_t progress = quiesce_load_relaxed(&state.started) + quiesce_load_relaxed(&state.completed);

	return quiesce__overdue_at(late, now, progress, quiesce_load_relaxed(&state.due));
}

/* Take the right to run a grace period alone; only one of the followers that find the leader overdue at the same time gets true. */
static bool take_gp_alone(uint32_t seen, uint64_t now)
{
	if (quiesce_fetch_add_relaxed(&state.nr_tries, 1u) != seen) /* Relaxed: two followers that run alone do no harm. */
		return false;
	quiesce__rcu_scan_by(now + QUIESCE_OVERDUE_NS);
	return true;
}

/* Sleep while the futex of @f has the value @word, and return false.  If the leader is overdue, take the right to run a grace period
 * alone, and return true. */
static bool watch_or_sleep(struct quiesce__overdue *late, uint32_t rank, struct followers *f, uint32_t word)
{
	uint32_t nr_tries = quiesce_load_relaxed(&state.nr_tries); /* Relaxed: take_gp_alone() compares it. */
	uint64_t now = platform_now_ns(), at = overdue_at(late, now);

	if (now >= at && !QUIESCE_MUTANT(gp_trusts_leader) && take_gp_alone(nr_tries, now))
		return true;
	platform_futex_wait(&f->word, word, (at > now ? at - now : QUIESCE_OVERDUE_NS) + quiesce__overdue_delay(rank));
	return false;
}

/* Wait until the grace period is over, or there is no leader. */
static void follow(uint64_t cookie, enum quiesce__urgency urgency, const char *call)
{
	struct followers *f = &state.followers[cookie & 1];
	struct quiesce__overdue late = { .since = 0 };
	/* GP1: full, pairs with GP1 in wake() */
	uint32_t rank = quiesce_fetch_add(GP1, &f->waiting, 1u);

	for (;;) {
		/* GP1: acquire, pairs with GP1 in wake() */
		uint32_t word = quiesce_load_acquire(GP1, &f->word);

		if (quiesce__rcu_cookie_done(cookie) || !quiesce_load_relaxed(&state.led)) /* Relaxed: GP1 orders it. */
			break;
		quiesce__holdouts_raise_urgency(cookie, urgency); /* this caller waits for the leader's wait to end */
		if (watch_or_sleep(&late, rank, f, word)) {
			gp_alone(cookie, call);
			break;
		}
	}
	quiesce_fetch_add_relaxed(&f->waiting, (uint32_t)-1); /* Relaxed: a wake-up for no sleeper does no harm. */
}

void quiesce__rcu_wait(enum quiesce__urgency urgency, const char *call)
{
	uint64_t cookie;

	quiesce__init();
	quiesce__fix_mode();
	cookie = quiesce__rcu_cookie();
	if (QUIESCE_MUTANT(gp_shares_running) && quiesce_load_relaxed(&state.led)) /* Relaxed: a mutant. */
		cookie--;
	while (!quiesce__rcu_cookie_done(cookie))
		if (take_lead())
			gp_lead(urgency, call);
		else
			follow(cookie, urgency, call);
	/* RU5: full, pairs with the caller */
	quiesce_fence_full(RU5);
}

/* ---- cookies ---- */

uint64_t quiesce__rcu_cookie(void)
{
	uint64_t started;

	/* RU6: full, pairs with RU6 in gp_advance() */
	quiesce_fence_full(RU6);
	started = quiesce_load_relaxed(&state.started); /* Relaxed: RU6 orders it. */
	if (QUIESCE_MUTANT(cookie_now))
		return (started & (COOKIE_VALID - 1)) | COOKIE_VALID;
	return ((started + 1) & (COOKIE_VALID - 1)) | COOKIE_VALID;
}

bool quiesce__rcu_cookie_done(uint64_t cookie)
{
	/* RU5: acquire, pairs with RU5 in gp_complete() */
	uint64_t completed = quiesce_load_acquire(RU5, &state.completed);

	return !cookie || !is_older(completed, cookie);
}

/* ---- polling ---- */

/* The grace period that pollers share (I7). */
static struct {
	struct quiesce__lock lock;
	uint64_t number; /* number of the newest grace period of a poller, whose fence is over */
	uint32_t empty;  /* bit set of the counts of unregistered readers that have been seen to be 0 since */
	struct quiesce__overdue late;
} polled = { .number = FIRST_NUMBER };

/* True if there is a leader that is not overdue. */
static bool leader_on_time(void)
{
	uint64_t now;

	if (!quiesce_load_relaxed(&state.led)) /* Relaxed: a hint. */
		return false;
	now = platform_now_ns();
	return now < overdue_at(&polled.late, now) || QUIESCE_MUTANT(gp_poll_trusts_leader);
}

/* Add @empty to the record of the pollers' grace period if that has @number; if @number is newer, begin a new record.  The caller has
 * locked the record, which is unlocked here. */
static void poll_record(uint64_t number, uint32_t empty)
{
	if (is_older(polled.number, number)) {
		polled.number = number;
		polled.empty = 0;
	}
	if (polled.number == number)
		polled.empty |= empty;
	quiesce__unlock(&polled.lock);
}

/* True if the poller is to take part in grace periods.  *@ret_number and *@ret_empty are the record of the last one that a poller began.
 * The caller has locked the record, which is unlocked here. */
static bool poll_begin(uint64_t cookie, uint64_t *ret_number, uint32_t *ret_empty)
{
	bool may = !quiesce__rcu_cookie_done(cookie) && !leader_on_time();

	*ret_number = polled.number;
	*ret_empty = polled.empty;
	quiesce__unlock(&polled.lock);
	return may;
}

/* The lock guards the record only, and is not held during the fence and the scan: a poller may be preempted there, and must not stop
 * others. */
void quiesce__rcu_try_gp(uint64_t cookie)
{
	uint64_t number;
	uint32_t empty;

	quiesce__lock(&polled.lock);
	if (!poll_begin(cookie, &number, &empty))
		return;
	if (is_older(number, cookie)) { /* if it is not older, the number of an earlier try is new enough */
		number = gp_advance();
		empty = 0;
	}
	if (quiesce__holdouts_try(number, &empty)) {
		gp_complete(number);
		return;
	}
	quiesce__lock(&polled.lock);
	poll_record(number, empty);
}

static bool try_polled(void)
{
	if (!QUIESCE_MUTANT(gp_help_waits))
		return quiesce__trylock(&polled.lock);
	quiesce__lock(&polled.lock);
	return true;
}

/* A poll of a caller that must not wait is dropped where another poller holds the lock, and what it finds is not recorded: later polls
 * make up for both. */
int quiesce__rcu_help_gp(uint64_t cookie)
{
	uint64_t number;
	uint32_t empty;

	if (!try_polled() || !poll_begin(cookie, &number, &empty))
		return 0;
	if (is_older(number, cookie)) {
		int err = gp_try_advance(&number);

		if (err)
			return err;
		empty = 0;
	}
	if (quiesce__holdouts_try(number, &empty))
		gp_complete(number);
	else if (try_polled())
		poll_record(number, empty);
	return 0;
}

void quiesce__rcu_fork_child(void)
{
	/* The threads that ran grace periods are not in the child.  Their numbers stay incomplete until a later number covers them. */
	state.led = 0;
	state.due = 0;
	state.followers[0] = state.followers[1] = (struct followers){ .waiting = 0 };
	quiesce__lock_reset(&polled.lock, false);
	polled.empty = 0; /* a poller may have been about to change the number, to which the bits belong */
	quiesce__rcu_force_yield(false);
}
