/* SPDX-License-Identifier: MIT */
/* quiesce/percpu_ref.h - a reference count that costs no shared write until somebody wants to know it.
 *
 * Use where every operation takes a reference of the same object for its duration (a queue, a domain, a
 * configuration that is in use) and the object goes, or is frozen, once.  Use counted_ptr.h where each of many
 * objects has a few references: those counts are a word each, these are two words for each CPU.
 *
 *	percpu_ref_init(&queue->users, queue_unused, 0);    // one reference, the owner's
 *
 *	if (percpu_ref_tryget_live(&queue->users)) {        // a user, on any thread
 *		work_on(queue);
 *		percpu_ref_put(&queue->users);
 *	}
 *
 *	percpu_ref_kill(&queue->users);                     // the owner, once: gives its reference back, and
 *	                                                    // queue_unused() runs when the last user has gone
 *
 * Two modes.  Per CPU: who gets or puts adds one to a word of its CPU, and nobody knows the sum.  Atomic: all
 * count in one word, and whoever finds that it became zero calls the release function.  percpu_ref_kill() makes
 * it atomic for good, percpu_ref_reinit() and percpu_ref_resurrect() take that back, and
 * percpu_ref_switch_to_atomic() and percpu_ref_switch_to_percpu() change the mode alone.
 *
 * Ordering.  Everything that was done through a reference happens before its put, that before the last put, and
 * that before the release, and before the return of a percpu_ref_is_zero() that says yes.  Everything before
 * percpu_ref_reinit() or percpu_ref_resurrect() happens before what follows a percpu_ref_tryget_live() that
 * succeeds because of it.  A percpu_ref_tryget_live() that succeeds has done so before the confirm function of
 * percpu_ref_kill_and_confirm() runs.  A get and a tryget are nothing else: to find the object is another matter.
 * Proof: docs/design/percpu_ref.md; docs/ordering.md.
 *
 * What differs from the kernel.  A change of mode is done when the call returns: nothing is left to a callback.
 * Its price is a membarrier, not a grace period of RCU; neither here nor there does the kill wait for readers
 * who find the object by RCU.  Misuse is always told.  If there is no memory, no restartable sequence
 * or full fences, the count is atomic from the start: correct, and slower.
 *
 * fork(): the child has the counts of the parent, those of the threads that it has not got included, as
 * with any count.  A change of mode that another thread was in the middle of is completed by the child's next one.
 *
 * Fibers and coroutines (docs/fibers.md) may hold references over a switch, and put them in any thread: a reference is nobody's.
 *
 * Source: the kernel's percpu-refcount of T. Heo and K. Overstreet, for names and modes.
 *
 * A plug-in that uses the inline calls stays loaded after dlclose(), because the kernel keeps a pointer to the last
 * restartable sequence of each thread.
 */
#ifndef QUIESCE_PERCPU_REF_H
#define QUIESCE_PERCPU_REF_H

#include <quiesce/detail/percpu.h>
#include <quiesce/rcu.h>

QUIESCE_BEGIN_DECLS

struct percpu_ref;
typedef void percpu_ref_func_t(struct percpu_ref *ref);

/* Flags of percpu_ref_init(). */
#define PERCPU_REF_INIT_ATOMIC 1u  /* atomic until percpu_ref_switch_to_percpu(), also after a reinit */
#define PERCPU_REF_INIT_DEAD 2u    /* as if killed already, without references: for percpu_ref_reinit() */
#define PERCPU_REF_ALLOW_REINIT 4u /* may become per CPU again; the two above include it */

/* Bits of the state.  None: per CPU. */
#define QUIESCE_REF_ATOMIC 1ull
#define QUIESCE_REF_DEAD 2ull
/* The shared count: one bit, then references.  The bias keeps it from zero while it is not the whole truth. */
#define QUIESCE_REF_KILLED 1ull
#define QUIESCE_REF_ONE 2ull
#define QUIESCE_REF_BIAS (1ull << 63)
/* Two words of the set of each id. */
#define QUIESCE_REF_GOT 0
#define QUIESCE_REF_PUT 8

/* Private.  Who gets or puts looks at @open, and where that is 0 at what stands beside it; all write @count while it is atomic. */
struct percpu_ref {
	uint64_t open; /* not 0: users count by themselves; see percpu.h */
	struct quiesce_percpu percpu;
	uint64_t state;
	percpu_ref_func_t *release;
	uint64_t apart[4];
	uint64_t base;        /* what the words summed up to when they were last begun */
	const void *switcher; /* the thread that changes the mode */
	uint32_t lock;        /* generation of forks << 2 | 1 somebody changes the mode, 2 and somebody sleeps */
	uint8_t no_percpu;    /* impossible here */
	uint8_t stays_atomic; /* on request */
	uint8_t reinit;       /* may be per CPU again */
	uint8_t reserved;
	uint64_t count;       /* a line and more after @release, wherever the structure begins */
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

/** percpu_ref_init - make @ref a count with one reference, the caller's.
 * @release: called when the last reference is put, by whoever puts it: any thread, any context in which
 *   that thread puts.  It may free what @ref is in, after percpu_ref_exit().  In a put nothing is held while it runs, so it
 *   may even end its thread there; in calls that change the mode it returns, as said of call_rcu().
 * @flags: PERCPU_REF_*.
 *
 * Context: a thread; nobody else has @ref yet.  May allocate.
 * Return: 0; -ENOMEM: no memory for words of each CPU: @ref works all the same and stays atomic. */
static inline int percpu_ref_init(struct percpu_ref *ref, percpu_ref_func_t *release, unsigned int flags)
{
	return quiesce_percpu_ref_init(QUIESCE_LAYOUT, ref, release, flags);
}

/** percpu_ref_exit - give back what percpu_ref_init() allocated.
 *
 * Context: any; nobody uses @ref any more, and only the owner, if it was not killed, has a reference.  In the release function,
 *   say, or where what @ref is in could not be made.  Twice is harmless; what is got or put afterwards is told.
 * Misuse: with other references: told (QUIESCE_MISUSE_IN_USE), without effect. */
static inline void percpu_ref_exit(struct percpu_ref *ref)
{
	quiesce_percpu_ref_exit(ref);
}

/** percpu_ref_get - one more reference, by somebody who has one.
 *
 * Context: any; signal handlers.
 * Cost: per CPU, a restartable sequence with an addition to the CPU's own line; atomic, a locked instruction on a shared line.
 * Misuse: of a count that is atomic and zero: told (QUIESCE_MISUSE_COUNT), and by default aborts; if a hook returns it is
 *   never released.  Not noticed per CPU.
 * Orders: nothing. */
QUIESCE_FAST void percpu_ref_get(struct percpu_ref *ref)
{
	/* PR1: acquire, pairs with PR1 in fence_atomic() and to_percpu() */
	if (quiesce_unlikely(!quiesce_count_acquire(PR1, &ref->open, QUIESCE_REF_GOT)))
		quiesce__percpu_ref_get_slow(ref, 1);
}

/** percpu_ref_get_many - @nr more references.
 *
 * Context, misuse: as percpu_ref_get().  Cost: a locked instruction on a shared line in both modes. */
static inline void percpu_ref_get_many(struct percpu_ref *ref, unsigned long nr)
{
	quiesce__percpu_ref_get_slow(ref, nr);
}

/** percpu_ref_put - give a reference back.  With the last one the release function runs.
 *
 * The caller may no longer use the object, unless it has another reference.  Any thread may put what
 * another one got.
 * Context, cost: as percpu_ref_get(); the last one as the release function.
 * Misuse: one too many is told as soon as the count is atomic, as for percpu_ref_get().
 * Orders: release; the last one is an acquire of all others, too. */
QUIESCE_FAST void percpu_ref_put(struct percpu_ref *ref)
{
	/* PR1: acquire, pairs with PR1 in fence_atomic() and to_percpu() */
	if (quiesce_unlikely(!quiesce_count_acquire(PR1, &ref->open, QUIESCE_REF_PUT)))
		quiesce__percpu_ref_put_slow(ref, 1);
}

/** percpu_ref_put_many - give @nr references back.
 *
 * As percpu_ref_put().  Cost: a locked instruction on a shared line in both modes. */
static inline void percpu_ref_put_many(struct percpu_ref *ref, unsigned long nr)
{
	quiesce__percpu_ref_put_slow(ref, nr);
}

/** percpu_ref_tryget - a reference, if there is one yet.
 *
 * For somebody who has none but knows that @ref exists: who finds the object under RCU or a hazard pointer, say.
 * Context, cost: as percpu_ref_get().
 * Return: false: the count has become zero.
 * Orders: as percpu_ref_tryget_live(). */
QUIESCE_FAST bool percpu_ref_tryget(struct percpu_ref *ref)
{
	/* PR1: acquire, pairs with PR1 in fence_atomic() and to_percpu() */
	return quiesce_likely(quiesce_count_acquire(PR1, &ref->open, QUIESCE_REF_GOT)) ||
	       quiesce__percpu_ref_tryget_slow(ref, 1, false);
}

/** percpu_ref_tryget_many - @nr references, if there is one yet.
 *
 * Context, return, order: as percpu_ref_tryget().  Cost: a locked instruction on a shared line in both modes. */
static inline bool percpu_ref_tryget_many(struct percpu_ref *ref, unsigned long nr)
{
	return quiesce__percpu_ref_tryget_slow(ref, nr, false);
}

/** percpu_ref_tryget_live - a reference, unless @ref has been killed.
 *
 * Context, cost: as percpu_ref_get(); @ref exists, as for percpu_ref_tryget().
 * Return: false: killed.  True while a kill is under way is possible, until its confirm function runs.
 * Orders: acquire of what came before the reinit or resurrect that made it succeed. */
QUIESCE_FAST bool percpu_ref_tryget_live(struct percpu_ref *ref)
{
	/* PR1: acquire, pairs with PR1 in fence_atomic() and to_percpu() */
	return quiesce_likely(quiesce_count_acquire(PR1, &ref->open, QUIESCE_REF_GOT)) ||
	       quiesce__percpu_ref_tryget_slow(ref, 1, true);
}

/** percpu_ref_kill_and_confirm - no new users: make @ref dead and atomic, and put the first reference.
 * @confirm: called before the return, when nobody can succeed in percpu_ref_tryget_live() any more; NULL: none.
 *   It may get and put, but change neither mode nor life of @ref, which is told (QUIESCE_MISUSE_WAIT_IN_CALLBACK).
 *
 * Once, until a reinit or resurrect; by the owner of the first reference, who may not use the object after it.
 * Context: a thread.  Sleeps while another thread changes the mode of @ref.
 * Cost: a membarrier if @ref was per CPU: microseconds, and an interrupt of every CPU that runs this process.
 *   Reads two words for each possible CPU.
 * Misuse: twice: told (QUIESCE_MISUSE_COUNT), without effect. */
static inline void percpu_ref_kill_and_confirm(struct percpu_ref *ref, percpu_ref_func_t *confirm)
{
	quiesce_percpu_ref_kill_and_confirm(ref, confirm);
}

/** percpu_ref_kill - the same without a confirm function. */
static inline void percpu_ref_kill(struct percpu_ref *ref)
{
	quiesce_percpu_ref_kill_and_confirm(ref, NULL);
}

/** percpu_ref_kill_many - kill @nr counts for the price of one membarrier.
 * @refs: which; their order in the array changes.
 *
 * Context: as percpu_ref_kill(); all have been killed when the first release function runs, and all release functions that
 *   run in this call do so after the fence.  A count whose mode another thread is changing is waited for, and killed by a fence of
 *   its own: so no confirm function may wait for the release of another one of them.
 * Misuse: one that has been killed, or twice the same: reported (QUIESCE_MISUSE_COUNT); NULL: reported (QUIESCE_MISUSE_NULL);
 *   both without effect, and the others are killed. */
static inline void percpu_ref_kill_many(struct percpu_ref **refs, size_t nr)
{
	quiesce_percpu_ref_kill_many(refs, nr);
}

/** percpu_ref_switch_to_atomic - count in one word until percpu_ref_switch_to_percpu(), also after a reinit.
 * @confirm: called before the return, when all count there; NULL: none.
 *
 * Context, cost: as percpu_ref_kill_and_confirm(); the caller has a reference. */
static inline void percpu_ref_switch_to_atomic(struct percpu_ref *ref, percpu_ref_func_t *confirm)
{
	quiesce_percpu_ref_switch_to_atomic(ref, confirm);
}

/** percpu_ref_switch_to_atomic_sync - the same; here every change of mode is done when the call returns. */
static inline void percpu_ref_switch_to_atomic_sync(struct percpu_ref *ref)
{
	quiesce_percpu_ref_switch_to_atomic(ref, NULL);
}

/** percpu_ref_switch_to_percpu - count per CPU, where that is possible; if @ref is dead, from its reinit on.
 *
 * Context: a thread; the caller has a reference.  Sleeps while another thread changes the mode of @ref.
 * Misuse: without PERCPU_REF_ALLOW_REINIT: told (QUIESCE_MISUSE_COUNT), without effect. */
static inline void percpu_ref_switch_to_percpu(struct percpu_ref *ref)
{
	quiesce_percpu_ref_switch_to_percpu(ref);
}

/** percpu_ref_reinit - a dead count without references is as after percpu_ref_init() again, with one reference.
 *
 * Context: as percpu_ref_switch_to_percpu(), but the caller needs no reference: it made sure that the release
 *   function does not free the object.  Others may try to get meanwhile.
 * Misuse: not dead, references left, or no PERCPU_REF_ALLOW_REINIT: told (QUIESCE_MISUSE_COUNT), without effect. */
static inline void percpu_ref_reinit(struct percpu_ref *ref)
{
	quiesce_percpu_ref_reinit(ref);
}

/** percpu_ref_resurrect - take percpu_ref_kill() back: live, one reference more, the caller's.
 *
 * Context, misuse: as percpu_ref_reinit(), but references may be left: then the caller makes sure that the
 *   last one is not put meanwhile, or that the release does no harm. */
static inline void percpu_ref_resurrect(struct percpu_ref *ref)
{
	quiesce_percpu_ref_resurrect(ref);
}

/** percpu_ref_is_dying - has it been killed?  Any context; no order; while a kill or reinit is under way either. */
QUIESCE_FAST bool percpu_ref_is_dying(const struct percpu_ref *ref)
{
	return quiesce_load_relaxed(&ref->state) & QUIESCE_REF_DEAD; /* Relaxed: no order promised. */
}

/** percpu_ref_is_zero - have all references gone?  No while @ref is per CPU: nobody knows.
 *
 * Context: any.  Orders: if yes, acquire of what was done through all references. */
QUIESCE_FAST bool percpu_ref_is_zero(const struct percpu_ref *ref)
{
	/* PR2: acquire, pairs with PR2 in put_shared() */
	return quiesce_load_acquire(PR2, &ref->count) < QUIESCE_REF_ONE;
}

QUIESCE_END_DECLS

#endif
