/* SPDX-License-Identifier: MIT */
/* workload.h - what runs on the modelled machine: one table of operations, in the order of the pages. */
#ifndef SCALE_WORKLOAD_H
#define SCALE_WORKLOAD_H

#include "machine.h"

/* Threads other than the callers do one of these. */
enum reader { READER_IDLE, READER_BUSY, READER_SLEEPING, NR_READERS };

/* A thread of a workload.  Each has lines of its own. */
struct actor {
	int number;
	uint64_t random;
	void *object[8];
} __attribute__((aligned(256)));

struct workload {
	const char *group, *name;
	void (*setup)(void);                 /* in the first thread, before the others; may be NULL, as all below */
	void (*begin)(struct actor *a);      /* in each thread, before it is measured */
	void (*op)(struct actor *a);
	void (*end)(struct actor *a);
	void (*settle)(void);                /* waits for what has been retired; measured apart, in the first caller */
	void (*enter)(struct actor *a);      /* a section of a reader, for those that do not call op() */
	void (*leave)(struct actor *a);
	unsigned int warm, ops;              /* operations of each thread; fewer with many threads */
	unsigned int burst;                  /* after so many operations a caller sleeps for a while; 0: never */
	int most_callers;                    /* the arrays of the workload end there; 0: any number */
	bool waits;                          /* by 1, 32 or all callers, among readers */
	bool floods;                         /* reported: how fast objects are freed, and how many wait */
};

extern const struct workload scale_reads[], scale_retires[], scale_waits[], scale_updates[], scale_peers[], scale_threads[];

/* A number below @limit. */
static inline uint64_t scale_random(struct actor *a, uint64_t limit)
{
	a->random = a->random * 6364136223846793005u + 1442695040888963407u;
	return (a->random >> 33) % limit;
}

#endif
