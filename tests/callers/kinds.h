/* SPDX-License-Identifier: MIT */
/* kinds.h - the kinds of functions of a program that the library calls. */
#ifndef CALLERS_KINDS_H
#define CALLERS_KINDS_H

#include "world.h"

/* What a function of such a kind may do. */
enum allows {
	ALLOWS_ALL,      /* it is called in the middle of nothing, in the thread of the call */
	ALLOWS_WAITS,    /* whatever callbacks may: also to wait for readers */
	ALLOWS_RETIRES,  /* callbacks of hazard pointers: no waits for readers */
	ALLOWS_READERS,  /* it runs in a section of RCU: there, waits for readers are reported */
	ALLOWS_REPORTS,  /* what is allowed in a section, but no waits */
	ALLOWS_LITTLE,   /* under a lock of a bucket: what waits for nobody */
};

struct kind {
	const char *name;
	/* Let @fn(@arg) run in such a function, and wait until it has.  May be called by any thread, again and again. */
	void (*run)(struct world *w, void (*fn)(void *arg), void *arg);
	enum allows allows;
	bool ends; /* that it ends its thread is reported, and others go on */
};

/* The @i-th; NULL: there are not so many. */
const struct kind *kind_at(size_t i);

#define for_each_kind(kind, i) for (size_t i = 0; ((kind) = kind_at(i)); i++)

/* Deleters of C++ (kinds.cpp), where there is a compiler for it. */
void run_in_rcu_retire(struct world *w, void (*fn)(void *arg), void *arg);
void run_in_hazard_retire(struct world *w, void (*fn)(void *arg), void *arg);
/* What leaves it by an exception. */
void throw_an_exception(void *unused);

#endif
