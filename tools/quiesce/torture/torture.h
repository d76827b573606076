/* SPDX-License-Identifier: MIT */
/* torture.h - the state of one torture run, which all its threads share. */
#ifndef QUIESCE_TOOL_TORTURE_H
#define QUIESCE_TOOL_TORTURE_H

#include <quiesce/atomic.h>

#include "team.h"
#include "tool.h"

#define PIPE_LENGTH 10 /* ages of an element between its removal and its reuse */
#define ELEMENTS 100
#define FIFO_DEPTH 64 /* freed elements that must be in the list before one is reused */
#define MAGIC 0x71756965736365ull
#define POISON 0x6b6b6b6b6b6b6b6bull
#define NR_FAKE_WRITERS 2
#define FILL_BYTES (4u << 20)
#define HUNG_S 10
#define NR_POINTERS 3 /* pointers to elements, each with a writer; types that wait for every reader use the first */
#define EXTRA_TALLIES 4
#define NR_KEYS 4     /* addresses that are never freed, for writers without data */
#define PROGRESS_CHURN (NR_POINTERS + NR_FAKE_WRITERS)
#define NR_PROGRESS (PROGRESS_CHURN + 1)

/* Relaxed accesses to all fields that readers read. */
struct element {
	struct op_head head;
	uint32_t age;    /* 0 current, 1 removed; 2 and more: that many grace periods less one have ended since */
	uint32_t canary; /* 1 from before its publication until its reuse */
	uint64_t magic;  /* MAGIC, or POISON after the free */
	uint64_t serial; /* a new number for each use */
	struct element *next; /* in the writer's list or the free list */
} __attribute__((aligned(64)));

/* Only the thread of a reader and its signal handler write its results. */
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
	uint64_t holding; /* while the thread holds a key: key << 1 | 1, with a growing number above; even: it holds none */
	uint64_t random;  /* state of the signal handler's random numbers */
	uint64_t cpu_ns;
} __attribute__((aligned(128)));

/* The behaviour of all threads for a while; written by the conductor, read by all others. */
struct regime {
	uint32_t generation; /* written last */
	uint32_t readers;    /* number of active readers */
	uint32_t pinned;
	uint32_t delays;
	uint32_t paused;
	uint32_t stop;
};

/* The function of a thread that is no reader. */
struct torture_role {
	void (*run)(void);
	void (*run_one)(uint32_t index); /* for one of several threads */
	uint32_t index;
};

/* The parts of a type that needs a torture of its own.  A type without a
 * section of its own is tortured by elements, too. */
struct torture_kind {
	void (*set_up)(void); /* called before there are threads */
	void (*section)(struct tally *t, uint64_t *random);
	void (*once)(struct tally *t, uint64_t *random, uint64_t spins); /* called in a signal handler and in a thread that exits */
	void (*leave)(struct tally *t, uint64_t *random);                /* called by a thread that exits, for another one */
	const struct torture_role *roles;
	int nr_roles;
	uint32_t writers; /* bits: the entries of torture.progress[] that have to grow */
	uint64_t (*errors)(void);
	void (*report)(void);
	const char *(*idle)(void); /* the work that the run did not do; NULL: it did all */
};

struct torture {
	const struct op *op;
	const struct torture_kind *kind; /* NULL: tortured by elements */
	const struct job *job;
	struct regime regime;
	struct element *current[NR_POINTERS]; /* the pointers that are protected; each is written by its writer */
	struct element element[ELEMENTS];

	pthread_mutex_t lock; /* guards the free list, first in, first out */
	struct element *first, *last;
	uint32_t nr_free;
	uint64_t reused;

	uint64_t version;    /* number of updates */
	uint64_t completed;  /* number of completed grace periods or waits of the writers */
	uint64_t empty;      /* number of failed allocations */
	uint64_t progress[NR_PROGRESS]; /* updates or waits of each writer and fake writer */
	uint64_t key_errors;
	uint64_t longest_ns; /* longest wait for a single object */
	uint64_t callbacks;  /* number of callbacks that have run */
	uint64_t fake_waits; /* grace periods of the fake writers */
	uint64_t barriers, floods, barrier_errors;
	uint64_t retired_waits; /* elements retired and waited for */
	uint64_t exits; /* threads that read once and exited */
	uint64_t signals;
	uint64_t leaks;
	uint64_t hung; /* 1: a thread waits for ever */

	int nr_readers;
	struct tally *tally; /* one for each reader, for the exit bursts, and for the postman, and some for others */
	uint32_t users;      /* number of threads that may still leave a guard in a mailbox */
	struct team readers, others;
};
extern struct torture torture;

/* torture_pool.c */
void pool_init(void);
struct element *pool_get(void); /* Returns NULL, and counts that, if no element is free. */
void pool_put(struct element *e);

/* torture_read.c */
void torture_reader(struct member *m);
/* One section of about @spins pauses, for a signal handler or a thread that exits at once. */
void torture_read_once(struct tally *tally, uint64_t spins);
void torture_catch_signal(void);
void torture_delay(uint64_t *random);
/* Checks an element that must not have been freed. */
void torture_check(struct element *e, struct tally *t, uint64_t serial);
/* @completed: the number of completed grace periods when the section began. */
void torture_count_ages(struct element *e, struct tally *t, uint64_t completed);

/* torture_object.c: guards of single objects */
void torture_object_section(struct tally *t, uint64_t *random);
/* Clears the guard at the end, as a signal handler must. */
void torture_object_once(struct tally *t, uint64_t *random, uint64_t spins);
/* Protects an element and leaves the guard to another thread. */
void torture_object_leave(struct tally *t, uint64_t *random);
/* Clears the guards in the mailboxes, until no thread can leave any more. */
void torture_postman(void);

/* torture_object_write.c: @index is the number of the writer, or of the fake writer */
void torture_object_writer(uint32_t index);
void torture_object_fake_writer(uint32_t index);
extern struct torture_key {
	char bytes[64];
} torture_key[NR_KEYS];

/* torture_write.c */
void torture_writer(void);
void torture_fake_writer(uint32_t index);

/* torture_churn.c: an object that ends as soon as its users have left */
struct torture_churn {
	void (*begin)(void *object);
	int (*enter)(void *object);
	void (*leave)(void *object, int entered);
	void (*wait)(void *object); /* waits until all users that had entered have left */
	void (*end)(void *object);
};
#define CHURN_BYTES 1024
#define CHURN_USERS 2
extern const struct torture_churn *torture_churn;
extern uint64_t torture_churn_turns, torture_churn_errors;
void torture_churn_owner(void);
void torture_churn_user(uint32_t index);

/* ---- torture_percpu_rwsem.c, torture_srcu.c, torture_percpu_ref.c ---- */
extern const struct torture_kind torture_rwsem, torture_busted_rwsem, torture_srcu, torture_ref, torture_busted_ref;

/* ---- torture_other.c: threads beside readers and writers ---- */
void torture_barriers(void);
void torture_exits(void);
void torture_signals(void);
/* One short check, for a signal handler or a thread that exits. */
void torture_once(struct tally *t, uint64_t *random, uint64_t spins);
void torture_other(struct member *m);
int torture_nr_others(void);
/* True if this type has writer @index among those that make progress. */
bool torture_has_writer(int index);

/* torture_report.c: prints the report; the number of errors so far */
uint64_t torture_errors(void);
int torture_report(double seconds);

/* Relaxed: flags that have to be seen some time. */
static inline bool torture_stopped(void)
{
	return quiesce_load_relaxed(&torture.regime.stop);
}

/* Pauses as long as the conductor demands it. */
static inline void torture_stutter(void)
{
	while (quiesce_load_relaxed(&torture.regime.paused) && !torture_stopped())
		sleep_ns(1000000);
}

/* For counters with one writer each, which the reporter reads: a plain read-modify-write is enough. */
#define torture_count(counter) quiesce_store_relaxed(&(counter), quiesce_load_relaxed(&(counter)) + 1)
/* Counters with several writers need an atomic addition. */
#define torture_count_together(counter) ((void)quiesce_fetch_add_relaxed(&(counter), (uint64_t)1))

/* Ends the right of a thread to leave something in a mailbox. */
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
