/* SPDX-License-Identifier: MIT */
/* machine.h - the simulated machine's state, private to src/platform/sim. */
#ifndef QUIESCE_SIM_MACHINE_H
#define QUIESCE_SIM_MACHINE_H

#include "sim.h"

#include <quiesce/detail/tls.h>

#define SIM_LOCATIONS 1024
#define SIM_TABLE 4096
#define SIM_HISTORY 8
#define SIM_BUFFER 8
#define SIM_MAX_OWNED 64
#define SIM_STACK (128 * 1024)
#define SIM_ARENA (4u << 20)
#define SIM_FOREVER UINT64_MAX
#define SIM_STEP_NS 50

/* The knowledge of a thread, a message or a fence: how far it is ordered after each thread (clock, for the
 * race oracle), and the oldest store of each location that it may still read (stamp, for the weak model
 * only). */
struct view {
	uint32_t clock[SIM_MAX_THREADS];
	int16_t stamp[SIM_LOCATIONS];
} __attribute__((aligned(64)));

struct message {
	uint64_t value;
	int8_t owner;   /* thread whose release sequence this store continues */
	bool has_view;  /* message_view() holds what a reader acquires */
};

struct location {
	uintptr_t address;
	uint8_t size;
	uint8_t count;  /* number of messages that can still be read, with the newest */
	int16_t stamp;  /* stamp of the newest message */
	struct message history[SIM_HISTORY]; /* message of stamp s at s % SIM_HISTORY */
};

struct buffered {
	uint64_t value;
	struct location *location;
	bool release;
	bool has_view;
	uint32_t clock[SIM_MAX_THREADS];
};

enum thread_state { THREAD_READY, THREAD_BLOCKED, THREAD_STOPPED, THREAD_DONE };

/* This is one call of platform_run(), on the stack of its thread. */
struct sim__run {
	void (*ended)(void *arg);
	void *arg;
	struct sim__run *outer;
};

struct thread {
	struct quiesce_tls_v1 tls __attribute__((aligned(64)));
	/* The thread's knowledge; its knowledge after an acquire fence; what its relaxed stores carry since
	 * its last fence. */
	struct view cur, acq, rel;
	bool acq_any, rel_any;

	enum thread_state state;
	bool helper;          /* started by the library: a run does not wait for it */
	bool arm_exit;
	bool uncancelable;
	struct sim__run *runs; /* the innermost run */
	bool killed;          /* ended by sim_die() */
	uint32_t stop_in;     /* scheduling points until it stops for good; 0: never */
	uint32_t nr_locks;    /* short locks that it holds, is taking or giving back */
	uint32_t nr_owned;
	const void *owned[SIM_MAX_OWNED]; /* locks that it holds, and gates that it is inside */
	bool timed_out;
	int priority;
	uint64_t deadline;    /* while blocked */
	const uint32_t *word; /* while blocked */

	struct buffered buffer[SIM_BUFFER];
	int nr_buffered;
	struct buffered held; /* store that the compiler has moved down; location NULL: none */
	bool held_free;       /* the held store may also move past loads */

	void (*handler)(void);
	int signals_left;
	bool signals_blocked, in_handler;

	int cpu;              /* -1: not running */
	int cid;
	bool rseq_aborted;

	void (*fn)(void *);
	void *arg;
	const char *name;
	void *context;        /* see coroutine.c */
};

struct object {
	bool exists, freed;
	int init_thread;
	uint32_t init_clock;
	uint32_t read_clock[SIM_MAX_THREADS];
	uint64_t data;
};

struct cpu {
	int running;          /* thread, -1: none */
	struct view left;     /* knowledge of the CPU's last thread when it left */
};

struct machine {
	struct sim_options opt;
	struct sim_config config;
	uint64_t random;
	uint32_t steps;
	uint32_t switches;
	uint64_t now_ns, idle_ns;
	uint64_t membarriers_end; /* time at which all membarriers called so far have ended, if they take time */
	int nr_helper_timeouts;
	uint64_t hash;
	uint64_t nr_saw;
	enum sim_result result;
	bool stopped;
	char failure[512];
	char captured[1024];
	size_t nr_captured;

	int cur;              /* running thread, -1: the program's main() */
	int nr_threads, nr_done;
	int first; /* first thread of the process, once this is a child */
	uint32_t ready;       /* bit per thread */
	uint32_t stale;       /* number of loads in 8 that may return old stores */
	uint32_t sticky;      /* number of points in 8 without a switch (random scheduler) */
	bool buffered;        /* TSO, PSO */
	bool spurious;        /* spurious wake-ups happen in this run */
	int lowest_priority;
	uint32_t change_at[8];
	void *main_context;

	uint32_t epoch;
	uint32_t table_epoch[SIM_TABLE];
	uint16_t table[SIM_TABLE];
	int nr_locations, most_locations;
	int16_t highest_stamp;
	struct view sc;       /* view that all full fences share */

	size_t arena_used;
	int nr_objects;       /* highest id used, plus one */
	struct cpu cpus[SIM_MAX_THREADS];
	struct view cid_left[SIM_MAX_THREADS]; /* knowledge of the last owner of each concurrency id when it left */
	struct object objects[SIM_MAX_OBJECTS];
	struct thread threads[SIM_MAX_THREADS];
	struct location locations[SIM_LOCATIONS];
	struct view message_views[SIM_LOCATIONS][SIM_HISTORY];
	char crash_stack[SIM_STACK];
	char stacks[SIM_MAX_THREADS][SIM_STACK] __attribute__((aligned(64)));
	char arena[SIM_ARENA] __attribute__((aligned(4096)));
};

extern struct machine *sim__machine;
#define M sim__machine

static inline struct thread *sim__current(void)
{
	return M->cur < 0 ? NULL : &M->threads[M->cur];
}

static inline uint32_t sim__draw(void)
{
	M->random ^= M->random << 13;
	M->random ^= M->random >> 7;
	M->random ^= M->random << 17;
	return M->random >> 32;
}

/* coroutine.c */
void sim__context_make(struct thread *t);
void sim__context_switch(void **from, void *to);
/* sim.c */
void sim__thread_main(void);
void sim__end_run(enum sim_result result) __attribute__((noreturn));
int sim__spawn(void (*fn)(void *), void *arg, const char *name, bool helper);
/* sched.c */
void sim__point(void);
void sim__leave(void);             /* the current thread cannot continue: run others */
void sim__block(struct thread *t, const uint32_t *word, uint64_t timeout_ns);
void sim__ready(struct thread *t);
void sim__demote(struct thread *t);
/* view.c */
void view_join(struct view *into, const struct view *from);
void view_copy(struct view *into, const struct view *from);
void view_join_clock(uint32_t *into, const uint32_t *from);
void view_fence(struct thread *t); /* a full fence of @t, apart from its store buffer */
/* memory.c */
struct location *sim__location(const void *p, unsigned size);
uint64_t sim__memory_get(const struct location *l);
void sim__memory_put(const struct location *l, uint64_t value);
uint64_t sim__committed(struct location *l);
uint64_t sim__expected(struct location *l);
void sim__commit_buffered(struct thread *t, const struct buffered *b);
/* A store without a scheduling point. */
void sim__commit_now(struct thread *t, uint64_t *word, uint64_t value, enum sim_order order, const struct sim_site *site);
void sim__fence(struct thread *t); /* a full fence of @t */
uint64_t sim__read_newest(struct thread *t, const void *p, unsigned size);
void sim__held_release(struct thread *t);
/* buffer.c */
void sim__buffer_store(struct thread *t, struct location *l, uint64_t value, enum sim_order order);
bool sim__buffer_find(const struct thread *t, const struct location *l, uint64_t *ret_value);
void sim__buffer_flush_one(struct thread *t);
void sim__buffer_flush_location(struct thread *t, const struct location *l);
void sim__buffer_drain(struct thread *t);
void sim__buffer_show(struct thread *t); /* @t begins to run */
void sim__buffer_hide(struct thread *t); /* @t stops running */
/* locks.c */
void sim__locks_at_end(const struct thread *t);
/* cpu.c */
void sim__cpu_reset(void);
void sim__cpu_place(struct thread *t);
void sim__cpu_remove(struct thread *t);
/* trace.c */
void sim__trace(const char *op, const void *p, uint64_t value, enum sim_order order, const struct sim_site *site);
void sim__trace_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Zeroes the canary, as a fork does in the child. */
void sim__canary_wipe(void);

/* Upcalls of the library; the machine's own tests have none of them. */
void quiesce__tls_init(struct quiesce_tls_v1 *tls) __attribute__((weak));
void quiesce__thread_exit(void) __attribute__((weak));

#endif
