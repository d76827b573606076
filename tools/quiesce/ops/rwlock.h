/* SPDX-License-Identifier: MIT */
/* rwlock.h - reader-writer locks with both of their sides, for rwscale.
 *
 * One shared lock each.  The read sides are those of the types in table.h with
 * the same names, which refscale times inlined; here everything is a function,
 * because what a writer waits for is longer than a call.
 */
#ifndef QUIESCE_TOOL_RWLOCK_H
#define QUIESCE_TOOL_RWLOCK_H

#include <stdbool.h>

/* A lock's functions are called in a process that uses no other lock of the table. */
struct rwlock_op {
	const char *name, *what;
	/* Each may be NULL.  init: 0 or -errno, before any thread uses it; fini: after all of them;
	 * thread_*: around a thread's use, whichever side it takes; they may wait until nobody is inside. */
	int (*init)(void);
	void (*fini)(void);
	void (*thread_enter)(void), (*thread_exit)(void);
	/* Not recursive; the thread that locked unlocks. */
	void (*read_lock)(void), (*read_unlock)(void);
	void (*write_lock)(void), (*write_unlock)(void);
	bool (*fast)(void); /* do readers take their short way, as while nobody writes?  NULL: they have one way only */
	bool queue; /* readers queue too: with more threads than CPUs most wait for one that does not run, for seconds */
};

/* Every lock compiled in, NULL at the end, in the order in which results are shown. */
extern const struct rwlock_op *const rwlock_table[];
const struct rwlock_op *rwlock_find(const char *name); /* NULL: there is none */

#ifdef HAVE_CK
#define RWLOCK_CK(X) X(ck_brlock) X(ck_rwlock) X(ck_pflock) X(ck_bytelock)
#else
#define RWLOCK_CK(X)
#endif

#ifdef HAVE_STD_SHARED_MUTEX
#define RWLOCK_STD(X) X(std_shared_mutex)
#else
#define RWLOCK_STD(X)
#endif

#ifdef HAVE_TBB
#define RWLOCK_TBB(X) X(tbb_spin_rw_mutex) X(tbb_rw_mutex) X(tbb_queuing_rw_mutex)
#else
#define RWLOCK_TBB(X)
#endif

/* Row X is rwlock_op_X.  What goes by the library is measured once with light and once with full fences. */
#define RWLOCK_OURS(X) X(gp) X(expedited) X(rcu_sync)
#define RWLOCK_OTHERS(X) X(pthread_rwlock) X(pthread_rwlock_writer) RWLOCK_STD(X) RWLOCK_CK(X) RWLOCK_TBB(X)
#define RWLOCK_ROWS(X) RWLOCK_OURS(X) RWLOCK_OTHERS(X)

#define RWLOCK_DECLARE(name) extern const struct rwlock_op rwlock_op_##name;
#ifdef __cplusplus
extern "C" {
#endif
RWLOCK_ROWS(RWLOCK_DECLARE)
#ifdef __cplusplus
}
#endif

#endif
