/* SPDX-License-Identifier: MIT */
/* subsystem.h - what the runtime asks of those that are built on it, whom it does not know.
 *
 * Each has one constant of this kind; src/subsystems.c lists them, in the order in which their locks nest.  A call that is not
 * there is nothing to do.
 */
#ifndef QUIESCE_SUBSYSTEM_H
#define QUIESCE_SUBSYSTEM_H

#include "core.h"

struct quiesce__reader;

struct quiesce__subsystem {
	/* Once, before anything else, with signals blocked. */
	void (*init)(void);
	/* Before first use: the program has chosen the fences.  Any time: it has changed a setting. */
	void (*fence_chosen)(void);
	void (*settings_changed)(void);
	/* Add to the statistics. */
	void (*stats)(struct quiesce_stats *stats);

	/* Is no callback running that entered the gate?  Asked after the gate was closed (gate.h). */
	bool (*paused)(void);
	/* Before fork(): take the locks, in the order of the list.  After: give them back in the reverse order. */
	void (*fork_prepare)(void);
	void (*fork_parent)(void);
	/* In the child, perhaps with no call of fork_prepare() before it: repair what is the process's.  Nobody else is inside the library.
	 * What a thread of the parent's has of its own is quiesce__fork_survivor's, which is the caller; or, where that is NULL, it may
	 * be anybody's, and in use. */
	void (*fork_child)(void);
	/* Then: the survivor, which is the caller, has come.  Give up what the others had, and repair the block of @self.  Other threads
	 * of the child may be inside the library, unless the caller itself repaired. */
	void (*fork_survivor)(struct quiesce_tls_v1 *self);

	/* A thread exits: report what it holds; with signals blocked, give back what others are to have while it
	 * may still begin sections; what it may have after that is nobody's, and it is no reader any more. */
	void (*thread_report)(const struct quiesce_tls_v1 *self);
	void (*thread_exit)(struct quiesce_tls_v1 *self);
	void (*thread_end)(struct quiesce_tls_v1 *self);
	/* The thread calls exit(), or returns from main(): report what it holds, as far as a debug build has told. */
	void (*process_report)(const struct quiesce_tls_v1 *self);
	/* An entry of the registry is about to be given back by its owner, or has been for one that died. */
	void (*reader_gone)(struct quiesce__reader *reader);
};

/* Ends with NULL. */
extern const struct quiesce__subsystem *const quiesce__subsystems[];

/* Call @hook, with these arguments, of each that has it. */
#define quiesce__each_subsystem(hook, ...)                                                                   \
	do {                                                                                                 \
		for (const struct quiesce__subsystem *const *each_ = quiesce__subsystems; *each_; each_++)   \
			if ((*each_)->hook)                                                                  \
				(*each_)->hook(__VA_ARGS__);                                                 \
	} while (0)

#endif
