/* SPDX-License-Identifier: MIT */
/* rwlock.h - reader-writer locks with both of their sides, for rwscale.
 *
 * One shared lock each.  The read sides are those of the types in table.h with the same names, which refscale times
 * inlined; here everything is a function, because a writer waits longer than a call takes.
 */
#ifndef QUIESCE_TOOL_RWLOCK_H
#define QUIESCE_TOOL_RWLOCK_H

#include <stdbool.h>

/* Functions of a lock; the process uses no other lock of the table. */
struct rwlock_op {
	const char *name, *what;
	/* Each may be NULL.  init: returns 0 or -errno; called before any thread uses the lock; fini: after all of
	 * them;
	 * thread_*: around the use of either side by a thread; they may wait until no thread is inside. */
	int (*init)(void);
	void (*fini)(void);
	void (*thread_enter)(void), (*thread_exit)(void);
	/* A lock is not recursive, and the thread that locked it unlocks it. */
	void (*read_lock)(void), (*read_unlock)(void);
	void (*write_lock)(void), (*write_unlock)(void);
	bool (*fast)(void); /* true while readers take the fast path, as without writers; NULL: they have one path only */
	bool queue; /* true: readers queue, too; with more threads than CPUs most wait for a thread that does not run, for seconds */
};

#ifdef HAVE_STD_SHARED_MUTEX
#define RWLOCK_STD(X) X(std_shared_mutex)
#else
#define RWLOCK_STD(X)
#endif

/* These lists name the types of each peer library, as table.h does. */
#define RWLOCK_LIBURCU(P)
#define RWLOCK_CK(P) P(ck_brlock) P(ck_rwlock) P(ck_pflock) P(ck_bytelock)
#define RWLOCK_LIBCDS(P)
#define RWLOCK_TBB(P) P(tbb_spin_rw_mutex) P(tbb_rw_mutex) P(tbb_queuing_rw_mutex)

/* The types in the order in which results are shown; row X is rwlock_op_X.  Locks of the library are measured once
 * with light and once with full fences. */
#define RWLOCK_OURS(X) X(gp) X(expedited) X(rcu_sync)
#define RWLOCK_OTHERS(X, P) X(pthread_rwlock) X(pthread_rwlock_writer) RWLOCK_STD(X) RWLOCK_CK(P) RWLOCK_TBB(P)

/* RWLOCK_HERE() makes a row of rwlock_types. */
#define RWLOCK_HERE(name_) &(const struct op){ .name = #name_, .rwlock = &rwlock_op_##name_ },

#define RWLOCK_DECLARE(name) extern const struct rwlock_op rwlock_op_##name;
#ifdef __cplusplus
extern "C" {
#endif
RWLOCK_OURS(RWLOCK_DECLARE)
RWLOCK_OTHERS(RWLOCK_DECLARE, RWLOCK_DECLARE)
#ifdef __cplusplus
}
#endif

#endif
