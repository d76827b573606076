/* SPDX-License-Identifier: MIT */
/* quiesce/control.h - process-wide settings, counters and hooks.
 *
 * Nothing here is needed to use a primitive.  Environment variables, which are read once, override
 * the defaults, and calls override the environment:
 *	QUIESCE_FENCE=auto|light|full  fence mode; with full the library never makes the system
 *	                               call membarrier, which some sandboxes kill a process for
 *	QUIESCE_YIELD=0|1              normal grace periods may force readers to yield
 *	QUIESCE_SLOTS=auto|mm_cid|cpu_id|thread  place of hazard pointers' slots for many threads
 *	QUIESCE_STALL_MS=N             report a wait older than that (0: never; default 10000)
 *	QUIESCE_CEILING=BYTES          garbage ceiling (0: none; default 64M)
 *	QUIESCE_THROTTLE=0|1           call_rcu() and call_srcu() wait above the ceiling
 *	QUIESCE_RECLAIMERS=N           most threads that run callbacks of call_rcu() (1 to 16; default 1)
 *	QUIESCE_GARBAGE_WARNING=BYTES  report garbage when it reaches that (0: never; default 1G)
 *	QUIESCE_ALLOW_COPIES=1         do not abort when two copies of the library are loaded
 *	QUIESCE_VERBOSE=1              print the settings in force when the library is loaded
 * BYTES is a number, with the suffix k, K, M or G for powers of 1024.  A value that cannot be
 * used is reported on stderr, with the values that can be, and the default is used.
 * docs/debugging.md explains the messages.
 * Context, where a call states no other: any thread, at any time, except in signal handlers. */
#ifndef QUIESCE_CONTROL_H
#define QUIESCE_CONTROL_H

#include <quiesce/detail/promise.h>

QUIESCE_BEGIN_DECLS

enum quiesce_fence {
	QUIESCE_FENCE_AUTO,  /* light where the kernel's membarrier works, else full */
	QUIESCE_FENCE_LIGHT, /* readers: compiler barrier; updaters: membarrier */
	QUIESCE_FENCE_FULL,  /* readers: full fence; updaters: full fence */
};

/** quiesce_set_fence - choose the fence mode of this process.
 * Context: before the first use of any primitive.  Unless QUIESCE_FENCE=full, the library has
 *   already asked the kernel for membarrier by then, when it was loaded.
 * Return: 0; -EBUSY after the first use; -EINVAL; or the reason why light fences are impossible
 *   (-ENOSYS, -EPERM, -EREMOTEIO). */
QUIESCE_API int quiesce_set_fence(enum quiesce_fence fence);

/** quiesce_fence - return the fence mode in force; never QUIESCE_FENCE_AUTO. */
QUIESCE_API enum quiesce_fence quiesce_fence(void);

/** QUIESCE_LIGHT_FENCES_ONLY - promise light fences, by a macro defined before the first header.
 *
 * Code that is compiled with it protects objects by hazptr.h without a test of the mode: each
 * protection has a load and two instructions less.  So such a program, or a library when it is
 * loaded, aborts before main(), with a line that gives the reason, where the kernel has no
 * membarrier for it or full fences were chosen; afterwards quiesce_set_fence() returns -EBUSY.
 * Its protections do not check for waiters either: a waiter for an object that one of them
 * protects scans again after a quarter of the wait so far, at most 8 ms later. */

/* Slots of hazard pointers are in one of these places. */
enum quiesce_slots {
	QUIESCE_SLOTS_THREAD, /* slots of the first threads; without rseq(2), all but shared ones */
	QUIESCE_SLOTS_CPU_ID, /* slots of the CPU; for kernels before 6.3 */
	QUIESCE_SLOTS_MM_CID, /* slots of the process's concurrency id */
	QUIESCE_SLOTS_SHARED, /* slots of a shared pool, where the others are taken */
};

/** quiesce_slots - return where threads beyond the first few claim slots.
 * Return: the place; never QUIESCE_SLOTS_SHARED. */
QUIESCE_API enum quiesce_slots quiesce_slots(void);

/** quiesce_set_skip_self_scan - let synchronize_shazptr() use the scan thread at once.
 * @on: 1: the caller does not scan all slots itself, for tests, and for callers that must not spend
 *   time on that; 0: it does, the default. */
QUIESCE_API void quiesce_set_skip_self_scan(int on);

/** quiesce_set_yield - allow normal grace periods to force readers to yield the CPU.
 * @on: 1: where a holdout (a reader that the grace period waits for) does not get its CPU, other
 *   readers there yield, at most a fifth of the time, the default; 0: they do not, for programs
 *   in which a yield beside a CPU hog costs more than a long grace period.
 * Expedited grace periods are not affected. */
QUIESCE_API void quiesce_set_yield(int on);

/** quiesce_set_garbage_ceiling - set the amount of garbage above which the library acts.
 * @bytes: total size of the unreclaimed objects of call_rcu(), kfree_rcu() and call_srcu() above which
 *   rcu_throttle() waits; grace periods are expedited above half of it.  Default 64 MiB.  0: none.
 *
 * Threads report their garbage in quanta that together are at most a quarter of the ceiling (at most
 * 64 KiB and at least 1 KiB for each thread), so the garbage may exceed it by that much. */
QUIESCE_API void quiesce_set_garbage_ceiling(uint64_t bytes);

/** quiesce_set_throttle - let call_rcu(), kfree_rcu() and call_srcu() wait above the ceiling.
 * @on: 0: they never wait, the default; 1: they wait as rcu_throttle() does.
 *
 * By default they never wait, because callers hold locks that readers and callbacks take, and a
 * program bounds its garbage by rcu_throttle() where it holds none.  With 1 they wait wherever they
 * are not in an RCU section or a callback: for programs that make all of these calls without such
 * locks, and call_rcu() outside of sections of SRCU domains, too.  call_srcu() waits at most 20 ms
 * each time, because it may be inside a section of its domain. */
QUIESCE_API void quiesce_set_throttle(int on);

/* The threads that the library starts when they are first needed. */
enum quiesce_thread {
	/* The thread "quiesce" runs callbacks of call_rcu(), and frees objects of kfree_rcu() that
	 * the thread that retired them has not freed. */
	QUIESCE_THREAD_WORKER,
	/* The thread "quiesce-helper" runs callbacks of call_srcu() and call_hazptr(), and deferred
	 * work of rwsems and tables; there are several while callbacks block. */
	QUIESCE_THREAD_HELPER,
	/* The thread "quiesce-scan" scans slots for synchronize_shazptr(). */
	QUIESCE_THREAD_SCAN,
	/* Threads "quiesce-reclaim" run callbacks of call_rcu() beside "quiesce":
	 * quiesce_set_reclaimers(). */
	QUIESCE_THREAD_RECLAIMER,
	QUIESCE_NR_THREADS,
};

/* How one of these threads runs.  Initialise it with QUIESCE_THREAD_ATTR_INIT, the default. */
struct quiesce_thread_attr {
	size_t size;      /* size of this structure, as the program was compiled with it */
	const char *name; /* at most 15 characters; NULL: the name given in enum quiesce_thread */
	int policy;       /* SCHED_OTHER, which is 0; SCHED_BATCH, _IDLE, _FIFO or _RR */
	int priority;     /* priority within a real-time policy */
	int nice;
	int node;         /* NUMA node on whose CPUs alone it may run; -1: any */
	const void *cpus; /* a cpu_set_t of @cpus_size bytes; NULL: the process's, see below */
	size_t cpus_size; /* 0 where @cpus is NULL */
};
#define QUIESCE_THREAD_ATTR_INIT { sizeof(struct quiesce_thread_attr), NULL, 0, 0, 0, -1, NULL, 0 }

/** quiesce_set_thread_attr - choose policy, priority, CPUs and name of the library's threads.
 * @which: the kind of thread.
 * @attr: the attributes; NULL: the defaults.
 *
 * By default these threads have the normal policy and nice 0, whichever thread starts them and
 * whatever its policy; and the CPUs that the first thread of the process may use when they start,
 * less isolated CPUs and those without a tick (isolated, nohz_full), unless none is left.  So
 * they follow "taskset -a -p"; and a program that pins its first thread, for itself, chooses CPUs
 * for them.  docs/realtime.md lists the attributes that they inherit from the thread that starts
 * them.  A thread that may not raise itself to nice 0 stays as nice as it is, or as its starter
 * is; that is no error.  A thread that runs changes at once; a thread that starts later, also in
 * a forked child, begins with the attributes.  Attributes that the kernel refuses to a thread
 * when it starts are left out.
 *
 * Context: may sleep; not inside a signal handler.
 * Cost: system calls; the first call reads files.
 * Return: 0; -EINVAL, a field is out of range, or no CPU is left; -ENODEV, no such node; the
 *   kernel's error for a thread that runs, -EPERM for example.  After an error nothing is
 *   chosen, but a thread that runs may have a part of the attributes. */
QUIESCE_API int quiesce_set_thread_attr(enum quiesce_thread which, const struct quiesce_thread_attr *attr);

#define QUIESCE_RECLAIMERS_MAX 16

/** quiesce_set_reclaimers - let several threads run callbacks of call_rcu().
 * @nr: most threads that run them, 1 to QUIESCE_RECLAIMERS_MAX, the worker included; default 1: the
 *   worker alone.  It is lowered to the number of CPUs that the first thread of the process may use
 *   at the call; quiesce_describe_settings() has the result.
 *
 * For callbacks that take long, or block, as closing a connection or munmap().  If a grace period
 * was for callbacks of several threads, the worker and up to @nr - 1 others take the callbacks of
 * one thread after the other, until none is left.  The others are woken, or started, for 256
 * callbacks or more, or if fewer are expected to take 100 us, by the time that the last ones took;
 * they sleep meanwhile, and end when they were not needed for a second.  Frees of kfree_rcu(), and
 * callbacks that were queued without memory, are not shared.
 * A callback that does not return holds up the callbacks that its thread has queued, everything that
 * is queued from now on, the frees of its grace period, and the callbacks of other threads if no
 * other reclaimer was needed for them.
 * In a child of fork() one thread runs what was queued before, whatever @nr is; if the fork was made in
 * a callback, after that has returned, and callbacks that other threads were running count as run.
 * Callbacks that a callback outside of the worker queues run a millisecond later.
 * The threads have the worker's attributes, or those of quiesce_set_thread_attr() for their kind.
 *
 * Context: any thread, also inside a callback; not in signal handlers.  Waits for no thread: surplus
 *   ones end when they have run the callbacks that they have begun with.
 * Cost: system calls.  Then, for each grace period of the worker: with 1 a load; with more a visit of
 *   the queues, and four locked operations for each queue that has callbacks.
 * Return: 0; -EINVAL: @nr is 0, or more than QUIESCE_RECLAIMERS_MAX, and nothing is changed.
 * Orders: callbacks of one thread run in the order in which it queued them, each after the one before
 *   has returned and with its effects visible, whichever threads run them; but for those that were
 *   queued without memory, in the thread's destructors, or on both sides of a fork().  Callbacks of
 *   different threads run in any order, and with more than 1 at the same time: data that they share
 *   then needs a lock.  rcu_barrier() waits for all of them, and sees their effects. */
QUIESCE_API int quiesce_set_reclaimers(unsigned int nr);

/** quiesce_set_worker_cpu - run the worker thread on one CPU only.
 * @cpu: number of the CPU; -1: the defaults of quiesce_set_thread_attr().
 * Return: 0, or an error of quiesce_set_thread_attr(). */
QUIESCE_API int quiesce_set_worker_cpu(int cpu);

/* The kinds of misuse that are detected: always; "debug": in code compiled with QUIESCE_DEBUG.  See
 * docs/misuse.md. */
enum quiesce_misuse {
	/* synchronize_rcu(), rcu_barrier(), ... was called inside a section; or a caller would wait
	 * for its own guard (debug). */
	QUIESCE_MISUSE_WAIT_IN_READER,
	/* rcu_barrier() was called inside a callback. */
	QUIESCE_MISUSE_WAIT_IN_CALLBACK,
	/* A lock that was not held was unlocked; a guard was cleared, or a slot freed, twice
	 * (debug). */
	QUIESCE_MISUSE_UNBALANCED_UNLOCK,
	/* Sections are nested too deep. */
	QUIESCE_MISUSE_NESTING,
	/* A thread exited inside a section, which is ended; or the process did (debug). */
	QUIESCE_MISUSE_EXIT_IN_READER,
	/* An argument is NULL where an object is needed. */
	QUIESCE_MISUSE_NULL,
	/* Program and library were built from different headers. */
	QUIESCE_MISUSE_LAYOUT,
	/* Two copies of the library are in one process. */
	QUIESCE_MISUSE_COPIES,
	/* A reference count fell below zero, or rose above its limit. */
	QUIESCE_MISUSE_COUNT,
	/* A context of hazard pointers was cleaned up with a slot in use. */
	QUIESCE_MISUSE_CONTEXT_HELD,
	/* A lock, domain or count was destroyed, or reset as in a child, while in use; it stays as
	 * it is. */
	QUIESCE_MISUSE_IN_USE,
	/* An assertion that a lock, or a section, is held failed; a call that needs a section was
	 * made outside of one, or with a free slot (debug). */
	QUIESCE_MISUSE_NOT_HELD,
	/* A number is not valid for the call: an id that is not allocated, or a mark that does not
	 * exist; the call has no effect. */
	QUIESCE_MISUSE_ARGUMENT,
	/* An object is twice in the list that a call was given; or an object was queued, or put
	 * into a table, that is there already (debug). */
	QUIESCE_MISUSE_TWICE,
	/* A thread exited inside a callback, which counts as run; or an exception left a callback,
	 * which aborts. */
	QUIESCE_MISUSE_EXIT_IN_CALLBACK,
};

/** quiesce_set_misuse_hook - call a function for each misuse, instead of aborting.
 * @hook: it gets the kind and one line of text, and returns; NULL restores the default, which
 *   prints the line and aborts (EXIT_IN_READER and EXIT_IN_CALLBACK only print).
 *
 * When @hook returns from WAIT_IN_READER or WAIT_IN_CALLBACK the call does not wait; except a
 * call for a lock, which waits, because the caller would otherwise believe that it holds the
 * lock.  When it returns from UNBALANCED_UNLOCK, NULL or TWICE, the call has no effect.
 * LAYOUT, COPIES and NESTING abort even so. */
QUIESCE_API void quiesce_set_misuse_hook(void (*hook)(enum quiesce_misuse kind, const char *text));

/** quiesce_set_stall_timeout - set the duration after which a wait is reported.
 * @ns: report a wait that lasts this long, and again after each further @ns; 0: never.
 * A wait in progress uses the new value only after its current interval. */
QUIESCE_API void quiesce_set_stall_timeout(uint64_t ns);

/** quiesce_set_garbage_warning - set the amount of garbage that is reported.
 * @bytes: report garbage when it reaches this, twice this, and so on; 0: never.
 *
 * Garbage of RCU, of all domains of SRCU, and of hazard pointers is reported separately; the
 * garbage of hazard pointers is estimated from the average of the sizes that call_hazptr() was
 * given. */
QUIESCE_API void quiesce_set_garbage_warning(uint64_t bytes);

/* Reports are of these kinds; the program goes on after a report. */
enum quiesce_report_kind {
	QUIESCE_REPORT_STALL,   /* a wait lasts too long */
	QUIESCE_REPORT_GARBAGE, /* more garbage waits to be reclaimed than expected */
};

/* A report; later versions of the library may add fields at the end. */
struct quiesce_report {
	enum quiesce_report_kind kind;
	uint32_t holder;        /* gettid() of the thread that is waited for; 0: unknown, ended, several */
	const char *call;       /* call that waits, or for garbage the calls that queued it */
	const void *object;     /* domain, lock, or address that is waited for; NULL: none */
	uint64_t waited_ns;
	uint64_t garbage_bytes; /* amount of garbage; for QUIESCE_REPORT_GARBAGE only */
	const char *text;       /* line that would be printed, without "quiesce: " and newline */
};

/** quiesce_set_report_hook - call a function with each report, instead of printing it.
 * @hook: NULL restores the default, a line on stderr.  Its argument @report, and all that this
 *   points to, are valid until it returns.
 *
 * The hook is called by the waiter, in the middle of the call that @report names, or by a thread
 * of the library; so with the locks that the caller holds, and perhaps by several threads at
 * once.  It may read, enter and leave sections, retire objects, allocate, log, dump the stacks of
 * other threads, or abort.  It may not wait for anything that the library waits for
 * (synchronize_rcu(), rcu_barrier(), percpu_down_write(), ...), nor take a lock that is held
 * around such a wait anywhere.  The wait resumes when the hook returns.  It has to return: if it
 * ends its thread, that is reported, and the process aborts.  It is not cancelled.  It is not
 * called in signal handlers.
 *
 * Context: any thread, at any time; a hook that was replaced may still be running. */
QUIESCE_API void quiesce_set_report_hook(void (*hook)(const struct quiesce_report *report));

/** quiesce_set_holdout_hook - call a function for each holdout: a reader that delays RCU's updaters.
 * @hook: the function; NULL: none.  It gets the number of the reader's thread, as gettid() returns
 *   it; the time that the grace period has waited, in nanoseconds; and @arg.
 * @arg: the last argument of @hook.
 *
 * If a wait for a grace period of RCU lasts about a millisecond, in synchronize_rcu() or in the
 * worker for call_rcu(), the hook is called for its holdouts, one after the other.  A reader that
 * stays a holdout, or becomes one again, is reported again after 10 ms or more.  So a program can
 * make such a reader leave its section: an emulator sends a signal to the thread of a virtual
 * CPU.  docs/realtime.md has an example.
 *
 * A reader is a holdout just before the call.  It may have left its section since, or its thread
 * may have ended: so the number is a hint, and the hook finds the thread among the
 * program's own, under a lock that each of them takes before it ends.  Not reported are unregistered
 * readers, such as destructors of threads that end; readers of SRCU; readers of liburcu's
 * flavours mb and qsbr; and readers of programs that were compiled with liburcu's own headers.
 *
 * The thread "quiesce-helper" calls the hook, one call at a time, and holds no lock of the
 * library.  The hook may take locks that are not held around waits for grace periods, signal
 * threads, allocate, enter sections, queue callbacks, and call synchronize_srcu(),
 * synchronize_shazptr() and quiesce_set_holdout_hook().  No other holdout is reported until it
 * returns: so it has to be short, and a wait for RCU in it ends only when the holdouts leave by
 * themselves.  Barriers in it are a misuse, and fork() and the end of its thread have
 * the effects that they have in a callback of call_srcu().  A forked child inherits the hook.
 *
 * Context: any thread, not in a section or signal handler.  Sleeps until the previous hook has
 *   returned from its last call, unless the caller is in that call; so the caller holds no lock
 *   that the hook takes.
 * Cost: a load in each wait that lasts.  Readers pay nothing.
 * Return: 0; -EAGAIN: the hook is set, but its thread cannot be started now; calls begin when
 * it can. */
QUIESCE_API int quiesce_set_holdout_hook(void (*hook)(int tid, uint64_t waited_ns, void *arg), void *arg);

/** quiesce_describe_settings - describe version and settings, as QUIESCE_VERBOSE=1 prints them.
 * @text: gets as much of the line as @size allows, terminated by a NUL.
 * @size: size of @text in bytes.
 * Return: length of the whole line, as snprintf() returns it. */
QUIESCE_API size_t quiesce_describe_settings(char *text, size_t size);

/* Counters of the process; "now" marks numbers that also go down. */
struct quiesce_stats {
	uint64_t grace_periods;        /* completed */
	uint64_t expedited;            /* times a wait forced readers to yield */
	uint64_t membarriers;          /* heavy fences executed by system call */
	uint64_t sleeps;               /* times a grace period slept for a reader */
	uint64_t wakeups;              /* times a reader woke a grace period */
	uint64_t yields;               /* times a reader yielded the CPU because a wait forced it */
	uint64_t stalls;               /* stall reports */
	uint64_t callbacks_queued;     /* callbacks and objects given to RCU */
	uint64_t callbacks_run;        /* callbacks run, and objects freed, by RCU */
	uint64_t garbage_bytes;        /* now, of RCU and SRCU; to within 64 KiB for a domain */
	uint64_t garbage_objects;      /* now, of RCU and SRCU */
	uint64_t backpressure;         /* times rcu_throttle() waited for less garbage */
	uint32_t readers;              /* registered threads, now */
	uint32_t worker_running;       /* 1 while the worker runs */
	uint64_t shazptr_waits;        /* calls of synchronize_shazptr() */
	uint64_t shazptr_blocked;      /* such calls that did not return after a scan of their own */
	uint64_t scans;                /* scans of all slots for synchronize_shazptr() */
	uint64_t overflows;            /* guards for which all slots of thread and CPU were taken */
	uint64_t fallback_guards;      /* guards without a slot or memory: block all waits */
	uint32_t slots_lines;          /* groups of eight words that a scan loads, now */
	uint32_t scan_thread_running;  /* 1 while the scan thread runs */
	uint64_t hazptr_retired;       /* objects given to call_hazptr() and cohorts */
	uint64_t hazptr_reclaimed;     /* callbacks run; retired less reclaimed is garbage now */
	uint64_t hazptr_scans;         /* scans of all slots for call_hazptr() and cohorts */
	uint64_t hazptr_swept;         /* objects handed over, or left, by their retirers */
	uint64_t srcu_grace_periods;   /* grace periods of all domains */
	uint64_t queues;               /* queues of threads that use call_rcu(), now */
	uint64_t queues_visited;       /* queues with objects that the worker visited */
	uint64_t srcu_callbacks_queued; /* in all domains; part of garbage_* until they have run */
	uint64_t srcu_callbacks_run;
	uint64_t hazptr_queues_visited; /* queues visited for objects that retirers left */
	uint64_t garbage_warnings;     /* reports of garbage */
	uint64_t queues_helped;        /* visited queues whose callbacks another thread ran */
	uint32_t reclaimers_running;   /* now, of quiesce_set_reclaimers() without the worker */
	uint64_t slab_bytes;           /* now, memory of the slabs of all object caches */
};

/** quiesce_get_stats - return the counters of the process.
 * @ret_stats: where they are stored.
 * @size: sizeof(struct quiesce_stats) in the caller.
 * Context: any thread.  The figures are not one snapshot. */
QUIESCE_API void quiesce_get_stats(struct quiesce_stats *ret_stats, size_t size);

/** quiesce_shutdown - run all pending callbacks, then stop the library's threads.
 * @timeout_ns: the longest that it may take, in nanoseconds; 0: no limit.
 *
 * It runs the callbacks of call_rcu(), of call_hazptr() and, of all domains, of call_srcu(), and
 * those that these queue.  The library stays usable, and later calls start threads again.  A
 * grace period that start_poll_synchronize_srcu() has begun, and that still has holdouts, then
 * proceeds as it is polled.
 *
 * In a child of fork(), sections of SRCU may be of threads that the child does not have, and never
 * end.  If all that is pending waits for sections that were open at the fork, and there has been no
 * progress for 100 ms, the call returns -ETIMEDOUT even without a limit, and stops the threads.
 *
 * Context: sleeps until holdouts have left; not in a section of a domain with
 *   callbacks, which it would wait for.  Runs callbacks in the caller where the library's threads
 *   cannot be started: the caller holds no lock that they take.
 * Return: 0: no thread of the library is left, for the kernel too: unshare(), setns() and readers
 *   of /proc/self/task find the program's threads only, until the library is used again.
 *   -ETIMEDOUT: callbacks are still pending, or a thread has not ended.
 *   -EBUSY: other threads of the program need threads of the library again and again.
 *   -EDEADLK: in a section of RCU or a callback, after the misuse hook. */
QUIESCE_API int quiesce_shutdown(uint64_t timeout_ns);

/** quiesce_version - return the version of the library that is loaded, such as "0.3.0". */
QUIESCE_API const char *quiesce_version(void);

QUIESCE_END_DECLS

#endif
