/* SPDX-License-Identifier: MIT */
/* quiesce/hazptr_retire.h - objects that are reclaimed once no slot protects them.
 * Included by hazptr.h, which states the bound. */
#include <quiesce/hazptr.h> /* includes this header */

#ifndef QUIESCE_HAZPTR_RETIRE_H
#define QUIESCE_HAZPTR_RETIRE_H

QUIESCE_BEGIN_DECLS

/* To be embedded in the object.  Belongs to the library from call_hazptr() until the callback runs. */
struct hazptr_head {
	struct hazptr_head *next;
	void (*func)(struct hazptr_head *head);
};

/* The most objects of one thread that wait to be reclaimed, besides those that are protected. */
#define HAZPTR_BATCH_MAX 8192

/* About the most bytes of one thread that wait to be reclaimed: the call that reaches it reclaims.
 * The limit is per thread, so that 100 threads that retire 4 KiB objects keep at most 100 MiB, not 3 GiB. */
#define HAZPTR_BATCH_BYTES (1u << 20)

QUIESCE_API void quiesce_call_hazptr(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes);
QUIESCE_API void quiesce_call_hazptr_inline(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes);
/* quiesce_call_hazptr_inline() with a function that only frees the memory of the object, as free() does:
 * it ends no thread, and is no cancellation point. */
QUIESCE_API void quiesce__call_hazptr_freeing(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes);
QUIESCE_API void quiesce_kfree_hazptr(void *object, size_t offset, size_t bytes);
QUIESCE_API void quiesce_hazptr_retire(void *object, void (*deleter)(void *object), size_t bytes);
QUIESCE_API void quiesce__call_hazptr_debug(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes);
QUIESCE_API void quiesce__call_hazptr_inline_debug(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes);
QUIESCE_API void quiesce__hazptr_retire_debug(void *object, void (*deleter)(void *object), size_t bytes);
#ifdef QUIESCE_DEBUG
#define QUIESCE__CALL_HAZPTR quiesce__call_hazptr_debug
#define QUIESCE__CALL_HAZPTR_INLINE quiesce__call_hazptr_inline_debug
#define QUIESCE__CALL_HAZPTR_FREEING quiesce__call_hazptr_inline_debug
#define QUIESCE__HAZPTR_RETIRE quiesce__hazptr_retire_debug
#else
#define QUIESCE__CALL_HAZPTR quiesce_call_hazptr
#define QUIESCE__CALL_HAZPTR_INLINE quiesce_call_hazptr_inline
#define QUIESCE__CALL_HAZPTR_FREEING quiesce__call_hazptr_freeing
#define QUIESCE__HAZPTR_RETIRE quiesce_hazptr_retire
#endif
QUIESCE_API void quiesce_hazptr_barrier(void);
QUIESCE_API bool quiesce_hazptr_try_barrier(void);

/** call_hazptr - call @func(@head) once no slot protects @head.
 * @head: in the object, which readers can no longer find.  Not NULL (reported).  Belongs to the
 *   library until @func is called; the debug build reports an object that is retired again before
 *   that.
 * @func: runs in the helper, a thread of the library with all signals blocked; never in this call.
 *   Where no such thread can be created it waits for the next call of hazptr_barrier() or
 *   quiesce_shutdown(), by any thread, and runs there; or until a thread can be created.  It runs
 *   under no lock of the library.  It may call call_hazptr(), call_rcu(), call_srcu() and the like;
 *   it may wait for a cohort, but for no other callbacks and readers; it must return, as described
 *   at call_rcu().  Other callbacks of this kind wait until it has returned.
 *
 * For callers that hold locks.  Others take kfree_hazptr() or call_hazptr_inline(), which are
 * faster, and whose garbage is bounded.
 * Guards of shazptr.h protect objects, too.  Objects are gathered in batches of hundreds, so that
 * one membarrier and one scan serve them all.  A full batch is reclaimed at once; objects that a
 * thread leaves behind within about 0.1 s.  Objects that callbacks retire are reclaimed at once,
 * too, so a chain in which each callback retires the next object is as fast as scans are; but an
 * object that its own callback retires again is called about a thousand times a second.
 * If the helper cannot keep up garbage is unbounded ("Bound" in hazptr.h).
 * Context: any thread, whatever locks it holds, also in an RCU section or a callback; not in a
 *   signal handler.  Does not sleep, and waits for no reader, no callback, no thread of the library and no fork.  May create
 *   the helper thread; a thread's first call maps 64 KiB for its queue, which use memory as they
 *   fill.
 * Cost: a few stores; once per batch a push to a list.  Without memory the call is slower, and the
 *   callback still runs. */
QUIESCE_PLAIN void call_hazptr(struct hazptr_head *head, void (*func)(struct hazptr_head *head))
{
	QUIESCE__CALL_HAZPTR(head, func, QUIESCE_OBJECT_BYTES);
}

/** call_hazptr_sized - call_hazptr() of an object of @bytes.
 *
 * A batch is also full at HAZPTR_BATCH_BYTES.  call_hazptr() counts QUIESCE_OBJECT_BYTES. */
QUIESCE_PLAIN void call_hazptr_sized(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes)
{
	QUIESCE__CALL_HAZPTR(head, func, bytes);
}

/** call_hazptr_inline - call_hazptr() with callbacks in the caller.
 * @func: as for call_hazptr(), but it runs in any thread that retires, often in this very call, or
 *   in the helper.  So no thread may call this while it holds a lock that such a callback takes, or
 *   is in the middle of changing data that a callback changes; and the callback must not wait for
 *   readers for one more reason: it may run inside a section, or beside a slot, of the retirer.
 *
 * Throughput grows with the number of retirers, and garbage is bounded ("Bound" in hazptr.h).  Once
 * per batch the call scans all slots, and finds which objects of this thread that were retired by
 * call_hazptr_inline() or kfree_hazptr() are not protected; it hands those of call_hazptr() over.
 * Each sixth call or so runs the callbacks of six of the objects that were found, so that no call
 * takes long and memory is freed at the pace at which it is allocated.  A call runs more of them
 * only if a batch has few objects because they are large, or less than seven, or if the thread
 * is a batch behind, after a reader that protected many objects for example.
 * Context: any thread, also in an RCU section or a callback (there the call runs no callbacks); not in a signal
 *   handler.  The library does not sleep here, and never waits; while a fork is being prepared the
 *   call runs no callbacks.  Callbacks may sleep.  May create the helper thread, for objects that a
 *   thread leaves behind.
 * Cost: a few stores; once per batch a membarrier (full fences: a fence), a load of each slot in
 *   use, and the callbacks. */
QUIESCE_PLAIN void call_hazptr_inline(struct hazptr_head *head, void (*func)(struct hazptr_head *head))
{
	QUIESCE__CALL_HAZPTR_INLINE(head, func, QUIESCE_OBJECT_BYTES);
}

/** call_hazptr_inline_sized - call_hazptr_inline() of an object of @bytes, as call_hazptr_sized(). */
QUIESCE_PLAIN void call_hazptr_inline_sized(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes)
{
	QUIESCE__CALL_HAZPTR_INLINE(head, func, bytes);
}

/** kfree_hazptr - free() @ptr once no slot protects its head.
 * @ptr: from malloc(), or NULL: no effect.
 * @field: its struct hazptr_head, less than 4096 bytes from its start: also one of a member, such as
 *   base.node.hazptr, and in C++ one of a base.
 *
 * Calls free(), in this call, as call_hazptr_inline() calls callbacks, or in the helper, and no
 *   callback of the program.
 * Context: as call_hazptr(); free() may take locks of the allocator.  Garbage is bounded as for
 *   call_hazptr_inline().
 * Cost: as call_hazptr_inline(). */
#define kfree_hazptr(ptr, field)                                                                                            \
	__extension__({                                                                                                     \
		__typeof__(ptr) quiesce__gone = (ptr);                                                                      \
		if (quiesce__gone)                                                                                          \
			QUIESCE__CALL_HAZPTR(&quiesce__gone->field,                                                         \
					     quiesce__kfree_func(quiesce__gone, field, struct hazptr_head), sizeof(*quiesce__gone)); \
	})

/** kfree_hazptr_head - kfree_hazptr() where the type of the object is not known, as in a generic
 * container.
 * @head: the object's hazptr_head; NULL: the call does nothing.
 * @offset: the distance of @head from the start of the object, which is from malloc(); less than 4096
 *   (otherwise it is reported, and the object is not freed).
 * @bytes: the size of the object.
 * Context, cost: as kfree_hazptr(). */
QUIESCE_PLAIN void kfree_hazptr_head(struct hazptr_head *head, size_t offset, size_t bytes)
{
	if (!head)
		return;
	if (quiesce_unlikely(offset >= QUIESCE_KFREE_OFFSET_MAX))
		quiesce_kfree_hazptr(head, offset, bytes); /* reports it */
	else
		QUIESCE__CALL_HAZPTR(head, quiesce__kfree_at(struct hazptr_head, offset), bytes);
}

/** hazptr_retire - call @deleter(@object) once no slot protects @object, which needs no hazptr_head.
 * @object: the address that readers protect, which they can no longer find.  Not NULL (reported).
 *   Any alignment.
 * @deleter: runs as callbacks of call_hazptr_inline() do; free(), for example.
 *
 * A proxy of 32 bytes represents the object while it waits.  A thread has hundreds of proxies, fetches
 * more before it runs out, and reuses those of reclaimed objects, so there are about as many as
 * objects wait ("Bound" in hazptr.h).  In the last destructors of a thread, when its queue is gone,
 * it takes a proxy that other threads have returned.  Only where the system has no memory for a
 * thread's first call, or had none for any of the last 512, does the call itself wait for the
 * object's readers, and delete it: for ever, if the caller protects the object.
 * Context: as call_hazptr_inline(), also in destructors of thread-local storage, where it does not
 *   wait for the thread's own slots; without memory it may sleep.
 * Cost: as call_hazptr_inline(), and a cache line for the proxy. */
QUIESCE_PLAIN void hazptr_retire(void *object, void (*deleter)(void *object))
{
	QUIESCE__HAZPTR_RETIRE(object, deleter, QUIESCE_OBJECT_BYTES);
}

/** hazptr_retire_sized - hazptr_retire() of an object of @bytes, as call_hazptr_sized(). */
QUIESCE_PLAIN void hazptr_retire_sized(void *object, void (*deleter)(void *object), size_t bytes)
{
	QUIESCE__HAZPTR_RETIRE(object, deleter, bytes);
}

/* ---- the batch ---- */

/** quiesce_set_hazptr_batch - set how many objects of a thread wait before it scans all slots.
 * @least, @most: 1 to HAZPTR_BATCH_MAX / 2; both 0: the default, 128 and 4096.
 *
 * Within these limits the library takes at least twice the number of slots in use, and as many
 * objects as keep scans at about a thirtieth of a thread's time: so a thread that does other work
 * between two retirements keeps little garbage, and one that only retires has few scans.  The
 * trade-off: a scan costs a membarrier, of one to some ten microseconds, and a load of each slot in
 * use; a batch of n objects takes an n-th of that per object, and keeps n objects of each thread
 * that retires, besides those that are protected.
 * These are numbers of objects.  A batch of a thread is also full at HAZPTR_BATCH_BYTES; that of a
 * cohort, which has @least objects, by default 1024, is not.
 * Threads that retire adopt the limits with their next scan.
 * Context: any thread, any time.  Return: 0; -EINVAL. */
QUIESCE_API int quiesce_set_hazptr_batch(uint32_t least, uint32_t most);

/** quiesce_set_thread_hazptr_batch - set the batch of the calling thread; both 0: that of the
 * process.
 * Context: any thread; not in a signal handler.
 * Return: 0; -EINVAL; -ENOMEM: the thread has no queue and gets none. */
QUIESCE_API int quiesce_set_thread_hazptr_batch(uint32_t least, uint32_t most);

/** hazptr_barrier - wait until every callback of a call_hazptr() before this call has returned.
 *
 * It also waits for the slots that protect those objects, and runs callbacks: those of all threads
 * run in the caller, so it must hold no lock that they take.
 * Context: may sleep; not in a callback (reported, aborts); not while the caller protects one of
 *   the objects (a deadlock, which the stall report names).  May create the helper thread. */
QUIESCE_PLAIN void hazptr_barrier(void) { quiesce_hazptr_barrier(); }

/** hazptr_try_barrier - reclaim what was retired before the call, except objects that are protected.
 *
 * Of objects that were retired before the call only those remain that were protected at its scan,
 * by the caller perhaps, and those that another thread's hazptr_barrier() holds; they are reclaimed
 * later as usual.
 * Context: as hazptr_barrier(); waits for no protection, but for callbacks that other threads run.
 * Return: true: none remain; false: some do.  In a callback false, and it is reported. */
QUIESCE_PLAIN bool hazptr_try_barrier(void) { return quiesce_hazptr_try_barrier(); }

QUIESCE_END_DECLS

#endif
