/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Threads that hold guards, wait for them and replace them all the time, for shazptr_cases.c. */
#ifndef QUIESCE_SHAZPTR_READERS_H
#define QUIESCE_SHAZPTR_READERS_H

#include <linux/completion.h>
#include <linux/types.h>

/* Time in which something must not happen, and time that it may take. */
#define SHORT_MS 30
#define LONG_MS 20000

/*
 * A guard occupies its CPU, and the kernel may stop all CPUs meanwhile, for a
 * change of the clock source for example: so the guard ends by itself after this
 * time as well, and the test is repeated.
 */
extern uint hold_ms;
extern bool expired;

/* The address that nested guards protect. */
extern char other;

/* A thread that holds a guard, or two, on the second CPU until it is asked to clear them. */
struct holder {
	const void *outer;
	const void *inner;	/* NULL: no nested guard */
	bool drop_inner;	/* the nested guard ends at once */
	bool holding;
	bool let_go;
	struct completion done;
};

bool start_holder(struct holder *holder);
void stop_holder(struct holder *holder);

/* start_wait() starts a thread that waits for the readers of an address. */
struct wait {
	const void *ptr;
	struct completion done;
};

bool start_wait(struct wait *wait, const void *ptr);
/* waits(): true if it goes on waiting for a while; ends(): true if it ends. */
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
