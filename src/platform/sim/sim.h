/* SPDX-License-Identifier: MIT */
/* sim.h - a deterministic machine for the library's real source: the interface for test programs.
 *
 * A run is a pure function of (scenario, model, scheduler, seed, length): threads are coroutines of one OS
 * thread, every shared access is a scheduling point, and every choice comes from one seeded generator.
 * Before each run all variables of the program return to their values when the machine was made, so statics
 * of the library and of a scenario start afresh; only SIM_KEEP variables survive.
 *
 * Rules for the code under test: memory that several threads write is always accessed through
 * quiesce/atomic.h (a thread may load plainly what only it writes); one address is accessed with one size,
 * except variables of functions that have returned.
 */
#ifndef QUIESCE_SIM_H
#define QUIESCE_SIM_H

#include <quiesce/atomic.h>

#define SIM_KEEP __attribute__((section("sim_keep")))
#define SIM_MAX_THREADS 16
#define SIM_MAX_OBJECTS 256

enum sim_model { SIM_SC, SIM_TSO, SIM_PSO, SIM_WEAK, SIM_NR_MODELS };
enum sim_sched { SIM_RANDOM, SIM_PCT, SIM_NR_SCHEDS };
enum sim_membarrier {
	SIM_MEMBARRIER_WORKS,
	SIM_MEMBARRIER_ABSENT,
	SIM_MEMBARRIER_LIES,
	SIM_MEMBARRIER_NO_RESTART,
	SIM_MEMBARRIER_LOST, /* works when the library is loaded, then never again */
};
enum sim_result { SIM_PASSED, SIM_FAILED, SIM_UNFINISHED };

/* The kind of computer; a scenario sets it in setup() through sim_config(). */
struct sim_config {
	int nr_cpus;                    /* 0: a CPU for each thread, and no preemption */
	enum sim_membarrier membarrier;
	uint64_t membarrier_ns;         /* duration of a membarrier; they are executed one at a time, in the order of the calls */
	int rseq_kind;                  /* enum platform_rseq_kind */
	int possible_cpus;              /* number that the library sees; 0: the real number */
	int (*id_hook)(int id);         /* maps an id to the one that the library sees, so that ids have holes */
	bool stops_in_locks;            /* no priority inheritance: sim_stop_within() also stops holders of short locks */
	bool rseq_never_aborts;         /* a broken kernel, for a test of the machine itself */
	bool spurious_wakeups;          /* default on, in a quarter of the seeds */
	int thread_start_failures;      /* number of calls of platform_thread_start() that return -EAGAIN; -1: all */
	int arm_exit_failures;          /* number of calls of platform_arm_thread_exit() that fail; -1: all */
	int lines_failures;             /* number of calls of platform_lines_get() that fail; -1: all */
	int block_failures;             /* number of calls of platform_block_get() that fail; -1: all */
	int reserve_turn;               /* 1: the next platform_reserve() fails, then every other one; 0: none */
	uint32_t max_steps;             /* a longer run counts as unfinished */
	uint64_t idle_limit_ns;         /* no thread ready for longer: a wake-up was lost; 0: no limit */
	void (*free_hook)(void *object);
	void (*heap_hook)(void);        /* called by the allocator at each call */
	const char *(*getenv_hook)(const char *name);
};

struct sim_options {
	enum sim_model model;
	enum sim_sched sched;
	uint64_t seed;
	uint32_t length;       /* approximate number of steps of a run: PCT places its change points in it */
	int change_points;     /* number of change points of PCT */
	bool trace;
	bool strict_relseq;    /* C++20: a later relaxed store of the same thread ends a release sequence */
	bool rmw_acqrel;       /* weak model: labelled read-modify-writes are acquire and release, not full fences */
	bool compiler;         /* relaxed stores may sink below later loads up to the next light fence */
};

struct sim_scenario {
	const char *name;
	const char *what;
	void (*setup)(void);   /* starts the threads; its own accesses are not scheduled */
	void (*finish)(void);  /* after the last thread; may be NULL */
	const char *must_see;  /* situation for which some run must call sim_saw(), else the scenario proves nothing */
	void (*but)(void);     /* called after @setup: how the scenario differs from another one; may be NULL */
};

/* ---- running ---- */
void sim_init(void); /* called once, after the program has set its options */
enum sim_result sim_run(const struct sim_scenario *scenario, const struct sim_options *options);
const char *sim_failure(void);  /* text of the last run's failure */
uint32_t sim_steps(void);       /* number of steps of the last run, so far */
uint64_t sim_trace_hash(void);  /* hash of the last run */

/* ---- inside a run ---- */
struct sim_config *sim_config(void);
int sim_spawn(void (*fn)(void *), void *arg, const char *name);
/* End the calling thread without its exit upcall; its memory stays, as after a bare system call. */
void sim_die(void) __attribute__((noreturn));
/* End the calling thread as pthread_exit() does: run what platform_run() promises, and its exit upcall. */
void sim_exit(void) __attribute__((noreturn));
/* True if a cancellation would end the calling thread. */
bool sim_cancelable(void);
/* Stop the calling thread at one of its next @points scheduling points, as if it were never given a CPU
 * again; a run does not wait for it.  While it holds a short lock it continues: it inherits priority. */
void sim_stop_within(uint32_t points);
/* Stop the whole process for @ns: time passes, and no thread runs. */
void sim_leap(uint64_t ns);
/* Become the child of a fork: all other threads end at their present step. */
void sim_fork(void);
int sim_self(void); /* thread number, -1 in setup() and finish() */
/* Run @handler at most @times, nested in the calling thread, at its scheduling points. */
void sim_set_signal(void (*handler)(void), int times);
void sim_point(const char *what);  /* a scheduling point of its own */
uint32_t sim_random(uint32_t below);
uint64_t sim_now_ns(void);
bool sim_all_done(void); /* true if all threads but the helpers have ended */
int sim_nr_helpers(void); /* threads of the library that have not ended */
int sim_nr_switches(void);

void sim_saw(void);          /* count a situation that the scenario must see; kept across runs */
uint64_t sim_nr_saw(void);

void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define sim_assert(condition)                                                                            \
	do {                                                                                             \
		if (!(condition))                                                                        \
			sim_fail("%s:%d: %s", __func__, __LINE__, #condition);                           \
	} while (0)

/* ---- objects: checks that they are alive when they are read, and that the order is justified ----
 * Vector clocks follow only edges that the orders used by the program justify: release-acquire, release
 * sequences, fences with the accesses they need, and membarrier.  A futex wake is a fence on both sides and
 * no edge by itself. */
void sim_obj_init(int id);   /* creates the object, initialised by the caller */
void sim_obj_read(int id);
void sim_obj_free(int id);
bool sim_obj_is_free(int id);
/* The object's payload: a relaxed access through the memory model. */
void sim_data_write(int id, uint64_t value);
uint64_t sim_data_read(int id);
/* Forget the history of memory that was freed or filled again. */
void sim_forget(const void *start, size_t bytes);
const char *sim_stderr(void); /* output of the library on stderr in this run */

#endif
