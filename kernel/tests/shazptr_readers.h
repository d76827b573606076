/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Threads that hold guards, wait for them and replace them all the time, for shazptr_cases.c. */
#ifndef QUIESCE_SHAZPTR_READERS_H
#define QUIESCE_SHAZPTR_READERS_H

#include <linux/completion.h>
#include <linux/types.h>

/* How long something must not have happened, and how long it may take. */
#define SHORT_MS 30
#define LONG_MS 20000

/*
 * A guard keeps its CPU, and somebody may stop all CPUs meanwhile, such as a
 * change of the clock source: so it ends by itself as well, and then the test
 * is made once more.
 */
extern uint hold_ms;
extern bool expired;

/* Nested guards protect this one. */
extern char other;

/* A thread that holds a guard, or two, on the second CPU until it is told to let go. */
struct holder {
	const void *outer;
	const void *inner;	/* NULL: none */
	bool drop_inner;	/* the inner guard ends at once */
	bool holding;
	bool let_go;
	struct completion done;
};

bool start_holder(struct holder *holder);
void stop_holder(struct holder *holder);

/* A thread that waits for the readers of an address. */
struct wait {
	const void *ptr;
	struct completion done;
};

bool start_wait(struct wait *wait, const void *ptr);
/* Whether it goes on waiting for a while; whether it ends. */
bool waits(struct wait *wait);
bool ends(struct wait *wait);

/* A reader that protects again as soon as it has cleared: its slot is almost never empty. */
struct hammer {
	const void *ptr;
	bool nested;
	bool stop;
	unsigned long sections;
	struct completion done;
};

bool start_hammer(struct hammer *hammer);

unsigned int second_cpu(void);

#endif /* QUIESCE_SHAZPTR_READERS_H */
