/* SPDX-License-Identifier: MIT */
/* quiesce/percpu_ref.h - a reference count that costs no shared write until its value is needed.
 *
 * Use where every operation takes a reference to the same object for its duration (a queue, a
 * domain, a configuration that is in use) and the object ends, or is frozen, once.  Use
 * counted_ptr.h where each of many objects has a few references: those counts are a word each,
 * these are two words for each CPU.
 *
 *	percpu_ref_init(&queue->users, queue_unused, 0);    // one reference, the owner's
 *
 *	if (percpu_ref_tryget_live(&queue->users)) {        // a user, on any thread
 *		work_on(queue);
 *		percpu_ref_put(&queue->users);
 *	}
 *
 *	percpu_ref_kill(&queue->users);                     // the owner, once: puts its reference, and
 *	                                                    // queue_unused() runs when the last user has gone
 *
 * There are two modes.  In per-CPU mode a get or put changes a word of its CPU, and the sum is
 * not known.  In atomic mode all threads count in one word, and the put that makes it zero calls
 * the release function.  percpu_ref_kill() makes the count atomic until percpu_ref_reinit() or
 * percpu_ref_resurrect() reverts that; percpu_ref_switch_to_atomic() and
 * percpu_ref_switch_to_percpu() change the mode alone.
 *
 * Ordering.  Accesses before a put happen before the release function runs, and before the return
 * of a percpu_ref_is_zero() that is true.  Everything before percpu_ref_reinit() or
 * percpu_ref_resurrect() happens before what follows a percpu_ref_tryget_live() that succeeds
 * because of it.  A percpu_ref_tryget_live() that succeeds has done so before the confirm function
 * of percpu_ref_kill_and_confirm() runs.  A get and a tryget order nothing else: the caller must
 * find the object by other means.
 * Proof: docs/design/percpu_ref.md; docs/ordering.md.
 *
 * Differences from the kernel.  A change of mode is complete when the call returns: it leaves
 * nothing to a callback.  It costs a membarrier, not a grace period of RCU; neither here nor in
 * the kernel does the kill wait for readers that find the object by RCU.  Misuse is always
 * reported.  Without restartable sequences or with full fences a get or put is a locked instruction
 * on the word of its CPU, which no other CPU writes.  Without memory for these words the count is
 * atomic from the start: correct, and slower.
 *
 * fork(): the child has the counts of the parent, including those of threads that it does not
 * have, as with any count.  If another thread was changing the mode, the child's next change
 * completes that; a kill that was half done is not made in the child, which may kill the count itself.
 *
 * Fibers and coroutines (docs/fibers.md) may hold references over a switch, and put them in any
 * thread: a reference belongs to no thread.
 *
 * Source: the kernel's percpu-refcount of T. Heo and K. Overstreet, for names and modes.
 *
 * A plug-in that uses the inline calls stays loaded after dlclose(), because the kernel keeps a
 * pointer to the last restartable sequence of each thread.
 */
#ifndef QUIESCE_PERCPU_REF_H
#define QUIESCE_PERCPU_REF_H

#include <quiesce/detail/percpu.h>
#include <quiesce/rcu.h>

QUIESCE_BEGIN_DECLS

struct percpu_ref;
typedef void percpu_ref_func_t(struct percpu_ref *ref);

/* percpu_ref_init() takes these flags.  INIT_ATOMIC: the count stays in atomic mode until
 * percpu_ref_switch_to_percpu(), also after a reinit. */
#define PERCPU_REF_INIT_ATOMIC 1u
#define PERCPU_REF_INIT_DEAD 2u    /* killed, without references: for percpu_ref_reinit() */
#define PERCPU_REF_ALLOW_REINIT 4u /* may return to per-CPU mode; implied by the other two */

/* The state has these bits; 0 is per-CPU mode. */
#define QUIESCE_REF_ATOMIC 1ull
#define QUIESCE_REF_DEAD 2ull
/* The shared count: the bit KILLED, then references.  The bias keeps it from zero in per-CPU mode. */
#define QUIESCE_REF_KILLED 1ull
#define QUIESCE_REF_ONE 2ull
#define QUIESCE_REF_BIAS (1ull << 63)
/* The set of each id has two words, at these offsets. */
#define QUIESCE_REF_GOT 0
#define QUIESCE_REF_PUT 8

/* Private.  A get or put loads @open, and if that is 0 the fields beside it; @count is written by
 * all threads in atomic mode. */
struct percpu_ref {
	uint64_t open; /* nonzero: users count inline; see percpu.h */
	struct quiesce_percpu percpu;
	uint64_t state;
	percpu_ref_func_t *release;
	uint64_t pad[4];
	uint64_t base;        /* sum of the words when per-CPU mode began */
	const void *switcher; /* thread that changes the mode */
	uint32_t lock;        /* generation of forks << 2 | 1 held, 2 held with sleepers */
	uint8_t no_percpu;    /* per-CPU mode is not available */
	uint8_t stays_atomic; /* the program has requested atomic mode */
	uint8_t reinit;       /* may return to per-CPU mode */
	uint8_t reserved;
	/* @count is more than a cache line after @release, at any alignment */
	uint64_t count;
};

QUIESCE_API void quiesce__percpu_ref_get_slow(struct percpu_ref *ref, uint64_t nr);
QUIESCE_API void quiesce__percpu_ref_put_slow(struct percpu_ref *ref, uint64_t nr);
QUIESCE_API bool quiesce__percpu_ref_tryget_slow(struct percpu_ref *ref, uint64_t nr, bool live);
QUIESCE_API int quiesce_percpu_ref_init(uint32_t layout, struct percpu_ref *ref, percpu_ref_func_t *release, unsigned int flags);
QUIESCE_API void quiesce_percpu_ref_exit(struct percpu_ref *ref);
QUIESCE_API void quiesce_percpu_ref_kill_and_confirm(struct percpu_ref *ref, percpu_ref_func_t *confirm);
QUIESCE_API void quiesce_percpu_ref_kill_many(struct percpu_ref **refs, size_t nr);
QUIESCE_API void quiesce_percpu_ref_switch_to_atomic(struct percpu_ref *ref, percpu_ref_func_t *confirm);
QUIESCE_API void quiesce_percpu_ref_switch_to_percpu(struct percpu_ref *ref);
QUIESCE_API void quiesce_percpu_ref_reinit(struct percpu_ref *ref);
QUIESCE_API void quiesce_percpu_ref_resurrect(struct percpu_ref *ref);

/** percpu_ref_init - initialise @ref with one reference, the caller's.
 * @release: called by the thread that puts the last reference, in the context of that put.  It may
 *   free the object that contains @ref, after percpu_ref_exit().  Called by a put it may even end
 *   its thread, as no lock is held; called by a change of mode it must return, as described for
 *   call_rcu().
 * @flags: PERCPU_REF_*.
 *
 * Context: a thread; no other thread has @ref yet.  May allocate.
 * Return: 0; -ENOMEM: no memory for per-CPU words; @ref is usable and stays atomic. */
QUIESCE_PLAIN int percpu_ref_init(struct percpu_ref *ref, percpu_ref_func_t *release, unsigned int flags)
{
	return quiesce_percpu_ref_init(QUIESCE_LAYOUT, ref, release, flags);
}

/** percpu_ref_exit - free what percpu_ref_init() allocated.
 *
 * Context: any; no thread uses @ref any more, and there is no reference, or only the owner's if
 *   @ref was not killed: in the release function, for example, or after a failure to create the
 *   object.  A second call is harmless; a later get or put is reported.
 * Misuse: with other references: reported (QUIESCE_MISUSE_IN_USE), without effect. */
QUIESCE_PLAIN void percpu_ref_exit(struct percpu_ref *ref)
{
	quiesce_percpu_ref_exit(ref);
}

/** percpu_ref_get - take a reference; the caller has one already.
 *
 * Context: any; signal handlers.
 * Cost: in per-CPU mode a restartable sequence with an addition to the CPU's own line, with full
 *   fences a call and a locked instruction on that line; in atomic mode a locked instruction on a
 *   shared line.
 * Misuse: without a reference, in atomic mode: reported (QUIESCE_MISUSE_COUNT), and aborts by
 *   default; if a hook returns, the object is never released.  Not detected in per-CPU mode.
 * Orders: nothing. */
QUIESCE_FAST void percpu_ref_get(struct percpu_ref *ref)
{
	/* PR1: acquire, pairs with PR1 in fence_atomic() and to_percpu() */
	if (quiesce_unlikely(!quiesce_count_acquire(PR1, &ref->open, QUIESCE_REF_GOT)))
		quiesce__percpu_ref_get_slow(ref, 1);
}

/** percpu_ref_get_many - take @nr references; the caller has one already.
 *
 * Context, misuse: as percpu_ref_get().
 * Cost: a locked instruction on a shared line in both modes. */
QUIESCE_PLAIN void percpu_ref_get_many(struct percpu_ref *ref, unsigned long nr)
{
	quiesce__percpu_ref_get_slow(ref, nr);
}

/** percpu_ref_put - put a reference; after the last one the release function runs.
 *
 * Afterwards the caller may not use the object, unless it has another reference.  Any thread may
 * put what another one got.
 * Context, cost: as percpu_ref_get(); for the last reference as the release function.
 * Misuse: one put too many is reported as soon as the count is atomic, as for percpu_ref_get().
 * Orders: release; the last put is also an acquire of all others. */
QUIESCE_FAST void percpu_ref_put(struct percpu_ref *ref)
{
	/* PR1: acquire, pairs with PR1 in fence_atomic() and to_percpu() */
	if (quiesce_unlikely(!quiesce_count_acquire(PR1, &ref->open, QUIESCE_REF_PUT)))
		quiesce__percpu_ref_put_slow(ref, 1);
}

/** percpu_ref_put_many - put @nr references.
 *
 * Context, misuse, order: as percpu_ref_put().
 * Cost: a locked instruction on a shared line in both modes. */
QUIESCE_PLAIN void percpu_ref_put_many(struct percpu_ref *ref, unsigned long nr)
{
	quiesce__percpu_ref_put_slow(ref, nr);
}

/** percpu_ref_tryget - take a reference, unless there is none left.
 *
 * For a caller without a reference that knows that @ref exists, for example because it found the
 * object under RCU or a hazard pointer.
 * Context, cost: as percpu_ref_get().
 * Return: false: the count has become zero.
 * Orders: as percpu_ref_tryget_live(). */
QUIESCE_FAST bool percpu_ref_tryget(struct percpu_ref *ref)
{
	/* PR1: acquire, pairs with PR1 in fence_atomic() and to_percpu() */
	return quiesce_likely(quiesce_count_acquire(PR1, &ref->open, QUIESCE_REF_GOT)) ||
	       quiesce__percpu_ref_tryget_slow(ref, 1, false);
}

/** percpu_ref_tryget_many - take @nr references, unless there is none left.
 *
 * Context, return, order: as percpu_ref_tryget().
 * Cost: a locked instruction on a shared line in both modes. */
QUIESCE_PLAIN bool percpu_ref_tryget_many(struct percpu_ref *ref, unsigned long nr)
{
	return quiesce__percpu_ref_tryget_slow(ref, nr, false);
}

/** percpu_ref_tryget_live - take a reference, unless @ref has been killed.
 *
 * Context, cost: as percpu_ref_get(); @ref exists, as for percpu_ref_tryget().
 * Return: false: killed.  While a kill is in progress it may be true until the confirm function
 *   runs.
 * Orders: acquire of what came before the reinit or resurrect that made it succeed. */
QUIESCE_FAST bool percpu_ref_tryget_live(struct percpu_ref *ref)
{
	/* PR1: acquire, pairs with PR1 in fence_atomic() and to_percpu() */
	return quiesce_likely(quiesce_count_acquire(PR1, &ref->open, QUIESCE_REF_GOT)) ||
	       quiesce__percpu_ref_tryget_slow(ref, 1, true);
}

/** percpu_ref_kill_and_confirm - admit no new users: make @ref dead and atomic, and put the first
 * reference.
 * @confirm: called before the return, when percpu_ref_tryget_live() cannot succeed any more; NULL:
 *   none.  It may get and put, but not change the mode of @ref, kill or revive it, which is
 *   reported (QUIESCE_MISUSE_WAIT_IN_CALLBACK).
 *
 * Called once, until a reinit or resurrect, by the owner of the first reference, which may not use
 * the object afterwards.
 * Context: a thread.  Sleeps while another thread changes the mode of @ref.
 * Cost: a membarrier in per-CPU mode: microseconds, and an interrupt of every CPU that runs this
 *   process.  Reads two words for each possible CPU.  With full fences a locked instruction for each
 *   possible CPU in their place, and no interrupt.
 * Misuse: a second kill: reported (QUIESCE_MISUSE_COUNT), without effect. */
QUIESCE_PLAIN void percpu_ref_kill_and_confirm(struct percpu_ref *ref, percpu_ref_func_t *confirm)
{
	quiesce_percpu_ref_kill_and_confirm(ref, confirm);
}

/** percpu_ref_kill - percpu_ref_kill_and_confirm() without a confirm function. */
QUIESCE_PLAIN void percpu_ref_kill(struct percpu_ref *ref)
{
	quiesce_percpu_ref_kill_and_confirm(ref, NULL);
}

/** percpu_ref_kill_many - kill @nr counts with one membarrier.
 * @refs: the counts; their order in the array changes.
 *
 * Context: as percpu_ref_kill().  All counts are dead when the first release function runs, and
 *   all release functions that run in this call do so after the fence.  A count whose mode another
 *   thread is changing is waited for, and killed with a fence of its own: so no confirm function
 *   may wait for the release of another count of the array.
 * Misuse: a count that is dead, or named twice: reported (QUIESCE_MISUSE_COUNT); NULL: reported
 *   (QUIESCE_MISUSE_NULL); both without effect, and the others are killed. */
QUIESCE_PLAIN void percpu_ref_kill_many(struct percpu_ref **refs, size_t nr)
{
	quiesce_percpu_ref_kill_many(refs, nr);
}

/** percpu_ref_switch_to_atomic - count in one word until percpu_ref_switch_to_percpu(), also after
 * a reinit.
 * @confirm: called before the return, when all threads count there; NULL: none.
 *
 * Context, cost: as percpu_ref_kill_and_confirm(); the caller has a reference. */
QUIESCE_PLAIN void percpu_ref_switch_to_atomic(struct percpu_ref *ref, percpu_ref_func_t *confirm)
{
	quiesce_percpu_ref_switch_to_atomic(ref, confirm);
}

/** percpu_ref_switch_to_atomic_sync - percpu_ref_switch_to_atomic() without a confirm function.
 * In this library every change of mode is complete when the call returns. */
QUIESCE_PLAIN void percpu_ref_switch_to_atomic_sync(struct percpu_ref *ref)
{
	quiesce_percpu_ref_switch_to_atomic(ref, NULL);
}

/** percpu_ref_switch_to_percpu - count per CPU, where that is possible; a dead @ref does so after
 * its reinit.
 *
 * Context: a thread; the caller has a reference.  Sleeps while another thread changes the mode of
 *   @ref.
 * Misuse: without PERCPU_REF_ALLOW_REINIT: reported (QUIESCE_MISUSE_COUNT), without effect. */
QUIESCE_PLAIN void percpu_ref_switch_to_percpu(struct percpu_ref *ref)
{
	quiesce_percpu_ref_switch_to_percpu(ref);
}

/** percpu_ref_reinit - make a dead count without references live again, with one reference, as
 * after percpu_ref_init().
 *
 * Context: as percpu_ref_switch_to_percpu(), but the caller needs no reference: it has made sure
 *   that the release function does not free the object.  Other threads may try to get meanwhile.
 * Misuse: not dead, references left, or no PERCPU_REF_ALLOW_REINIT: reported
 *   (QUIESCE_MISUSE_COUNT), without effect. */
QUIESCE_PLAIN void percpu_ref_reinit(struct percpu_ref *ref)
{
	quiesce_percpu_ref_reinit(ref);
}

/** percpu_ref_resurrect - revert percpu_ref_kill(): make the count live, with one more reference,
 * the caller's.
 *
 * Context, misuse: as percpu_ref_reinit(), but references may be left: then the caller makes sure
 * that the last one is not put meanwhile, or that the release does no harm. */
QUIESCE_PLAIN void percpu_ref_resurrect(struct percpu_ref *ref)
{
	quiesce_percpu_ref_resurrect(ref);
}

/** percpu_ref_is_dying - test whether @ref has been killed.
 * Context: any; while a kill or reinit is in progress either answer is possible.
 * Orders: nothing. */
QUIESCE_FAST bool percpu_ref_is_dying(const struct percpu_ref *ref)
{
	return quiesce_load_relaxed(&ref->state) & QUIESCE_REF_DEAD; /* Relaxed: no order promised. */
}

/** percpu_ref_is_zero - test whether all references are gone; false in per-CPU mode, where the sum
 * is not known.
 *
 * Context: any.
 * Orders: if true, acquire of what was done through all references. */
QUIESCE_FAST bool percpu_ref_is_zero(const struct percpu_ref *ref)
{
	/* PR2: acquire, pairs with PR2 in put_shared() */
	return quiesce_load_acquire(PR2, &ref->count) < QUIESCE_REF_ONE;
}

QUIESCE_END_DECLS

#endif
