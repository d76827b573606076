/* SPDX-License-Identifier: MIT */
/* quiesce/hazptr_retire.h - objects that are reclaimed once no slot protects them.  Included by hazptr.h, which has the bound. */
#include <quiesce/hazptr.h> /* which includes this one */

#ifndef QUIESCE_HAZPTR_RETIRE_H
#define QUIESCE_HAZPTR_RETIRE_H

QUIESCE_BEGIN_DECLS

/* To be embedded in the object; the library's from call_hazptr() until the callback runs. */
struct hazptr_head {
	struct hazptr_head *next;
	void (*func)(struct hazptr_head *head);
};

/* So many objects of one thread wait at most, next to those that are protected. */
#define HAZPTR_BATCH_MAX 8192

/* ... and about so many bytes: the call with which they are reached reclaims.  A thread's share, so that 100 threads that
 * retire 4 KiB objects keep 100 MiB at most, not 3 GiB. */
#define HAZPTR_BATCH_BYTES (1u << 20)

QUIESCE_API void quiesce_call_hazptr(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes);
QUIESCE_API void quiesce_call_hazptr_inline(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes);
QUIESCE_API void quiesce_hazptr_retire(void *object, void (*deleter)(void *object), size_t bytes);
QUIESCE_API void quiesce__call_hazptr_debug(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes);
QUIESCE_API void quiesce__call_hazptr_inline_debug(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes);
QUIESCE_API void quiesce__hazptr_retire_debug(void *object, void (*deleter)(void *object), size_t bytes);
#ifdef QUIESCE_DEBUG
#define QUIESCE__CALL_HAZPTR quiesce__call_hazptr_debug
#define QUIESCE__CALL_HAZPTR_INLINE quiesce__call_hazptr_inline_debug
#define QUIESCE__HAZPTR_RETIRE quiesce__hazptr_retire_debug
#else
#define QUIESCE__CALL_HAZPTR quiesce_call_hazptr
#define QUIESCE__CALL_HAZPTR_INLINE quiesce_call_hazptr_inline
#define QUIESCE__HAZPTR_RETIRE quiesce_hazptr_retire
#endif
QUIESCE_API void quiesce_hazptr_barrier(void);
QUIESCE_API bool quiesce_hazptr_try_barrier(void);

/** call_hazptr - call @func(@head) once no slot protects @head.
 * @head: in the object, which readers can no longer find.  Not NULL (reported).  The library's until @func is called:
 *   retired again before that is reported by the debug build.
 * @func: runs in the helper, a thread of the library, which has all signals blocked; never in this call.  Where no
 *   such thread can be had it waits for the next call of hazptr_barrier() or quiesce_shutdown(), by any thread, and
 *   runs there; or until a thread can be had.  It runs under no lock of the library.  It may call call_hazptr(),
 *   call_rcu(), call_srcu() and the like; it may wait for a cohort, but for no other callbacks and readers; it returns, as said of
 *   call_rcu().  Other callbacks of this kind wait until it has returned.
 *
 * Guards of shazptr.h protect too.  Objects are gathered in batches of a thousand, so that one membarrier and one scan
 * serve them all.  A batch is reclaimed at once; what a thread leaves behind, within about a tenth of a second.  What
 * callbacks retire is reclaimed at once too, so a chain, of which each retires the next, goes as fast as scans do;
 * but one that retires itself again comes about a thousand times a second.
 * If the helper cannot keep up garbage is unbounded ("Bound", above).
 * Context: any thread, whatever locks it holds, also in an RCU section or a callback; not in a signal handler.
 *   Does not sleep and waits for nobody: no reader, callback, sweep or fork.  May create the helper thread; the first
 *   call of a thread maps 64 KiB for its queue, of which it uses as much as it needs.
 * Cost: a few stores; once per batch a push to a list.  Out of memory costs speed, not the callback.
 */
static inline void call_hazptr(struct hazptr_head *head, void (*func)(struct hazptr_head *head))
{
	QUIESCE__CALL_HAZPTR(head, func, QUIESCE_OBJECT_BYTES);
}

/** call_hazptr_sized - call_hazptr() that also tells how many bytes wait, so that a batch is full with HAZPTR_BATCH_BYTES
 * of them.  Plain calls count as QUIESCE_OBJECT_BYTES. */
static inline void call_hazptr_sized(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes)
{
	QUIESCE__CALL_HAZPTR(head, func, bytes);
}

/** call_hazptr_inline - the same, with callbacks in the caller.
 * @func: as with call_hazptr(), but it runs in any thread that retires, often in this very call, or in the helper.  So
 *   no thread may call this while it holds a lock that such a callback takes, or is inside what a callback changes;
 *   and the callback must not wait for readers for one more reason: it may run inside a section, or beside a slot, of
 *   whoever retires.
 *
 * For who retires more than one thread can reclaim: throughput grows with the threads that retire, and garbage is
 * bounded ("Bound", above).  Once per batch, of a thousand or more, the call looks at all slots, runs the callbacks of
 * those objects of this thread that were given to call_hazptr_inline() and kfree_hazptr() and are not protected, and
 * hands the others over.  Callbacks that retire further objects add to the batch that is being run.
 * Context: any thread, also in an RCU section or a callback (there it runs none); not in a signal handler.
 *   The library does not sleep here, and waits for nobody; while a fork is being prepared the call runs no callbacks.
 *   Callbacks may sleep.  May create the helper thread, for what a thread leaves behind.
 * Cost: a few stores; once per batch a membarrier (full fences: a fence), a look at each slot in use, and the
 *   callbacks.
 */
static inline void call_hazptr_inline(struct hazptr_head *head, void (*func)(struct hazptr_head *head))
{
	QUIESCE__CALL_HAZPTR_INLINE(head, func, QUIESCE_OBJECT_BYTES);
}

/** call_hazptr_inline_sized - the same, with @bytes as in call_hazptr_sized(). */
static inline void call_hazptr_inline_sized(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes)
{
	QUIESCE__CALL_HAZPTR_INLINE(head, func, bytes);
}

/** kfree_hazptr - free() @ptr once nobody protects its head.
 * @ptr: from malloc(), or NULL: nothing to do; @field: its struct hazptr_head, less than 4096 bytes from its start.
 *
 * Calls free(), in batches, in this call or in the helper, and no callback of anybody's.
 * Context: as call_hazptr(); free() may take locks of the allocator's.  Garbage is bounded as with
 *   call_hazptr_inline().  Cost: as call_hazptr_inline(). */
#define kfree_hazptr(ptr, field)                                                                                            \
	__extension__({                                                                                                     \
		__typeof__(ptr) quiesce__gone = (ptr);                                                                      \
		if (quiesce__gone)                                                                                          \
			QUIESCE__CALL_HAZPTR(&quiesce__gone->field,                                                         \
					     quiesce__kfree_func(quiesce__gone, field, struct hazptr_head), sizeof(*quiesce__gone)); \
	})

/** hazptr_retire - call @deleter(@object) once no slot protects @object; the object needs no hazptr_head.
 * @object: the address that readers protect, which they can no longer find.  Not NULL (reported).  Any alignment.
 * @deleter: runs as callbacks of call_hazptr_inline() do, which see; free(), for example.
 *
 * A note of 32 bytes stands for the object while it waits.  The thread has hundreds of notes, gets more before it runs out, and
 * uses again those of objects that are gone, of which there are at most so many as wait ("Bound", in hazptr.h).  In the last
 * destructors of a thread, when its queue has gone already, it takes a note that others have left.  Only
 * where the system has no memory for a thread's first call, or had none for any of the last 512, does the call itself wait for the
 * object's readers, and delete it: if the caller protects the object, for ever.
 * Context: as call_hazptr_inline(), also in destructors of thread-local storage, where it does not wait for slots of the thread's
 *   own; without memory it may sleep.  Cost: as there, and a line for the note. */
static inline void hazptr_retire(void *object, void (*deleter)(void *object))
{
	QUIESCE__HAZPTR_RETIRE(object, deleter, QUIESCE_OBJECT_BYTES);
}

/** hazptr_retire_sized - the same, with @bytes as in call_hazptr_sized(). */
static inline void hazptr_retire_sized(void *object, void (*deleter)(void *object), size_t bytes)
{
	QUIESCE__HAZPTR_RETIRE(object, deleter, bytes);
}

/* ---- the batch ---- */

/** quiesce_set_hazptr_batch - how many objects of a thread shall wait before it looks at all slots.
 * @least, @most: 1 to HAZPTR_BATCH_MAX / 2; both 0: the default, 1024 and 4096.
 *
 * Within these the library takes twice the number of slots in use, and more where its heavy fence interrupts other CPUs.  The
 * trade: a look costs a membarrier, of a microsecond to some ten, and a load for each slot in use; a batch of n objects
 * takes an n-th of that for each, and keeps n objects of each thread that retires, and those that are protected.  Batches
 * of 64 hold a sixteenth of the garbage of the default and pay sixteen times as much for looks.
 * Threads that retire take it over with their next look.
 * Context: any thread, any time.  Return: 0; -EINVAL. */
QUIESCE_API int quiesce_set_hazptr_batch(uint32_t least, uint32_t most);

/** quiesce_set_thread_hazptr_batch - the same for the calling thread; both 0: what the process has.
 * Context: any thread; not in a signal handler.  Return: 0; -EINVAL; -ENOMEM: it has no queue and gets none. */
QUIESCE_API int quiesce_set_thread_hazptr_batch(uint32_t least, uint32_t most);

/** hazptr_barrier - wait until every callback of a call_hazptr() before this call has run, and has returned.
 *
 * It waits for the slots that protect those objects, too, and runs what it finds: callbacks of all threads run in the
 * caller, so it must hold no lock that they take.
 * Context: may sleep; not in a callback (reported, aborts); not while the caller protects one of them (a
 *   deadlock, which the stall report tells of).  May create the helper thread. */
static inline void hazptr_barrier(void) { quiesce_hazptr_barrier(); }

/** hazptr_try_barrier - the same, but leave alone what is protected.
 *
 * Of what was retired before the call only objects are left that were protected when it looked, by the caller perhaps, and
 * what another thread's hazptr_barrier() has in hand; they are reclaimed as ever.
 * Context: as hazptr_barrier(); waits for no protection, but for callbacks that other threads are running.
 * Return: true: nothing is left; false: something is.  In a callback false, and it is reported. */
static inline bool hazptr_try_barrier(void) { return quiesce_hazptr_try_barrier(); }

QUIESCE_END_DECLS

#endif
