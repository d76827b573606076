/* SPDX-License-Identifier: MIT */
/* quiesce/srcu.h - read-copy update in domains: readers that may sleep, updaters that wait for one domain's only.
 *
 * Use when readers sleep, or hold on for long, or leave in another thread than they entered in; use rcu.h
 * when sections are short: it is cheaper and needs no domain.
 *
 *	DEFINE_STATIC_SRCU(files);
 *
 *	int idx = srcu_read_lock(&files);               // reader
 *	p = srcu_dereference(table, &files);
 *	read_from_disk(p);
 *	srcu_read_unlock(&files, idx);
 *
 *	old = rcu_xchg_pointer(&table, fresh);          // updater
 *	synchronize_srcu(&files);
 *	free(old);
 *
 * Ordering.  If a section of a domain saw a pointer, then synchronize_srcu() of that domain called after the
 * pointer was replaced returns only after the section has ended, and everything the section read or wrote
 * happens before the return.  A section that the call does not wait for sees everything that the updater
 * wrote before the call.  Argument: docs/design/srcu.md.
 *
 * The helper thread "quiesce-helper" runs callbacks and the grace periods that nobody waits for.  A callback may block, in
 * another domain too: other domains go on after some 10 ms, in a thread that comes for that, and ends a second after it was last
 * needed.  There are at most 32; so many callbacks may block at one time, less one, before all domains wait for one of them.
 * Who may sleep, start the helper, or run callbacks in its place where it cannot be had:
 *
 *                                           sleeps          starts it   runs callbacks
 *   srcu_read_lock(), _unlock(), _down, _up no              no          no
 *   call_srcu(), call_srcu_sized()          no              yes         no
 *   srcu_barrier()                          yes             yes         without a helper
 *   synchronize_srcu(), _expedited()        yes             yes         without a helper
 *   get_state_, get_completed_              no              no          no
 *   start_poll_, poll_state_                no              yes         no
 *   init_srcu_struct()                      no              no          no
 *   cleanup_srcu_struct()                   for a moment    no          no
 *   quiesce_shutdown()                      yes             yes         without a helper
 *
 * "Without a helper": callbacks of any domain, one part of each that is due.  So where threads may be impossible to have,
 * hold no lock in these calls that callbacks take.  Inside a callback no call runs another one.
 * "Starts it" once in the life of a process, and where a callback blocks; after failures it is tried again 1 to 16 ms later.
 * After a fork() the first call on a domain may start it, whichever that is.
 *
 * Fibers and coroutines (docs/fibers.md) may switch inside of a section, and end it in any thread; the debug build takes it for one of
 * the thread that it began in, unless it began by srcu_down_read().
 *
 * After the Linux kernel's SRCU, whose names these are.  Different: there is one kind of reader, and it
 * has no fence (there: the "fast" kind); any thread may end a section, also in a signal handler; a domain that
 * was not initialised opens itself; who waits drives the grace period itself; there are stall reports.
 *
 * A plug-in that uses the inline calls stays loaded after dlclose(), because the kernel keeps a pointer to the last
 * restartable sequence of each thread.
 */
#ifndef QUIESCE_SRCU_H
#define QUIESCE_SRCU_H

#include <quiesce/detail/percpu.h>
#include <quiesce/rcu.h>

QUIESCE_BEGIN_DECLS

/* A domain.  The first line is what readers look at; it changes only with grace periods. */
struct srcu_struct {
	uint64_t enter;               /* not 0: readers count by themselves; see percpu.h */
	uint64_t leave[2];            /* the same for those who leave an index; 0 too while somebody is to be told */
	uint64_t idx;                 /* 0 or 1: where new sections count; written by who drives a grace period */
	struct quiesce_percpu percpu; /* entered and left, of either index */
	uint64_t attention[2];        /* not 0: who leaves that index answers; as @idx */
	const char *name;             /* for reports */
	uint64_t apart[8];            /* wherever the structure begins, what follows has lines of its own */
	struct quiesce__srcu_space {
		uint64_t words[48];
	} __attribute__((may_alias)) space; /* private; all zero at first */
};

#if defined(__cplusplus)
#define QUIESCE_SRCU_INIT(name) { 0, { 0, 0 }, 0, { NULL }, { 0, 0 }, #name, { 0 }, { { 0 } } }
#else
#define QUIESCE_SRCU_INIT(text) { .name = #text }
#endif

/** DEFINE_SRCU - a domain that needs no call to be usable: its counters are allocated at first use.
 * DEFINE_STATIC_SRCU: the same, known to this file only.  Without memory its readers share a line; see init_srcu_struct(). */
#define DEFINE_SRCU(name) struct srcu_struct name = QUIESCE_SRCU_INIT(name)
#define DEFINE_STATIC_SRCU(name) static struct srcu_struct name = QUIESCE_SRCU_INIT(name)

QUIESCE_API int quiesce_init_srcu_struct(uint32_t layout, struct srcu_struct *ssp, const char *name);
QUIESCE_API void quiesce_cleanup_srcu_struct(struct srcu_struct *ssp);
QUIESCE_API void quiesce_srcu_after_fork_child(struct srcu_struct *ssp);

/** init_srcu_struct - make *@ssp a domain without readers.
 * @ssp: memory that is no domain, or no more.
 *
 * Context: any thread; not in a signal handler.
 * Return: 0; -ENOMEM: there is no memory for counters, and readers share a line until there is.  The domain is usable
 *   either way. */
#define init_srcu_struct(ssp) quiesce_init_srcu_struct(QUIESCE_LAYOUT, (ssp), #ssp)

/** cleanup_srcu_struct - give back what the domain has allocated.
 * @ssp: may be reused or freed afterwards.
 *
 * Context: may sleep for a moment; no call on the domain is in progress or to come.  Not in a signal handler.
 * Misuse: readers inside, callbacks pending (srcu_barrier() first), a wait in progress are reported as
 *   QUIESCE_MISUSE_IN_USE; the domain then stays as it is, and works.
 * The last srcu_read_unlock() need not have returned, only to have been waited for by synchronize_srcu(). */
static inline void cleanup_srcu_struct(struct srcu_struct *ssp) { quiesce_cleanup_srcu_struct(ssp); }

/** srcu_after_fork_child - in a child of fork(): no section of the domain is open, whoever was inside in the parent.
 *
 * For domains that other threads of the parent may have been inside of: the child does not have them, and waits for them for
 * ever.  Callbacks and polls that are pending go on; counters stay where they are, and are given back by cleanup_srcu_struct().
 * Context: the child, after fork() has returned, before another thread of the child uses the domain; the caller was
 *   in no section of it at the fork, and is in none.  Not in a signal handler.
 * Cost: a look at the counters of all CPUs.
 * Misuse: in a process that is no child: reported, and the domain stays as it is. */
static inline void srcu_after_fork_child(struct srcu_struct *ssp) { quiesce_srcu_after_fork_child(ssp); }

/* ---- readers ---- */

/* Where there are no restartable sequences, or no counters yet; in full-fence mode always. */
QUIESCE_API int quiesce__srcu_lock_slow(uint32_t layout, struct srcu_struct *ssp, uint64_t idx);
QUIESCE_API void quiesce__srcu_unlock_slow(struct srcu_struct *ssp, uint64_t idx);
QUIESCE_API int quiesce__srcu_lock_debug(struct srcu_struct *ssp);
QUIESCE_API void quiesce__srcu_unlock_debug(struct srcu_struct *ssp, int idx);
QUIESCE_API void quiesce__srcu_up_debug(struct srcu_struct *ssp, int idx);
QUIESCE_API int quiesce__srcu_held_debug(const struct srcu_struct *ssp);

QUIESCE_FAST int quiesce__srcu_read_lock(struct srcu_struct *ssp)
{
	/* Relaxed: an old index only makes an updater wait for us in vain. */
	uint64_t idx = quiesce_load_relaxed(&ssp->idx);

	/* The slow way is a full fence. */
	/* PC1: acquire, pairs with PC1 in open_domain() */
	if (quiesce_unlikely(!quiesce_count_acquire_at(PC1, &ssp->enter, idx)))
		return quiesce__srcu_lock_slow(QUIESCE_LAYOUT, ssp, idx);
	/* If the section misses what was unlinked before the heavy fence, the sum after it has this count; if the sum misses the
	 * count, the section sees what was unlinked. */
	/* SR1: pairs with SR1 in begin() */
	quiesce_fence_light(SR1);
	return (int)idx;
}

/* Nothing of *@ssp is touched after the section is counted as left: the domain may be gone. */
QUIESCE_FAST void quiesce__srcu_read_unlock(struct srcu_struct *ssp, int index)
{
	uint64_t idx = (unsigned int)index;

	/* PC2: release, pairs with PC2 in sum() */
	if (quiesce_unlikely(!quiesce_count_release_at(PC2, &ssp->leave[idx], idx)))
		quiesce__srcu_unlock_slow(ssp, idx);
}

/** srcu_read_lock - enter a read-side section of a domain.
 *
 * Context: any thread, no registration; signal handlers.  Sections nest and overlap at will, of one domain and
 *   of several.  A section may sleep: it delays the updaters of its domain, nobody else.
 * Cost: some ten instructions: one addition to a word of this CPU, no fence, nothing that another CPU writes.  A
 *   locked instruction in full-fence mode and without restartable sequences.
 * Return: what srcu_read_unlock() wants: 0 or 1.  Cannot fail.
 * Orders: see "Ordering" above; it is not an acquire operation by itself. */
#ifdef QUIESCE_DEBUG
static inline int srcu_read_lock(struct srcu_struct *ssp) { return quiesce__srcu_lock_debug(ssp); }
#else
QUIESCE_FAST int srcu_read_lock(struct srcu_struct *ssp) { return quiesce__srcu_read_lock(ssp); }
#endif

/** srcu_read_unlock - leave a section.
 * @idx: what its srcu_read_lock() returned.
 *
 * Context: any thread, not only the one that entered, if it learned of @idx in some ordered way; signal handlers.
 * Cost: as srcu_read_lock(); a system call if an updater sleeps for this domain, or if readers were asked to yield.
 * Misuse: an @idx of another section, or a second unlock, ends somebody else's section, or lets updaters wait for ever.  The
 *   debug build reports it where no section with that @idx is open, and an @idx that cannot be; a release build mostly the latter.
 * Orders: release. */
#ifdef QUIESCE_DEBUG
static inline void srcu_read_unlock(struct srcu_struct *ssp, int idx) { quiesce__srcu_unlock_debug(ssp, idx); }
#else
QUIESCE_FAST void srcu_read_unlock(struct srcu_struct *ssp, int idx) { quiesce__srcu_read_unlock(ssp, idx); }
#endif

/** smp_mb__after_srcu_read_unlock - what came before the srcu_read_unlock() before it is ordered before what follows.
 *
 * srcu_read_unlock() alone is a release: a later load may pass it.  (In the kernel the unlock itself has this fence, and
 * the call is nothing.)  Context: any.  Cost: a full fence.  Orders: full. */
QUIESCE_FAST void smp_mb__after_srcu_read_unlock(void)
{
	/* SR9: pairs with the caller */
	quiesce_fence_full(SR9);
}

/** srcu_down_read - srcu_read_lock() for a section that another thread will end.  To the debug build no thread holds it. */
QUIESCE_FAST int srcu_down_read(struct srcu_struct *ssp) { return quiesce__srcu_read_lock(ssp); }

/** srcu_up_read - end a section that srcu_down_read() began, in any thread. */
#ifdef QUIESCE_DEBUG
static inline void srcu_up_read(struct srcu_struct *ssp, int idx) { quiesce__srcu_up_debug(ssp, idx); }
#else
QUIESCE_FAST void srcu_up_read(struct srcu_struct *ssp, int idx) { quiesce__srcu_read_unlock(ssp, idx); }
#endif

/** srcu_read_lock_held - may the calling thread be inside a section of this domain?
 *
 * Context: any.  For assertions: non-zero unless the debug build knows better. */
#ifdef QUIESCE_DEBUG
static inline int srcu_read_lock_held(const struct srcu_struct *ssp) { return quiesce__srcu_held_debug(ssp); }
#else
QUIESCE_FAST int srcu_read_lock_held(const struct srcu_struct *ssp)
{
	(void)ssp;
	return 1;
}
#endif

/** srcu_dereference - rcu_dereference() in a section of @ssp.  Not checked: the section may have begun in another thread. */
#define srcu_dereference(p, ssp) ((void)(ssp), rcu_dereference_raw(p))

/** srcu_dereference_check - rcu_dereference_check() in a section of @ssp. */
#define srcu_dereference_check(p, ssp, c) \
	(QUIESCE_RCU_CHECK(srcu_read_lock_held(ssp) || (c), "srcu_dereference_check(" #p ", " #ssp ", " #c ")"), rcu_dereference_raw(p))

/* ---- waiting ---- */

QUIESCE_API void quiesce_synchronize_srcu(struct srcu_struct *ssp);
QUIESCE_API void quiesce_synchronize_srcu_expedited(struct srcu_struct *ssp);

/** synchronize_srcu - wait until every section of the domain that is now open has ended.
 *
 * Context: may sleep; not in a section of the same domain, which it would wait for (the debug build
 *   reports it, the stall report names the domain), not in a signal handler; in a callback of call_srcu() allowed.
 *   Sections of other domains are no matter.  Concurrent callers share grace periods.
 *   May start the helper thread; without one runs callbacks that are due, of any domain.
 * Cost: one membarrier, a look at four words of each CPU, and sleep while a reader is in the way.  After 50 us
 *   the domain's readers yield as they leave, for a millisecond, and as long as that helps for a fifth of the time; where it
 *   does not, less and less often: see quiesce_set_yield().
 * Orders: full fence before and after. */
static inline void synchronize_srcu(struct srcu_struct *ssp) { quiesce_synchronize_srcu(ssp); }

/** synchronize_srcu_expedited - the same; readers yield at once, and up to half of the time. */
static inline void synchronize_srcu_expedited(struct srcu_struct *ssp) { quiesce_synchronize_srcu_expedited(ssp); }

QUIESCE_API struct rcu_gp_seq quiesce_get_state_synchronize_srcu(struct srcu_struct *ssp);
QUIESCE_API struct rcu_gp_seq quiesce_start_poll_synchronize_srcu(struct srcu_struct *ssp);
QUIESCE_API int quiesce_poll_state_synchronize_srcu(struct srcu_struct *ssp, struct rcu_gp_seq seq);
QUIESCE_API unsigned long quiesce_srcu_batches_completed(struct srcu_struct *ssp);

/** get_state_synchronize_srcu - a cookie for the grace period of this domain that would begin now.
 *
 * Context: any thread, also in a section; not in a signal handler.  Does not sleep, runs no callbacks.
 * Cost: a full fence.  It starts nothing. */
static inline struct rcu_gp_seq get_state_synchronize_srcu(struct srcu_struct *ssp)
{
	return quiesce_get_state_synchronize_srcu(ssp);
}

/** same_state_synchronize_srcu - do both cookies, of one domain, stand for the same grace period? */
static inline int same_state_synchronize_srcu(struct rcu_gp_seq a, struct rcu_gp_seq b) { return a.value == b.value; }

/** start_poll_synchronize_srcu - a cookie, and a grace period that will complete it.
 *
 * Context: as get_state_synchronize_srcu(); may start the helper thread. */
static inline struct rcu_gp_seq start_poll_synchronize_srcu(struct srcu_struct *ssp)
{
	return quiesce_start_poll_synchronize_srcu(ssp);
}

/** poll_state_synchronize_srcu - has the grace period of this cookie completed?
 *
 * Context: any but signal handlers.  Does not sleep, runs no callbacks; may start the helper thread.
 * Return: non-zero if so, and then it is a full fence.  Without a helper thread to run grace periods the call itself
 * tries one; beside one that has not completed a started cookie in 1 ms, because it is in a callback of the domain (of which
 * the caller may be a part) or has no CPU, one call in each millisecond does so.  It waits for no reader. */
static inline int poll_state_synchronize_srcu(struct srcu_struct *ssp, struct rcu_gp_seq seq)
{
	return quiesce_poll_state_synchronize_srcu(ssp, seq);
}

/** get_completed_synchronize_srcu - a cookie that always polls as completed, of any domain. */
static inline struct rcu_gp_seq get_completed_synchronize_srcu(void)
{
	struct rcu_gp_seq seq = { 0 };
	return seq;
}

/** srcu_batches_completed - how many grace periods the domain has had.  Context: as polling; no order. */
static inline unsigned long srcu_batches_completed(struct srcu_struct *ssp) { return quiesce_srcu_batches_completed(ssp); }

/* ---- callbacks ---- */

QUIESCE_API void quiesce_call_srcu(struct srcu_struct *ssp, struct rcu_head *head, void (*func)(struct rcu_head *head),
				   size_t bytes);
QUIESCE_API void quiesce__call_srcu_debug(struct srcu_struct *ssp, struct rcu_head *head, void (*func)(struct rcu_head *head),
					  size_t bytes);
QUIESCE_API void quiesce_srcu_barrier(struct srcu_struct *ssp);
#ifdef QUIESCE_DEBUG
#define QUIESCE__CALL_SRCU quiesce__call_srcu_debug
#else
#define QUIESCE__CALL_SRCU quiesce_call_srcu
#endif

/** call_srcu - call @func(@head) after a grace period of the domain.
 * @head: in the object to be reclaimed, the library's until the callback runs (the debug build reports one that is queued
 *   before); @func: run by a helper thread; best short.
 *   It may take locks, call call_srcu(), and wait for readers of other domains; not for callbacks of its own domain.  It returns,
 *   as said of call_rcu().
 *
 * Context: any thread, also in a section, with any lock held; not in a signal handler.  Does not sleep, waits for nobody and
 *   runs no callback; the first call of a process starts a thread.
 *   Callbacks of a domain run in the order of the calls, one at a time.
 *   What waits is garbage in struct quiesce_stats and counts towards the ceiling, as QUIESCE_OBJECT_BYTES: see
 *   quiesce_set_garbage_ceiling().  Above that the domain's readers give up the CPU as they leave, and a program bounds
 *   its garbage by rcu_throttle() (rcu.h), or by quiesce_set_throttle().
 * Cost: two additions and a compare-and-exchange on a line of the domain, and one addition to a word of this CPU.  If no
 *   helper thread can be had, callbacks wait for a call that may run them: see the table above; the next thread that can
 *   be had takes them up, too.
 * Return: nothing; cannot fail. */
static inline void call_srcu(struct srcu_struct *ssp, struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	QUIESCE__CALL_SRCU(ssp, head, func, QUIESCE_OBJECT_BYTES);
}

/** call_srcu_sized - call_srcu() that also tells how many bytes wait for reclamation.  Context: as call_srcu(). */
static inline void call_srcu_sized(struct srcu_struct *ssp, struct rcu_head *head, void (*func)(struct rcu_head *head),
				   size_t bytes)
{
	QUIESCE__CALL_SRCU(ssp, head, func, bytes);
}

/** srcu_barrier - wait until every callback queued to the domain before the call has run.
 *
 * Context: may sleep; neither in a section of the domain nor in a callback of any kind (reported).
 *   May start the helper thread; without one runs callbacks, of any domain.
 *   It is not a grace period: it returns at once when nothing is queued. */
static inline void srcu_barrier(struct srcu_struct *ssp) { quiesce_srcu_barrier(ssp); }

QUIESCE_END_DECLS

#endif
