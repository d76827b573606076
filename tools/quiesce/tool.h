/* SPDX-License-Identifier: MIT */
/* tool.h - the common parts of the subcommands: options, results, children, threads. */
#ifndef QUIESCE_TOOL_H
#define QUIESCE_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "hash/hash_plan.h"
#include "types/op.h"

/* Exit statuses. */
#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_UNAVAILABLE 77 /* status of a child: this machine does not have the type */
#define EXIT_INTERRUPTED 130

/* ---- options (options.c) ---- */

#define MAX_TYPES 128
#define MAX_READERS 16
#define MAX_THREADS 4096
#define MAX_RETIRING 64 /* most threads of retirescale */
#define MAX_BATCH (1 << 20)
#define MIN_BYTES 64 /* least and most bytes of an object of retirescale */
#define MAX_BYTES 4096

#define QUEUE_MAX_CONSUMERS 4

#define MAX_WORDS 16 /* most arguments that are not options */

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV, FORMAT_MARKDOWN };

struct options {
	const struct op *types[MAX_TYPES]; /* types that --type names; nr_types 0: all that fit */
	int nr_types;
	int readers[MAX_READERS];
	int nr_readers;
	uint32_t scenarios; /* bits of enum scenario; 0: all */
	uint64_t batch, bytes; /* for retirescale; 0: not given */
	bool scan;
	struct hash_plan hash; /* for hashscale, walkscale */
	const struct op *base; /* for hashscale: the type that ratios are to */
	const char *figure;
	bool latency;      /* for rwscale */
	bool all_pairs;    /* for costs */
	uint64_t sections; /* for rwscale; 0: not given */
	uint32_t fences;    /* bits 1 << enum op_fence; 0: all */
	int alive;
	uint64_t loops;
	double seconds; /* 0: the default of the subcommand */
	int runs;
	bool runs_given;
	enum format format;
	const char *output;
	const char *record; /* for run: file of the figures beside the tables; NULL: none */
	const char *mutant;
	double perturb; /* negative: not given */
	bool keep_going;
	int bystanders; /* for rwscale */
	bool quick;     /* for study and report */
	bool compare;   /* for report */
	const char *binary; /* for doctor; NULL: this machine */
	const char *words[MAX_WORDS]; /* the cases or files that arguments name */
	int nr_words;
};

/* Bits of the optional options that a subcommand accepts. */
#define OPT_TYPE 1u
#define OPT_READERS 2u
#define OPT_SCENARIO 4u
#define OPT_LOOPS 8u
#define OPT_SECONDS 16u
#define OPT_TORTURE 32u
#define OPT_RETIRE 128u
#define OPT_RWLOCK 256u
#define OPT_COSTS 1024u
#define OPT_HASH 512u
#define OPT_MARKDOWN 2048u
#define OPT_STUDY 4096u
#define OPT_REPORT 8192u
#define OPT_RUNS 16384u
#define OPT_WALK 32768u
#define OPT_RESIZE 65536u
#define OPT_QUEUE 131072u
#define OPT_DOCTOR 262144u
#define OPT_RECORD 524288u
#define OPT_ROUNDS 64u /* --runs, --alive, --fence */
#define OPT_MEASURE (OPT_TYPE | OPT_READERS | OPT_ROUNDS)

struct cell;
struct results;
struct json_t;

struct subcommand {
	const char *name;
	const char *what; /* one line */
	const char *arguments; /* the arguments that are not options, for --help; NULL: there are none */
	const char *doc;  /* the text of --help below the options */
	unsigned int accepts;
	bool (*fits)(const struct op *op); /* true if a type belongs to the subcommand */
	int first_scenario, end_scenario;  /* the range of --scenario */
	/* True if @cell is a row, not a column of another one.  NULL: all cells are rows. */
	bool (*is_row)(const struct cell *cell);
	/* Adds the columns that only rows of this subcommand have.  NULL: none. */
	void (*columns)(struct json_t *row, const struct results *results, const struct cell *cell);
	int (*run)(const struct options *options);
};
extern const struct subcommand refscale_command, rcuscale_command, retirescale_command, rwscale_command, hashscale_command,
	walkscale_command, queuescale_command, torture_command, costs_command, doctor_command, run_command, study_command, report_command;

/* Fills in @ret; reports a mistake in one line and exits with EXIT_USAGE. */
void options_parse(const struct subcommand *command, int argc, char **argv, struct options *ret);
/* The types that --type names, or all that fit and are not broken.  Returns their number. */
int options_types(const struct options *options, const struct subcommand *command, const struct op *ret[MAX_TYPES]);
/* The type @name of @command, after the module of its peer was loaded; NULL: there is none.  It is absent if the
 * module cannot be loaded. */
const struct op *command_type(const struct subcommand *command, const char *name);
/* True if @fence is to be measured for @op. */
bool options_fence(const struct options *options, const struct op *op, enum op_fence fence);
void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn, cold));

/* ---- scenarios (scenario.c) ---- */

enum scenario {
	SCENARIO_NONE,
	SCENARIO_IDLE,
	SCENARIO_SAME,
	SCENARIO_OTHERS,
	SCENARIO_DOCUMENT,
	SCENARIO_LONG,
	SCENARIO_HELD,
	SCENARIO_HELD_CPU,
	SCENARIO_CALLERS,
	SCENARIO_CALLERS0,
	SCENARIO_CALLERS2,
	SCENARIO_RATE, /* this and the next five: for CALLERS, CALLERS0, CALLERS2 */
	SCENARIO_RATE0,
	SCENARIO_RATE2,
	SCENARIO_FAIRNESS,
	SCENARIO_FAIRNESS0,
	SCENARIO_FAIRNESS2,
	SCENARIO_ALIVE,
	SCENARIO_HOGS,
	SCENARIO_BESIDE,
	SCENARIO_BESIDE_LONG,
	SCENARIO_RETIRE,
	SCENARIO_GARBAGE,
	NR_WAIT_SCENARIOS,
	/* The scenarios of retirescale have names of their own. */
	SCENARIO_RETIRE_IDLE = NR_WAIT_SCENARIOS,
	SCENARIO_RETIRE_PUBLISHED,
	SCENARIO_RETIRE_BUSY,
	SCENARIO_RETIRE_GAP,
	SCENARIO_RETIRE_STALLED,
	SCENARIO_RETIRE_END,
	/* The scenarios of rwscale follow. */
	SCENARIO_RW_SPARSE = SCENARIO_RETIRE_END,
	SCENARIO_RW_DENSE,
	SCENARIO_RW_RARE,
	SCENARIO_RW_OFTEN,
	SCENARIO_RW_END,
	/* Scenarios of hashscale, one for each configuration; --scenario does not take them. */
	SCENARIO_HASH = SCENARIO_RW_END,
	SCENARIO_HASH_END = SCENARIO_HASH + HASH_MAX_SETS * HASH_MAX_UPDATES,
	/* Counts of torture; --scenario does not take them. */
	SCENARIO_READS = SCENARIO_HASH_END,
	SCENARIO_UPDATES,
	SCENARIO_REUSED,
	SCENARIO_CLOSE_CALLS,
	SCENARIO_ERRORS,
	SCENARIO_COST, /* the scenario of costs */
	/* The scenarios of queuescale are pairs, and one for each number of consumers. */
	SCENARIO_QUEUE,
	SCENARIO_QUEUE_END = SCENARIO_QUEUE + QUEUE_MAX_CONSUMERS + 1,
	/* Metrics of retirescale, rwscale and hashscale that are columns of their
	 * rows; each subcommand defines its own in a header. */
	SCENARIO_MORE = SCENARIO_QUEUE_END,
	NR_SCENARIOS = SCENARIO_MORE + 400
};
struct scenario_info {
	const char *name;
	const char *unit;
	const char *what;
};
extern const struct scenario_info scenario_info[NR_SCENARIOS];
const char *fence_name(enum op_fence fence);

/* ---- results (results.c) ---- */

/* A measurement has these costs beside its time, as totals over the cell. */
struct costs {
	double seconds;
	double cpu_s;
	double ipis;        /* interrupts of the whole machine; NAN: unknown */
	double membarriers; /* NAN: unknown */
	double wakeups;     /* NAN: unknown */
	double waits;       /* number of waits that these figures belong to */
};

/* A cell holds all samples of one combination, over all rounds. */
struct cell {
	const struct subcommand *command;
	const struct op *op;
	enum scenario scenario;
	enum op_fence fence;
	int threads;
	size_t nr, capacity;
	double *sample;
	uint32_t *group; /* group of each sample: groups are summarised before they are compared; see cell_summary() */
	unsigned int slots; /* kinds of slots that readers had; see cell_slots() */
	size_t disturbed; /* number of samples taken while other processes used the CPUs */
	struct costs costs;
};
#define GROUP_DISTURBED 0x80000000u /* flag in a sample's group */

struct results {
	struct cell *cell;
	size_t nr, capacity;
	char **note; /* crashes, hangs, and types that were left out */
	size_t nr_notes;
	int failures; /* number of jobs that failed */
	int worst;    /* highest exit status of a job */
	FILE *live;   /* stream for what a child prints, at once; NULL: none */
};

struct summary {
	size_t n;
	double mean, min, p50, p90, p99, max;
	double spread; /* (max - min) / p50 over the medians of the groups; NAN: one group */
};

struct cell *results_cell(struct results *results, const struct subcommand *command, const struct op *op,
			  enum scenario scenario, enum op_fence fence, int threads);
const struct cell *results_find(const struct results *results, const struct subcommand *command, const char *type,
				enum scenario scenario, enum op_fence fence, int threads);
void cell_add(struct cell *cell, double value, uint32_t group);
struct summary cell_summary(const struct cell *cell);
void cell_add_slot(struct cell *cell, const char *kind);
/* "thread+mm_cid" in a static buffer; NULL: the type has no slots, or the kinds were not sampled. */
const char *cell_slots(const struct cell *cell);
void results_note(struct results *results, const char *format, ...) __attribute__((format(printf, 2, 3)));
void results_free(struct results *results);

/* ---- output (emit.c, host.c) ---- */

struct host {
	char cpu[128];
	int cores;
	char kernel[32]; /* "X.Y" */
};
void host_read(struct host *ret);
const char *host_build_type(void);

/* Opens the file of --output before the measurement, so that a wrong path does not lose it. */
FILE *emit_open(const struct options *options);
void emit_results(FILE *out, const struct options *options, const struct results *results);
void emit_notes(const struct results *results);
void emit_head(FILE *out); /* the machine, for tables */
/* Closes @out; EXIT_FAILED, and a line on stderr, if anything was not written. */
int emit_close(FILE *out, const struct options *options);
/* Closes @out after a measurement: EXIT_FAILED, and a line on stderr, also if a type failed or nothing was measured. */
int emit_end(FILE *out, const struct options *options, const struct subcommand *command, const struct results *results);

/* ---- progress and interruption (progress.c) ---- */

void interrupt_catch(void);
bool interrupted(void);
bool interrupted_again(void); /* true after a second Ctrl-C: do not wait for running measurements */
void interrupt_hand_over(void); /* before a program replaces this process; it unblocks SIGINT when it can be interrupted */
void progress_begin(size_t steps);
void progress_expect(double total_s); /* if the duration is known */
/* Begins a step. */
void progress_step(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_tick(void); /* redraws the bar now and then */
void progress_end(void);

/* ---- children (job.c) ---- */

/* A measurement that a child is asked for; the same program reads it from a pipe. */
struct job {
	const struct subcommand *command;
	const struct op *op;
	enum op_fence fence;
	uint32_t round;
	uint32_t scenarios;
	int readers[MAX_READERS];
	int nr_readers;
	int alive;
	uint64_t loops;
	uint64_t batch, bytes;
	bool scan;
	bool calls; /* for retirescale: time single calls, too */
	bool all_pairs;
	uint64_t sections;
	int bystanders;
	struct hash_plan hash;
	double seconds; /* budget of one cell */
	double perturb;
	char mutant[64];
	bool keep_going;
	uint64_t deadline_ns; /* no job begins after it; 0: no limit */
	int watchdog_s; /* silence that counts as a hang */
};

/* Runs @job in a child of its own and adds its measurements to @results.
 * Returns the child's exit status, or -1 after a crash or hang, which becomes a note. */
int job_run(const struct job *job, struct results *results);
/* Runs every type of @command in both fence modes, interleaved in
 * @options->runs rounds, unless @results already have it. */
void jobs_run(const struct subcommand *command, const struct options *options, const struct job *base,
	      const struct op *const *types, int nr_types, struct results *results);

/* The child process that measures a cell calls these. */
int job_child(void); /* runs the job; returns the exit status of the process */
void job_send(enum scenario scenario, int threads, uint32_t group, double value);
/* Reports that a reader of this cell had a slot of @kind. */
void job_send_slot(enum scenario scenario, int threads, const char *kind);
void job_send_costs(enum scenario scenario, int threads, const struct costs *costs);
void job_send_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define MESSAGE_TEXT_MAX 240
void job_print(const char *format, ...) __attribute__((format(printf, 1, 2))); /* prints a line with the table */
void job_flush(void); /* sends what is pending; also a sign of life */

int refscale_child(const struct job *job);
int rcuscale_child(const struct job *job);
int retirescale_child(const struct job *job);
int rwscale_child(const struct job *job);
int hashscale_child(const struct job *job);
int queuescale_child(const struct job *job);
int torture_child(const struct job *job);
int costs_child(const struct job *job);

#endif
