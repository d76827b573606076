/* SPDX-License-Identifier: MIT */
/* rcu.c - grace periods, and the slow halves of the reader's two calls.
 *
 *   reader                               updater
 *   mark = gp            (light fence)   unlink                 (the caller)
 *   ... section ...                      heavy fence            RU1
 *   mark = 0             (release)       gp = number + 1
 *                                        every mark: outside, or number not older?  (acquire, RU2)
 *                                        completed = number     RU5
 *
 * I1. A mark that is inside and older than gp began before gp advanced: wait for it.
 * I2. A mark that carries the new number was set after the reader's share of the
 *     heavy fence, so its section sees the unlinking: ignore it.  This needs the
 *     advance to come after the fence.
 * I3. A mark set before the reader's share of the fence is visible to the scan.
 * I4. An old number stored late only makes an updater wait in vain.
 * I5. One grace period at a time.  Callers queue; the leader takes the whole queue
 *     and runs one grace period for all of it, then hands over to the new head.
 *     A caller that queues while a grace period runs needs the next one.
 * I6. Because the unlock is a release and the poll an acquire, no closing fence.
 *
 * RU1  mark set, then the section's reads       | unlink, then marks are read
 * RU2  the section's accesses, then mark cleared | mark read, then the caller frees
 * RU5  scan over, then completed                | completed read, then the poller frees
 * RU6  unlink, then started read (a cookie)     | started set, then marks are read
 * RU8  uncounted++ then reads; accesses then uncounted-- | unlink, then count read; then free
 * GP1  result for a waiter                      | the waiter returns
 *
 * Paper: M. Desnoyers et al., "User-Level Implementations of Read-Copy Update", IEEE TPDS 23(2), 2012, for the
 * idea of a reader without fences; the numbering and the single membarrier are ours and argued in docs/design/rcu.md.
 */
#include "rcu.h"
#include "reclaim.h"
#include "slots.h"

#if defined(QUIESCE_DEBUG_WRAP) || defined(QUIESCE_SIM)
#define FIRST_NUMBER (0xffffffffffffull - 2) /* wraps soon, so that wrapping is tested */
#else
#define FIRST_NUMBER 1ull
#endif
#define WORD(number) ((number) << 16 | 1)
#define COOKIE_VALID (1ull << 48) /* tells a cookie from get_completed_synchronize_rcu() */

struct quiesce_rcu_v1 quiesce_rcu_v1 __attribute__((aligned(128))) = { .gp = WORD(FIRST_NUMBER), .reserved = { 0 } };

#if !defined(QUIESCE_SIM)
__thread struct quiesce_tls_v1 quiesce_tls_v1 __attribute__((tls_model("initial-exec"))) = {
	.rcu_word = QUIESCE_RCU_UNREG,
	.shazptr_near = { &quiesce__slot_elsewhere, UINT64_MAX },
};
#endif

enum { GP_WAITING, GP_LEAD, GP_DONE };

struct gp_waiter {
	struct gp_waiter *next;
	uint32_t state;
	enum quiesce__haste haste;
};

static struct {
	struct quiesce__lock lock; /* guards the queue and @led */
	struct gp_waiter *head, **tail;
	bool led;           /* somebody runs a grace period or is about to */
	uint64_t started;   /* number of the newest grace period begun; written by the leader */
	uint64_t completed; /* and ended */
} gp = { .tail = &gp.head, .started = FIRST_NUMBER, .completed = FIRST_NUMBER };

void quiesce__tls_init(struct quiesce_tls_v1 *tls)
{
	*tls = (struct quiesce_tls_v1){
		.rcu_word = QUIESCE_RCU_UNREG,
		.shazptr_near = { &quiesce__slot_elsewhere, UINT64_MAX },
	};
}

/* ---- readers, slow halves ---- */

static uint64_t idle_word(void)
{
	/* Relaxed: fixed before the first reader registers. */
	return quiesce_load_relaxed(&quiesce__light) ? 0 : QUIESCE_RCU_FULL;
}

static void check_layout(uint32_t layout)
{
	if (quiesce_unlikely(layout != QUIESCE_LAYOUT))
		quiesce__misuse(QUIESCE_MISUSE_LAYOUT,
				"layout stamp of the program is %#x, of the library %#x: rebuild the program", layout,
				QUIESCE_LAYOUT);
}

static bool register_self(struct quiesce_tls_v1 *self)
{
	struct platform_sigmask mask;

	if (self->state & QUIESCE_TLS_EXITING) {
		platform_arm_thread_exit(); /* if a destructor forgets to unlock, end its section too */
		return false;
	}
	quiesce__init();
	quiesce__used();
	platform_signals_block(&mask);
	/* A handler may have been first, just before the signals were blocked. */
	if (!self->reader && platform_arm_thread_exit() == 0 && quiesce__reader_register(self))
		quiesce_store_relaxed(&self->rcu_word, idle_word()); /* Relaxed: outside. */
	platform_signals_restore(&mask);
	return self->reader != NULL;
}

bool quiesce__reader_ensure(struct quiesce_tls_v1 *self, uint32_t layout)
{
	check_layout(layout);
	/* Not inside a section without an entry: it ends without one, too. */
	return self->reader || (!self->uncounted && register_self(self));
}

/* Sections without an entry.  self->uncounted is depth * 2 + index of the count, 0 outside:
 * one word, stored after counting, so that a signal handler that finds it set finds it counted. */

static void uncounted_lock(struct quiesce_tls_v1 *self)
{
	uint32_t index;

	if (self->uncounted) {
		self->uncounted += 2;
		return;
	}
	/* Relaxed: the wrong one of the two delays an updater, no more. */
	index = quiesce_load_relaxed(&quiesce__readers.phase) & 1;
	/* RU8: full, pairs with RU8 in wait_for_count() */
	quiesce_fetch_add(RU8, &quiesce__readers.uncounted[index], (uint64_t)1);
	self->uncounted = 2 + index;
}

void quiesce__uncounted_leave(struct quiesce_tls_v1 *self)
{
	uint32_t index = self->uncounted & 1;

	if (!self->uncounted)
		return;
	self->uncounted = 0;
	/* RU8: full, pairs with RU8 in wait_for_count() */
	quiesce_fetch_add(RU8, &quiesce__readers.uncounted[index], (uint64_t)-1);
}

static void uncounted_unlock(struct quiesce_tls_v1 *self)
{
	if (self->uncounted < 4)
		quiesce__uncounted_leave(self);
	else
		self->uncounted -= 2;
}

/* A mark that is set but not yet fenced, in full-fence mode; no nesting gets as deep. */
#define ENTERING QUIESCE_RCU_DEPTH

static uint64_t entered(uint64_t word, uint64_t depth)
{
	return (word & ~QUIESCE_RCU_DEPTH) | depth;
}

/* The outermost lock in full-fence mode.  A signal handler may come between the mark and
 * the fence: it must not take the mark for a protection, so it finds ENTERING there. */
static void fenced_lock(struct quiesce_tls_v1 *self, uint64_t now)
{
	uint64_t word;

	/* Relaxed: the fence follows. */
	quiesce_store_relaxed(&self->rcu_word, entered(now, ENTERING) | QUIESCE_RCU_FULL);
	/* RU1: full, pairs with RU1 in gp_advance() */
	quiesce_fence_full(RU1);
	word = quiesce_load_relaxed(&self->rcu_word); /* Relaxed: the thread's own word. */
	/* A handler that comes now leaves what is stored here. */
	if ((word & QUIESCE_RCU_DEPTH) == ENTERING)
		quiesce_store_relaxed(&self->rcu_word, entered(word, 1)); /* Relaxed: protected already. */
}

/* In a handler that interrupted fenced_lock(): fence for both, and nest. */
static void finish_entering(struct quiesce_tls_v1 *self, uint64_t word)
{
	/* RU1: full, pairs with RU1 in gp_advance() */
	quiesce_fence_full(RU1);
	quiesce_store_relaxed(&self->rcu_word, entered(word, 2)); /* Relaxed: protected. */
}

/* The outermost lock of a registered thread. */
static void counted_lock(struct quiesce_tls_v1 *self)
{
	/* Relaxed: an old number only makes an updater wait for us in vain. */
	uint64_t now = quiesce_load_relaxed(&quiesce_rcu_v1.gp);

	if (idle_word()) {
		fenced_lock(self, now);
		return;
	}
	quiesce_store_relaxed(&self->rcu_word, now); /* Relaxed: the fence follows. */
	/* RU1: pairs with RU1 in gp_advance() */
	quiesce_fence_light(RU1);
}

/* Whoever comes here is not registered, or interrupted fenced_lock(), or nests too deep. */
static QUIESCE_COLD void rare_lock(struct quiesce_tls_v1 *self, uint64_t word, uint32_t layout)
{
	if ((word & QUIESCE_RCU_DEPTH) == ENTERING) {
		finish_entering(self, word);
		return;
	}
	if ((word & QUIESCE_RCU_DEPTH) != 0) {
		quiesce__misuse(QUIESCE_MISUSE_NESTING, "RCU read-side sections nested deeper than %u",
				(unsigned int)QUIESCE_RCU_DEPTH - 1);
		platform_die();
	}
	if (!self->uncounted && quiesce__reader_ensure(self, layout))
		counted_lock(self);
	else
		uncounted_lock(self);
}

void quiesce__rcu_lock_slow(uint32_t layout)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	/* Relaxed: the thread's own word. */
	uint64_t word = quiesce_load_relaxed(&self->rcu_word);

	if (quiesce_likely((uint16_t)word == QUIESCE_RCU_FULL))
		/* Relaxed: an old number only makes an updater wait for us in vain. */
		fenced_lock(self, quiesce_load_relaxed(&quiesce_rcu_v1.gp));
	else
		rare_lock(self, word, layout);
}

static QUIESCE_COLD void after_slow_unlock(struct quiesce_tls_v1 *self)
{
	quiesce__scan_notify(self->reader);
	/* Relaxed: a request that comes a little late or goes a little late. */
	if (quiesce_load_relaxed(&quiesce_rcu_v1.gp) & QUIESCE_RCU_SLOW) {
		quiesce__count(yields);
		platform_yield();
	}
}

/* Not in a section, or not in one that the mark knows of. */
static QUIESCE_COLD void rare_unlock(struct quiesce_tls_v1 *self)
{
	if (self->uncounted)
		uncounted_unlock(self);
	else
		quiesce__misuse(QUIESCE_MISUSE_UNBALANCED_UNLOCK, "rcu_read_unlock() without rcu_read_lock()");
}

void quiesce__rcu_unlock_slow(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	/* Relaxed: the thread's own word. */
	uint64_t word = quiesce_load_relaxed(&self->rcu_word);

	if (quiesce_unlikely((word & QUIESCE_RCU_DEPTH) == 0)) {
		rare_unlock(self);
		return;
	}
	/* RU2: release, pairs with RU2 in quiesce__rcu_blocks() */
	quiesce_store_release(RU2, &self->rcu_word, word & QUIESCE_RCU_FULL);
	if (quiesce_unlikely(word & QUIESCE_RCU_SLOW))
		after_slow_unlock(self);
}

void quiesce__rcu_lock_debug(uint32_t layout)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	check_layout(layout);
	if (!rcu_read_lock_held())
		self->site = __builtin_return_address(0);
	quiesce__rcu_read_lock();
}

void quiesce__rcu_unlock_debug(void)
{
	quiesce__rcu_read_unlock();
	if (!rcu_read_lock_held())
		quiesce__self()->site = NULL;
}

/* ---- grace periods ---- */

static bool quiesce__rcu_blocks(struct quiesce_tls_v1 *tls, uint64_t number)
{
	/* RU2: acquire, pairs with RU2 in rcu_read_unlock() */
	uint64_t word = quiesce_load_acquire(RU2, &tls->rcu_word);

	if (!(word & QUIESCE_RCU_DEPTH))
		return false;
	if (QUIESCE_MUTANT(gp_blocks_current))
		return (int64_t)((word & ~0xffffull) - (number << 16)) <= 0;
	return (int64_t)((word & ~0xffffull) - (number << 16)) < 0;
}

static bool ask_for_slow_unlock(struct quiesce_tls_v1 *tls, uint64_t number)
{
	while (quiesce__rcu_blocks(tls, number)) {
		/* Relaxed: the exchange decides. */
		uint64_t word = quiesce_load_relaxed(&tls->rcu_word);

		if (!(word & QUIESCE_RCU_DEPTH))
			continue;
		/* RU7: full, pairs with RU7 in quiesce__scan_notify() */
		if ((word & QUIESCE_RCU_SLOW) || quiesce_cmpxchg(RU7, &tls->rcu_word, &word, word | QUIESCE_RCU_SLOW))
			return quiesce__rcu_blocks(tls, number);
	}
	return false;
}

static void hurry_readers(bool on)
{
	/* Relaxed: the leader's own word; readers may see the bit late. */
	uint64_t word = quiesce_load_relaxed(&quiesce_rcu_v1.gp);

	quiesce_store_relaxed(&quiesce_rcu_v1.gp, on ? word | QUIESCE_RCU_SLOW : word & ~QUIESCE_RCU_SLOW);
}

static const struct quiesce__scan_ops rcu_scan = {
	.blocks = quiesce__rcu_blocks,
	.ask = ask_for_slow_unlock,
	.hurry = hurry_readers,
	.name = "RCU grace period",
};

static void publish_number(uint64_t number)
{
	/* Relaxed: I2 needs this after RU1's heavy fence, no more. */
	quiesce_store_relaxed(&quiesce_rcu_v1.gp, WORD(number));
}

/* Begin the next grace period; returns its number. */
static uint64_t gp_advance(void)
{
	uint64_t number = (gp.started + 1) & (COOKIE_VALID - 1);

	quiesce_store_relaxed(&gp.started, number); /* Relaxed: the fence follows. */
	if (QUIESCE_MUTANT(gp_advance_before_fence))
		publish_number(number);
	/* RU1: pairs with RU1 in rcu_read_lock() */
	/* RU6: pairs with RU6 in quiesce__rcu_cookie() */
	quiesce_fence_heavy(RU1);
	publish_number(number);
	return number;
}

static void gp_complete(uint64_t number)
{
	/* RU5: release, pairs with RU5 in quiesce__rcu_cookie_done() */
	quiesce_store_release(RU5, &gp.completed, number);
	quiesce__count(grace_periods);
}

static void gp_run(void)
{
	uint64_t number = gp_advance();

	if (QUIESCE_MUTANT(gp_completed_early))
		quiesce_store_relaxed(&gp.completed, number);
	quiesce__scan_wait(&rcu_scan, number);
	gp_complete(number);
}

/* Under gp.lock: take the whole queue.  Who joins it later presses the wait for these, not the one before. */
static struct gp_waiter *take_queue(void)
{
	struct gp_waiter *all = gp.head;
	enum quiesce__haste haste = QUIESCE_PATIENT;

	for (struct gp_waiter *w = all; w; w = w->next)
		haste = w->haste > haste ? w->haste : haste;
	quiesce__scan_haste(haste);
	gp.head = NULL;
	gp.tail = &gp.head;
	return all;
}

static void tell(struct gp_waiter *w, uint32_t state)
{
	/* GP1: release, pairs with GP1 in enter_queue() */
	quiesce_store_release(GP1, &w->state, state);
	/* @w may be gone by now: a wake-up of an address that nobody sleeps on does no harm. */
	platform_futex_wake(&w->state, 1);
}

/* Stop leading; the head of the queue, if any, goes on. */
static void hand_over(void)
{
	struct gp_waiter *next;

	quiesce__lock(&gp.lock);
	next = gp.head;
	gp.led = next != NULL;
	quiesce__unlock(&gp.lock);
	if (next)
		tell(next, GP_LEAD);
}

/* Run one grace period for everybody in the queue; gp.lock is held and given up. */
static void gp_lead(const struct gp_waiter *me)
{
	struct gp_waiter *batch = take_queue(), *next;

	quiesce__unlock(&gp.lock);
	gp_run();
	/* Before the hand-over: who is quick to come back shares the next grace period. */
	for (; batch; batch = next) {
		next = batch->next;
		if (batch != me)
			tell(batch, GP_DONE);
	}
	hand_over();
}

/* Join the queue.  True with gp.lock held: the caller leads; false: its grace period is over. */
static bool enter_queue(struct gp_waiter *me)
{
	uint32_t state;

	quiesce__lock(&gp.lock);
	if (QUIESCE_MUTANT(gp_shares_running) && gp.led) {
		quiesce__unlock(&gp.lock);
		while (quiesce_load_relaxed(&gp.completed) != quiesce_load_relaxed(&gp.started))
			platform_yield();
		return false;
	}
	*gp.tail = me;
	gp.tail = &me->next;
	if (!gp.led) {
		gp.led = true;
		return true;
	}
	quiesce__unlock(&gp.lock);
	quiesce__scan_press(me->haste);
	/* GP1: acquire, pairs with GP1 in tell() */
	while ((state = quiesce_load_acquire(GP1, &me->state)) == GP_WAITING)
		platform_futex_wait(&me->state, GP_WAITING, PLATFORM_FOREVER);
	if (state == GP_DONE)
		return false;
	quiesce__lock(&gp.lock);
	return true;
}

void quiesce__rcu_wait(enum quiesce__haste haste)
{
	struct gp_waiter me = { .next = NULL, .state = GP_WAITING, .haste = haste };

	quiesce__fork_check();
	quiesce__used();
	if (enter_queue(&me))
		gp_lead(&me);
}

/* Reports a wait for oneself.  The debug build knows where the section began. */
static bool wait_is_misuse(const char *what, const void *caller)
{
	const void *site = quiesce__self()->site;

	quiesce__init();
	if (!rcu_read_lock_held())
		return false;
	if (site)
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER,
				"%s at %p inside an RCU read-side section would wait for itself; the section began near %p",
				what, caller, site);
	else
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER,
				"%s at %p inside an RCU read-side section would wait for itself", what, caller);
	return true;
}

void quiesce_synchronize_rcu(void)
{
	if (wait_is_misuse("synchronize_rcu()", __builtin_return_address(0)))
		return;
	quiesce__rcu_wait(QUIESCE_PLAIN);
	quiesce__free_here();
}

void quiesce_synchronize_rcu_expedited(void)
{
	if (wait_is_misuse("synchronize_rcu_expedited()", __builtin_return_address(0)))
		return;
	quiesce__rcu_wait(QUIESCE_EXPEDITED);
	quiesce__free_here();
}

/* ---- cookies ---- */

uint64_t quiesce__rcu_cookie(void)
{
	uint64_t started;

	/* RU6: full, pairs with RU6 in gp_advance() */
	quiesce_fence_full(RU6);
	started = quiesce_load_relaxed(&gp.started); /* Relaxed: RU6 orders it. */
	if (QUIESCE_MUTANT(cookie_now))
		return started | COOKIE_VALID;
	return ((started + 1) & (COOKIE_VALID - 1)) | COOKIE_VALID;
}

bool quiesce__rcu_cookie_done(uint64_t cookie)
{
	/* RU5: acquire, pairs with RU5 in gp_complete() */
	uint64_t completed = quiesce_load_acquire(RU5, &gp.completed);

	return !cookie || (int64_t)((completed << 16) - (cookie << 16)) >= 0;
}

struct rcu_gp_seq quiesce_get_state_synchronize_rcu(void)
{
	struct rcu_gp_seq seq;

	quiesce__init();
	seq.value = quiesce__rcu_cookie();
	return seq;
}

struct rcu_gp_seq quiesce_start_poll_synchronize_rcu(void)
{
	struct rcu_gp_seq seq = quiesce_get_state_synchronize_rcu();

	quiesce__reclaim_request_gp(seq.value);
	return seq;
}

/* The number to look for: that of an earlier try, if it covers @cookie, else a new one. */
static uint64_t number_to_try(uint64_t cookie)
{
	/* Relaxed: the leader's own word.  What it holds was published after its fence. */
	uint64_t published = quiesce_load_relaxed(&quiesce_rcu_v1.gp) >> 16;

	if ((int64_t)((published << 16) - (cookie << 16)) >= 0)
		return published;
	return gp_advance();
}

/* Try a grace period without sleeping, if nobody runs one. */
static void gp_try(uint64_t cookie)
{
	uint64_t number;
	bool led;

	if (!quiesce__trylock(&gp.lock))
		return;
	led = gp.led;
	gp.led = true;
	quiesce__unlock(&gp.lock);
	if (led)
		return;
	number = number_to_try(cookie);
	if (quiesce__scan_try(&rcu_scan, number))
		gp_complete(number);
	hand_over();
}

int quiesce_poll_state_synchronize_rcu(struct rcu_gp_seq seq)
{
	bool done;

	quiesce__fork_check();
	done = quiesce__rcu_cookie_done(seq.value);
	if (!done && !quiesce__reclaim_has_worker() && !rcu_read_lock_held()) {
		gp_try(seq.value);
		done = quiesce__rcu_cookie_done(seq.value);
	}
	if (done)
		/* RU5: full, pairs with the caller */
		quiesce_fence_full(RU5);
	return done;
}

void quiesce_cond_synchronize_rcu(struct rcu_gp_seq seq)
{
	if (!quiesce_poll_state_synchronize_rcu(seq))
		quiesce_synchronize_rcu();
}

void quiesce__rcu_fork_prepare(void)
{
	quiesce__lock(&gp.lock);
}

void quiesce__rcu_fork_parent(void)
{
	quiesce__unlock(&gp.lock);
}

void quiesce__rcu_fork_child(void)
{
	/* Whoever ran a grace period is not in the child; its number stays incomplete, the next one covers it. */
	quiesce__lock_reset(&gp.lock);
	gp.head = NULL;
	gp.tail = &gp.head;
	gp.led = false;
	hurry_readers(false);
}
