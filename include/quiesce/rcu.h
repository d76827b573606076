/* SPDX-License-Identifier: MIT */
/* quiesce/rcu.h - read-copy update: readers that cost nothing, updaters that wait for all of them.
 *
 * Use when readers traverse several objects and may delay every updater alike;
 * use a hazard pointer when an updater must wait for the readers of one object only.
 *
 *	rcu_read_lock();                            // reader
 *	p = rcu_dereference(config);
 *	use(p->limit);
 *	rcu_read_unlock();
 *
 *	old = rcu_xchg_pointer(&config, fresh);     // updater
 *	synchronize_rcu();
 *	free(old);
 *
 * Ordering.  If a read-side section saw a pointer, then synchronize_rcu() called
 * after that pointer was replaced returns only after the section has ended, and
 * everything the section read or wrote happens before the return.  Conversely a
 * section that begins after synchronize_rcu() was called and that the call does
 * not wait for sees everything that the updater wrote before the call.
 * Proof: docs/design/rcu.md; tests/litmus/RU*.litmus; docs/ordering.md.
 *
 * Fibers and coroutines (docs/fibers.md) leave a section in the thread that they entered it in: they may switch inside of it only if
 * they come back there.  An unlock in a thread without a section is reported by every build, one that ends another's by none.
 */
#ifndef QUIESCE_RCU_H
#define QUIESCE_RCU_H

#include <quiesce/detail/entry.h>
#include <quiesce/detail/rcu_calls.h>
#include <quiesce/detail/rcu_read.h>

QUIESCE_BEGIN_DECLS

/** rcu_read_lock - enter a read-side section.
 *
 * Context: any thread, no registration; signal handlers; nests up to 8190 deep.
 *   The section may sleep, but then delays every updater.
 *   A section ends in the thread that began it.  A thread must leave through its C
 *   library; a first use in the last round of its key destructors, or in a signal
 *   handler after them, is not supported.  Where a program made more than 32
 *   thread-specific keys before it loaded the library, the first use allocates.
 * Cost: three instructions and a test, no fence, no shared write; the first
 *   call of a thread registers it without allocating.  A full fence where the
 *   process runs in full-fence mode.
 * Return: nothing; cannot fail.
 * Orders: see "Ordering" above; it is not an acquire operation by itself.
 */
#ifdef QUIESCE_DEBUG
static inline void rcu_read_lock(void) { quiesce__rcu_lock_debug(QUIESCE_LAYOUT); }
#else
QUIESCE_FAST void rcu_read_lock(void) { quiesce__rcu_read_lock(); }
#endif

/** rcu_read_unlock - leave a read-side section.
 *
 * Context: the thread that called rcu_read_lock(); signal handlers.
 * Cost: two instructions and a test; a system call only if an updater waits for this very thread
 *   or if readers were asked to yield.
 * Misuse: an unlock without a lock is reported and, by default, aborts.
 * Orders: the outermost unlock is a release.
 */
#ifdef QUIESCE_DEBUG
static inline void rcu_read_unlock(void) { quiesce__rcu_unlock_debug(); }
#else
QUIESCE_FAST void rcu_read_unlock(void) { quiesce__rcu_read_unlock(); }
#endif

/** rcu_read_lock_held - is the calling thread inside a read-side section?
 *
 * Context: any.  Return: non-zero inside.
 */
QUIESCE_FAST int rcu_read_lock_held(void)
{
	struct quiesce__own_block self = quiesce__own();

	return (quiesce_own_load_relaxed(self, rcu_word) & QUIESCE_RCU_DEPTH) != 0 || quiesce_own_load_u32(self, unregistered) != 0;
}

/* In the debug build: is it true that the caller may do @what?  Otherwise not evaluated. */
#ifdef QUIESCE_DEBUG
#define QUIESCE_RCU_CHECK(held, what) quiesce__rcu_check_debug((held) ? 1 : 0, what)
#define QUIESCE_IN_SECTION(call) quiesce__rcu_section_debug(call)
#else
#define QUIESCE_RCU_CHECK(held, what) ((void)sizeof(!(held)))
#define QUIESCE_IN_SECTION(call) ((void)0)
#endif

/** rcu_dereference_raw - rcu_dereference() in any context; the caller knows why: a hazard pointer, say, protects the object.
 * Never checked. */
#define rcu_dereference_raw(p) quiesce_load_consume(RU3, &(p)) /* RU3: acquire, pairs with the caller */

/** rcu_dereference - fetch a pointer that an updater may replace.
 * @p: the pointer variable (an lvalue).
 *
 * Context: inside a section; the debug build reports anything else as QUIESCE_MISUSE_NOT_HELD.  Updaters, and functions of
 *   theirs and readers', have the calls below.
 * Cost: a load (an acquire load on CPUs where that differs).
 * Orders: everything written before the matching rcu_assign_pointer() is visible through the result.
 */
#define rcu_dereference(p) \
	(QUIESCE_IN_SECTION("rcu_dereference(" #p ")"), quiesce_load_consume(RU3, &(p))) /* RU3: acquire, pairs with the caller */

/** rcu_dereference_check - rcu_dereference() by readers and by updaters alike.
 * @c: true where the updater is excluded: that a lock is held, say.
 *
 * Context: inside a section, or where @c is true; in the debug build anything else is reported as
 *   QUIESCE_MISUSE_NOT_HELD, with the text of the call.  Otherwise @c is not evaluated.
 * Cost, order: as rcu_dereference(). */
#define rcu_dereference_check(p, c) \
	(QUIESCE_RCU_CHECK(rcu_read_lock_held() || (c), "rcu_dereference_check(" #p ", " #c ")"), rcu_dereference_raw(p))

/** rcu_dereference_protected - fetch a pointer that nobody can replace meanwhile.
 * @c: true, because the caller holds what excludes updaters; checked as for rcu_dereference_check().
 *
 * Context: under what updaters hold.  Cost: a load.  Orders: nothing. */
#define rcu_dereference_protected(p, c) \
	(QUIESCE_RCU_CHECK(c, "rcu_dereference_protected(" #p ", " #c ")"), quiesce_load_relaxed(&(p))) /* Relaxed: it stays. */

/** rcu_access_pointer - fetch a pointer only to compare it.  Any context; no order. */
#define rcu_access_pointer(p) quiesce_load_relaxed(&(p))

/** rcu_assign_pointer - publish a pointer.
 * @p: the pointer variable (an lvalue).  @v: the new value, its object completely initialised; it is converted as by an assignment,
 *   here and below.
 *
 * Context: any; updaters exclude each other.  Orders: release.
 */
#define rcu_assign_pointer(p, v) quiesce_store_release(RU3, &(p), (v)) /* RU3: release, pairs with the caller */

/** RCU_INIT_POINTER - set a pointer that no reader can see yet, or to NULL.  No order. */
#define RCU_INIT_POINTER(p, v) quiesce_store_relaxed(&(p), (v))

/** rcu_xchg_pointer - publish @v in *@p and return what was there.  Full fence. */
#define rcu_xchg_pointer(p, v) quiesce_xchg(RU3, (p), (v)) /* RU3: full, pairs with the caller */

/** rcu_replace_pointer - publish @v in @p, an lvalue, and return what was there.
 * @c: true, because the caller holds what excludes updaters; checked as for rcu_dereference_check().
 *
 * Context: under what updaters hold.  Cost: a load and a store.  Orders: release. */
#define rcu_replace_pointer(p, v, c)                                                                             \
	__extension__({                                                                                          \
		__typeof__(&(p)) quiesce__where = &(p);                                                          \
		quiesce__type_at(quiesce__where) quiesce__old =                                                  \
			(QUIESCE_RCU_CHECK(c, "rcu_replace_pointer(" #p ", " #v ", " #c ")"),                    \
			 quiesce_load_relaxed(quiesce__where)); /* Relaxed: it stays. */                         \
		rcu_assign_pointer(*quiesce__where, v);                                                          \
		quiesce__old;                                                                                    \
	})

/** rcu_try_cmpxchg_pointer - publish @v in *@p if *@p is *@expected.
 * Return: true if stored; else *@expected holds what was found.  Full fence when stored. */
#define rcu_try_cmpxchg_pointer(p, expected, v) quiesce_cmpxchg(RU3, (p), (expected), (v)) /* RU3: full, pairs with the caller */

/** rcu_cmpxchg_pointer - publish @v in *@p if *@p is @old.
 * Return: what was found: @old if @v was stored.  Full fence when stored.
 * Source: liburcu, and the kernel's cmpxchg(). */
#define rcu_cmpxchg_pointer(p, old, v)                                    \
	__extension__({                                                   \
		quiesce__type_at(p) quiesce__found = (old);               \
		(void)rcu_try_cmpxchg_pointer(p, &quiesce__found, v);     \
		quiesce__found;                                           \
	})

/* ---- waiting ---- */

/** synchronize_rcu - wait until every read-side section that is now open has ended.
 *
 * Context: may sleep; not in a section (reported, aborts), not in a signal handler;
 *   in a callback of call_rcu() allowed.  Concurrent callers share grace periods.  Creates no thread and runs no
 *   callback; where no worker thread could be had it frees what kfree_rcu() has queued.
 *   A signal handler that interrupts it, or any other call that is not a reader's, returns: one that leaves by siglongjmp() leaves
 *   locks of the library held for good, behind which other threads wait and exit.
 * Cost: one membarrier, and sleep while a reader is in the way.  If that one is kept from a CPU, readers on its CPU yield as
 *   they leave, at most a fifth of the time; see quiesce_set_yield().
 * Orders: full fence before and after.
 */
static inline void synchronize_rcu(void) { quiesce_synchronize_rcu(); }

/** synchronize_rcu_expedited - the same; where a reader in the way is kept from a CPU, others yield up to half of the time,
 * whatever quiesce_set_yield() says, and the caller may use a CPU for 0.1 ms to find that out. */
static inline void synchronize_rcu_expedited(void) { quiesce_synchronize_rcu_expedited(); }

/* ---- polled grace periods: cookies, from any thread ---- */

/** get_state_synchronize_rcu - a cookie for the grace period that would begin now.
 *
 * Context: any thread, also in a section.  Cost: a full fence.  It starts nothing. */
static inline struct rcu_gp_seq get_state_synchronize_rcu(void) { return quiesce_get_state_synchronize_rcu(); }

/** start_poll_synchronize_rcu - a cookie, and a grace period that will complete it.
 *
 * Context: any thread, also in a section; does not sleep. */
static inline struct rcu_gp_seq start_poll_synchronize_rcu(void) { return quiesce_start_poll_synchronize_rcu(); }

/** poll_state_synchronize_rcu - has the grace period of this cookie completed?
 *
 * Context: any but signal handlers.  Return: non-zero if so, and then it is a full fence.  Without a
 * worker thread to run grace periods the call itself tries one.  Beside a worker that has not completed a started cookie in
 * 1 ms, because it is in a callback (of which the caller may be a part) or has no CPU, one call in each millisecond does so.
 * It waits for no reader. */
static inline int poll_state_synchronize_rcu(struct rcu_gp_seq seq) { return quiesce_poll_state_synchronize_rcu(seq); }

/** cond_synchronize_rcu - synchronize_rcu() unless the cookie has completed already. */
static inline void cond_synchronize_rcu(struct rcu_gp_seq seq) { quiesce_cond_synchronize_rcu(seq); }

/** get_completed_synchronize_rcu - a cookie that always polls as completed. */
static inline struct rcu_gp_seq get_completed_synchronize_rcu(void)
{
	struct rcu_gp_seq seq = { 0 };
	return seq;
}

/** same_state_synchronize_rcu - do both cookies stand for the same grace period? */
static inline int same_state_synchronize_rcu(struct rcu_gp_seq a, struct rcu_gp_seq b) { return a.value == b.value; }

/* ---- deferred reclamation ---- */

/* The debug build keeps account of what is queued, and reports what is queued again before its callback was called. */
#ifdef QUIESCE_DEBUG
#define QUIESCE__CALL_RCU quiesce__call_rcu_debug
#else
#define QUIESCE__CALL_RCU quiesce_call_rcu
#endif

/* What an object counts as when its size is not told. */
#define QUIESCE_OBJECT_BYTES 64

/** call_rcu - call @func(@head) after a grace period.
 * @head: in the object to be reclaimed, the library's until @func is called; queued again before that is reported by the
 *   debug build.  @func: run by a worker thread, may call call_rcu() and may wait for readers, not
 *   for callbacks.  One that queues its own object again runs some thousand times a second.
 *
 * @func returns, as all functions do that the library calls: it throws no exception (reported, aborts), is not left by longjmp(),
 *   and does not end its thread.  That is reported (QUIESCE_MISUSE_EXIT_IN_CALLBACK); it counts as run, and others go on with
 *   the rest.  It runs with cancellation disabled.
 * Context: any thread, also in a section and under locks that readers and callbacks take; not in a signal handler.  Also in the
 *   malloc() and free() of the program's own allocator, which the library calls, too: there it waits for nothing, and
 *   rcu_barrier() is reported.
 *   Does not sleep (but see quiesce_set_throttle()).  May create a thread: the first call of a process does.  Runs no
 *   callbacks.
 * Cost: a few stores into the thread's own queue; for about each 120th object a kilobyte from malloc().
 * Bound: none by itself.  A program that retires faster than readers let go calls rcu_throttle() at safe points.
 *   Where no worker thread can be had callbacks wait for rcu_barrier(), rcu_throttle(), or the next start that succeeds: calls
 *   of any thread that has something queued try again, 1 to 16 ms after a failure.
 * Return: nothing; out of memory costs speed, not the callback.
 */
static inline void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	QUIESCE__CALL_RCU(head, func, QUIESCE_OBJECT_BYTES);
}

/** call_rcu_sized - call_rcu() that also tells how many bytes wait for reclamation. */
static inline void call_rcu_sized(struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes)
{
	QUIESCE__CALL_RCU(head, func, bytes);
}

/* A function "pointer" from 1 up to this is 1 + the offset of the rcu_head in an object for free(). */
#define QUIESCE_KFREE_OFFSET_MAX 4096
#define quiesce__kfree_func(ptr, field, head)                                                             \
	QUIESCE_AS_POINTER(void (*)(head *), 1 + quiesce__kfree_offset(quiesce__offset(__typeof__(*(ptr)), field, head)))
#define quiesce__kfree_offset(offset) ((offset) + 0 * sizeof(char[(offset) < QUIESCE_KFREE_OFFSET_MAX ? 1 : -1]))

/** kfree_rcu - free() @ptr after a grace period, without a callback.
 * @ptr: from malloc(), or NULL: nothing to do; @field: its struct rcu_head, less than 4096 bytes from its start.
 *
 * Context: as call_rcu().
 * Cost: as call_rcu().  The thread itself frees what it has retired, once its grace period is over, some 32 objects at
 *   every 16th call, so that memory goes back to where it came from; the worker frees what is left alone for 10 ms.  Where fewer than 64
 *   objects come in 50 ms they share a grace period: the last of them is freed in about 0.1 s. */
#define kfree_rcu(ptr, field)                                                                                          \
	__extension__({                                                                                                \
		__typeof__(ptr) quiesce__gone = (ptr);                                                                 \
		if (quiesce__gone)                                                                                     \
			QUIESCE__CALL_RCU(&quiesce__gone->field, quiesce__kfree_func(quiesce__gone, field, struct rcu_head), \
					  sizeof(*quiesce__gone));                                             \
	})

/** kfree_rcu_mightsleep - free() @ptr after a grace period; @ptr needs no rcu_head.  NULL: nothing to do.
 *
 * Context: may sleep, for memory and above the ceiling; not in a section (reported).  May create a thread.  Runs no
 *   callbacks. */
#define kfree_rcu_mightsleep(ptr) quiesce_kfree_rcu_mightsleep((ptr), sizeof(*(ptr)))

/** rcu_barrier - wait until every callback queued before the call has run, and every object of kfree_rcu() is freed.
 *
 * Callbacks have returned then, and so has free(), also where the thread that retired an object frees it.
 * Context: may sleep; neither in a section nor in a callback (reported, aborts), nor under a lock that callbacks take.
 *   May create a thread; where none can be had it runs the callbacks itself, those of SRCU domains that may run, too.
 *   It is not a grace period: it returns at once when nothing is queued. */
static inline void rcu_barrier(void) { quiesce_rcu_barrier(); }

/** rcu_throttle - wait until the process has less garbage than its ceiling (quiesce_set_garbage_ceiling()).
 *
 * To be called now and then by threads that retire much, where they hold no lock that readers or callbacks take.  What
 * call_srcu() has queued is garbage, too.
 * Context: may sleep, as long as a reader keeps garbage; not in a section (reported), nor in one of an SRCU domain.  In a
 *   callback it does nothing.
 *   May create a thread; where none can be had it runs the callbacks itself, below the ceiling too.
 * Cost: below the ceiling an addition to a word of the process. */
static inline void rcu_throttle(void) { quiesce_rcu_throttle(); }

QUIESCE_END_DECLS

#endif
