/* SPDX-License-Identifier: MIT */
/* run.h - calls of the program's code: callbacks, deleters, functions of its types.  The theory is in run.c. */
#ifndef QUIESCE_RUN_H
#define QUIESCE_RUN_H

#include "core.h"

/* On the stack of the caller of quiesce__run(); to be embedded in what the two functions need. */
struct quiesce__run {
	struct quiesce__run *outer; /* of the same thread; NULL: none */
	void (*code)(struct quiesce__run *run);
	void (*ended)(struct quiesce__run *run);
	const char *call; /* of the program, which has queued: "call_rcu()" */
	uintptr_t func;   /* the callback that is running; 0: none */
	uintptr_t *named; /* where it is, in place of @func; NULL: there */
	uint32_t state;   /* of the thread, before */
	bool cancelable;  /* the same */
	bool told;        /* of the end of the thread, by a run inside of this one */
	const void *back; /* of callbacks of a cohort: the list for what they retire into it; else NULL */
};

/* Call @code(@run), which calls the program, and is not cancelled there.  If the thread ends in it, call @ended(@run) instead of
 * going on: it gives back what @code has taken. */
void quiesce__run(struct quiesce__run *run, void (*code)(struct quiesce__run *run), void (*ended)(struct quiesce__run *run));

/* Code of the calling thread's innermost run calls @func next; a wrapper names the program's function in its own place. */
static inline void quiesce__run_names(uintptr_t func)
{
	struct quiesce__run *run = quiesce__self()->runs;

	if (run)
		run->func = func;
}

/* An exception leaves a callback: say so.  It does not pass. */
void quiesce__run_throws(void);
/* The calling thread ends: report callbacks that were left in another way than by a return. */
void quiesce__runs_thread_exit(void);

#endif
