/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The torture test: interface between its two halves. */
#ifndef QUIESCE_HAZ_TORTURE_H
#define QUIESCE_HAZ_TORTURE_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/prandom.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include <linux/hazptr.h>
#include <linux/shazptr.h>

/*
 * The age of an element is 0 while it is published, 1 from its unlinking until
 * its wait ends, and 2 then.  If a reader meets age 2, a canary that does not
 * sing, or another use than at its protection, the wait has missed the reader.
 */
struct element {
	struct callback_head head;
	int age;
	unsigned long use;		/* number of times that it was taken from the pool */
	unsigned long canary;
	struct list_head node;
};

#define CANARY_SINGS 0x51496e67UL
#define CANARY_DEAD 0xdeadUL

/* A hold protects one element. */
struct hold {
	struct element *element;
	unsigned long use;
	struct shazptr_guard guard;
	hazptr_t *slot;
};

#define MAX_HELD 3

struct torture_ops {
	const char *name;
	unsigned int held;	/* protections held at once, at most MAX_HELD */
	bool sleeps;		/* holders may sleep */
	bool contexts;		/* readers have a hazptr context */
	/* Protects the object that *gp points to; true if it worked. */
	bool (*lock)(struct hazptr_context *ctx, struct element **gp, struct hold *hold);
	void (*unlock)(struct hazptr_context *ctx, struct hold *hold);
	/* A type has one of the two; drain() waits for callbacks. */
	void (*sync)(struct element *element);
	void (*call)(struct callback_head *head, rcu_callback_t func);
	void (*drain)(void);
};

const struct torture_ops *torture_ops_find(const char *name);
void torture_ops_list(void);

#define POINTERS 4		/* published pointers of each writer */
#define POOL 128		/* elements of each writer */
#define AGES 4

struct writer {
	struct element *published[POINTERS];	/* only this writer stores to it */
	spinlock_t lock;			/* guards the list */
	struct list_head free;			/* first in, first out */
	unsigned int nr_free;
	struct element *pool;
	unsigned long replaced;
	unsigned long empty;			/* number of times that no element was free */
	struct task_struct *task;
	struct rnd_state random;
	bool paused;
};

/* Each level interrupts those before it, so that guards nest in three levels. */
enum { IN_TASK, IN_SOFTIRQ, IN_HARDIRQ, LEVELS };

struct level {
	struct hazptr_context ctx;
	hazptr_t *taken[HAZPTR_SLOT_PER_CTX];	/* kept, so that the last slots are used */
	struct hrtimer timer;		/* timer of the interrupt levels */
	struct rnd_state random;
	unsigned long reads, ages[AGES];
};

/* More contexts than are scanned under one hold of a list's lock. */
#define COMERS 40

/* A context that comes and goes, and may keep an element for that time. */
struct comer {
	struct hazptr_context *ctx;
	struct hold hold;		/* without an element: the context keeps none */
};

struct reader {
	struct level levels[LEVELS];
	struct comer comers[COMERS];
	unsigned long came;		/* number of contexts made during the run */
	struct task_struct *task;
	bool paused;
};

extern const struct torture_ops *ops;
extern struct writer *writers;
extern struct reader *readers;
extern int nwriters, irqreader, stuff, tight, shuffle_interval;
extern bool pausing, stopping;

/* Counts of errors. */
extern unsigned long early, dead, astray, stalls;

void note_error(unsigned long *count, const char *what, int age);
int init_stuffing(void);
void free_stuffing(void);
int init_writer(struct writer *writer);
void init_reader(struct reader *reader);
void cleanup_reader(struct reader *reader);
int writer_thread(void *writer);
int reader_thread(void *reader);

#endif /* QUIESCE_HAZ_TORTURE_H */
