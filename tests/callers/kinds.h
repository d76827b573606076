/* SPDX-License-Identifier: MIT */
/* kinds.h - the kinds of functions of a program that the library calls. */
#ifndef CALLERS_KINDS_H
#define CALLERS_KINDS_H

#include "world.h"

/* The calls that a function of such a kind may make. */
enum allows {
	ALLOWS_ALL,      /* runs in the thread of the call, outside of any section or lock */
	ALLOWS_WAITS,    /* calls that callbacks may make: also waits for readers */
	ALLOWS_RETIRES,  /* callbacks of hazard pointers: no waits for readers */
	ALLOWS_READERS,  /* runs in a section of RCU, where waits for readers are reported */
	ALLOWS_REPORTS,  /* calls that are allowed in a section, but no waits */
	ALLOWS_LITTLE,   /* runs under the lock of a bucket: calls that never wait */
};

struct kind {
	const char *name;
	/* Run @fn(@arg) in such a function, and wait until it has run.  May be called by any thread, repeatedly. */
	void (*run)(struct world *w, void (*fn)(void *arg), void *arg);
	enum allows allows;
	bool ends; /* an end of its thread is reported, and other callbacks run */
};

/* Return the @i-th kind; NULL if there are fewer. */
const struct kind *kind_at(size_t i);

#define for_each_kind(kind, i) for (size_t i = 0; ((kind) = kind_at(i)); i++)

/* Deleters of C++ (kinds.cpp), where there is a C++ compiler. */
void run_in_rcu_retire(struct world *w, void (*fn)(void *arg), void *arg);
void run_in_hazard_retire(struct world *w, void (*fn)(void *arg), void *arg);
/* Throw an exception that leaves the function. */
void throw_an_exception(void *unused);

#endif
