/* SPDX-License-Identifier: MIT */
/* tool.h - the common parts of the subcommands: options, results, children, threads. */
#ifndef QUIESCE_TOOL_H
#define QUIESCE_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "meter.h"
#include "op.h"

/* Exit statuses. */
#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_UNAVAILABLE 77 /* status of a child: this machine does not have the type */
#define EXIT_INTERRUPTED 130

/* ---- options (options.c) ---- */

#define MAX_TYPES 128
#define MAX_READERS 16
#define MAX_THREADS 4096
#define MAX_DEFAULTS 4 /* most numbers of threads without an option */
#define DEFAULT_RUNS 3
#define DEFAULT_RUNS_OF_RATIOS 6 /* the fewest rounds for which a ratio has an interval */

#define MAX_WORDS 16 /* most arguments that are not options */

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV, FORMAT_MARKDOWN };

#define OPTIONS_OWN 1280 /* bytes of a subcommand's own options */

struct options {
	const struct op *types[MAX_TYPES]; /* types that --type names; nr_types 0: all that fit */
	int nr_types;
	int readers[MAX_READERS]; /* numbers of readers, or of other threads */
	int nr_readers;
	uint64_t scenarios; /* SCENARIO_BIT() of each; 0: all */
	uint32_t fences;    /* bits 1 << enum op_fence; 0: all */
	int alive;
	double seconds; /* 0: the default of the subcommand */
	int runs;
	bool runs_given;
	enum format format;
	const char *output;
	const char *words[MAX_WORDS]; /* the cases or files that arguments name */
	int nr_words;
	unsigned char own[OPTIONS_OWN] __attribute__((aligned(8)));
};

/* A subcommand's own options, in struct options and in struct job: the child gets them as they are. */
#define OWN(type, from) ((type *)((from)->own + 0 * sizeof(char[sizeof(type) <= OPTIONS_OWN ? 1 : -1])))

/* One option.  Its value is stored at @at in struct options, as its kind says, or @take does that. */
struct option_row {
	const char *name, *arg, *what;
	/* It calls @take, or that for each item of a list, or adds numbers to options->readers; sets the format @min; or
	 * stores a bool, an int, a uint64_t, a double, a const char *. */
	enum { OPTION_CALL, OPTION_ITEMS, OPTION_NUMBERS, OPTION_FORMAT,
	       OPTION_FLAG, OPTION_COUNT, OPTION_WHOLE, OPTION_NUMBER, OPTION_TEXT } kind;
	double min, max;
	size_t at;
	void (*take)(const char *arg, struct options *options);
	bool output; /* true: about the output; --help shows it with these */
};
#define OPTION_AT(field) .at = offsetof(struct options, field)
#define OPTION_OWN(type, field) .at = offsetof(struct options, own) + offsetof(type, field)

/* The groups of a subcommand. */
#define OPTIONS(...) .options = (const struct option_row *const[]){ __VA_ARGS__, NULL }
/* Groups of options that several subcommands have; each ends with a row without a name. */
extern const struct option_row options_type[], options_readers[], options_scenario[], options_seconds[], options_runs[],
	options_rounds[], options_markdown[];

/* For the functions that take values; a mistake is reported, and ends the program. */
double option_number(const char *option, const char *text, double min, double max);
uint64_t option_whole(const char *option, const char *text, double min, double max);
const struct op *option_type(const char *option, const char *name);
/* Adds a number to options->readers. */
void option_add_number(const char *option, const char *item, double min, double max, struct options *o);

struct cell;
struct results;
struct job;
struct column;
struct table_form;

struct subcommand {
	const char *name;
	const char *what; /* one line */
	const char *arguments; /* the arguments that are not options, for --help; NULL: there are none */
	const char *doc;  /* the text of --help below the options */
	const struct option_row *const *options; /* OPTIONS() */
	bool (*fits)(const struct op *op); /* true if a type belongs to the subcommand; NULL: it has no types */
	const char *(*describe)(const struct op *op); /* a line about a type, for --help; NULL: its @what */
	const struct scenario_info *scenarios; /* SCENARIOS() */
	int nr_scenarios;
	bool layouts; /* true: groups of samples are code layouts, whose medians are compared; false: rounds */
	const struct column *columns; /* those that only its rows have; NULL: none */
	const struct table_form *tables;   /* the last one has no views */
	int (*row_threads)(const struct cell *cell); /* number of threads of a row; NULL: that of the cell */
	/* NULL: it measures, as below. */
	int (*run)(const struct options *options);
	/* Defaults: rounds, seconds of a cell, numbers of threads, ended by 0; one fence mode unless --fence names some. */
	int runs;
	double cell_s;
	int readers[MAX_DEFAULTS];
	bool one_fence;
	bool may_be_empty; /* true: a run without rows is a success */
	/* Hooks of a run, in this order; NULL: not needed. */
	void (*check)(struct options *options); /* completes the options, reports mistakes in them */
	int (*choose)(const struct options *options, const struct op *types[MAX_TYPES]); /* as options_types() */
	void (*print)(FILE *out, const struct options *options, const struct results *results); /* as emit_tables() */
	int (*finish)(const struct options *options, const struct results *results); /* returns an exit status */
	/* Hooks in the child: before the type is initialised, and the measurement, which returns its exit status. */
	void (*prepare)(const struct job *job);
	int (*child)(const struct job *job);
};
/* Measures and prints: what subcommands without a function run() do. */
int subcommand_measure(const struct subcommand *command, const struct options *options);
/* The job that @options ask for, without a type. */
struct job job_of(const struct subcommand *command, const struct options *options);
/* One fence mode is enough where the fence has little part in the result: sets one unless --fence named some. */
void options_one_fence(struct options *options);

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

/* The activity of readers during a measurement.  Each subcommand has a table of its own, and names of its numbers. */
struct scenario_info {
	const char *name;
	const char *unit;
	const char *what; /* NULL: --scenario does not take it */
};
#define MAX_SCENARIOS 64 /* sets of scenarios are words of 64 bits */
#define SCENARIO_BIT(scenario) (UINT64_C(1) << (scenario))
#define SCENARIOS(table) .scenarios = (table), .nr_scenarios = sizeof(table) / sizeof((table)[0])

const char *fence_name(enum op_fence fence);

/* ---- results (results.c) ---- */

/* A cell holds all samples of one combination, over all rounds.  Metric 0 is what the subcommand measures, and makes a
 * row; the other metrics are columns of that row. */
struct cell {
	const struct subcommand *command;
	const struct op *op;
	int scenario; /* its place in command->scenarios */
	int metric;
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
			  int scenario, int metric, enum op_fence fence, int threads);
/* The cell of metric 0; NULL: there is none. */
const struct cell *results_find(const struct results *results, const struct subcommand *command, const char *type,
				int scenario, enum op_fence fence, int threads);
/* Another metric of the same row; @threads: its number of threads there, if it belongs to several rows. */
const struct cell *results_metric(const struct results *results, const struct cell *cell, int metric);
const struct cell *results_metric_of(const struct results *results, const struct cell *cell, int scenario, int metric, int threads);
void sort_values(double *v, size_t n);
/* NAN: there is no such cell. */
double cell_median(const struct cell *cell);
double cell_most(const struct cell *cell);
struct ratio {
	double median, low, high; /* the interval contains the true median of all rounds with a probability of 95 % */
};
/* The ratio of both values within each round; NANs: there are none. */
struct ratio cell_ratio(const struct cell *c, const struct cell *other);
const char *cell_scenario(const struct cell *cell);
const char *cell_unit(const struct cell *cell);
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
/* @command: the one whose results these are; NULL: they are of several, and CSV has the columns that all have. */
void emit_results(FILE *out, const struct subcommand *command, const struct options *options, const struct results *results);
void emit_notes(const struct results *results);
void emit_head(FILE *out); /* the machine, for tables */
/* Closes @out; EXIT_FAILED, and a line on stderr, if anything was not written. */
int emit_close(FILE *out, const struct options *options);

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
	uint64_t scenarios;
	int readers[MAX_READERS];
	int nr_readers;
	int alive;
	double seconds; /* budget of one cell */
	uint64_t deadline_ns; /* no job begins after it; 0: no limit */
	int watchdog_s; /* silence that counts as a hang */
	unsigned char own[OPTIONS_OWN] __attribute__((aligned(8)));
};

/* Runs every type of @command in both fence modes, interleaved in
 * @options->runs rounds, unless @results already have it. */
void jobs_run(const struct subcommand *command, const struct options *options, const struct job *base,
	      const struct op *const *types, int nr_types, struct results *results);

/* The child process that measures a cell calls these. */
/* Runs the job, of a subcommand that @find returns; returns the exit status of the process. */
int job_child(const struct subcommand *(*find)(const char *name));
void job_send(int scenario, int threads, uint32_t group, double value);
void job_send_metric(int scenario, int metric, int threads, uint32_t group, double value);
/* Reports that a reader of this cell had a slot of @kind. */
void job_send_slot(int scenario, int threads, const char *kind);
void job_send_costs(int scenario, int threads, const struct costs *costs);
void job_send_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define MESSAGE_TEXT_MAX 240
void job_print(const char *format, ...) __attribute__((format(printf, 1, 2))); /* prints a line with the table */
void job_flush(void); /* sends what is pending; also a sign of life */

#endif
