/* SPDX-License-Identifier: MIT */
/* fork.c - handlers of fork(), and children that were forked without handlers.
 *
 * A child inherits one thread of its parent, the survivor, which called fork(), _Fork() or clone(), or made
 * the system call directly.  Whatever the other threads held has to be released.
 *
 *   announced     fork() calls the handlers below, the child's before it returns: the survivor reinitialises everything.
 *   unannounced   the kernel zeroes the canary in each child, however that was forked, and quiesce__init() checks it.  By then
 *                 the survivor may have run inline code, which checks nothing, and may have created threads, which may call first.
 *
 *   intact repair      the process
 *     0    UNTOUCHED   a new child
 *     0    UNDER_WAY   one thread reinitialises process-wide state; other threads that call the library wait
 *     0    REPAIRED    the survivor has not re-entered the library yet; other threads continue
 *     1    REPAIRED    the survivor has re-entered the library; or this is no child
 *
 * I1. The survivor is the thread whose id equals the process id: the kernel numbers the first thread of a
 *     process so.  Where the child shares memory (vfork()) the canary is not zeroed, and there is nothing to
 *     reinitialise.
 * I2. While process-wide state is reinitialised, no other thread is inside the library: a thread that calls
 *     it waits in quiesce__init(), and a survivor that is not the one to reinitialise is in inline code, or
 *     elsewhere.
 * I3. The state of the parent's threads (registry entries, slot lines, records, counts) stays until the
 *     survivor re-enters: some of it is the survivor's own, and inline code may be using it.  An entry
 *     outside of a section delays no updater; one inside a section delays the updaters of the child.  So
 *     until then a wait may last too long, and nothing is freed too early.
 * I4. Only the survivor changes its TLS block, when it re-enters.  It then releases what the parent's other
 *     threads owned, and sets the canary's @intact.
 * I5. A survivor that runs callbacks is inside a pass or a step, and continues it.  It re-enters no later
 *     than its callback returns.  If another thread has entered before it, that pass or step was taken for
 *     abandoned: then the process ends.
 *
 * FK2  reinitialised, then REPAIRED             | REPAIRED read, then the library used
 * IN1  the survivor has re-entered, then intact | intact read, then the library used
 */
#include "core.h"

#include "debug_pending.h"
#include "delayed_call.h"
#include "gate.h"
#include "held.h"
#include "helper.h"
#include "readers.h"
#include "report.h"
#include "run.h"
#include "subsystem.h"
#include "thread.h"

#include <errno.h>

enum { UNTOUCHED, UNDER_WAY, REPAIRED };

static struct platform_canary unwatched; /* used where the kernel cannot zero a page at fork */
static struct platform_canary *canary = &unwatched;
uint32_t *quiesce__fork_canary = &unwatched.intact;
uint32_t quiesce__fork_generation;
const struct quiesce_tls_v1 *quiesce__fork_survivor;
uint32_t quiesce__fork_survivor_tid;

void quiesce__fork_init(void)
{
	struct platform_canary *watched = platform_canary();

	if (watched)
		canary = watched;
	/* IN1: release, pairs with IN1 in quiesce__is_intact() */
	quiesce_store_release(IN1, &canary->intact, 1);
	quiesce_store_relaxed(&quiesce__fork_canary, &canary->intact); /* Relaxed: a caller that misses the store takes the slow path. */
}

/* ---- the repair ---- */

/* Reinitialise process-wide state, once in each child; other threads wait for that.  @survivor: NULL if the
 * caller is not the survivor. */
static void repair_once(const struct quiesce_tls_v1 *self, const struct quiesce_tls_v1 *survivor)
{
	uint32_t untouched = UNTOUCHED;

	/* FK2: full, pairs with FK2 in repair_once() */
	if (quiesce_cmpxchg(FK2, &canary->repair, &untouched, UNDER_WAY)) {
		quiesce_store_relaxed(&canary->by, self); /* Relaxed: only the caller compares it with itself. */
		quiesce_store_relaxed(&quiesce__fork_survivor, survivor); /* Relaxed: I2. */
		quiesce_store_relaxed(&quiesce__fork_generation, quiesce__fork_generation + 1); /* Relaxed: I2. */
		platform_process_begin();
		quiesce__each_subsystem(fork_child);
		quiesce_store_relaxed(&canary->by, NULL); /* Relaxed: only the caller compares it with itself. */
		/* FK2: release, pairs with FK2 in repair_once() */
		quiesce_store_release(FK2, &canary->repair, REPAIRED);
		platform_futex_wake(&canary->repair, INT32_MAX);
	}
	/* FK2: acquire, pairs with FK2 in repair_once() */
	while (quiesce_load_acquire(FK2, &canary->repair) != REPAIRED)
		platform_futex_wait(&canary->repair, UNDER_WAY, PLATFORM_FOREVER);
}

static QUIESCE_COLD void end_if_late(const struct quiesce_tls_v1 *self)
{
	/* Relaxed: set by this thread, or NULL. */
	if (quiesce_load_relaxed(&quiesce__fork_survivor) == self || !(self->state & QUIESCE_TLS_CALLBACKS))
		return;
	quiesce__say("a callback has forked without fork handlers, as by _Fork() or clone(), and another thread of the child has "
		     "called the library before it; the interrupted batch of callbacks cannot continue");
	platform_die();
}

/* The caller is the survivor, and re-enters the library. */
static void survivor_reenter(struct quiesce_tls_v1 *self)
{
	quiesce__fork_survivor_tid = self->tid;
	self->tid = 0;
	repair_once(self, self);
	end_if_late(self);
	quiesce_store_relaxed(&canary->by, self); /* Relaxed: see repair_once(). */
	quiesce__each_subsystem(fork_survivor, self);
	quiesce_store_relaxed(&quiesce__fork_survivor, self); /* Relaxed: other threads only compare it with themselves. */
	quiesce_store_relaxed(&canary->by, NULL); /* Relaxed: see the first store to it. */
	/* IN1: release, pairs with IN1 in quiesce__is_intact() */
	quiesce_store_release(IN1, &canary->intact, 1);
}

/* The block of a thread of the child records the generation from the thread's second call on. */
bool quiesce__fork_is_new(const struct quiesce_tls_v1 *self)
{
	/* Relaxed: a planted bug. */
	uint32_t early = QUIESCE_MUTANT(fork_generation_early) ? quiesce_load_relaxed(&quiesce__fork_generation) : 0;

	/* Checked first: before the repair the generation is the parent's. */
	/* FK2: acquire, pairs with FK2 in repair_once() */
	return quiesce_load_acquire(FK2, &canary->repair) == REPAIRED &&
	       self->process == (QUIESCE_MUTANT(fork_generation_early) ? early :
				 quiesce_load_relaxed(&quiesce__fork_generation)); /* Relaxed: FK2. */
}

/* Signals are blocked. */
void quiesce__fork_detect(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	/* IN1: acquire, pairs with IN1 in survivor_reenter() */
	if (quiesce_load_acquire(IN1, &canary->intact) || quiesce_load_relaxed(&canary->by) == self) /* Relaxed: set by this thread. */
		return;
	if (QUIESCE_MUTANT(fork_caller_survives) || platform_is_first_thread()) {
		survivor_reenter(self);
		return;
	}
	repair_once(self, NULL);
	if (QUIESCE_MUTANT(fork_intact_early))
		quiesce_store_relaxed(&canary->intact, 1); /* Relaxed: a planted bug. */
	self->process = quiesce_load_relaxed(&quiesce__fork_generation); /* Relaxed: FK2. */
}

bool quiesce__is_child(const char *call)
{
	bool is_child = quiesce__generation() != 0;

	if (quiesce_unlikely(!is_child))
		quiesce__misuse(QUIESCE_MISUSE_IN_USE, "%s in a process that is no child of fork()", call);
	return is_child;
}

/* ---- the runtime's own ---- */

/* Take the runtime's locks, between those of the other subsystems. */
static void locks_prepare(void)
{
	quiesce__delayed_calls_fork_prepare();
	quiesce__helper_fork_prepare();
}

static void locks_parent(void)
{
	quiesce__helper_fork_parent();
	quiesce__delayed_calls_fork_parent();
}

static void runtime_child(void)
{
	quiesce__gate_fork_child();
	quiesce__threads_fork_child();
	quiesce__heavy_fork_child();
	quiesce__readers_fork_child();
	quiesce__helper_fork_child();
	quiesce__delayed_calls_fork_child();
	quiesce__held_fork_child();
	quiesce__reports_fork_child();
	quiesce__pending_fork_child();
}

static void report_thread(const struct quiesce_tls_v1 *self)
{
	(void)self;
	quiesce__runs_thread_exit();
	quiesce__held_thread_exit();
}

static void report_held_by_process(const struct quiesce_tls_v1 *self)
{
	(void)self;
	quiesce__held_process_exit();
}

extern const struct quiesce__subsystem quiesce__runtime_subsystem;
const struct quiesce__subsystem quiesce__runtime_subsystem = {
	.paused = quiesce__helper_paused,
	.fork_prepare = locks_prepare,
	.fork_parent = locks_parent,
	.fork_child = runtime_child,
	.fork_survivor = quiesce__readers_fork_survivor,
	.thread_report = report_thread,
	.process_report = report_held_by_process,
};

/* ---- handlers of fork() ---- */

/* Signals are blocked from the first lock to the last: a signal handler may need one of the locks.  Fork
 * handlers of other libraries that run in between run with signals blocked, too. */
static struct platform_sigmask mask_before_fork;
static const struct quiesce_tls_v1 *forking; /* the thread whose mask this is; both variables under the locks */

void quiesce__fork_prepare(void)
{
	struct platform_sigmask mask;

	quiesce__init(); /* this process may be a child itself, and its locks not reinitialised */
	platform_signals_block(&mask);
	quiesce__gate_close();
	quiesce__each_subsystem(fork_prepare);
	quiesce__pending_fork_prepare(); /* taken last: callbacks take this lock whatever locks are held around them */
	mask_before_fork = mask;
	forking = quiesce__self();
}

void quiesce__fork_parent(void)
{
	struct platform_sigmask mask = mask_before_fork;
	size_t nr = 0;

	forking = NULL;
	quiesce__pending_fork_parent();
	while (quiesce__subsystems[nr])
		nr++;
	while (nr)
		if (quiesce__subsystems[--nr]->fork_parent)
			quiesce__subsystems[nr]->fork_parent();
	quiesce__gate_open();
	platform_signals_restore(&mask);
}

void quiesce__fork_child(void)
{
	bool prepared = forking == quiesce__self();
	int saved = errno;

	if (canary == &unwatched)
		canary->intact = canary->repair = 0;
	/* Already done if another library's fork handler called the library before this one.  Relaxed: the
	 * child has one thread. */
	if (!quiesce_load_relaxed(&canary->intact))
		survivor_reenter(quiesce__self());
	forking = NULL;
	if (prepared)
		platform_signals_restore(&mask_before_fork);
	errno = saved;
}
