/* SPDX-License-Identifier: MIT */
/* timer.h - a timer with its lock, for ids.c: to claim it, to read and write its setting, and to see whether it was freed. */
#ifndef TIMERS_TIMER_H
#define TIMERS_TIMER_H

#include <quiesce/rcu.h>

#include "ids.h"
#include "locks.h"

#define NO_OWNER UINT32_MAX
#define LINGER_EVERY 16 /* times that a timer is met, when watched */

extern bool timer_watched;

struct timer {
	uintptr_t id;       /* bucket_lock: never changes; typesafe: under the timer's lock */
	struct timer *next; /* bucket_lock: under the bucket's lock */
	struct spin lock;
	struct sequence sequence;
	uint32_t owner;         /* written under both */
	struct setting setting; /* written under both */
	struct canary canary;
	struct rcu_head rcu;
};

static __attribute__((cold, noinline)) void delay(void)
{
	static __thread unsigned int turn;

	if (++turn % LINGER_EVERY == 0)
		sched_yield();
	for (unsigned int i = 0; i < turn % 64; i++)
		quiesce_cpu_relax();
}

/* When watched: stay with a timer for a while, to see it die.  False: it did, and must not be touched. */
static __attribute__((cold, noinline)) bool linger(const struct timer *t)
{
	if (!canary_sings(&t->canary))
		return false;
	delay();
	return canary_sings(&t->canary);
}

QUIESCE_FAST bool alive(const struct timer *t)
{
	if (quiesce_unlikely(timer_watched))
		return linger(t);
	return true;
}

/* Lock it if it is @owner's.  Its memory is a timer's. */
QUIESCE_FAST bool claim_memory(struct timer *t, uint32_t owner)
{
	spin_lock(&t->lock);
	if (quiesce_likely(quiesce_load_relaxed(&t->owner) == owner)) /* Relaxed: under the lock. */
		return true;
	spin_unlock(&t->lock);
	return false;
}

QUIESCE_FAST bool claim(struct timer *t, uint32_t owner)
{
	return alive(t) && claim_memory(t, owner);
}

QUIESCE_FAST void read_and_unlock(struct timer *t, struct setting *ret)
{
	(void)alive(t);
	/* Relaxed: under the lock, both. */
	ret->interval = quiesce_load_relaxed(&t->setting.interval);
	ret->expiry = quiesce_load_relaxed(&t->setting.expiry);
	spin_unlock(&t->lock);
}

/* Write owner and setting; the caller has the timer's lock, or no worker can find the timer yet. */
static __attribute__((unused)) void write_setting(struct timer *t, uint32_t owner, uint64_t time)
{
	uint64_t interval = (time * MAX_IDS + t->id % MAX_IDS) * MAX_OWNERS + owner % MAX_OWNERS;

	sequence_write_begin(&t->sequence);
	/* TM3: release, pairs with TM3 in read_once(); all three */
	quiesce_store_release(TM3, &t->owner, owner);
	quiesce_store_release(TM3, &t->setting.interval, interval);
	(void)alive(t);
	quiesce_store_release(TM3, &t->setting.expiry, 3 * interval);
	sequence_write_end(&t->sequence);
}

#endif
