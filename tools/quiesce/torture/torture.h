/* SPDX-License-Identifier: MIT */
/* torture.h - the state of one torture run, which all its threads share. */
#ifndef QUIESCE_TOOL_TORTURE_H
#define QUIESCE_TOOL_TORTURE_H

#include <quiesce/atomic.h>

#include "team.h"
#include "tool.h"

struct torture_options {
	char mutant[64];
	bool keep_going;
	bool perturbed;   /* --perturb was given */
	uint64_t perturb; /* number of accesses of 65536 that are delayed */
};

/* The counts of a run are its scenarios. */
enum { SCENARIO_READS, SCENARIO_UPDATES, SCENARIO_REUSED, SCENARIO_CLOSE_CALLS, SCENARIO_ERRORS };

#define PIPE_LENGTH 10 /* ages of an element between its removal and its reuse */
#define ELEMENTS 100
#define FIFO_DEPTH 64 /* freed elements that must be in the list before one is reused */
#define MAGIC 0x71756965736365ull
#define POISON 0x6b6b6b6b6b6b6b6bull
#define NR_FAKE_WRITERS 2
#define FILL_BYTES (4u << 20)
#define NR_POINTERS 3 /* pointers to elements, each with a writer; types that wait for every reader use the first */
#define EXTRA_TALLIES 5
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

/* Counters of a thread.  The last two are histograms: of the ages of elements, and of the grace periods that ended in a section. */
enum tally_count {
	TALLY_READS,
	TALLY_SIGNAL_READS,
	TALLY_CANARY_ERRORS,
	TALLY_MAGIC_ERRORS,
	TALLY_REUSE_ERRORS,
	TALLY_COOKIE_ERRORS,
	TALLY_HANDED_OVER,
	TALLY_CPU_NS,
	TALLY_PIPE,
	TALLY_BATCH = TALLY_PIPE + PIPE_LENGTH + 1,
	NR_TALLY = TALLY_BATCH + PIPE_LENGTH + 1,
};

/* Only the thread of a reader and its signal handler write its results. */
struct tally {
	uint64_t n[NR_TALLY];
	uint64_t holding; /* while the thread holds a key: key << 1 | 1, with a growing number above; even: it holds none */
	uint64_t random;  /* state of the signal handler's random numbers */
} __attribute__((aligned(128)));

/* A section, guard, lock or reference that a thread holds; it may go to another thread, which ends it. */
struct hold {
	void *object; /* the element, lock or count */
	uint64_t key; /* the number of the lock or count */
	struct op_guard guard;
	int index;          /* the value that srcu_down_read() returned */
	uint64_t serial;    /* what the object had when the hold began */
	uint64_t completed; /* the number of grace periods that had ended then */
	void (*end)(struct hold *h, struct tally *t);
};

/* The behaviour of all threads for a while; written by the conductor, read by all others. */
struct regime {
	uint32_t generation; /* written last */
	uint32_t readers;    /* number of active readers */
	uint32_t pinned;
	uint32_t delays;
	uint32_t paused;
	uint32_t stop;
};

/* @nr threads that are no readers, which are numbered from 0; a list ends with @nr 0. */
struct torture_role {
	void (*run)(uint32_t index);
	uint32_t nr;
};
/* The threads of each type whose readers are under a grace period. */
#define TORTURE_RCU_ROLES \
	{ torture_writer, 1 }, { torture_barriers, 1 }, { torture_exits, 1 }, { torture_signals, 1 }, { torture_fake_writer, 2 }
#define TORTURE_RCU_WRITERS (1u | 3u << NR_POINTERS)

/* A number that a kind counts and reports: something done, without which (no more than @few of it) a run proves nothing if @idle
 * says why; or an error. */
struct torture_figure {
	const char *what;
	bool error;
	const char *idle;
	uint64_t few;
	uint64_t n;
};

/* How types are tortured. */
struct torture_kind {
	void (*set_up)(void); /* called before there are threads; NULL: nothing to do */
	const void *calls;    /* the functions of the type, which a broken one replaces; NULL: it has none */
	void (*section)(struct tally *t, uint64_t *random);
	/* Begins a hold; false: refused.  @at_once: in a signal handler, which must not wait. */
	bool (*begin)(struct hold *h, uint64_t *random, bool at_once);
	void (*use)(struct hold *h, uint64_t *random); /* torture_hold_section() has it use and check the object for a while */
	bool elements; /* readers read elements, which are checked and counted by their ages */
	bool leaves;   /* a thread that exits leaves its hold to another one */
	const struct torture_role *roles;
	uint32_t writers; /* bits: the entries of torture.progress[] that have to grow */
	struct torture_figure *figures; /* ends with a NULL what; NULL: none */
};

struct torture {
	const struct op *op;
	const struct torture_kind *kind;
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
	struct tally *tally; /* one for each reader, for the exit bursts, and for the collector, and some for others */
	uint32_t users;      /* number of threads that may still leave a guard in a mailbox */
	struct team readers, others;
};
extern struct torture torture;

/* torture_pool.c */
void pool_init(void);
struct element *pool_get(void); /* Returns NULL, and counts that, if no element is free. */
void pool_put(struct element *e);

/* torture_read.c: sections under a grace period, which check an element again and again */
void torture_reader(struct member *m);
void torture_catch_signal(void);
void torture_delay(uint64_t *random);
void torture_read_section(struct tally *t, uint64_t *random);
bool torture_read_begin(struct hold *h, uint64_t *random, bool at_once);
/* Notes the element of @h, in a section; checks it later: it must not have been freed. */
void torture_take_element(struct hold *h);
void torture_check_element(const struct hold *h, struct tally *t);
/* Checks and counts its age. */
void torture_end_element(const struct hold *h, struct tally *t);

/* torture_hold.c: holds, and mailboxes by which they go to other threads */
bool torture_post(const struct hold *h, struct tally *t, uint64_t random); /* false: the mailbox is not empty */
bool torture_fetch(struct hold *ret, uint64_t random);
void torture_hold_section(struct tally *t, uint64_t *random);
/* One short section, for a signal handler or a thread that exits. */
void torture_once(struct tally *t, uint64_t *random, uint64_t spins);
/* Begins a hold that outlives its thread, where the type allows that. */
void torture_leave_hold(struct tally *t, uint64_t *random);
/* Ends the holds in the mailboxes, until no thread can leave any more. */
void torture_collector(uint32_t index);

/* torture_object.c: guards of single objects */
void torture_object_section(struct tally *t, uint64_t *random);
bool torture_object_begin(struct hold *h, uint64_t *random, bool at_once);

/* torture_object_write.c: @index is the number of the writer, or of the fake writer */
void torture_object_writer(uint32_t index);
void torture_object_fake_writer(uint32_t index);
extern struct torture_key {
	char bytes[64];
} torture_key[NR_KEYS];

/* torture_write.c */
void torture_writer(uint32_t index);
void torture_fake_writer(uint32_t index);
/* Calls @update until the run ends.  In the regimes whose threads are bound, writers have the first CPU; only the first of them writes. */
void torture_update_loop(uint32_t index, uint64_t *random, void (*update)(uint32_t index, uint64_t *random));

/* torture_kinds.c: the kind of @op, if it has none of its own that of its facets; NULL: it cannot be tortured */
const struct torture_kind *torture_kind(const struct op *op);

/* torture_churn.c: an object that ends as soon as its users have left */
struct torture_churn {
	void (*begin)(void *object);
	int (*enter)(void *object);
	void (*leave)(void *object, int entered);
	void (*wait)(void *object); /* waits until all users that had entered have left */
	void (*end)(void *object);
	struct torture_figure *turns, *errors;
};
#define CHURN_BYTES 1024
#define CHURN_USERS 2
extern const struct torture_churn *torture_churn;
void torture_churn_owner(uint32_t index);
void torture_churn_user(uint32_t index);

/* ---- torture_percpu_rwsem.c, torture_srcu.c, torture_percpu_ref.c, torture_slab.c ---- */
extern const struct torture_kind torture_rwsem, torture_busted_rwsem, torture_srcu, torture_ref, torture_busted_ref, torture_slab,
	torture_busted_slab;

/* ---- torture_other.c: threads beside readers and writers ---- */
void torture_barriers(uint32_t index);
void torture_exits(uint32_t index);
void torture_signals(uint32_t index);
void torture_other(struct member *m);
int torture_nr_others(void);

/* torture_report.c: prints the report; the number of errors so far; whether the run has done too little to prove anything */
uint64_t torture_errors(void);
bool torture_is_idle(void);
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
	/* raw: a test's own hand-over; release, with the acquire in torture_all_left(). */
	__atomic_fetch_sub(&torture.users, 1, __ATOMIC_RELEASE);
}

/* True when the calling thread is the last one that could leave something. */
static inline bool torture_all_left(void)
{
	/* raw: acquire, with the release in torture_leave(). */
	return __atomic_load_n(&torture.users, __ATOMIC_ACQUIRE) == 1;
}

/* The tallies beyond those of the readers: 0 the threads that exit, 1 the collector, and others. */
static inline struct tally *torture_extra(int i)
{
	return &torture.tally[torture.nr_readers + i];
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
