/* SPDX-License-Identifier: MIT */
/* run.c - code of the program that the library runs may end its thread.
 *
 * A callback that calls pthread_exit(), directly or by way of other code (such as the interpreter of a
 * language that shuts down), or that enables its own cancellation, does not return: it ends the thread in the
 * middle of a chunk, behind locks and counts that other threads wait for.  So the library calls the program
 * in a run:
 *
 *   quiesce__run() -> cancellation disabled -> code ........ returns -> cancellation as before
 *                                               |
 *                                               +- the thread ends -> ended -> report -> outer run, if any -> destructors of keys
 *
 * I1. A chunk is a run, or other work done under one lock; one callback is not, so a run costs nothing per
 *     callback.
 * I2. @ended can find whatever @code holds when it calls the program: it is in the structure that embeds the
 *     run, or behind the lock that @code holds.
 * I3. @ended releases all of it: locks, gates, counts, and the rest of the chunk, which is queued again where
 *     other threads find it.  The callback that did not return counts as run.  The bits of the thread's state
 *     are restored first.
 * I4. @ended does not continue the chunk: a chunk whose callbacks all end their threads would need a deeper
 *     stack for each.  So a thread of the library that ends is replaced by a new one, which continues.
 * I5. Runs nest as calls do, and end from the inside out.  A callback that leaves by longjmp(), or on another
 *     stack, breaks that: it is forbidden, and detected when the thread ends.
 */
#include "run.h"

static void call_code(void *arg)
{
	struct quiesce__run *run = arg;

	run->code(run);
}

/* The callback of @run that is running now; 0: none. */
static uintptr_t running(const struct quiesce__run *run)
{
	return run->named ? quiesce_load_relaxed(run->named) : run->func; /* Relaxed: the thread's own. */
}

static QUIESCE_COLD void report_end(const struct quiesce__run *run)
{
	struct platform_location where;

	quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_CALLBACK,
			"thread %u ended in the callback %s of %s, which has to return; it counts as run, and others go on with the rest",
			platform_tid(), platform_location((const void *)run->func, &where), run->call);
}

static void call_ended(void *arg)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__run *run = arg;

	/* The callback may have forked without fork handlers, and this may be the child: reinitialise before
	 * taking locks that threads of the parent held. */
	quiesce__init();
	self->runs = run->outer;
	run->func = running(run);
	if (!QUIESCE_MUTANT(run_state_kept))
		self->state = run->state;
	run->ended(run);
	if (!run->func || run->end_reported)
		return;
	report_end(run);
	while ((run = run->outer)) /* callbacks of outer runs do not return either, and count as run */
		run->end_reported = true;
}

void quiesce__run(struct quiesce__run *run, void (*code)(struct quiesce__run *run), void (*ended)(struct quiesce__run *run))
{
	struct quiesce_tls_v1 *self = quiesce__self();

	run->outer = self->runs;
	run->code = code;
	run->ended = ended;
	run->state = self->state;
	run->end_reported = false;
	run->cancelable = platform_set_cancelable(QUIESCE_MUTANT(run_cancelable));
	self->runs = run;
	platform_run(call_code, call_ended, run);
	self->runs = run->outer;
	if (run->cancelable)
		platform_set_cancelable(true);
}

void quiesce__run_report_exception(void)
{
	const struct quiesce__run *run = quiesce__self()->runs;
	uintptr_t func = run ? running(run) : 0;
	struct platform_location where;

	if (func)
		quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_CALLBACK, "an exception leaves the callback %s of %s, which has to return",
				platform_location((const void *)func, &where), run->call);
	else
		quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_CALLBACK, "an exception leaves a function of the program's that the library calls");
}

void quiesce__runs_thread_exit(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	if (!self->runs)
		return;
	self->runs = NULL; /* the runs were on the stack that is gone */
	quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_CALLBACK,
			"thread %u ends in a callback that has not returned: was it left by longjmp()?  What it held stays held",
			platform_tid());
}
