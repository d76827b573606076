/* SPDX-License-Identifier: MIT */
/* callers.h - the suite `callers`: whatever a caller may be doing, each public call keeps its promise.
 *
 * One list has all calls (calls_*.c, compared with the headers by listed.py as the suite is built); each situation is a file that makes
 * every call which its manual allows there, in a process of its own, so that it is the first one that happens in that situation:
 *
 *	cell      a call in a situation: a process with an alarm, and a line of TAP
 * world     the objects before the call: one of each kind, and bystanders that read and retire all the time (world.h)
 *	settle    afterwards: waits are real, callbacks have run, nothing is left (world_settle())
 */
#ifndef CALLERS_H
#define CALLERS_H

#include <quiesce/control.h>
#include <quiesce/rcu.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

struct world;

/* A hang is reported before the alarm, and a very busy machine is no hang. */
#define STALL_NS 25000000000

/* ---- the list ---- */

/* Contexts in which the manual allows a call, beyond a thread that holds nothing. */
enum {
	NEVER_WAITS = 1 << 0,   /* never waits for another thread, at whatever place that is */
	IN_READER = 1 << 1,     /* in a section of RCU */
	IN_CALLBACK = 1 << 2,   /* in callbacks, such as those of call_rcu() */
	WAITS = 1 << 3,         /* for readers: not in callbacks of hazard pointers, which may run inside a section */
	FOR_CALLBACKS = 1 << 4, /* waits for callbacks: in one it is reported, and does nothing */
	AT_THREAD_END = 1 << 5, /* in destructors of thread-local storage */
	MAY_FAIL = 1 << 6,      /* without memory; all others never do */
	NOT_IN_READER = 1 << 7, /* in a section of RCU it is reported, and does nothing */
};

/* Makes the calls; true if their promises held. */
typedef bool call_fn(struct world *w);

struct call {
	const char *name;   /* name of the family of calls */
	const char *covers; /* public names, with blanks between */
	call_fn *fn;
	unsigned int flags;
};

#define CALL(name, covers, flags) { #name, covers, call_##name, flags }
#define END_OF_CALLS { NULL, NULL, NULL, 0 }

/* Each list has the calls of one room. */
extern const struct call calls_rcu[], calls_hazard[], calls_retire[], calls_percpu[], calls_ref[], calls_slab[];
extern const struct call calls_tables[], calls_ids[], calls_lists[], calls_control[];

/* Return the @i-th of all calls; NULL if there are fewer. */
const struct call *call_at(size_t i);

#define for_each_call(call, i) for (size_t i = 0; ((call) = call_at(i)); i++)

static inline bool has(const struct call *call, unsigned int flags)
{
	return (call->flags & flags) == flags;
}

/* ---- cells ---- */

/* Seconds after which a cell counts as hanging; generous, because the machine may be busy. */
unsigned int cell_seconds(void);

/* True if CI_LONG asks for every combination and more seeds. */
/* Called by main() of a program that was executed again so that calls fail from the first one on; false if it was executed for
 * another purpose. */
bool failing_main(void);

bool cells_are_long(void);

/* True if CI_LONG is set, or if cells are requested by name. */
bool cells_are_all(void);

/* True if the @k-th cell of the @i-th call is run: one in @one_of is, and each seed draws others. */
bool cell_is_drawn(size_t i, size_t k, unsigned int one_of);

/* Return a number that differs for each cell and each seed. */
unsigned int cell_number(void);

/* Run @fn(@arg) in a process of its own, and print the line of @format; true if it ended successfully. */
bool cell(void (*fn)(void *arg), void *arg, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Run only cells whose names contain @pattern. */
void cells_only(const char *pattern);
/* Print the plan of TAP, and return the exit status. */
int cells_end(void);

/* In a cell: report a failed check, and end. */
#define must(condition) ((condition) ? (void)0 : cell_fails(__FILE__, __LINE__, #condition))
void cell_fails(const char *file, int line, const char *what) __attribute__((noreturn));
void cell_skips(const char *why) __attribute__((noreturn));

/* In a cell: set the alarm of a process that it forks, which has none. */
void child_begin(void);
/* Wait for the process, which has to end successfully. */
void child_end(pid_t pid);

/* Run this program again, in place of the cell, with CALLERS_WHEN=@when and CALLERS_CALL=@name. */
void again(const char *when, const char *name) __attribute__((noreturn));
/* Return the arguments of again(); NULL if the program was not executed again. */
const char *again_when(void);
const struct call *again_call(void);
int again_main(void);

/* Replace all calls by a broken one that the situation must detect, in this program and when it is executed again (planted.c). */
void plant(void);
const struct call *planted_call(void);

/* ---- situations: each is a file ---- */

int situation_forks(void);
int situation_callbacks(void);
int situation_acts(void);
int situation_ends(void);
int situation_failing(void);
int situation_twice(void);
int situation_stopped(void);
int situation_planted(void);
int situation_restored(void);

/* ---- helpers for tests of threads ---- */

/* Relaxed: flags and counts of tests; data that must be ordered is joined or posted. */
#define flag_get(p) quiesce_load_relaxed(p)
#define flag_set(p) quiesce_store_relaxed(p, 1)
#define flag_clear(p) quiesce_store_relaxed(p, 0)
#define count_up(p) ((void)quiesce_fetch_add_relaxed(p, 1))

static inline void rest(long us)
{
	struct timespec t = { .tv_nsec = us * 1000 };

	nanosleep(&t, NULL);
}

/* Evaluate the condition repeatedly until it is true; the alarm bounds the wait. */
#define wait_until(condition)  \
	do {                        \
		while (!(condition)) \
			rest(50);    \
	} while (0)

/* Start a thread of the cell; a failure ends the cell. */
static inline void thread_begin(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	int err = pthread_create(thread, NULL, fn, arg);

	if (err) {
		errno = err;
		perror("pthread_create");
		abort();
	}
}

static inline struct quiesce_stats stats_now(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	return stats;
}

#endif
