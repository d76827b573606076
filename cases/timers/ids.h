/* SPDX-License-Identifier: MIT */
/* ids.h - the timers of all workers in one table, and the ways to get from an id to a locked timer. */
#ifndef TIMERS_IDS_H
#define TIMERS_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include <quiesce/ds/idr.h>

#include "case.h"

#define TIMERS 64 /* number of timers of each worker */
#define NO_ID UINTPTR_MAX

/* Lookups are for the two words of a setting, which are always read and written together. */
struct setting {
	uint64_t interval, expiry;
};

/* A valid setting can be distinguished from a torn one, and from that of another owner; in a timer that knows its id, from that of
 * another timer. */
#define MAX_OWNERS 4096
#define MAX_IDS 8192

struct worker {
	uint32_t index, owner;
	uint32_t at;            /* the timer that it asks for next */
	uint64_t lookups, updates, failed;
	uint64_t sum;           /* sum of the words read, so that compilers keep the loads */
	uint64_t random, created;
	struct idr_nodes nodes; /* preloaded, so that nothing is allocated under a spinlock */
	uintptr_t id[TIMERS];   /* ids of its timers, or NO_ID; in a check others read them */
} __attribute__((aligned(128)));

extern const struct case_choice ids_variants[];

/* Choose one of ids_variants.  @watched: detect timers that are met after they were freed, and slow lookups down. */
void ids_init(const struct case_choice *variant, bool watched);
/* Wait until all removed timers are free. */
void ids_exit(void);

/* Create the worker's @i-th timer, which does not exist; returns 0 or -errno. */
int ids_create(struct worker *w, uint32_t i);
/* Delete the worker's @i-th timer, which exists. */
void ids_delete(struct worker *w, uint32_t i);
/* Set the timer as timer_settime() does; @time becomes part of both words. */
void ids_change(struct worker *w, uint32_t i, uint64_t time);
/* Get a timer by any id as timer_gettime() does, for the worker's owner.  False: there is no such timer, or it is another's. */
bool ids_get(const struct worker *w, uintptr_t id, struct setting *ret);
/* Get the worker's own timers in turn, @n times. */
void ids_get_own(struct worker *w, uint32_t n);
/* Return whether the timer of that owner and id may have this setting. */
bool ids_plausible(const struct worker *w, uintptr_t id, const struct setting *setting);
/* Return the number of timers freed, when watched. */
uint64_t ids_freed(void);

#endif
