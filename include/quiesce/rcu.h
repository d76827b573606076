/* SPDX-License-Identifier: MIT */
/* quiesce/rcu.h - read-copy update: readers without fences, updaters that wait for all of them.
 *
 * Use it unless one slow reader must not delay all updaters; then use SRCU, whose updaters wait for
 * the readers of one domain, or a hazard pointer, for which they wait for those of one object.
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
 * Words.  A section is the code of a reader between lock and unlock.  A grace period begins when an
 * updater needs it, and is over when every section that was open then has ended; a holdout is a
 * reader whose section it still waits for.  To retire an object is to have it freed after a grace
 * period; until then it is garbage.  With light fences readers execute no fence, and updaters call
 * membarrier(2); with full fences both execute one (quiesce_set_fence()).  docs/glossary.md has all
 * words.
 *
 * Ordering.  If a read-side section saw a pointer, then synchronize_rcu() called
 * after that pointer was replaced returns only after the section has ended, and
 * all accesses of the section happen before the return.  Conversely a section
 * that begins after synchronize_rcu() was called, and that the call does not wait
 * for, sees everything that the updater wrote before the call.
 * Proof: docs/design/rcu.md; tests/litmus/RU*.litmus; docs/ordering.md.
 *
 * Signals.  A handler may read.  If it interrupts a call of the library that waits or queues, it must
 * return, not siglongjmp(): otherwise the library's locks stay held, and other threads and their
 * exits wait for ever.
 *
 * Exit.  A thread must exit through its C library; a first use in the last round of its key
 * destructors, or in a signal handler after them, is not supported.  Where a program made more than
 * 32 thread-specific keys before it loaded the library, the first use in a thread allocates.
 *
 * Fibers and coroutines (docs/fibers.md) leave a section in the thread in which they entered it:
 * they may switch inside a section only if they return to that thread before its end.  Every build
 * reports an unlock in a thread that is in no section; no build detects an unlock that ends the
 * section of another fiber. */
#ifndef QUIESCE_RCU_H
#define QUIESCE_RCU_H

#include <quiesce/detail/entry.h>
#include <quiesce/detail/rcu_calls.h>
#include <quiesce/detail/rcu_read.h>

QUIESCE_BEGIN_DECLS

/* ---- readers ---- */

/** rcu_read_lock - enter a read-side section.
 *
 * Context: any thread, no registration; signal handlers; nests up to 8190 deep.
 *   The section may sleep, but then delays every updater.
 *   A section ends in the thread that began it.
 * Cost: three instructions and a test, no fence, no shared write; the first
 *   call of a thread registers it without allocating.  With full fences a fence
 *   more.
 * Return: nothing; cannot fail.
 * Orders: see "Ordering" above; it is not an acquire operation by itself. */
#ifdef QUIESCE_DEBUG
QUIESCE_PLAIN void rcu_read_lock(void) { quiesce__rcu_lock_debug(QUIESCE_LAYOUT); }
#else
QUIESCE_FAST void rcu_read_lock(void) { quiesce__rcu_read_lock(); }
#endif

/** rcu_read_unlock - leave a read-side section.
 *
 * Context: the thread that called rcu_read_lock(); signal handlers.
 * Cost: two instructions and a test; a system call only if an updater waits for this very
 *   thread, or forces readers to yield.
 * Misuse: an unlock without a lock is reported and, by default, aborts.
 * Orders: the outermost unlock is a release. */
#ifdef QUIESCE_DEBUG
QUIESCE_FAST void rcu_read_unlock(void) { quiesce__rcu_unlock_debug(); }
#else
QUIESCE_FAST void rcu_read_unlock(void) { quiesce__rcu_read_unlock(); }
#endif

/** rcu_read_lock_held - test whether the calling thread is inside a read-side section.
 *
 * Context: any.
 * Return: non-zero inside a section, else 0. */
QUIESCE_FAST int rcu_read_lock_held(void)
{
	struct quiesce__own_block self = quiesce__own();

	return (quiesce_own_load_relaxed(self, rcu_word) & QUIESCE_RCU_DEPTH) != 0 || quiesce_own_load_u32(self, unregistered) != 0;
}

/** rcu_dereference_raw - rcu_dereference() in any context, without a check.
 * @p: the pointer variable (an lvalue).
 *
 * Context: any in which the object is protected, by a hazard pointer for example. */
#define rcu_dereference_raw(p) quiesce_load_consume(RU3, &(p)) /* RU3: acquire, pairs with the caller */

/** rcu_dereference - load a pointer that an updater may replace.
 * @p: the pointer variable (an lvalue).
 *
 * Context: inside a section; the debug build reports anything else as QUIESCE_MISUSE_NOT_HELD.
 *   Updaters use rcu_dereference_protected(), and functions of both readers and updaters
 *   rcu_dereference_check().
 * Cost: a load (an acquire load on CPUs where that differs).
 * Orders: everything written before the matching rcu_assign_pointer() is visible through the
 * result. */
#define rcu_dereference(p) \
	(QUIESCE_IN_SECTION("rcu_dereference(" #p ")"), quiesce_load_consume(RU3, &(p))) /* RU3: acquire, pairs with the caller */

/** rcu_dereference_check - rcu_dereference() by readers and by updaters alike.
 * @p: the pointer variable (an lvalue).
 * @c: a condition that is true where other updaters are excluded, such as that a lock is held.
 *
 * Context: inside a section, or where @c is true; the debug build reports anything else as
 *   QUIESCE_MISUSE_NOT_HELD, with the text of the call.  Other builds do not evaluate @c.
 * Cost: that of rcu_dereference().
 * Orders: everything written before the matching rcu_assign_pointer() is visible through the
 * result. */
#define rcu_dereference_check(p, c) \
	(QUIESCE_RCU_CHECK(rcu_read_lock_held() || (c), "rcu_dereference_check(" #p ", " #c ")"), rcu_dereference_raw(p))

/** rcu_dereference_protected - load a pointer that no other thread can replace meanwhile.
 * @p: the pointer variable (an lvalue).
 * @c: a condition that is true because the caller excludes other updaters; checked as for
 *   rcu_dereference_check().
 *
 * Context: where other updaters are excluded.
 * Cost: a load.
 * Orders: nothing. */
#define rcu_dereference_protected(p, c) \
	(QUIESCE_RCU_CHECK(c, "rcu_dereference_protected(" #p ", " #c ")"), quiesce_load_relaxed(&(p))) /* Relaxed: it stays. */

/** rcu_access_pointer - load a pointer only to compare it.
 * @p: the pointer variable (an lvalue).
 *
 * Context: any.
 * Orders: nothing; no order is promised. */
#define rcu_access_pointer(p) quiesce_load_relaxed(&(p))

/** rcu_assign_pointer - publish a pointer.
 * @p: the pointer variable (an lvalue).
 * @v: the new value, whose object is completely initialised; all calls that publish convert it as
 *   an assignment does.
 *
 * Context: any; updaters exclude each other.
 * Orders: release. */
#define rcu_assign_pointer(p, v) quiesce_store_release(RU3, &(p), (v)) /* RU3: release, pairs with the caller */

/** RCU_INIT_POINTER - set a pointer that no reader can load yet, or set one to NULL.
 * @p: the pointer variable (an lvalue).
 * @v: the new value.
 * Orders: nothing; no order is promised. */
#define RCU_INIT_POINTER(p, v) quiesce_store_relaxed(&(p), (v))

/** rcu_xchg_pointer - publish a pointer, and return the one that it replaces.
 * @p: address of the pointer variable.
 * @v: the new value.
 *
 * Context: any; updaters need no lock.
 * Return: the previous value.
 * Orders: full fence. */
#define rcu_xchg_pointer(p, v) quiesce_xchg(RU3, (p), (v)) /* RU3: full, pairs with the caller */

/** rcu_replace_pointer - publish a pointer under a lock, and return the one that it replaces.
 * @p: the pointer variable (an lvalue).
 * @v: the new value.
 * @c: a condition that is true because the caller excludes other updaters; checked as for
 *   rcu_dereference_check().
 *
 * Context: where other updaters are excluded.
 * Cost: a load and a store.
 * Return: the previous value.
 * Orders: release. */
#define rcu_replace_pointer(p, v, c)                                                                             \
	__extension__({                                                                                          \
		__typeof__(&(p)) quiesce__where = &(p);                                                          \
		quiesce__type_at(quiesce__where) quiesce__old =                                                  \
			(QUIESCE_RCU_CHECK(c, "rcu_replace_pointer(" #p ", " #v ", " #c ")"),                    \
			 quiesce_load_relaxed(quiesce__where)); /* Relaxed: it stays. */                         \
		rcu_assign_pointer(*quiesce__where, v);                                                          \
		quiesce__old;                                                                                    \
	})

/** rcu_try_cmpxchg_pointer - publish a pointer if the variable has the expected value.
 * @p: address of the pointer variable.
 * @expected: address of the expected value; if it differs, the value found is stored there.
 * @v: the new value.
 *
 * Context: any; updaters need no lock.
 * Return: true if @v was stored.
 * Orders: full fence if @v was stored. */
#define rcu_try_cmpxchg_pointer(p, expected, v) quiesce_cmpxchg(RU3, (p), (expected), (v)) /* RU3: full, pairs with the caller */

/** rcu_cmpxchg_pointer - publish a pointer if the variable has the old value.
 * @p: address of the pointer variable.
 * @old: the expected value.
 * @v: the new value.
 * Return: the value found: @old if @v was stored.
 * Orders: full fence if @v was stored.
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
 * Concurrent callers share grace periods.  The call creates no thread and runs no callback; where
 * no worker thread can be started it frees the objects that kfree_rcu() has queued.
 *
 * Context: may sleep; not in a section (reported, aborts), not in a signal handler; allowed in a
 *   callback of call_rcu().
 * Cost: one membarrier, and sleep while there is a holdout.  If a holdout does not get its CPU,
 *   other readers there yield when they leave their sections, at most a fifth of the time; see
 *   quiesce_set_yield().
 * Orders: full fence before and after. */
QUIESCE_PLAIN void synchronize_rcu(void) { quiesce_synchronize_rcu(); }

/** synchronize_rcu_expedited - synchronize_rcu() with a shorter wait, at the expense of readers.
 *
 * Where a holdout does not get its CPU, other readers yield up to half of the time,
 * whatever quiesce_set_yield() has set, and the caller may use a CPU for 0.1 ms to detect that.
 *
 * Context: that of synchronize_rcu().
 * Orders: full fence before and after. */
QUIESCE_PLAIN void synchronize_rcu_expedited(void) { quiesce_synchronize_rcu_expedited(); }

/* ---- polled grace periods: cookies, from any thread ---- */

/** get_state_synchronize_rcu - return a cookie for the grace period that would begin now.
 *
 * Context: any thread, also in a section.
 * Cost: a full fence.  It starts no grace period. */
QUIESCE_PLAIN struct rcu_gp_seq get_state_synchronize_rcu(void) { return quiesce_get_state_synchronize_rcu(); }

/** start_poll_synchronize_rcu - return a cookie, and start a grace period that will complete it.
 *
 * Context: any thread, also in a section; does not sleep. */
QUIESCE_PLAIN struct rcu_gp_seq start_poll_synchronize_rcu(void) { return quiesce_start_poll_synchronize_rcu(); }

/** poll_state_synchronize_rcu - test whether the grace period of a cookie has completed.
 * @seq: the cookie.
 *
 * Without a worker thread to run grace periods, the call itself tries to complete one.  Beside a
 * worker that has not completed a started cookie in 1 ms, because it is in a callback (which the
 * caller may be in, too) or has no CPU, one call in each millisecond does so.  It never waits for
 * readers.
 *
 * Context: any but signal handlers.
 * Return: non-zero if it has completed, else 0.
 * Orders: full fence if it has completed. */
QUIESCE_PLAIN int poll_state_synchronize_rcu(struct rcu_gp_seq seq) { return quiesce_poll_state_synchronize_rcu(seq); }

/** cond_synchronize_rcu - call synchronize_rcu() unless a cookie has completed already.
 * @seq: the cookie.
 * Context: that of synchronize_rcu(). */
QUIESCE_PLAIN void cond_synchronize_rcu(struct rcu_gp_seq seq) { quiesce_cond_synchronize_rcu(seq); }

/** get_completed_synchronize_rcu - return a cookie that always polls as completed. */
QUIESCE_PLAIN struct rcu_gp_seq get_completed_synchronize_rcu(void)
{
	struct rcu_gp_seq seq = { 0 };
	return seq;
}

/** same_state_synchronize_rcu - test whether two cookies stand for the same grace period.
 * @a: a cookie.
 * @b: a cookie.
 * Return: non-zero if they do, else 0. */
QUIESCE_PLAIN int same_state_synchronize_rcu(struct rcu_gp_seq a, struct rcu_gp_seq b) { return a.value == b.value; }

/* ---- deferred reclamation ---- */

/* Bytes that an object without a given size adds to the garbage. */
#define QUIESCE_OBJECT_BYTES 64

/** call_rcu - call a function for an object after a grace period.
 * @head: member of the object to be reclaimed; it belongs to the library until @func is called.
 *   The debug build reports an object that is queued again before that.
 * @func: called with @head, by a worker thread.  It may call call_rcu(), and may wait for
 *   readers, but not for callbacks.  A function that queues its own object again runs some
 *   thousand times a second.
 *
 * @func returns, as all functions do that the library calls: it throws no exception (reported,
 * aborts), is not left by longjmp(), and does not end its thread.  If it ends its thread, that is
 * reported (QUIESCE_MISUSE_EXIT_IN_CALLBACK), it counts as run, and other threads run the remaining
 * callbacks.  It runs with cancellation disabled.
 *
 * A program that retires faster than readers leave their sections calls rcu_throttle() where it
 * holds no lock: call_rcu() by itself does not bound the garbage.  Where no worker thread can be started,
 * callbacks wait for rcu_barrier(), rcu_throttle(), or the next start that succeeds: calls of any
 * thread with queued objects try again, 1 to 16 ms after a failure.
 *
 * Context: any thread, also in a section and under locks that readers and callbacks take; not in a
 *   signal handler.  Also in the malloc() and free() of the program's own allocator, which the
 *   library calls, too: there it never waits, and rcu_barrier() is reported.  kfree_rcu() and
 *   kfree_hazptr() may call free(), but not inside a free() that the library calls: an allocator that
 *   retires under its own lock uses call_rcu(), or retires after the unlock.
 *   Does not sleep (but see quiesce_set_throttle()).  May create a thread: the first call of a
 *   process does.  Runs no callbacks.
 * Cost: a few stores into the thread's own queue; for about each 120th object a kilobyte from
 *   malloc().
 * Return: nothing; without memory the call takes longer, but the callback is not lost. */
QUIESCE_PLAIN void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	QUIESCE__CALL_RCU(head, func, QUIESCE_OBJECT_BYTES);
}

/** call_rcu_sized - call_rcu() for an object whose size is known.
 * @head: member of the object, as for call_rcu().
 * @func: the callback, as for call_rcu().
 * @bytes: bytes that the object adds to the garbage until it is reclaimed; call_rcu() assumes
 * 64. */
QUIESCE_PLAIN void call_rcu_sized(struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes)
{
	QUIESCE__CALL_RCU(head, func, bytes);
}

/** kfree_rcu - free() an object after a grace period, without a callback.
 * @ptr: the object, from malloc(); NULL: the call does nothing.
 * @field: its member struct rcu_head, less than 4096 bytes from its start: also one of a member,
 *   such as base.node.rcu, and in C++ one of a base.
 *
 * Context: that of call_rcu().
 * Cost: that of call_rcu(), and of the free() of an object that was retired earlier.  The thread
 *   itself frees the objects that it has retired, once their grace period is over: one in each
 *   call, so that the allocator can use the memory again at once, and two or four where many have
 *   gathered.  If the worker is late, a call in 4000 may run a grace period, unless it is in a
 *   section, or there are more than 1000 threads, or the kernel refuses the thread membarrier(2).
 *   The worker frees objects that their thread has left for 10 ms.
 *   Where fewer than 64 objects are retired in 50 ms they share a grace period: the last of
 *   them is freed in about 0.1 s. */
#define kfree_rcu(ptr, field)                                                                                          \
	__extension__({                                                                                                \
		__typeof__(ptr) quiesce__gone = (ptr);                                                                 \
		if (quiesce__gone)                                                                                     \
			QUIESCE__CALL_RCU(&quiesce__gone->field, quiesce__kfree_func(quiesce__gone, field, struct rcu_head), \
					  sizeof(*quiesce__gone));                                             \
	})

/** kfree_rcu_head - kfree_rcu() where the type of the object is not known, as in a generic container.
 * @head: the object's rcu_head; NULL: the call does nothing.
 * @offset: the distance of @head from the start of the object, which is from malloc(); less than 4096
 *   (otherwise it is reported, and the object is not freed).
 * @bytes: as for call_rcu_sized(), the size of the object.
 * Context, cost: as kfree_rcu(). */
QUIESCE_PLAIN void kfree_rcu_head(struct rcu_head *head, size_t offset, size_t bytes)
{
	if (!head)
		return;
	if (quiesce_unlikely(offset >= QUIESCE_KFREE_OFFSET_MAX))
		quiesce_kfree_rcu(head, offset, bytes); /* reports it */
	else
		QUIESCE__CALL_RCU(head, quiesce__kfree_at(struct rcu_head, offset), bytes);
}

/** kfree_rcu_mightsleep - free() an object that has no rcu_head, after a grace period.
 * @ptr: the object, from malloc(); NULL: the call does nothing.
 *
 * Context: may sleep, for memory and above the ceiling; not in a section (reported).  May create a
 *   thread.  Runs no callbacks. */
#define kfree_rcu_mightsleep(ptr) quiesce_kfree_rcu_mightsleep((ptr), sizeof(*(ptr)))

/** rcu_barrier - wait until all callbacks and frees that were queued before the call are done.
 *
 * All callbacks of call_rcu() have returned then, and so have all calls of free() for
 * kfree_rcu(), also where the thread that retired an object frees it.  It is not a grace period:
 * it returns at once when nothing is queued.
 *
 * Context: may sleep; neither in a section nor in a callback (reported, aborts), nor under a
 *   lock that callbacks take.  May create a thread; where none can be started it runs the
 *   callbacks itself, including callbacks of SRCU domains that are ready. */
QUIESCE_PLAIN void rcu_barrier(void) QUIESCE_NOEXCEPT { quiesce_rcu_barrier(); }

/** rcu_throttle - wait until the process has less garbage than its ceiling.
 *
 * A thread that retires many objects calls it regularly, where it holds no lock that readers or
 * callbacks take.  The ceiling is that of quiesce_set_garbage_ceiling(); callbacks that call_srcu() has
 * queued count as garbage, too.
 *
 * Context: may sleep, as long as a reader prevents reclamation; not in a section (reported), nor in
 *   one of an SRCU domain.  In a callback it does nothing.  May create a thread; where none can be
 *   started it runs the callbacks itself, also below the ceiling.
 * Cost: below the ceiling a few loads, and sometimes an addition to a word of the process: all
 *   threads together leave at most a quarter of the ceiling out of it. */
QUIESCE_PLAIN void rcu_throttle(void) { quiesce_rcu_throttle(); }

QUIESCE_END_DECLS

#endif
