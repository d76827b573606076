/* SPDX-License-Identifier: MIT */
/* torture.h - state of one torture run, shared by its threads. */
#ifndef QUIESCE_TOOL_TORTURE_H
#define QUIESCE_TOOL_TORTURE_H

#include <quiesce/atomic.h>

#include "team.h"
#include "tool.h"

#define PIPE_LENGTH 10 /* ages that an element passes after its removal, before it is reused */
#define ELEMENTS 100
#define FIFO_DEPTH 64 /* freed elements that must wait before one is reused */
#define MAGIC 0x71756965736365ull
#define POISON 0x6b6b6b6b6b6b6b6bull
#define NR_FAKE_WRITERS 2
#define FILL_BYTES (4u << 20)
#define HUNG_S 10
#define NR_POINTERS 3 /* that lead to elements, each with a writer; types that wait for every reader use the first */
#define EXTRA_TALLIES 4
#define NR_KEYS 4     /* addresses that are never freed, for writers without data */
#define PROGRESS_CHURN (NR_POINTERS + NR_FAKE_WRITERS)
#define NR_PROGRESS (PROGRESS_CHURN + 1)

/* Everything in it that readers look at is accessed relaxed. */
struct element {
	struct op_head head;
	uint32_t age;    /* 0 current, 1 removed; 2: a grace period has ended since */
	uint32_t canary; /* 1 from before its publication until it is reused */
	uint64_t magic;  /* MAGIC, or POISON after the free */
	uint64_t serial; /* different at each use */
	struct element *next; /* in the writer's list or the free list */
} __attribute__((aligned(64)));

/* A reader's findings, written by its thread and its signal handler only. */
struct tally {
	uint64_t reads;
	uint64_t signal_reads;
	uint64_t pipe[PIPE_LENGTH + 1];
	uint64_t batch[PIPE_LENGTH + 1];
	uint64_t canary_errors;
	uint64_t magic_errors;
	uint64_t reuse_errors;
	uint64_t cookie_errors;
	uint64_t handed_over;
	uint64_t holding; /* key << 1 | 1 and a number that grows, while the thread holds a key; even: none */
	uint64_t random;  /* the signal handler's */
	uint64_t cpu_ns;
} __attribute__((aligned(128)));

/* How threads behave for a while; the conductor changes it, all others read it. */
struct regime {
	uint32_t generation; /* changes last */
	uint32_t readers;    /* active */
	uint32_t pinned;
	uint32_t delays;
	uint32_t paused;
	uint32_t stop;
};

/* What a thread beside the readers does. */
struct torture_role {
	void (*run)(void);
	void (*run_one)(uint32_t index); /* one of several */
	uint32_t index;
};

/* What a type has that is tortured in its own way.  A type without a section of its own is tortured by elements too. */
struct torture_kind {
	void (*set_up)(void); /* before there are threads */
	void (*section)(struct tally *t, uint64_t *random);
	void (*once)(struct tally *t, uint64_t *random, uint64_t spins); /* in a signal handler, in a thread that exits */
	void (*leave)(struct tally *t, uint64_t *random);                /* by a thread that exits, for another one */
	const struct torture_role *roles;
	int nr_roles;
	uint32_t writers; /* bits: which of torture.progress[] have to grow */
	uint64_t (*errors)(void);
	void (*report)(void);
	const char *(*idle)(void); /* what it did not do, or NULL */
};

struct torture {
	const struct op *op;
	const struct torture_kind *kind; /* NULL: by elements */
	const struct job *job;
	struct regime regime;
	struct element *current[NR_POINTERS]; /* the pointers that are protected; each written by its writer */
	struct element element[ELEMENTS];

	pthread_mutex_t lock; /* guards the free list, first in, first out */
	struct element *first, *last;
	uint32_t nr_free;
	uint64_t reused;

	uint64_t version;    /* updates */
	uint64_t completed;  /* the writers' grace periods or waits */
	uint64_t empty;      /* allocations that failed */
	uint64_t progress[NR_PROGRESS]; /* of each writer and fake writer: updates or waits */
	uint64_t key_errors;
	uint64_t longest_ns; /* of the waits for single objects */
	uint64_t callbacks;  /* run */
	uint64_t fake_waits; /* grace periods of the fake writers */
	uint64_t barriers, floods, barrier_errors;
	uint64_t retired_waits; /* elements retired and waited for */
	uint64_t exits; /* threads that read once and exited */
	uint64_t signals;
	uint64_t leaks;
	uint64_t hung; /* 1: something waits for ever */

	int nr_readers;
	struct tally *tally; /* of each reader, one for the exit bursts, one for who empties the mailboxes, some for others */
	uint32_t users;      /* threads that may still leave a guard in a mailbox */
	struct team readers, others;
};
extern struct torture torture;

/* torture_pool.c */
void pool_init(void);
struct element *pool_get(void); /* NULL, and counted: none is free */
void pool_put(struct element *e);

/* torture_read.c */
void torture_reader(struct member *m);
/* One section of about @spins pauses, as a signal handler or a thread that exits at once does it. */
void torture_read_once(struct tally *tally, uint64_t spins);
void torture_catch_signal(void);
void torture_delay(uint64_t *random);
/* What an element looks like that nobody may have freed. */
void torture_check(struct element *e, struct tally *t, uint64_t serial);
/* @completed: as it was when the section began. */
void torture_count_ages(struct element *e, struct tally *t, uint64_t completed);

/* torture_object.c: guards of single objects */
void torture_object_section(struct tally *t, uint64_t *random);
/* The guard is cleared at the end, as it has to be in a signal handler. */
void torture_object_once(struct tally *t, uint64_t *random, uint64_t spins);
/* Protect an element and leave the guard to another thread. */
void torture_object_leave(struct tally *t, uint64_t *random);
/* Clear what others have left, until nobody can leave any more. */
void torture_postman(void);

/* torture_object_write.c: @index among writers, or among fake writers */
void torture_object_writer(uint32_t index);
void torture_object_fake_writer(uint32_t index);
extern struct torture_key {
	char bytes[64];
} torture_key[NR_KEYS];

/* torture_write.c */
void torture_writer(void);
void torture_fake_writer(uint32_t index);

/* torture_types.c: @op's kind; NULL: it has none */
extern const struct op *const torture_types[];
const struct torture_kind *torture_kind_of(const struct op *op);

/* torture_churn.c: an object that ends as soon as its users have left */
struct torture_churn {
	void (*begin)(void *object);
	int (*enter)(void *object);
	void (*leave)(void *object, int entered);
	void (*wait)(void *object); /* until all who had entered have left */
	void (*end)(void *object);
};
#define CHURN_BYTES 1024
#define CHURN_USERS 2
extern const struct torture_churn *torture_churn;
extern uint64_t torture_churn_turns, torture_churn_errors;
void torture_churn_owner(void);
void torture_churn_user(uint32_t index);

/* torture_rwsem.c, torture_srcu.c, torture_ref.c */
extern const struct torture_kind torture_rwsem, torture_busted_rwsem, torture_srcu, torture_ref, torture_busted_ref;

/* torture_other.c: threads beside readers and writers */
void torture_barriers(void);
void torture_exits(void);
void torture_signals(void);
/* One short look, as a signal handler or a thread that exits does it. */
void torture_once(struct tally *t, uint64_t *random, uint64_t spins);
void torture_other(struct member *m);
int torture_nr_others(void);
/* Does this type have writer @index of those that make progress? */
bool torture_has_writer(int index);

/* torture_report.c: print it; errors found so far */
uint64_t torture_errors(void);
int torture_report(double seconds);

/* Relaxed: flags that only have to be seen some time. */
static inline bool torture_stopped(void)
{
	return quiesce_load_relaxed(&torture.regime.stop);
}

/* Stand still while the conductor says so. */
static inline void torture_stutter(void)
{
	while (quiesce_load_relaxed(&torture.regime.paused) && !torture_stopped())
		sleep_ns(1000000);
}

/* Counters with one writer each, read by the reporter: a plain read-modify-write is enough. */
#define torture_count(counter) quiesce_store_relaxed(&(counter), quiesce_load_relaxed(&(counter)) + 1)
/* Those with several. */
#define torture_count_together(counter) ((void)quiesce_fetch_add_relaxed(&(counter), (uint64_t)1))

/* A thread that leaves nothing in a mailbox any more. */
static inline void torture_leave(void)
{
	/* raw: a test's own hand-over; release, with the acquire in torture_postman(). */
	__atomic_fetch_sub(&torture.users, 1, __ATOMIC_RELEASE);
}

static inline int torture_nr_tallies(void)
{
	return torture.nr_readers + EXTRA_TALLIES;
}

static inline void torture_spin(uint64_t turns)
{
	while (turns--)
		quiesce_cpu_relax();
}

#endif
