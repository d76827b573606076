/* SPDX-License-Identifier: MIT */
/* subsystem.h - the functions that the runtime calls in the subsystems built on it, which it does not know.
 *
 * Each subsystem has one constant of this type; src/subsystems.c lists them in the order in which their locks
 * nest.  A function that is NULL has nothing to do.
 */
#ifndef QUIESCE_SUBSYSTEM_H
#define QUIESCE_SUBSYSTEM_H

#include "core.h"

struct quiesce__reader;

struct quiesce__subsystem {
	/* The runtime calls this once, before any other function, with signals blocked. */
	void (*init)(void);
	/* The program has chosen the fence mode, before the first use; the program has changed a setting, at
	 * any time. */
	void (*fence_chosen)(void);
	void (*settings_changed)(void);
	/* Add the subsystem's figures to the statistics. */
	void (*stats)(struct quiesce_stats *stats);

	/* True if no callback that entered the gate still runs; called after the gate was closed (gate.h). */
	bool (*paused)(void);
	/* Before fork(): take the locks, in the order of the list.  After fork(), in the parent: release them
	 * in the reverse order. */
	void (*fork_prepare)(void);
	void (*fork_parent)(void);
	/* In the child, perhaps without a call of fork_prepare(): reinitialise process-wide state.  No other
	 * thread is inside the library.  State that a thread of the parent owned belongs to
	 * quiesce__fork_survivor, the caller; or, where that is NULL, to an unknown thread, which may be
	 * using it. */
	void (*fork_child)(void);
	/* Called after fork_child(), in the survivor as it re-enters the library.  Release what the parent's
	 * other threads owned, and reinitialise the block of @self.  Other threads of the child may be inside
	 * the library, unless the caller itself reinitialised the process. */
	void (*fork_survivor)(struct quiesce_tls_v1 *self);

	/* A thread exits.  thread_report: report what it holds.  thread_exit, with signals blocked: release
	 * what other threads are to take over while this one may still begin sections.  thread_end: release
	 * the rest; the thread is no reader any more. */
	void (*thread_report)(const struct quiesce_tls_v1 *self);
	void (*thread_exit)(struct quiesce_tls_v1 *self);
	void (*thread_end)(struct quiesce_tls_v1 *self);
	/* The thread calls exit(), or returns from main(): report what it holds, as far as debug builds
	 * recorded it. */
	void (*process_report)(const struct quiesce_tls_v1 *self);
	/* A registry entry is about to be released by its owner, or was released for an owner that died. */
	void (*reader_gone)(struct quiesce__reader *reader);
};

/* NULL terminates the list. */
extern const struct quiesce__subsystem *const quiesce__subsystems[];

/* Call @hook, with these arguments, of each subsystem that has it. */
#define quiesce__each_subsystem(hook, ...)                                                                   \
	do {                                                                                                 \
		for (const struct quiesce__subsystem *const *each_ = quiesce__subsystems; *each_; each_++)   \
			if ((*each_)->hook)                                                                  \
				(*each_)->hook(__VA_ARGS__);                                                 \
	} while (0)

#endif
