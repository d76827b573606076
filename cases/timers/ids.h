/* SPDX-License-Identifier: MIT */
/* ids.h - the timers of all workers in one table, and the ways to get from an id to a locked timer. */
#ifndef TIMERS_IDS_H
#define TIMERS_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include <quiesce/ds/idr.h>

#include "case.h"

#define TIMERS 64 /* of each worker */
#define NO_ID UINTPTR_MAX

/* What a lookup is for: always read and written together. */
struct setting {
	uint64_t interval, expiry;
};

/* Settings are made so that one can be told from a torn one, and from another owner's. */
#define MAX_OWNERS 4096

struct worker {
	uint32_t index, owner;
	uint32_t at;            /* the timer that it asks for next */
	uint64_t lookups, updates, failed;
	uint64_t sum;           /* of what it read, so that it is read */
	uint64_t random, created;
	struct idr_nodes nodes; /* so that nothing is allocated under a spinlock */
	uintptr_t id[TIMERS];   /* its own, or NO_ID; in a check read by others */
} __attribute__((aligned(128)));

extern const struct case_choice ids_variants[];

/* Choose one of ids_variants.  @watched: look for timers that are met after they were freed, and let lookups take their time. */
void ids_init(const struct case_choice *variant, bool watched);
/* All that was removed is free now. */
void ids_exit(void);

/* Give the worker its @i-th timer, which it has not: 0, or -errno. */
int ids_create(struct worker *w, uint32_t i);
/* It has it. */
void ids_delete(struct worker *w, uint32_t i);
/* timer_settime(): the same time for all. */
void ids_change(struct worker *w, uint32_t i, uint64_t time);
/* timer_gettime() of any id, for the worker's owner.  False: there is no such timer, or it is another's. */
bool ids_get(const struct worker *w, uintptr_t id, struct setting *ret);
/* @n times that, of its own timers in turn. */
void ids_get_own(struct worker *w, uint32_t n);
/* Is this what a timer of that owner may be set to? */
bool ids_plausible(const struct worker *w, const struct setting *setting);
/* Timers freed, when watched. */
uint64_t ids_freed(void);

#endif
