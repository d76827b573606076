/* SPDX-License-Identifier: MIT */
/* quiesce/srcu.h - read-copy update in domains: readers may sleep, and updaters wait for the
 * readers of one domain only.
 *
 * A domain has readers of its own; the program defines it, by a struct srcu_struct.  Use domains
 * when readers sleep, or stay in a section for long, or leave it in another thread than they entered
 * it in.  Use rcu.h when sections are short: it is cheaper and needs no domain.
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
 * Ordering.  If a section of a domain saw a pointer, then synchronize_srcu() of that domain,
 * called after the pointer was replaced, returns only after the section has ended, and everything
 * the section read or wrote happens before the return.  A section that the call does not wait for
 * sees everything that the updater wrote before the call.  Proof: docs/design/srcu.md.
 *
 * The helper thread "quiesce-helper" runs callbacks, and grace periods for which no caller waits.
 * A callback may block, in another domain too: after some 10 ms an additional thread serves the
 * other domains, and ends a second after it was last needed.  There are at most 32 of these
 * threads, so 31 callbacks may block at a time before all domains wait for one of them.
 * The table shows which calls may sleep, start the helper, or run callbacks in its place:
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
 * "Without a helper": callbacks of any domain, one chunk of each that is due.  So where it may be
 * impossible to create threads, hold no lock in these calls that callbacks take.  Inside a
 * callback no call runs another callback.
 * "Starts it": once in the life of a process, and when a callback blocks; after a failure it is
 * tried again 1 to 16 ms later.  After a fork() the first call on a domain may start it, too, if it
 * is one that updaters make, such as get_state_synchronize_srcu() or cleanup_srcu_struct(); the calls
 * of readers, from srcu_read_lock() to srcu_up_read(), and get_completed_synchronize_srcu() never do.
 *
 * Fibers and coroutines (docs/fibers.md) may switch inside a section, and end it in any thread;
 * the debug build attributes the section to the thread in which it began, unless it began with
 * srcu_down_read().
 *
 * The names are those of the Linux kernel's SRCU.  Differences: there is one kind of reader, and
 * it has no fence (the kernel's "fast" kind); any thread may end a section, also in a signal
 * handler; a domain that was not initialised initialises itself at its first use; one of the waiters
 * runs the grace period for all; stalls are reported.
 *
 * A plug-in that uses the inline calls stays loaded after dlclose(), because the kernel keeps a
 * pointer to the last restartable sequence of each thread.
 */
#ifndef QUIESCE_SRCU_H
#define QUIESCE_SRCU_H

#include <quiesce/detail/srcu.h>
#include <quiesce/rcu.h>

QUIESCE_BEGIN_DECLS

/* ---- domains ---- */

/* A domain is a struct srcu_struct (quiesce/detail/srcu.h); all members are private.  Programs may use
 * the size. */

/** DEFINE_SRCU - define a domain that needs no call to be usable.
 * DEFINE_STATIC_SRCU: define one that is known to this file only.
 * The counters are allocated at first use.  Without memory the domain's readers share a cache
 * line; see init_srcu_struct(). */
#define DEFINE_SRCU(name) struct srcu_struct name = QUIESCE_SRCU_INIT(name)
#define DEFINE_STATIC_SRCU(name) static struct srcu_struct name = QUIESCE_SRCU_INIT(name)

/** init_srcu_struct - initialise a domain.
 * @ssp: memory that is not a domain in use.
 *
 * Context: any thread; not in a signal handler.
 * Return: 0; -ENOMEM: there is no memory for counters, and readers share a line until there is.
 *   The domain is usable either way. */
#define init_srcu_struct(ssp) quiesce_init_srcu_struct(QUIESCE_LAYOUT, (ssp), #ssp)

/** cleanup_srcu_struct - free what the domain has allocated.
 * @ssp: may be reused or freed afterwards.
 *
 * Context: may sleep for a moment; no call on the domain is in progress or to come.  Not in a
 *   signal handler.
 * Misuse: readers inside, callbacks pending (call srcu_barrier() first) and a wait in progress are
 *   reported as QUIESCE_MISUSE_IN_USE; the domain then stays usable.
 * The last srcu_read_unlock() need not have returned: it is enough that synchronize_srcu() has
 * waited for its section. */
QUIESCE_PLAIN void cleanup_srcu_struct(struct srcu_struct *ssp) { quiesce_cleanup_srcu_struct(ssp); }

/** srcu_after_fork_child - in a child of fork(): close all sections of the domain.
 * @ssp: a domain that other threads of the parent may have been inside of.
 *
 * The child does not have these threads, so its updaters would wait for them for ever.  Pending
 * callbacks and polls go on; counters keep their memory, which cleanup_srcu_struct() frees.
 * Context: the child, after fork() has returned, before another thread of the child uses the
 *   domain; the caller was in no section of it at the fork, and is in none.  Not in a signal
 *   handler.
 * Cost: a read of the counters of all CPUs.
 * Misuse: in a process that is not a forked child: reported, and the domain stays as it is. */
QUIESCE_PLAIN void srcu_after_fork_child(struct srcu_struct *ssp) { quiesce_srcu_after_fork_child(ssp); }

/* ---- readers ---- */

/** srcu_read_lock - enter a read-side section of a domain.
 *
 * Context: any thread, without registration; signal handlers.  Sections of one domain or of
 *   several may nest and overlap at will.  A section may sleep: it delays only the updaters of its
 *   domain.
 * Cost: some ten instructions: one addition to a word of this CPU, no fence, no line that another
 *   CPU writes.  A locked instruction with full fences (rcu.h), and without restartable sequences.
 * Return: the index for srcu_read_unlock(): 0 or 1.  Cannot fail.
 * Orders: see "Ordering" above; it is not an acquire operation by itself. */
#ifdef QUIESCE_DEBUG
QUIESCE_PLAIN int srcu_read_lock(struct srcu_struct *ssp) { return quiesce__srcu_lock_debug(ssp); }
#else
QUIESCE_FAST int srcu_read_lock(struct srcu_struct *ssp) { return quiesce__srcu_read_lock(ssp); }
#endif

/** srcu_read_unlock - leave a section.
 * @idx: the value that its srcu_read_lock() returned.
 *
 * Context: any thread, not only the one that entered, if @idx was passed to it with ordering;
 *   signal handlers.
 * Cost: as srcu_read_lock(); a system call if an updater sleeps for this domain, or if readers are
 *   requested to yield.
 * Misuse: an @idx of another section, or a second unlock, ends another reader's section, or lets
 *   updaters wait for ever.  The debug build reports it if no section with that @idx is open, and
 *   an @idx that is neither 0 nor 1; a release build in most cases the latter.
 * Orders: release. */
#ifdef QUIESCE_DEBUG
QUIESCE_PLAIN void srcu_read_unlock(struct srcu_struct *ssp, int idx) { quiesce__srcu_unlock_debug(ssp, idx); }
#else
QUIESCE_FAST void srcu_read_unlock(struct srcu_struct *ssp, int idx) { quiesce__srcu_read_unlock(ssp, idx); }
#endif

/** smp_mb__after_srcu_read_unlock - order accesses before a preceding srcu_read_unlock() before the
 * accesses that follow.
 *
 * srcu_read_unlock() alone is a release: a later load may pass it.  (In the kernel the unlock
 * itself has this fence, and the call is empty.)
 * Context: any.
 * Cost: a full fence.
 * Orders: full. */
QUIESCE_FAST void smp_mb__after_srcu_read_unlock(void)
{
	/* SR9: pairs with the caller */
	quiesce_fence_full(SR9);
}

/** srcu_down_read - enter a section that another thread may end.
 *
 * Context: as srcu_read_lock(); the debug build attributes the section to no thread.
 * Cost: as srcu_read_lock().
 * Return: the index for srcu_up_read(), which the caller hands over with ordering (a lock, a queue,
 *   a release store and an acquire load).
 * Orders: as srcu_read_lock(). */
QUIESCE_FAST int srcu_down_read(struct srcu_struct *ssp) { return quiesce__srcu_read_lock(ssp); }

/** srcu_up_read - end a section that srcu_down_read() began.
 * @idx: the value that srcu_down_read() returned.
 *
 * Context: any thread to which @idx was handed over with ordering; signal handlers.
 * Cost: as srcu_read_unlock().
 * Misuse: as srcu_read_unlock().
 * Orders: release. */
#ifdef QUIESCE_DEBUG
QUIESCE_PLAIN void srcu_up_read(struct srcu_struct *ssp, int idx) { quiesce__srcu_up_debug(ssp, idx); }
#else
QUIESCE_FAST void srcu_up_read(struct srcu_struct *ssp, int idx) { quiesce__srcu_read_unlock(ssp, idx); }
#endif

/** srcu_read_lock_held - test whether the calling thread may be inside a section of this domain.
 *
 * Context: any; for assertions.
 * Return: non-zero, unless the debug build knows that the thread is in none. */
#ifdef QUIESCE_DEBUG
QUIESCE_PLAIN int srcu_read_lock_held(const struct srcu_struct *ssp) { return quiesce__srcu_held_debug(ssp); }
#else
QUIESCE_FAST int srcu_read_lock_held(const struct srcu_struct *ssp)
{
	(void)ssp;
	return 1;
}
#endif

/** srcu_dereference - load an RCU-protected pointer in a section of @ssp.
 * As rcu_dereference(), but not checked: the section may have begun in another thread. */
#define srcu_dereference(p, ssp) ((void)(ssp), rcu_dereference_raw(p))

/** srcu_dereference_check - load an RCU-protected pointer in a section of @ssp, or if @c holds.
 * As rcu_dereference_check(). */
#define srcu_dereference_check(p, ssp, c) \
	(QUIESCE_RCU_CHECK(srcu_read_lock_held(ssp) || (c), "srcu_dereference_check(" #p ", " #ssp ", " #c ")"), rcu_dereference_raw(p))

/* ---- waiting ---- */

/** synchronize_srcu - wait until every section of the domain that is now open has ended.
 *
 * Context: may sleep; not in a section of the same domain, which would wait for itself (the debug
 *   build reports it, the stall report names the domain); not in a signal handler.  Allowed in a
 *   callback of call_srcu(), and in sections of other domains.  Concurrent callers share grace
 *   periods.  May start the helper thread; without one it runs callbacks that are due, of any
 *   domain.
 * Cost: one membarrier, a read of four words of each CPU, and sleep while readers are inside.
 *   After 50 us the domain's readers yield as they leave, for a millisecond, and then for a fifth
 *   of the time as long as that helps; if it does not help, less and less often: see
 *   quiesce_set_yield().
 * Orders: full fence before and after. */
QUIESCE_PLAIN void synchronize_srcu(struct srcu_struct *ssp) { quiesce_synchronize_srcu(ssp); }

/** synchronize_srcu_expedited - as synchronize_srcu(), but readers yield at once, and up to half of
 * the time. */
QUIESCE_PLAIN void synchronize_srcu_expedited(struct srcu_struct *ssp) { quiesce_synchronize_srcu_expedited(ssp); }

/** get_state_synchronize_srcu - return a cookie for the grace period of this domain that would
 * begin now.
 *
 * Context: any thread, also in a section; not in a signal handler.  Does not sleep, runs no
 *   callbacks, starts no grace period.
 * Cost: a full fence. */
QUIESCE_PLAIN struct rcu_gp_seq get_state_synchronize_srcu(struct srcu_struct *ssp)
{
	return quiesce_get_state_synchronize_srcu(ssp);
}

/** same_state_synchronize_srcu - test whether two cookies of one domain stand for the same grace
 * period. */
QUIESCE_PLAIN int same_state_synchronize_srcu(struct rcu_gp_seq a, struct rcu_gp_seq b) { return a.value == b.value; }

/** start_poll_synchronize_srcu - return a cookie, and start a grace period that will complete it.
 *
 * Context: as get_state_synchronize_srcu(); may start the helper thread. */
QUIESCE_PLAIN struct rcu_gp_seq start_poll_synchronize_srcu(struct srcu_struct *ssp)
{
	return quiesce_start_poll_synchronize_srcu(ssp);
}

/** poll_state_synchronize_srcu - test whether the grace period of a cookie has completed.
 * @seq: the cookie.
 *
 * Context: any but signal handlers.  Does not sleep, waits for no reader, runs no callbacks; may
 *   start the helper thread.  Without a helper thread the call itself tries to complete a grace
 *   period.  With a helper that has not completed a started cookie in 1 ms, because it runs a
 *   callback of the domain (perhaps the one that calls this) or has no CPU, one call in each
 *   millisecond does so.
 * Return: non-zero if it has completed; then the call is a full fence. */
QUIESCE_PLAIN int poll_state_synchronize_srcu(struct srcu_struct *ssp, struct rcu_gp_seq seq)
{
	return quiesce_poll_state_synchronize_srcu(ssp, seq);
}

/** get_completed_synchronize_srcu - return a cookie that polls as completed in any domain. */
QUIESCE_PLAIN struct rcu_gp_seq get_completed_synchronize_srcu(void)
{
	struct rcu_gp_seq seq = { 0 };
	return seq;
}

/** srcu_batches_completed - return the number of grace periods that the domain has completed.
 * Context: as for polling.
 * Orders: nothing. */
QUIESCE_PLAIN unsigned long srcu_batches_completed(struct srcu_struct *ssp) { return quiesce_srcu_batches_completed(ssp); }

/* ---- callbacks ---- */

/** call_srcu - call @func(@head) after a grace period of the domain.
 * @head: in the object to be reclaimed; owned by the library until the callback runs.  The debug
 *   build reports one that is queued twice.
 * @func: run by the helper thread; should be short.  It may take locks, call call_srcu(), and wait
 *   for readers of other domains, but not for callbacks of its own domain.  It must return, as
 *   described for call_rcu().
 *
 * Context: any thread, also in a section, with any lock held; not in a signal handler.  Does not
 *   sleep or wait, and runs no callback; the first call of a process starts a thread.
 * Callbacks that one thread queues for a domain run in the order of its calls; all callbacks of a
 * domain run one at a time.
 * Objects that wait are garbage in struct quiesce_stats and count towards the ceiling, as
 * QUIESCE_OBJECT_BYTES each: see quiesce_set_garbage_ceiling().  Above that the domain's readers
 * yield the CPU as they leave; a program bounds its garbage by rcu_throttle() (rcu.h), or by
 * quiesce_set_throttle().
 * Cost: two additions and a compare-and-exchange on a line of the domain, and one addition to a
 *   word of this CPU.  Once calls of several threads have met there, there is such a line
 *   for each possible CPU: a thread uses one of them, in most cases alone, and then only the
 *   compare-and-exchange is a locked instruction.  If no helper thread can be created,
 *   callbacks wait for a call that may run them (see the table above), or for the next thread that
 *   can be created.
 * Return: nothing; cannot fail.
 */
QUIESCE_PLAIN void call_srcu(struct srcu_struct *ssp, struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	QUIESCE__CALL_SRCU(ssp, head, func, QUIESCE_OBJECT_BYTES);
}

/** call_srcu_sized - call_srcu(), with the number of bytes that wait for reclamation.
 * @bytes: counted as garbage until @func has run.
 * Context: as call_srcu(). */
QUIESCE_PLAIN void call_srcu_sized(struct srcu_struct *ssp, struct rcu_head *head, void (*func)(struct rcu_head *head),
				   size_t bytes)
{
	QUIESCE__CALL_SRCU(ssp, head, func, bytes);
}

/** srcu_barrier - wait until every callback queued to the domain before the call has run.
 *
 * Context: may sleep; neither in a section of the domain nor in a callback of any kind (reported).
 *   May start the helper thread; without one it runs callbacks, of any domain.
 * It is not a grace period: it returns at once when no callback is queued. */
QUIESCE_PLAIN void srcu_barrier(struct srcu_struct *ssp) { quiesce_srcu_barrier(ssp); }

QUIESCE_END_DECLS

#endif
