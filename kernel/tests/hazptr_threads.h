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

#endif /* QUIESCE_HAZPTR_THREADS_H */
