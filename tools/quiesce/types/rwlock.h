/* SPDX-License-Identifier: MIT */
/* rwlock.h - reader-writer locks with both of their sides, for rwscale.
 *
 * One shared lock each.  The read sides are the read facets of the same types, which refscale times
 * inlined; here everything is a function, because a writer waits longer than a call takes.
 */
#ifndef QUIESCE_TOOL_RWLOCK_H
#define QUIESCE_TOOL_RWLOCK_H

#include <stdbool.h>

/* Functions of a lock; the process uses no other lock of the table. */
struct rwlock_op {
	const char *what;
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

#endif
