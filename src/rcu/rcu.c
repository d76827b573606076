/* SPDX-License-Identifier: MIT */
/* rcu.c - the slow halves of the reader's two calls, and the calls that wait for readers.
 *
 * The theory of grace periods, for readers and updaters, is in rcu_gp.c.
 *
 * RU8  unregistered++ then reads; accesses then unregistered-- | unlink, then count read; then free
 * RU1, RU2, RU5  see rcu_gp.c
 */
#include "rcu.h"
#include "reclaim.h"

/* ---- readers, slow halves ---- */

static uint64_t idle_word(void)
{
	/* Relaxed: fixed before the first reader registers. */
	return quiesce_load_relaxed(&quiesce__fixed.light) ? 0 : QUIESCE_RCU_FULL;
}

static bool register_self(struct quiesce_tls_v1 *self)
{
	struct platform_sigmask mask;

	if (!QUIESCE_MUTANT(fork_registers_blind) || !quiesce__readers.entry)
		quiesce__init();
	if (self->state & QUIESCE_TLS_EXITING) {
		platform_arm_thread_exit(); /* end also the section of a destructor that forgets to unlock */
		return false;
	}
	quiesce__fix_mode();
	platform_signals_block(&mask);
	/* A signal handler may have registered the thread just before the signals were blocked. */
	if (!self->reader && platform_arm_thread_exit() == 0 && quiesce__reader_register(self))
		quiesce_store_relaxed(&self->rcu_word, idle_word()); /* Relaxed: outside of sections. */
	platform_signals_restore(&mask);
	return self->reader != NULL;
}

bool quiesce__reader_ensure(struct quiesce_tls_v1 *self, uint32_t layout)
{
	quiesce__check_layout(layout);
	/* A thread does not register inside its section as an unregistered reader, which has to end as it began. */
	return self->reader || (!self->unregistered && register_self(self));
}

/* ---- sections of unregistered readers ---- */

/* self->unregistered is depth * 2 + index of the count, and 0 outside of sections.  It is one word, stored after the section has been
 * counted, so that a signal handler that finds it set can rely on the count. */

static void unregistered_lock(struct quiesce_tls_v1 *self)
{
	uint32_t index;

	if (self->unregistered) {
		self->unregistered += 2;
		return;
	}
	/* Relaxed: a section that joins the wrong one of the two counts only delays an updater. */
	index = quiesce_load_relaxed(&quiesce__readers.idx) & 1;
	/* RU8: full, pairs with RU8 in wait_for_count() */
	quiesce_fetch_add(RU8, &quiesce__readers.unregistered[index], (uint64_t)1);
	self->unregistered = 2 + index;
}

void quiesce__unregistered_leave(struct quiesce_tls_v1 *self)
{
	uint32_t index = self->unregistered & 1;

	if (!self->unregistered)
		return;
	self->unregistered = 0;
	/* RU8: full, pairs with RU8 in wait_for_count() */
	quiesce_fetch_add(RU8, &quiesce__readers.unregistered[index], (uint64_t)-1);
}

static void unregistered_unlock(struct quiesce_tls_v1 *self)
{
	if (self->unregistered < 4)
		quiesce__unregistered_leave(self);
	else
		self->unregistered -= 2;
}

/* The depth in a reader word that is set but not yet fenced, in full-fence mode; no section nests so deep. */
#define ENTERING QUIESCE_RCU_DEPTH

static uint64_t with_depth(uint64_t word, uint64_t depth)
{
	return (word & ~QUIESCE_RCU_DEPTH) | depth;
}

/* The outermost lock in full-fence mode.  A signal handler may interrupt it between the store and
 * the fence: the word does not protect yet, and has the depth ENTERING so that the handler knows. */
static void fenced_lock(struct quiesce_tls_v1 *self, uint64_t now)
{
	uint64_t word;

	/* Relaxed: the fence follows. */
	quiesce_store_relaxed(&self->rcu_word, with_depth(now, ENTERING) | QUIESCE_RCU_FULL);
	/* RU1: full, pairs with RU1 in gp_advance() */
	quiesce_fence_full(RU1);
	word = quiesce_load_relaxed(&self->rcu_word); /* Relaxed: the thread's own word. */
	/* A handler that interrupts here leaves the word with the value that is stored here. */
	if ((word & QUIESCE_RCU_DEPTH) == ENTERING)
		quiesce_store_relaxed(&self->rcu_word, with_depth(word, 1)); /* Relaxed: protected already. */
}

/* Complete a lock in a handler that has interrupted fenced_lock(): fence for both sections, and nest. */
static void finish_entering(struct quiesce_tls_v1 *self, uint64_t word)
{
	/* RU1: full, pairs with RU1 in gp_advance() */
	quiesce_fence_full(RU1);
	quiesce_store_relaxed(&self->rcu_word, with_depth(word, 2)); /* Relaxed: protected. */
}

/* The outermost lock of a registered thread. */
static void registered_lock(struct quiesce_tls_v1 *self)
{
	/* As in rcu_read_lock(), either the updater sees the word, or the section sees the unlinking. */
	/* Relaxed: an old number only makes an updater wait for this section needlessly. */
	uint64_t now = quiesce_load_relaxed(&quiesce_rcu_v1.gp);

	if (idle_word()) {
		fenced_lock(self, now);
		return;
	}
	quiesce_store_relaxed(&self->rcu_word, now); /* Relaxed: the fence follows. */
	/* RU1: pairs with RU1 in gp_advance() */
	quiesce_fence_light(RU1);
}

/* The lock of a thread that is not registered, or whose handler interrupted fenced_lock(), or that nests too deep. */
static QUIESCE_COLD void rare_lock(struct quiesce_tls_v1 *self, uint64_t word, uint32_t layout)
{
	if (self->unregistered)
		quiesce__init();
	if ((word & QUIESCE_RCU_DEPTH) == ENTERING) {
		finish_entering(self, word);
		return;
	}
	if ((word & QUIESCE_RCU_DEPTH) != 0) {
		quiesce__misuse(QUIESCE_MISUSE_NESTING, "RCU read-side sections nested deeper than %u",
				(unsigned int)QUIESCE_RCU_DEPTH - 1);
		platform_die();
	}
	if (!self->unregistered && quiesce__reader_ensure(self, layout))
		registered_lock(self);
	else
		unregistered_lock(self);
}

void quiesce__rcu_lock_slow(uint32_t layout)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	/* Relaxed: the thread's own word. */
	uint64_t word = quiesce_load_relaxed(&self->rcu_word);

	if (quiesce_likely((uint16_t)word == QUIESCE_RCU_FULL))
		/* Relaxed: an old number only makes an updater wait for this section needlessly. */
		fenced_lock(self, quiesce_load_relaxed(&quiesce_rcu_v1.gp));
	else
		rare_lock(self, word, layout);
}

static QUIESCE_COLD void serve_requests(struct quiesce_tls_v1 *self)
{
	quiesce__init(); /* in the child of a fork without the library's handlers, other threads may wait for this one to initialise it */
	quiesce__holdouts_notify(self->reader);
	/* Relaxed: readers may see the request, or its end, a little late. */
	if ((quiesce_load_relaxed(&quiesce_rcu_v1.gp) & QUIESCE_RCU_SLOW) && !quiesce__yield(&quiesce__rcu_yield))
		quiesce__rcu_force_yield(false); /* the waiter that forces yields does not run */
}

/* End the section of an unregistered reader; outside of any section, report the unlock that @caller made. */
static QUIESCE_COLD void rare_unlock(struct quiesce_tls_v1 *self, const void *caller)
{
	struct platform_location here;

	quiesce__init();
	if (self->unregistered)
		unregistered_unlock(self);
	else
		quiesce__misuse(QUIESCE_MISUSE_UNBALANCED_UNLOCK, "rcu_read_unlock() at %s without rcu_read_lock()",
				platform_location(caller, &here));
}

void quiesce__rcu_unlock_slow(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	/* Relaxed: the thread's own word. */
	uint64_t word = quiesce_load_relaxed(&self->rcu_word);

	if (quiesce_unlikely((word & QUIESCE_RCU_DEPTH) == 0)) {
		rare_unlock(self, quiesce__caller());
		return;
	}
	/* RU2: release, pairs with RU2 in quiesce__rcu_blocks() */
	quiesce_store_release(RU2, &self->rcu_word, word & QUIESCE_RCU_FULL);
	if (quiesce_unlikely(word & QUIESCE_RCU_SLOW))
		serve_requests(self);
}

/* Record where and when the thread's section began, for reports by other threads; @site NULL: the section has ended. */
static void record_section(struct quiesce_tls_v1 *self, const void *site)
{
	quiesce_store_relaxed(&self->site, site);
	quiesce_store_relaxed(&self->since, site ? platform_now_ns() : 0);
}

void quiesce__rcu_lock_debug(uint32_t layout)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	quiesce__check_layout(layout);
	if (!rcu_read_lock_held())
		record_section(self, quiesce__caller());
	quiesce__rcu_read_lock();
}

void quiesce__rcu_unlock_debug(void)
{
	if (quiesce_unlikely(!rcu_read_lock_held())) {
		rare_unlock(quiesce__self(), quiesce__caller());
		return;
	}
	quiesce__rcu_read_unlock();
	if (!rcu_read_lock_held())
		record_section(quiesce__self(), NULL);
}

void quiesce__rcu_check_debug(int held, const char *what)
{
	const void *site = quiesce__caller();
	struct platform_location here;

	if (quiesce_unlikely(!held))
		quiesce__misuse(QUIESCE_MISUSE_NOT_HELD, "%s: the caller does not hold what it must, at %s", what,
				platform_location(site, &here));
}

void quiesce__rcu_section_debug(const char *call)
{
	const void *site = quiesce__caller();
	struct platform_location here;

	if (quiesce_unlikely(!rcu_read_lock_held()))
		quiesce__misuse(QUIESCE_MISUSE_NOT_HELD, "%s at %s outside of a read-side section: rcu_read_lock() comes first", call,
				platform_location(site, &here));
}

/* In the debug build the report names the location in the code where the section began. */
static bool is_in_section(const char *call, const void *caller, const char *effect)
{
	const void *site = quiesce__self()->site;
	struct platform_location here, there;

	quiesce__init();
	if (!rcu_read_lock_held())
		return false;
	platform_location(caller, &here);
	if (site)
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER,
				"%s at %s inside an RCU read-side section would %s; the section began near %s", call, here.text, effect,
				platform_location(site, &there));
	else
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER, "%s at %s inside an RCU read-side section would %s", call, here.text,
				effect);
	return true;
}

bool quiesce__rcu_wait_is_misuse(const char *call, const void *caller)
{
	return is_in_section(call, caller, "wait for itself");
}

bool quiesce__rcu_sleep_is_misuse(const char *call, const void *caller)
{
	return rcu_read_lock_held() && is_in_section(call, caller, "delay all grace periods by its wait");
}

void quiesce_synchronize_rcu(void)
{
	if (quiesce__rcu_wait_is_misuse("synchronize_rcu()", quiesce__caller()))
		return;
	quiesce__rcu_wait(QUIESCE_NORMAL, "synchronize_rcu");
	quiesce__free_without_worker();
}

void quiesce_synchronize_rcu_expedited(void)
{
	if (quiesce__rcu_wait_is_misuse("synchronize_rcu_expedited()", quiesce__caller()))
		return;
	quiesce__rcu_wait(QUIESCE_EXPEDITED, "synchronize_rcu_expedited");
	quiesce__free_without_worker();
}

/* ---- polling ---- */

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

/* True if a poller takes part in grace periods.  Without a worker it does each time, but not inside a section, which may be a holdout.
 * Beside a worker, which may be in a callback or have no CPU, it does only if the cookie was requested and not completed in time. */
static bool claim_part(uint64_t cookie)
{
	if (!quiesce__reclaim_has_worker() && !rcu_read_lock_held())
		return true;
	return quiesce__gp_claim_overdue(cookie) && !QUIESCE_MUTANT(gp_poll_trusts_worker);
}

int quiesce_poll_state_synchronize_rcu(struct rcu_gp_seq seq)
{
	bool done;

	quiesce__init();
	done = quiesce__rcu_cookie_done(seq.value);
	if (!done && claim_part(seq.value)) {
		quiesce__rcu_try_gp(seq.value);
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
