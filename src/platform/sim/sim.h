/* SPDX-License-Identifier: MIT */
/* sim.h - a deterministic machine for the library's real source: what test programs see of it.
 *
 * A run is a pure function of (scenario, model, scheduler, seed, length): threads
 * are coroutines of one OS thread, every shared access is a scheduling point, and
 * every choice comes from one seeded generator.  Before each run all variables of
 * the program return to what they were when the machine was made, so statics of
 * the library and of a scenario start afresh; only SIM_KEEP variables survive.
 *
 * Rules for the code under test: memory that several threads write goes through
 * quiesce/atomic.h always (plain loads of what only the loading thread writes are
 * fine); one address is accessed with one size, but for variables of functions that have returned.
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
	SIM_MEMBARRIER_LOST, /* it works when the library is loaded, and then no more */
};
enum sim_result { SIM_PASSED, SIM_FAILED, SIM_UNFINISHED };

/* What kind of computer this is; a scenario sets it in setup() through sim_config(). */
struct sim_config {
	int nr_cpus;                    /* 0: a CPU for each thread, nobody is ever preempted */
	enum sim_membarrier membarrier;
	uint64_t membarrier_ns;         /* one takes so long, and one at a time is executed, in the order of the calls */
	int rseq_kind;                  /* enum platform_rseq_kind */
	int possible_cpus;              /* what the library is told; 0: as many as there are */
	int (*id_hook)(int id);         /* what id the library sees instead, so that ids have holes */
	bool stops_in_locks;            /* nobody lends a priority: sim_stop_within() stops holders of short locks, too */
	bool rseq_never_aborts;         /* a broken kernel, for the machine's own test */
	bool spurious_wakeups;          /* default on, in a quarter of the seeds */
	int thread_start_failures;      /* so many platform_thread_start() say -EAGAIN; -1: all */
	int arm_exit_failures;          /* the same for platform_arm_thread_exit() */
	int lines_failures;             /* the same for platform_lines_get(): no memory */
	int block_failures;             /* the same for platform_block_get() */
	int reserve_turn;               /* 1: the next platform_reserve() fails, and every other one from then on; 0: none */
	uint32_t max_steps;             /* then the run counts as unfinished */
	uint64_t idle_limit_ns;         /* longer with nothing able to run: a wake-up was lost; 0: no limit */
	void (*free_hook)(void *object);
	void (*heap_hook)(void);        /* what the allocator does besides, at each call */
	const char *(*getenv_hook)(const char *name);
};

struct sim_options {
	enum sim_model model;
	enum sim_sched sched;
	uint64_t seed;
	uint32_t length;       /* about how many steps a run has: where PCT puts its change points */
	int change_points;     /* of PCT */
	bool trace;
	bool strict_relseq;    /* C++20: a later relaxed store of the same thread ends a release sequence */
	bool rmw_acqrel;       /* weak model: labelled read-modify-writes are acquire and release, not full fences */
	bool compiler;         /* relaxed stores may sink below later loads up to the next light fence */
};

struct sim_scenario {
	const char *name;
	const char *what;
	void (*setup)(void);   /* spawns the threads; its own accesses are not scheduled */
	void (*finish)(void);  /* after the last thread; may be NULL */
	const char *must_see;  /* some run must call sim_saw(), or the scenario proved nothing */
};

/* ---- running ---- */
void sim_init(void); /* once, after the program has set its options */
enum sim_result sim_run(const struct sim_scenario *scenario, const struct sim_options *options);
const char *sim_failure(void);  /* of the last run */
uint32_t sim_steps(void);       /* of the last run, so far */
uint64_t sim_trace_hash(void);  /* of the last run */

/* ---- inside a run ---- */
struct sim_config *sim_config(void);
int sim_spawn(void (*fn)(void *), void *arg, const char *name);
/* The calling thread ends without its exit upcall; its memory stays, as after a bare system call. */
void sim_die(void) __attribute__((noreturn));
/* The calling thread ends where it is, by pthread_exit(): what platform_run() promises, and its exit upcall. */
void sim_exit(void) __attribute__((noreturn));
/* Would a cancellation of the calling thread end it? */
bool sim_cancelable(void);
/* The calling thread stops at one of its next @points scheduling points, as if it were never given a CPU again; a run
 * does not wait for it.  While it holds a short lock it goes on: its priority is inherited. */
void sim_stop_within(uint32_t points);
/* The whole process stands still for @ns: time goes on, and no thread runs. */
void sim_leap(uint64_t ns);
/* This is the child of a fork now: all other threads are gone, where they happened to be. */
void sim_fork(void);
int sim_self(void); /* thread number, -1 in setup() and finish() */
/* @handler runs at most @times, nested in the calling thread, at its scheduling points. */
void sim_set_signal(void (*handler)(void), int times);
void sim_point(const char *what);  /* a scheduling point of its own */
uint32_t sim_random(uint32_t below);
uint64_t sim_now_ns(void);
bool sim_all_done(void); /* have all threads but the helpers ended? */
int sim_nr_helpers(void); /* threads of the library that have not ended */
int sim_nr_switches(void);

void sim_saw(void);          /* what the scenario must see; kept over all runs */
uint64_t sim_nr_saw(void);

void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define sim_assert(condition)                                                                            \
	do {                                                                                             \
		if (!(condition))                                                                        \
			sim_fail("%s:%d: %s", __func__, __LINE__, #condition);                           \
	} while (0)

/* ---- objects: is what readers touch alive, and is the order justified? ----
 * Vector clocks follow only edges that the orders used by the program justify:
 * release-acquire, release sequences, fences with the accesses they need, and
 * membarrier.  A futex wake is a fence on both sides and no edge by itself. */
void sim_obj_init(int id);   /* exists from now on; initialised by the caller */
void sim_obj_read(int id);
void sim_obj_free(int id);
bool sim_obj_is_free(int id);
/* The object's payload: a relaxed access through the memory model. */
void sim_data_write(int id, uint64_t value);
uint64_t sim_data_read(int id);
/* Forget the history of memory that was given back or filled anew. */
void sim_forget(const void *start, size_t bytes);
const char *sim_stderr(void); /* what the library wrote in this run */

#endif
