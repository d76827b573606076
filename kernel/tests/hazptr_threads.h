/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Objects, and threads that wait for them and that take and give back slots, for hazptr_cases.c. */
#ifndef QUIESCE_HAZPTR_THREADS_H
#define QUIESCE_HAZPTR_THREADS_H

#include <linux/completion.h>
#include <linux/types.h>

/* How long something must not have happened, and how long it may take. */
#define SHORT_MS 30
#define LONG_MS 20000

struct object {
	long number;
	struct callback_head head;
	bool done;
};

/* A thread that waits until one of the waiting functions returns. */
struct wait {
	struct object *object;		/* NULL: hazptr_barrier() */
	struct completion done;
};

bool start_wait(struct wait *wait);
/* Whether it goes on waiting for a while; whether it ends. */
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

/* A thread that makes @gp and @other change places, and leaves them in some order. */
struct flip {
	struct object *gp, *other;
	bool stop;
	struct completion done;
};

bool start_flip(struct flip *flip);

/* Who shares @ctx: each has an object of its own, so that a slot of two owners shows. */
struct sharer {
	struct hazptr_context *ctx;
	struct object *gp;
	bool stop;
	unsigned long rounds, bad;
	struct completion done;
};

/* Take a slot, protect, look, give back; the argument is a struct sharer. */
void share(void *arg);
/* A thread on the last CPU that does so until it is stopped. */
bool start_sharer(struct sharer *sharer);

/* hazptr_reports.c */
void hazptr_hold_long(void);
void hazptr_do_wrong(void);

#endif /* QUIESCE_HAZPTR_THREADS_H */
