/* SPDX-License-Identifier: MIT */
/* case.h - code that the programs of the case studies share: command line, results, and objects that detect late uses.
 *
 * A program measures one variant in some scenarios, and prints one JSON object a line for each measurement:
 *	{"scenario": "others, Q=64", "variant": "shazptr", "ms": 0.12, "membarriers": 64}
 * or {"note": "..."}.  `quiesce study NAME` runs it for each variant in turn and makes a table.  With --check it measures
 * nothing, but checks whether objects are used after they were freed; in a variant that is busted it must find some.
 */
#ifndef QUIESCE_CASE_H
#define QUIESCE_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "team.h"

#define CASE_FAILED 1
#define CASE_USAGE 2
#define CASE_UNAVAILABLE 77

#ifdef __cplusplus
extern "C" {
#endif

struct case_choice {
	const char *name;
	const char *what; /* one line of --help */
	bool busted;      /* a variant that forgets to wait: for --check, measured only when it is asked for */
};

/* A run has the choices of the command line. */
struct case_run {
	const struct case_choice *variant;
	const char *scenario; /* NULL: all */
	double seconds;       /* duration of one measurement */
	int threads;          /* 0: the case's own choice */
	bool quick, check;
	unsigned int round;
	void *own; /* the case's own choices */
};

/* An option that only this case has. */
struct case_option {
	const char *name, *arg, *what; /* @arg NULL: a switch */
	void (*take)(struct case_run *run, const char *value);
};

struct case_program {
	const char *name, *what;
	const struct case_choice *variants;  /* NULL name at the end, as in the other lists */
	const struct case_choice *scenarios; /* NULL: there is one, without a name */
	const struct case_option *options;   /* NULL: none */
	double seconds;                      /* default */
	/* Measure @run->variant, or check it.  Returns the exit status. */
	int (*run)(struct case_run *run);
};
int case_main(const struct case_program *program, int argc, char **argv);
/* Return whether @name is to be measured. */
bool case_wants(const struct case_run *run, const char *name);
void case_usage(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn, cold));

/* ---- results ---- */

struct case_value {
	const char *metric;
	double value; /* NAN: unknown, left out */
};
void case_result(const struct case_run *run, const char *scenario, const struct case_value *values, size_t nr);
/* case_result() of a list: CASE_RESULT(run, "idle", { "ms", ms }, { "reads", n }); */
#define CASE_RESULT(run, scenario, ...)                                                               \
	do {                                                                                          \
		const struct case_value case_values[] = { __VA_ARGS__ };                              \
		case_result(run, scenario, case_values, sizeof(case_values) / sizeof(case_values[0])); \
	} while (0)
void case_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- what a stretch of time cost ---- */

struct case_meter {
	double s, cpu_s, interrupts, membarriers, grace_periods;
};
/* @interrupts: function-call interrupts of the whole machine, NAN: unknown; membarriers and grace periods of this process, by
 * the library's own count. */
void case_meter_begin(struct case_meter *m);
/* Turn it into the differences. */
void case_meter_end(struct case_meter *m);

/* ---- objects that detect late uses ---- */

/* A member of each object that readers find. */
struct canary {
	uint64_t alive;
};
void canary_init(struct canary *canary);
/* Return whether the object is alive, to a reader inside its section.  A dead one is counted, once for the program. */
bool canary_sings(const struct canary *canary);
/* Use this instead of free(): the object dies, and stays readable for a while (with AddressSanitizer free() is called at once). */
void canary_free(void *object, struct canary *canary);
/* Return the number of readers that met a dead object. */
uint64_t canary_dead(void);
/* Sleep for @seconds, or until a reader met a dead object. */
void case_wait(double seconds);
/* End a --check: print a line, and return the exit status.  @reads, @frees: numbers that must not be 0. */
int case_verdict(const struct case_run *run, uint64_t reads, uint64_t frees);

#ifdef __cplusplus
}
#endif

#endif
