/* SPDX-License-Identifier: MIT */
/* quiesce/control.h - process-wide settings, counters and hooks.
 *
 * Nothing here is needed to use a primitive.  Environment variables, read once, override the
 * defaults, calls override the environment:
 *	QUIESCE_FENCE=auto|light|full      reader fences; full: the library never makes the system call membarrier, for sandboxes
 *	                                   that end a process which does
 *	QUIESCE_YIELD=0|1                  may plain grace periods make readers yield
 *	QUIESCE_SLOTS=auto|mm_cid|cpu_id|thread  where hazard pointers of many threads have their slots
 *	QUIESCE_STALL_MS=N                 report a wait older than that (0: never; default 10000)
 *	QUIESCE_CEILING=BYTES              garbage ceiling (0: none; default 64M)
 *	QUIESCE_THROTTLE=0|1               call_rcu() and call_srcu() wait above the ceiling
 *	QUIESCE_RECLAIMERS=N               threads that run callbacks of call_rcu(), at most (1 to 16; default 1)
 *	QUIESCE_GARBAGE_WARNING=BYTES      report garbage when it comes to that (0: never; default 1G)
 *	QUIESCE_ALLOW_COPIES=1             do not abort when two copies of the library are loaded
 *	QUIESCE_VERBOSE=1                  print the settings in force when the library is loaded
 * BYTES is a number, with k, K, M or G after it for powers of 1024.  What cannot be taken is told on stderr, with what
 * would be, and the default is used.  Messages are explained in docs/debugging.md.
 */
#ifndef QUIESCE_CONTROL_H
#define QUIESCE_CONTROL_H

#include <quiesce/base.h>

QUIESCE_BEGIN_DECLS

enum quiesce_fence {
	QUIESCE_FENCE_AUTO,  /* light where the kernel's membarrier works, else full */
	QUIESCE_FENCE_LIGHT, /* readers: compiler barrier; updaters: membarrier */
	QUIESCE_FENCE_FULL,  /* readers: full fence; updaters: full fence */
};

/** quiesce_set_fence - choose the fence mode of this process.
 * Context: before the first use of any primitive.  Unless QUIESCE_FENCE=full, the kernel has been asked for membarrier by
 *   then, when the library was loaded.
 * Return: 0; -EBUSY after first use; -EINVAL; or why light is impossible (-ENOSYS, -EPERM, -EREMOTEIO). */
QUIESCE_API int quiesce_set_fence(enum quiesce_fence fence);

/** quiesce_fence - the mode in force; never QUIESCE_FENCE_AUTO. */
QUIESCE_API enum quiesce_fence quiesce_fence(void);

/** QUIESCE_LIGHT_FENCES_ONLY - a promise, defined before any header of the library is included, of light fences.
 *
 * What is compiled with it protects objects by hazptr.h without asking for the mode: a load and two instructions less for each
 * protection.  So such a program, or a library when it is loaded, aborts before main(), with a line that says why, where the
 * kernel has no membarrier for it or full fences were chosen; afterwards quiesce_set_fence() returns -EBUSY.  Its protections
 * do not ask whether somebody waits either: who waits for an object that such a one protects looks again after a quarter of
 * the wait so far, within 8 ms. */
#if defined(QUIESCE_LIGHT_FENCES_ONLY)
#define QUIESCE__LIGHT_PROMISED 1
#else
#define QUIESCE__LIGHT_PROMISED 0
#endif
QUIESCE_API void quiesce__promise_light_fences(void);
#if QUIESCE__LIGHT_PROMISED
__attribute__((__constructor__)) static void quiesce__promise(void) { quiesce__promise_light_fences(); }
#endif

/* Where slots of hazard pointers are. */
enum quiesce_slots {
	QUIESCE_SLOTS_THREAD, /* of the first threads; without rseq, all that are not shared */
	QUIESCE_SLOTS_CPU_ID, /* of the CPU; kernels before 6.3 */
	QUIESCE_SLOTS_MM_CID, /* of the process's concurrency id */
	QUIESCE_SLOTS_SHARED, /* of a pool: where the others were taken */
};

/** quiesce_slots - where threads beyond the first few claim; never QUIESCE_SLOTS_SHARED. */
QUIESCE_API enum quiesce_slots quiesce_slots(void);

/** quiesce_set_skip_self_scan - let synchronize_shazptr() go to the scan thread at once.
 * For tests, and for callers that must not spend time on a look at every slot.  Default no. */
QUIESCE_API void quiesce_set_skip_self_scan(int on);

/** quiesce_set_yield - may a plain grace period make readers give up the CPU?  Default yes: those on the CPU of a reader that is
 * in the way and cannot run, at most a fifth of the time.
 * Switch it off where a yield beside a CPU hog costs more than a long grace period.
 * Expedited grace periods are not affected. */
QUIESCE_API void quiesce_set_yield(int on);

/** quiesce_set_garbage_ceiling - bytes of unreclaimed objects of call_rcu(), kfree_rcu() and call_srcu() above which
 * grace periods are expedited and rcu_throttle() waits.  Default 64 MiB.  0: no ceiling.
 *
 * Threads tell their garbage in steps that together are at most a quarter of the ceiling (64 KiB at most and 1 KiB at
 * least for each thread), so that much more may be there. */
QUIESCE_API void quiesce_set_garbage_ceiling(uint64_t bytes);

/** quiesce_set_throttle - shall call_rcu(), kfree_rcu() and call_srcu() wait above the ceiling, as rcu_throttle() does?
 *
 * Default no: they never wait, because callers hold locks that readers and callbacks take, and a program bounds its
 * garbage by rcu_throttle() where it holds none.  With 1 they wait wherever they are not in an RCU section or a callback:
 * for programs of which every call is made without such locks, and call_rcu() outside of sections of SRCU domains, too.
 * call_srcu() waits at most 20 ms each time, because it may be inside a section of its domain. */
QUIESCE_API void quiesce_set_throttle(int on);

/* The threads that the library starts when they are first needed. */
enum quiesce_thread {
	QUIESCE_THREAD_WORKER, /* "quiesce": callbacks of call_rcu(), and frees of kfree_rcu() that their thread does not come back for */
	QUIESCE_THREAD_HELPER, /* "quiesce-helper": callbacks of call_srcu() and call_hazptr(), what rwsems and tables do later;
				* several while callbacks block */
	QUIESCE_THREAD_SCAN,   /* "quiesce-scan": looks at slots for synchronize_shazptr() */
	QUIESCE_THREAD_RECLAIMER, /* "quiesce-reclaim": the same callbacks as the worker: quiesce_set_reclaimers() */
	QUIESCE_NR_THREADS,
};

/* How one of them runs.  Begin with QUIESCE_THREAD_ATTR_INIT, which is the default. */
struct quiesce_thread_attr {
	size_t size;      /* of this structure, as the program knows it */
	const char *name; /* at most 15 characters; NULL: as above */
	int policy;       /* SCHED_OTHER, which is 0, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO, SCHED_RR */
	int priority;     /* for a real-time policy */
	int nice;
	int node;         /* a NUMA node, on whose CPUs only; -1: any */
	const void *cpus; /* a cpu_set_t of @cpus_size bytes; NULL, 0: those of the process, see below */
	size_t cpus_size;
};
#define QUIESCE_THREAD_ATTR_INIT { sizeof(struct quiesce_thread_attr), NULL, 0, 0, 0, -1, NULL, 0 }

/** quiesce_set_thread_attr - choose policy, priority, CPUs and name of a thread of the library; @attr NULL: the defaults.
 *
 * By default they have the normal policy and nice 0, whoever came first and whatever that thread had; and the CPUs that the
 * first thread of the process may use when they start, less isolated CPUs and those without a tick
 * (isolated, nohz_full), unless none is left.  So they follow "taskset -a -p"; and a program that pins its first thread, for itself,
 * chooses CPUs for them.  What they inherit from the thread that starts them is in docs/realtime.md.  Where it may not raise itself to
 * nice 0, a thread stays as nice as it is, or as its starter is; that is no error.  A thread that runs changes at once; one that starts
 * later, in a forked child too, begins so.  What the kernel refuses to a thread when it starts is left out.
 *
 * Context: may sleep; not inside a signal handler.  Cost: system calls; the first call reads files.
 * Return: 0; -EINVAL, a field is out of range, or no CPU is left; -ENODEV, no such node; what the kernel says for a thread
 * that runs, -EPERM for example.  Then nothing is chosen; a thread that runs may have a part of it. */
QUIESCE_API int quiesce_set_thread_attr(enum quiesce_thread which, const struct quiesce_thread_attr *attr);

#define QUIESCE_RECLAIMERS_MAX 16

/** quiesce_set_reclaimers - let so many threads, at most, run callbacks of call_rcu().  Default 1: the worker alone.
 * @nr: 1 to QUIESCE_RECLAIMERS_MAX, the worker included.  It is lowered to the number of CPUs that the first thread of the process may
 *   use at this call; quiesce_describe_settings() says what it is then.
 *
 * For callbacks that take long, or block: closing a connection, munmap().  Where a grace period was for callbacks of several threads,
 * the worker and up to @nr - 1 others take what each thread has queued, one after the other, until none is left.  The others are woken, or
 * started, for 256 callbacks or more, or if they are expected to take 100 us, as long as those before took; they sleep meanwhile, and
 * end when they were not needed for a second.  Where none can be had the worker runs all.  Frees of kfree_rcu() are not
 * shared, nor are callbacks that were queued without memory.
 *
 * Ordering: callbacks that one thread has queued run in that order, each after the one before has returned, and see what that did,
 *   whoever runs them.  Those of different threads run in any order, and with more than 1 at the same time: what they share
 *   needs a lock then.  rcu_barrier() waits for all of them, and sees what they did.
 *   A callback that does not return holds up what its thread has queued and what is queued from now on, but nothing
 *   that the same grace period was for.
 * In a child that a callback has forked, those that other threads were just running count as run.
 * A callback that queues another one waits a millisecond for it where it was not the worker that ran the first.
 *
 * They run as the worker does, unless something was chosen for QUIESCE_THREAD_RECLAIMER by quiesce_set_thread_attr().
 * Context: any thread, also inside a callback; not in signal handlers.  It waits for no thread: those that are too many end when they
 *   have run what they have begun.  Cost: system calls.  Of a pass with 1: a load.  With more: a look at each of its
 *   queues, and four locked operations for each that has callbacks.
 * Return: 0; -EINVAL: @nr is 0, or more than QUIESCE_RECLAIMERS_MAX, and nothing is changed. */
QUIESCE_API int quiesce_set_reclaimers(unsigned int nr);

/** quiesce_set_worker_cpu - run the worker thread on @cpu only; -1: the defaults of quiesce_set_thread_attr().
 * Return: as there. */
QUIESCE_API int quiesce_set_worker_cpu(int cpu);

/* The ways to be wrong that are detected: always; "debug": by what is compiled with QUIESCE_DEBUG.  See docs/misuse.md. */
enum quiesce_misuse {
	QUIESCE_MISUSE_WAIT_IN_READER,    /* synchronize_rcu(), rcu_barrier(), ... inside a section; of one's own guard (debug) */
	QUIESCE_MISUSE_WAIT_IN_CALLBACK,  /* rcu_barrier() inside a callback */
	QUIESCE_MISUSE_UNBALANCED_UNLOCK, /* unlock without lock; a guard cleared, or a slot freed, twice (debug) */
	QUIESCE_MISUSE_NESTING,           /* nested too deep */
	QUIESCE_MISUSE_EXIT_IN_READER,    /* a thread exited inside a section, which is ended; the process did (debug) */
	QUIESCE_MISUSE_NULL,              /* NULL where an object is needed */
	QUIESCE_MISUSE_LAYOUT,            /* program and library were built from different headers */
	QUIESCE_MISUSE_COPIES,            /* two copies of the library in one process */
	QUIESCE_MISUSE_COUNT,             /* a reference count below zero, or above its limit */
	QUIESCE_MISUSE_CONTEXT_HELD,      /* a context of hazard pointers was cleaned up with a slot in use */
	QUIESCE_MISUSE_IN_USE,            /* a lock, domain or count was destroyed, or reset as in a child, in use; it stays as it is */
	QUIESCE_MISUSE_NOT_HELD,          /* an assertion that a lock, or a section, is held was wrong; a call that needs a section was
					   * made outside of one, or with a slot that is free (debug) */
	QUIESCE_MISUSE_ARGUMENT,          /* a number that the call cannot have: not taken, or no mark; the call has no effect */
	QUIESCE_MISUSE_TWICE,             /* an object stands twice in the list that a call was given, or (debug) was queued, or put
					   * into a table, that is there already */
	QUIESCE_MISUSE_EXIT_IN_CALLBACK,  /* a thread exited inside a callback, which counts as run; an exception left one, which aborts */
};

/** quiesce_set_misuse_hook - call @hook instead of aborting.
 * @hook: gets the kind and one line of text; NULL restores the default, which
 *   prints the line and aborts (EXIT_IN_READER and EXIT_IN_CALLBACK only print).  It returns.
 * If @hook returns from WAIT_IN_READER or WAIT_IN_CALLBACK the wait does not happen, except that for a lock,
 * which the caller would otherwise take itself to have;
 * from UNBALANCED_UNLOCK, NULL, TWICE: the call has no effect.  LAYOUT, COPIES and NESTING abort all the same. */
QUIESCE_API void quiesce_set_misuse_hook(void (*hook)(enum quiesce_misuse kind, const char *text));

/** quiesce_set_stall_timeout - report a wait that lasts for @ns, and again after each further @ns.  0: never.
 * A wait that has begun finishes the stretch that it began with. */
QUIESCE_API void quiesce_set_stall_timeout(uint64_t ns);

/** quiesce_set_garbage_warning - report garbage when it comes to @bytes, to twice as much, and so on.  0: never.
 *
 * Of RCU, of all domains of SRCU, and of hazard pointers, each for itself; what hazard pointers keep is estimated by the
 * average of the sizes that were given to call_hazptr(). */
QUIESCE_API void quiesce_set_garbage_warning(uint64_t bytes);

/* What is reported while the program goes on. */
enum quiesce_report_kind {
	QUIESCE_REPORT_STALL,   /* a wait lasts */
	QUIESCE_REPORT_GARBAGE, /* more waits to be reclaimed than was to be expected */
};

/* Fields may be added at the end. */
struct quiesce_report {
	enum quiesce_report_kind kind;
	uint32_t holder;        /* number of the thread that is in the way, as gettid() returns it; 0: not known, ended, or no one thread */
	const char *call;       /* which waits, "synchronize_rcu"; of garbage, the calls that have queued it */
	const void *object;     /* the domain, the lock, or the address that is waited for; NULL: none */
	uint64_t waited_ns;
	uint64_t garbage_bytes; /* of QUIESCE_REPORT_GARBAGE */
	const char *text;       /* the line that would be printed, without "quiesce: " and newline */
};

/** quiesce_set_report_hook - call @hook with each report, instead of printing it.
 * @hook: NULL restores the default, a line on stderr.  @report and what it points to are valid until it returns.
 *
 * Context: it is called by the thread that waits, in the middle of the call that @report names, or by a thread of the
 *   library; so with the locks that the caller holds, and perhaps by several threads at once.  It may
 *   read, enter and leave sections, retire objects, allocate, log, dump the stacks of other threads, or abort.  It may not wait for
 *   what the library waits for (synchronize_rcu(), rcu_barrier(), percpu_down_write(), ...), nor take a lock that
 *   is held around such a wait anywhere.  The wait goes on when it returns, which it has to: if it ends its thread that is told,
 *   and the process aborts.  It is not cancelled.  Not in signal handlers.
 * Any thread may call this at any time; a hook that was replaced may still be running. */
QUIESCE_API void quiesce_set_report_hook(void (*hook)(const struct quiesce_report *report));

/** quiesce_set_holdout_hook - call @hook for each reader that holds up a grace period of RCU.
 * @hook: NULL: no more.  It gets @tid, the number of the reader's thread as gettid() returns it; for how long the grace period
 *   has waited; and @arg.
 *
 * A wait that lasts for about a millisecond, of synchronize_rcu(), of call_rcu()'s thread, of anybody, has the readers in its way
 * named, one after the other; one that stays, or has come back into the way, again after 10 ms or more.  So a program can make
 * such a reader leave its section: an emulator sends a signal to the thread of a virtual CPU.  docs/realtime.md has an example.
 * A reader is in the way when it is found, just before the call.  It may have left its section since, or have ended: so take
 * @tid for a hint, and find it among the program's own threads, under a lock that each of them takes before it ends.
 * Not named are sections without an entry of their own, in destructors of threads that end; sections of SRCU; readers of liburcu's
 * flavours mb and qsbr, and of programs that were compiled with liburcu's own headers.
 *
 * It is called by the thread "quiesce-helper", without a lock of the library's, one call at a time.  It may take locks that are not
 * held around waits for grace periods, signal threads, allocate, enter sections, queue callbacks, and call synchronize_srcu(),
 * synchronize_shazptr() and quiesce_set_holdout_hook().  Until it returns nobody else is named: so it is short, and a wait for RCU
 * in it ends when the readers in the way leave by themselves.  Barriers in it are a misuse, and fork() and the end of its thread are
 * what they are in a callback of call_srcu().  A child has the hook, too.
 *
 * Context: any thread, but not signal handlers.  Sleeps until the hook that was set before has returned from its last call, unless the
 *   caller is in that call; so the caller holds no lock that the hook takes.
 * Cost: a load in each wait that lasts.  Readers pay nothing.
 * Return: 0; -EAGAIN: it is set, but its thread cannot be started.  It is called from when that can be. */
QUIESCE_API int quiesce_set_holdout_hook(void (*hook)(int tid, uint64_t waited_ns, void *arg), void *arg);

/** quiesce_describe_settings - one line with version and all settings in force, as QUIESCE_VERBOSE=1 prints it.
 * @text: gets as much of it as @size allows, ended with a NUL.
 * Return: its length, as snprintf() does. */
QUIESCE_API size_t quiesce_describe_settings(char *text, size_t size);

struct quiesce_stats {
	uint64_t grace_periods;        /* completed */
	uint64_t expedited;            /* times readers were asked to yield to one in the way of a wait */
	uint64_t membarriers;          /* heavy fences executed by system call */
	uint64_t sleeps;               /* times a grace period slept for a reader */
	uint64_t wakeups;              /* times a reader woke a grace period */
	uint64_t yields;               /* times a reader gave up the CPU on request */
	uint64_t stalls;               /* stall reports */
	uint64_t callbacks_queued;     /* of RCU */
	uint64_t callbacks_run;
	uint64_t garbage_bytes;        /* now, of RCU and SRCU; a domain's is known to within 64 KiB */
	uint64_t garbage_objects;      /* now, of both */
	uint64_t backpressure;         /* times rcu_throttle() waited for less garbage */
	uint32_t readers;              /* registered threads, now */
	uint32_t worker_running;
	uint64_t shazptr_waits;        /* calls of synchronize_shazptr() */
	uint64_t shazptr_blocked;      /* of them, those that found a guard in the way or skipped the self-scan */
	uint64_t scans;                /* looks at all slots for those */
	uint64_t overflows;            /* guards that found the slots of their thread and CPU taken */
	uint64_t fallback_guards;      /* without a slot, which block everybody: memory is exhausted */
	uint32_t slots_lines;          /* lines of eight slots that a self-scan looks at, now */
	uint32_t scan_thread_running;
	uint64_t hazptr_retired;       /* objects given to call_hazptr() and cohorts */
	uint64_t hazptr_reclaimed;     /* callbacks run; retired less reclaimed is garbage now */
	uint64_t hazptr_scans;         /* looks at all slots for them */
	uint64_t hazptr_swept;         /* objects that were handed over, or left, to another thread than their own */
	uint64_t srcu_grace_periods;   /* of all domains */
	uint64_t queues;               /* of threads that use call_rcu(), now */
	uint64_t queues_visited;       /* by passes of the worker, or of who makes one: those that had something */
	uint64_t srcu_callbacks_queued; /* of all domains; in garbage_objects and _bytes until they have run */
	uint64_t srcu_callbacks_run;
	uint64_t hazptr_queues_visited; /* of threads that retire, by who looks what they have left */
	uint64_t garbage_warnings;     /* reports of garbage */
	uint64_t queues_helped;        /* of queues_visited: those whose callbacks another thread than the worker has run */
	uint32_t reclaimers_running;   /* such threads, now: quiesce_set_reclaimers() */
};

/** quiesce_get_stats - fill @ret_stats.  @size: sizeof(struct quiesce_stats) of the caller.
 * Context: any thread.  The figures are not one snapshot. */
QUIESCE_API void quiesce_get_stats(struct quiesce_stats *ret_stats, size_t size);

/** quiesce_shutdown - run every pending callback, and those they queue, then stop the library's threads.
 * Callbacks of call_rcu(), call_hazptr() and, of all domains, call_srcu().
 * @timeout_ns: 0 no limit.
 *
 * Context: sleeps until readers that are in the way have left; not in a section of a domain with callbacks, which it
 *   would wait for.  Runs callbacks in the caller where the library's threads cannot be had: hold no lock that they take.
 * Return: 0: no thread of the library is left, for the kernel too: unshare(), setns() and readers of /proc/self/task find the
 *   program's threads only, until the library is used again.  -ETIMEDOUT with callbacks still pending, or a thread that has
 *   not ended; -EBUSY: other threads of the program need threads of the library again and again; -EDEADLK in a section of RCU or
 *   a callback, after the misuse hook.
 * In a child of fork() sections of SRCU may be of threads that the child does not have, and then never end.  If all that
 *   is pending waits for sections that were open at the fork, and nothing has come of it for 100 ms, the call
 *   returns -ETIMEDOUT without a limit, too, and stops the threads all the same.
 * The library stays usable; later calls start threads again.  A grace period that start_poll_synchronize_srcu()
 *   has begun, and that readers are in the way of, then goes on as it is polled. */
QUIESCE_API int quiesce_shutdown(uint64_t timeout_ns);

/** quiesce_version - "0.2.0", say, of the library that is loaded. */
QUIESCE_API const char *quiesce_version(void);

QUIESCE_END_DECLS

#endif
