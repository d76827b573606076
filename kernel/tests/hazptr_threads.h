/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Objects, and threads that wait for them and that take and free slots, for hazptr_cases.c. */
#ifndef QUIESCE_HAZPTR_THREADS_H
#define QUIESCE_HAZPTR_THREADS_H

#include <linux/completion.h>
#include <linux/types.h>

/* Time in which something must not happen, and time that it may take. */
#define SHORT_MS 30
#define LONG_MS 20000

struct object {
	long number;
	struct callback_head head;
	bool done;
};

/* A callback, and whether it does not run for several scans, or runs. */
void note_run(struct callback_head *head);
bool stays(struct object *object);
bool goes(struct object *object);

/* A thread that waits until one of the waiting functions returns. */
struct wait {
	struct object *object;		/* NULL: hazptr_barrier() */
	struct completion done;
};

bool start_wait(struct wait *wait);
/* waits(): true if it goes on waiting for a while; ends(): true if it ends. */
bool waits(struct wait *wait);
bool ends(struct wait *wait);

/* A thread whose contexts come and go and whose slots are never empty for long. */
struct churn {
	struct object *gp;
	bool stop;
	unsigned long rounds;
	struct completion done;
};

bool start_churn(struct churn *churn);

/* A thread that exchanges @gp and @other, and ends with them in some order. */
struct flip {
	struct object *gp, *other;
	bool stop;
	struct completion done;
};

bool start_flip(struct flip *flip);

/*
 * A user of the shared @ctx: each has an object of its own, so that a slot with
 * two owners is noticed.
 */
struct sharer {
	struct hazptr_context *ctx;
	struct object *gp;
	bool stop;
	unsigned long rounds, bad;
	struct completion done;
};

/* Takes a slot, protects, checks, frees it; the argument is a struct sharer. */
void share_slot(void *arg);
/* A thread on the last CPU that calls share_slot() until it is stopped. */
bool start_sharer(struct sharer *sharer);

/* hazptr_calls.c */
bool test_flush_in_callback(void);
bool test_many_contexts(void);
bool test_wait_beside_callbacks(void);

/* hazptr_reports.c */
void hazptr_hold_long(void);
void hazptr_do_wrong(void);

#endif /* QUIESCE_HAZPTR_THREADS_H */
