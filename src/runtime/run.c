/* SPDX-License-Identifier: MIT */
/* run.c - the program's code, run by the library, may end its thread.
 *
 * A callback that calls pthread_exit(), or something that does (the interpreter of a language that is being shut down), or that
 * allows its own cancellation, does not return, and stands in the middle of a batch, behind locks and counts that others wait
 * for.  So the library calls the program in a run:
 *
 *   quiesce__run() -> not to be cancelled -> code ............ returns -> may be cancelled, if it might before
 *                                             |
 *                                             +- the thread ends -> ended -> told -> the run around it, if any -> keys' destructors
 *
 * I1. A batch is a run, or what else is done under one lock; an object is not, so runs cost nothing for each.
 * I2. What @code has taken when it calls the program is known to @ended: it is in the structure that embeds the run, or behind the
 *     lock that it holds.
 * I3. @ended gives all of it back: locks, gates, counts, and what is left of the batch, which is queued again where others find it.
 *     The callback that did not return counts as run.  Bits of the thread's state are restored before.
 * I4. @ended does not go on with the batch: one whose callbacks all end their threads would need a deeper stack for each.
 *     So a thread of the library that ends is replaced by another one, which goes on.
 * I5. Runs nest as calls do, and are ended from the inside out.  A callback that was left by longjmp(), or on another
 *     stack, breaks that: it is forbidden, and found when the thread ends.
 */
#include "run.h"

static void call_code(void *arg)
{
	struct quiesce__run *run = arg;

	run->code(run);
}

/* The callback of @run that is running; 0: none. */
static uintptr_t running(const struct quiesce__run *run)
{
	return run->named ? quiesce_load_relaxed(run->named) : run->func; /* Relaxed: the thread's own. */
}

static QUIESCE_COLD void report_end(const struct quiesce__run *run)
{
	struct platform_place place;

	quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_CALLBACK,
			"thread %u ended in the callback %s of %s, which has to return; it counts as run, and others go on with the rest",
			platform_tid(), platform_place((const void *)run->func, &place), run->call);
}

static void call_ended(void *arg)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__run *run = arg;

	/* The callback may have forked without a word, and this be the child: before locks that its parent's threads held. */
	quiesce__init();
	self->runs = run->outer;
	run->func = running(run);
	if (!QUIESCE_MUTANT(run_state_kept))
		self->state = run->state;
	run->ended(run);
	if (!run->func || run->told)
		return;
	report_end(run);
	while ((run = run->outer)) /* their callbacks do not return either, and count as run */
		run->told = true;
}

void quiesce__run(struct quiesce__run *run, void (*code)(struct quiesce__run *run), void (*ended)(struct quiesce__run *run))
{
	struct quiesce_tls_v1 *self = quiesce__self();

	run->outer = self->runs;
	run->code = code;
	run->ended = ended;
	run->state = self->state;
	run->told = false;
	run->cancelable = platform_set_cancelable(QUIESCE_MUTANT(run_cancelable));
	self->runs = run;
	platform_run(call_code, call_ended, run);
	self->runs = run->outer;
	if (run->cancelable)
		platform_set_cancelable(true);
}

void quiesce__run_throws(void)
{
	const struct quiesce__run *run = quiesce__self()->runs;
	uintptr_t func = run ? running(run) : 0;
	struct platform_place place;

	if (func)
		quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_CALLBACK, "an exception leaves the callback %s of %s, which has to return",
				platform_place((const void *)func, &place), run->call);
	else
		quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_CALLBACK, "an exception leaves a function of the program's that the library calls");
}

void quiesce__runs_thread_exit(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	if (!self->runs)
		return;
	self->runs = NULL; /* it was on the stack */
	quiesce__misuse(QUIESCE_MISUSE_EXIT_IN_CALLBACK,
			"thread %u ends in a callback that has not returned: was it left by longjmp()?  What it held stays held",
			platform_tid());
}
