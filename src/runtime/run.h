/* SPDX-License-Identifier: MIT */
/* run.h - calls of the program's code: callbacks, deleters, functions of its types.  run.c has the theory. */
#ifndef QUIESCE_RUN_H
#define QUIESCE_RUN_H

#include "core.h"

/* One call of the program's code, on the stack of the caller of quiesce__run(); embedded in a structure with
 * what both functions need. */
struct quiesce__run {
	struct quiesce__run *outer; /* the run of the same thread around this one; NULL: none */
	void (*code)(struct quiesce__run *run);
	void (*ended)(struct quiesce__run *run);
	const char *call;          /* name of the program's call that queued the callback, such as "call_rcu()" */
	uintptr_t func;            /* the callback that is running; 0: none */
	uintptr_t *named;          /* address of the running callback in place of @func; NULL: @func has it */
	uint32_t state;            /* state of the thread before the run */
	bool cancelable;           /* whether the thread could be cancelled before the run */
	bool end_reported;         /* a run inside this one has reported the end of the thread */
	const void *back;          /* callbacks of a cohort: the list for objects that they retire into it; else NULL */
};

/* Call @code(@run), which calls the program; the thread cannot be cancelled in it.  If the thread ends in
 * @code, @ended(@run) is called in place of the rest, and releases what @code holds. */
void quiesce__run(struct quiesce__run *run, void (*code)(struct quiesce__run *run), void (*ended)(struct quiesce__run *run));

/* Record that the calling thread's innermost run calls @func next; a wrapper records the program's function
 * in place of its own. */
static inline void quiesce__run_record_func(uintptr_t func)
{
	struct quiesce__run *run = quiesce__self()->runs;

	if (run)
		run->func = func;
}

/* Report that an exception leaves a callback, and do not let it pass. */
void quiesce__run_report_exception(void);
/* The calling thread ends: report callbacks that left other than by return. */
void quiesce__runs_thread_exit(void);

#endif
