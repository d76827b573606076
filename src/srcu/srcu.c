/* SPDX-License-Identifier: MIT */
/* srcu.c - grace periods of a domain, and the slow halves of srcu_read_lock() and srcu_read_unlock().
 *
 *   reader                                updater
 *   entered[idx]++     (light fence)      unlink                              (the caller)
 *   ... section ...                       heavy fence                         SR1
 *   left[idx]++        (release)          for each index, once, in any order:
 *                                            sum left, then entered: equal    (acquire, PC2); see srcu_check.c
 *
 * The leader is the thread that runs the grace periods of a domain.
 *
 * I1. An index that was seen empty after the fence has no section that began before the fence, and never will have.
 *     Each index needs to be seen empty once, in any order; a late count only delays.  The fence is not repeated.
 * I2. An index in use may never be empty.  So once the other index has been seen empty, new sections are flipped to that
 *     one.  The old index is then joined only by readers that loaded idx before the flip, once each: it becomes empty.
 * I3. There is one leader at a time (@led): a caller that waits, and may sleep, or one that tries, and does not.  The
 *     state of an unfinished grace period outlives the leader that began it.  The lock is never held over a fence or a
 *     sleep.  No waiter depends on a leader that does not run: see srcu_follow.c.  Waiters are completed, and withdraw,
 *     under the lock.
 * I4. A caller needs the first grace period whose number is taken, under the lock, after the call began.
 * I5. A reader accesses nothing of the domain after it has counted as left.  So it checks for a request (@requests)
 *     before that, in the same restartable sequence, and the word on which the leader sleeps belongs to the library: see
 *     waitq.h.  A request that is made between the check and the count is missed, so each sleep is timed.
 * I6. A forked child has none of the threads that lead, wait or run callbacks: the first call on a domain there resets
 *     what they have left.
 * I7. Sections that are open at a fork may belong to threads that the child does not have.  That cannot be known until a
 *     grace period is over (@inherited); until then quiesce_shutdown() does not wait for ever.
 *
 * SR1  reader counted, then its accesses          | unlinked, then counts read
 * SR2  helper wake-up requested, then counts read | left counted, then the helper woken
 * SR3  grace period over, then completed          | completed read, then the caller frees
 * SR4  unlinked, then begun read (a cookie)       | begun raised, then counts read
 * SR5  completed stored                           | completed loaded, then the waiter returns
 * SR6  a domain reinitialised after a fork        | used
 * SR9  section left, then the fence, then a load  | the caller's accesses, with a full fence between them
 * WQ1  see waitq.h
 * PC2  see percpu.c
 * PC1  see percpu.c
 */
#include "srcu.h"

#include "platform/probe.h"
#include "rcu/garbage.h"
#include "runtime/wait_policy.h"
#include "runtime/waitq.h"

#define LEFT QUIESCE_SRCU_LEFT
#define FORCE_NORMAL_NS 50000u
#define PAUSE_RATIO 4u /* readers yield at most a fifth of the time for normal waits */

/* Bits of @requests: what a reader does when it leaves. */
#define REQUEST_WAKE 1ull   /* wake the leader of the domain */
#define REQUEST_HELPER 2ull /* wake the helper thread */
#define REQUEST_YIELD 4ull  /* yield the CPU */

struct quiesce__yield quiesce__srcu_yield __attribute__((aligned(QUIESCE_CACHELINE))) = { .cpus = QUIESCE_ALL_CPUS };

struct wait {
	struct srcu_struct *ssp;
	struct quiesce__srcu_usage *u;
	const char *call;
	uint64_t left; /* sections of the awaited index that had left at the last check of progress */
	struct quiesce__wait_policy policy;
};

/* ---- readers, slow halves ---- */

/* The word "open" whose counter is that at @index of the set. */
static uint64_t open_at(uint64_t word, uint32_t index)
{
	return word ? word - sizeof(uint64_t) * index : 0;
}

/* Let readers count inline, if they can.  Any thread may call this at any time: a request that it withdraws by a race
 * is made again. */
static void open_domain(struct srcu_struct *ssp)
{
	uint64_t word = quiesce__percpu_open_word(&ssp->percpu);

	if (!word)
		return;
	for (uint32_t i = 0; i < 2; i++) {
		/* Relaxed: a race costs a missed request (I5). */
		if (!quiesce_load_relaxed(&ssp->leave[i]) && !quiesce_load_relaxed(&ssp->requests[i]))
			/* Relaxed: a reader that leaves has found the sets by entering. */
			quiesce_store_relaxed(&ssp->leave[i], open_at(word, LEFT + i));
		/* PC1: release, pairs with PC1 in srcu_read_lock() */
		quiesce_store_release(PC1, &ssp->enter[i], open_at(word, i));
	}
}

int quiesce__srcu_lock_slow(uint32_t layout, struct srcu_struct *ssp, uint64_t idx)
{
	struct quiesce__srcu_usage *u = quiesce__srcu_usage(ssp);

	/* Relaxed: hints; quiesce__percpu_open() checks again. */
	if (quiesce_unlikely(!quiesce_load_relaxed(&ssp->percpu.base)) &&
	    !quiesce_load_relaxed(&u->no_memory)) { /* Relaxed: a rate limit. */
		quiesce__check_layout(layout);
		if (quiesce__percpu_open(&ssp->percpu, QUIESCE_SRCU_WORDS))
			quiesce_store_relaxed(&u->no_memory, 1); /* Relaxed: a rate limit. */
		else
			open_domain(ssp);
	}
	if (!quiesce__percpu_add(&ssp->percpu, u->shared, (uint32_t)idx))
		/* SR1: full, pairs with SR1 in begin() */
		quiesce_fence_full(SR1);
	return (int)idx;
}

/* The reader has left, so @ssp is only an address here (I5). */
static QUIESCE_COLD void serve_requests(const struct srcu_struct *ssp, uint64_t requests)
{
	if ((requests & REQUEST_WAKE) && !QUIESCE_MUTANT(srcu_wake_lost))
		quiesce__waitq_wake(quiesce__waitq_of(ssp));
	if (requests & REQUEST_HELPER)
		quiesce__helper_wake();
	if (requests & REQUEST_YIELD)
		quiesce__yield(&quiesce__srcu_yield);
}

void quiesce__srcu_bad_index(const struct srcu_struct *ssp, int idx)
{
	quiesce__misuse(QUIESCE_MISUSE_UNBALANCED_UNLOCK, "srcu_read_unlock(%s) with %d, which no srcu_read_lock() returned",
			quiesce__srcu_name(ssp), idx);
}

/* Most invalid values of @idx arrive here, because the word in the place of their @leave is 0. */
void quiesce__srcu_unlock_slow(struct srcu_struct *ssp, uint64_t idx)
{
	uint64_t requests;

	if (quiesce_unlikely(idx > 1)) {
		quiesce__srcu_bad_index(ssp, (int)idx);
		return;
	}
	/* Relaxed: a missed request costs a timed sleep (I5). */
	requests = quiesce_load_relaxed(&ssp->requests[idx]);
	if (!requests && quiesce__percpu_uses_sequences()) {
		if (!quiesce_load_relaxed(&ssp->leave[idx])) /* Relaxed: a hint. */
			open_domain(ssp);
		/* Count in a sequence by a call, for programs whose inline code cannot read the thread's id. */
		/* PC2: release, pairs with PC2 in sum() */
		if (quiesce_count_release_always(PC2, &ssp->percpu, sizeof(uint64_t) * (LEFT + idx)))
			return;
	}
	if (!quiesce__percpu_add(&ssp->percpu, quiesce__srcu_usage(ssp)->shared, LEFT + (uint32_t)idx))
		/* SR2: pairs with SR2 in scan_after_request() */
		/* WQ1: full, pairs with WQ1 in quiesce__waitq_prepare() */
		quiesce_fence_full(WQ1);
	if (quiesce_unlikely(requests))
		serve_requests(ssp, requests);
}

void quiesce__srcu_wake_leader(const struct srcu_struct *ssp)
{
	serve_requests(ssp, REQUEST_WAKE);
}

/* ---- domains ---- */

void quiesce__srcu_request_one(struct srcu_struct *ssp, uint32_t idx, uint64_t bits)
{
	uint64_t leave = bits ? 0 : open_at(quiesce__percpu_open_word(&ssp->percpu), LEFT + idx);

	/* Relaxed throughout: I5.  Written by the leader, and only on a change, because readers load this cache line all
	 * the time. */
	if (quiesce_load_relaxed(&ssp->requests[idx]) != bits)
		quiesce_store_relaxed(&ssp->requests[idx], bits);
	if (quiesce_load_relaxed(&ssp->leave[idx]) != leave)
		quiesce_store_relaxed(&ssp->leave[idx], leave);
}

static void forget_parent(struct srcu_struct *ssp, struct quiesce__srcu_usage *u)
{
	uint64_t inside;

	quiesce__lock_reset(&u->lock, false);
	u->led = u->fenced = false;
	u->waiters = NULL;
	u->number = u->completed;
	u->alone.number = 0;
	u->late.since = u->due = u->alone_until = 0;
	/* Relaxed: hints. */
	quiesce_store_relaxed(&u->expedite, 0);
	quiesce_store_relaxed(&u->no_memory, 0);
	u->seen = 0;
	u->left[0] = u->left[1] = 0; /* a fork does not copy all counters at one moment: the sums may include counts that these do not */
	u->force_not_before = 0;
	inside = quiesce__srcu_inside(ssp, 0) + quiesce__srcu_inside(ssp, 1);
	/* Relaxed: a hint. */
	quiesce_store_relaxed(&u->inherited, quiesce__generation() && inside);
	quiesce__srcu_request_one(ssp, 0, 0);
	quiesce__srcu_request_one(ssp, 1, 0);
	quiesce__srcu_callbacks_fork_child(u);
}

/* Value of @generation in this process; never 0, which is that of a domain not yet used. */
static uint32_t generation_now(void)
{
	return quiesce__generation() + 1;
}

/* Shared by all domains: it is held once for each of them in each process. */
static struct quiesce__lock reinit_lock;

QUIESCE_COLD void quiesce__srcu_reinit(struct quiesce__srcu_usage *u)
{
	quiesce__lock(&reinit_lock);
	if (quiesce_load_relaxed(&u->generation) != generation_now()) { /* Relaxed: under the lock. */
		forget_parent(quiesce__srcu_domain(u), u);
		/* SR6: release, pairs with SR6 in quiesce__srcu_prepare() */
		quiesce_store_release(SR6, &u->generation, generation_now());
	}
	quiesce__unlock(&reinit_lock);
}

void quiesce__srcu_fork_reinit(void)
{
	quiesce__lock_reset(&reinit_lock, false);
}

struct quiesce__srcu_usage *quiesce__srcu_prepare(struct srcu_struct *ssp)
{
	struct quiesce__srcu_usage *u = quiesce__srcu_usage(ssp);

	quiesce__init();
	quiesce__fix_mode();
	/* SR6: acquire, pairs with SR6 in quiesce__srcu_reinit() */
	if (quiesce_unlikely(quiesce_load_acquire(SR6, &u->generation) != generation_now())) {
		quiesce__srcu_reinit(u);
		quiesce__srcu_schedule(u); /* a pusher in the parent may not have listed the job before the fork */
	}
	return u;
}

int quiesce_init_srcu_struct(uint32_t layout, struct srcu_struct *ssp, const char *name)
{
	int err;

	quiesce__check_layout(layout);
	*ssp = (struct srcu_struct){ .name = name };
	quiesce__srcu_prepare(ssp);
	err = quiesce__percpu_open(&ssp->percpu, QUIESCE_SRCU_WORDS);
	if (!err)
		open_domain(ssp);
	return err;
}

void quiesce_srcu_after_fork_child(struct srcu_struct *ssp)
{
	struct quiesce__srcu_usage *u = quiesce__srcu_prepare(ssp);

	if (quiesce_unlikely(!quiesce__is_child("srcu_after_fork_child()")))
		return;
	for (uint32_t i = 0; i < 2; i++)
		quiesce__percpu_count_all_left(&ssp->percpu, u->shared, i, LEFT + i);
	quiesce_store_relaxed(&u->inherited, 0); /* Relaxed: I7. */
	quiesce__srcu_wake_leader(ssp);
}

/* ---- grace periods; functions of the leader ---- */

/* Resume the unfinished grace period, or begin the next one. */
static void begin(struct quiesce__srcu_usage *u)
{
	quiesce__lock(&u->lock);
	if ((int64_t)(u->completed - u->number) >= 0) {
		u->number = u->begun + 1;
		quiesce_store_relaxed(&u->begun, u->number); /* Relaxed: the fence follows. */
		u->fenced = false;
		u->seen = 0;
		u->stuck_at = u->stall_at = u->checked_at = 0;
	}
	quiesce__unlock(&u->lock);
	if (u->fenced)
		return;
	/* Relaxed: lets readers try again to allocate, once in a grace period. */
	quiesce_store_relaxed(&u->no_memory, 0);
	/* If the sum misses a reader's count, that reader sees what was unlinked before; if a reader misses that,
	 * the sum includes its count. */
	/* SR1: pairs with SR1 in srcu_read_lock() */
	/* SR4: pairs with SR4 in quiesce__srcu_cookie() */
	quiesce_fence_heavy_shared(SR1);
	u->fenced = true;
}

/* The index in which new sections count. */
static uint32_t active_index(const struct srcu_struct *ssp)
{
	return (uint32_t)quiesce_load_relaxed(&ssp->idx); /* Relaxed: written by the leader. */
}

/* The index whose readers delay the grace period. */
static uint32_t awaited_index(const struct srcu_struct *ssp, const struct quiesce__srcu_usage *u)
{
	return u->seen ? quiesce__srcu_unseen_index(u->seen) : !active_index(ssp);
}

/* Check the counts once; true if the grace period is over. */
static bool check_readers(struct srcu_struct *ssp, struct quiesce__srcu_usage *u)
{
	u->seen = (uint8_t)quiesce__srcu_check(ssp, u->seen, u->left);
	if (u->seen == QUIESCE_SRCU_SEEN_BOTH || (QUIESCE_MUTANT(srcu_one_index) && u->seen))
		return true;
	/* New sections are flipped to an index that has been seen empty (I2). */
	if (u->seen == 1u << !active_index(ssp) && !QUIESCE_MUTANT(srcu_no_flip))
		quiesce_store_relaxed(&ssp->idx, !active_index(ssp)); /* Relaxed: readers may see the flip late. */
	return false;
}

/* Request @bits from readers of index @idx, and from those of the other index the bits that concern all readers. */
static void request(struct srcu_struct *ssp, uint32_t idx, uint64_t bits)
{
	quiesce__srcu_request_one(ssp, idx, bits);
	quiesce__srcu_request_one(ssp, !idx, bits & REQUEST_YIELD);
}

static void complete(struct srcu_struct *ssp, struct quiesce__srcu_usage *u)
{
	request(ssp, 0, 0);
	quiesce__srcu_publish(u, u->number);
}

/* ---- sleeping ---- */

/* The wait policy only keeps the time: sleep_once() requests the yields. */
static void force_yield(bool on)
{
	(void)on;
}

/* True if a reader has left since the last call. */
static bool made_progress(void *arg)
{
	struct wait *w = arg;
	uint64_t before = w->left;

	w->left = w->u->left[awaited_index(w->ssp, w->u)];
	return (int64_t)(w->left - before) > 0;
}

static void check_stall(struct srcu_struct *ssp, const char *call, struct quiesce__wait_policy *p, uint64_t now)
{
	if (quiesce__wait_policy_take_report(p, now))
		quiesce__srcu_report_stall(ssp, call, awaited_index(ssp, quiesce__srcu_usage(ssp)), now - p->start);
	quiesce__srcu_check_garbage(ssp);
}

/* Request a wake-up from readers, check the counts, sleep; true if the grace period is over. */
static bool sleep_once(struct wait *w)
{
	uint32_t idx = awaited_index(w->ssp, w->u), number;
	uint64_t now = platform_now_ns(), ns;

	w->policy.expedited |= quiesce_load_relaxed(&w->u->expedite) != 0; /* Relaxed: a hint. */
	quiesce__wait_policy_step(&w->policy, now);
	request(w->ssp, idx, w->policy.forced_at ? REQUEST_WAKE | REQUEST_YIELD : REQUEST_WAKE);
	number = quiesce__waitq_prepare(quiesce__waitq_of(w->ssp));
	if (check_readers(w->ssp, w->u))
		return true;
	if (awaited_index(w->ssp, w->u) != idx)
		return false;
	check_stall(w->ssp, w->call, &w->policy, now);
	quiesce__count(sleeps);
	ns = quiesce__wait_policy_sleep(&w->policy, now);
	quiesce_store_relaxed(&w->u->due, now + ns); /* Relaxed: an estimate for followers. */
	platform_futex_wait(quiesce__waitq_of(w->ssp), number, ns);
	return check_readers(w->ssp, w->u);
}

static bool is_over(void *ssp)
{
	return check_readers(ssp, quiesce__srcu_usage(ssp));
}

static void wait_for_readers(struct srcu_struct *ssp, struct quiesce__srcu_usage *u, const char *call, bool expedited)
{
	struct wait w = { .ssp = ssp, .u = u, .call = call };

	w.policy = (struct quiesce__wait_policy){
		.yield = &quiesce__srcu_yield, .force_yield = force_yield, .helped = made_progress, .arg = &w,
		.not_before = &u->force_not_before,
		.pause = PAUSE_RATIO, .force_after_ns = FORCE_NORMAL_NS, .expedited = expedited, .start = platform_now_ns(),
	};
	w.left = u->left[awaited_index(ssp, u)];
	while (!sleep_once(&w))
		;
	quiesce__wait_policy_end(&w.policy);
}

/* ---- callers ---- */

/* Run grace periods until grace period @number is over. */
static void lead(struct srcu_struct *ssp, struct quiesce__srcu_usage *u, uint64_t number, const char *call, bool expedited)
{
	while (!quiesce__srcu_done(u, number)) {
		begin(u);
		if (!quiesce__wait_spin_for(is_over, ssp, QUIESCE_SPIN_NS, PLATFORM_FOREVER))
			wait_for_readers(ssp, u, call, expedited);
		complete(ssp, u);
	}
}

void quiesce__srcu_wait(struct srcu_struct *ssp, const char *call, bool expedited)
{
	struct quiesce__srcu_waiter me = { .expedited = expedited };
	struct quiesce__srcu_usage *u = quiesce__srcu_prepare(ssp);
	uint32_t how;

	while ((how = quiesce__srcu_join(ssp, u, &me)) == QUIESCE_SRCU_ALONE) {
		quiesce__srcu_wait_alone(ssp, u, call, me.needed);
		quiesce__srcu_schedule(u);
		if (quiesce__srcu_done(u, me.needed))
			return;
	}
	if (how == QUIESCE_SRCU_COMPLETED)
		return;
	lead(ssp, u, me.needed, call, expedited);
	quiesce__srcu_hand_over(u);
	quiesce__srcu_schedule(u);
}

bool quiesce__srcu_exists(const struct srcu_struct *ssp, const char *call)
{
	if (quiesce_unlikely(!ssp))
		quiesce__misuse(QUIESCE_MISUSE_NULL, "%s() with a NULL domain", call);
	return ssp;
}

static void synchronize(struct srcu_struct *ssp, const char *what, bool expedited)
{
	uint64_t since;

	if (!quiesce__srcu_exists(ssp, what) || quiesce__srcu_wait_is_misuse(ssp, what))
		return;
	since = quiesce_probe_clock(srcu_wait_end);
	quiesce_probe(srcu_wait_begin, ssp, what);
	quiesce__srcu_wait(ssp, what, expedited);
	quiesce_probe(srcu_wait_end, ssp, what, quiesce_probe_since(since));
	quiesce__jobs_take_steps();
}

void quiesce_synchronize_srcu(struct srcu_struct *ssp)
{
	synchronize(ssp, "synchronize_srcu", false);
}

void quiesce_synchronize_srcu_expedited(struct srcu_struct *ssp)
{
	synchronize(ssp, "synchronize_srcu_expedited", true);
}

static bool take_lead(struct quiesce__srcu_usage *u)
{
	bool may;

	quiesce__lock(&u->lock);
	may = !u->led;
	u->led = true;
	quiesce__unlock(&u->lock);
	return may;
}

/* Request that holdouts wake the helper, then check whether they have left meanwhile. */
static bool scan_after_request(struct srcu_struct *ssp, struct quiesce__srcu_usage *u)
{
	struct quiesce__wait_policy p;
	uint64_t now;

	request(ssp, awaited_index(ssp, u), quiesce__srcu_request_yields(u) ? REQUEST_HELPER | REQUEST_YIELD : REQUEST_HELPER);
	/* SR2: full, pairs with SR2 in quiesce__srcu_unlock_slow() */
	quiesce_fence_full(SR2);
	if (check_readers(ssp, u))
		return true;
	now = platform_now_ns();
	if (!u->stuck_at)
		u->stuck_at = now;
	p = (struct quiesce__wait_policy){ .start = u->stuck_at, .stall_at = u->stall_at, .checked_at = u->checked_at };
	check_stall(ssp, "call_srcu", &p, now);
	u->stall_at = p.stall_at;
	u->checked_at = p.checked_at;
	return false;
}

bool quiesce__srcu_try(struct srcu_struct *ssp, uint64_t cookie, bool may_request)
{
	struct quiesce__srcu_usage *u = quiesce__srcu_usage(ssp);

	if (quiesce__srcu_done(u, cookie))
		return true;
	if (!take_lead(u))
		return may_request && quiesce__srcu_try_alone(ssp, u) && quiesce__srcu_done(u, cookie);
	while (!quiesce__srcu_done(u, cookie)) {
		begin(u);
		if (!check_readers(ssp, u) && !(may_request && scan_after_request(ssp, u)))
			break;
		complete(ssp, u);
	}
	quiesce__srcu_hand_over(u);
	return quiesce__srcu_done(u, cookie);
}

/* ---- cookies ---- */

uint64_t quiesce__srcu_cookie(const struct quiesce__srcu_usage *u)
{
	uint64_t begun;

	/* SR4: full, pairs with SR4 in begin() */
	quiesce_fence_full(SR4);
	begun = quiesce_load_relaxed(&u->begun); /* Relaxed: SR4 orders it. */
	return QUIESCE_MUTANT(srcu_cookie_now) ? begun : begun + 1;
}

bool quiesce__srcu_done(const struct quiesce__srcu_usage *u, uint64_t cookie)
{
	/* SR3: acquire, pairs with SR3 in quiesce__srcu_publish() */
	uint64_t completed = quiesce_load_acquire(SR3, &u->completed);

	return (int64_t)(completed - cookie) >= 0;
}

unsigned long quiesce_srcu_batches_completed(struct srcu_struct *ssp)
{
	return quiesce_load_relaxed(&quiesce__srcu_prepare(ssp)->completed); /* Relaxed: no order is promised. */
}

/* ---- the end of a domain ---- */

/* Return what still uses the domain; NULL if nothing does.  Waits for the helper if it is about to return from its
 * last step. */
static const char *why_in_use(struct srcu_struct *ssp, struct quiesce__srcu_usage *u, uint64_t *ret_nr)
{
	bool led;

	if ((*ret_nr = quiesce__srcu_inside(ssp, 0) + quiesce__srcu_inside(ssp, 1)))
		return "readers inside";
	if ((*ret_nr = quiesce__srcu_pending(u)))
		return "callbacks pending";
	quiesce__srcu_callbacks_stop(u);
	quiesce__lock(&u->lock);
	led = u->led;
	quiesce__unlock(&u->lock);
	*ret_nr = led;
	return led ? "waits in progress" : NULL;
}

void quiesce_cleanup_srcu_struct(struct srcu_struct *ssp)
{
	struct quiesce__srcu_usage *u = quiesce__srcu_prepare(ssp);
	const char *why;
	uint64_t nr;

	/* As in a grace period, the fence makes the counts of earlier sections visible; a section that it misses
	 * began after the call, a misuse that cannot be detected. */
	/* SR1: pairs with SR1 in srcu_read_lock() */
	quiesce_fence_heavy_shared(SR1);
	why = why_in_use(ssp, u, &nr);
	if (why) {
		quiesce__misuse(QUIESCE_MISUSE_IN_USE, "cleanup_srcu_struct(%s): %s: %llu", quiesce__srcu_name(ssp), why,
				(unsigned long long)nr);
		return;
	}
	quiesce__srcu_shards_close(u);
	quiesce__percpu_close(&ssp->percpu);
	*ssp = (struct srcu_struct){ .name = ssp->name };
}
