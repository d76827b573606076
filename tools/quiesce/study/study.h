/* SPDX-License-Identifier: MIT */
/* study.h - what `quiesce study` knows of a case: how to run it, what to print, and what was published about it.
 *
 * One file here describes each case of cases/.  Measurements are values of (scenario, variant, fence, metric), one or more
 * for each round; a table shows their medians.  Shapes are what the published figures said, beside ours.
 */
#ifndef QUIESCE_TOOL_STUDY_H
#define QUIESCE_TOOL_STUDY_H

#include "tool.h"

struct study_variant {
	const char *name;  /* the program's --variant */
	const char *fence; /* of its process: "light" or "full"; NULL: it has none, or it does not matter */
	const char *what;  /* a few words for the legend */
};

/* A column of the table. */
struct study_column {
	const char *metric; /* as the program names it */
	const char *title;  /* with its unit: "ms", "IPIs" */
	bool total;         /* show the highest of all rounds, not the median */
};

struct study_place {
	const char *variant, *fence, *scenario, *metric;
};

enum study_formula {
	STUDY_VALUE,  /* of */
	STUDY_RATIO,  /* of / to */
	STUDY_GAP,    /* the share of the gap from @to (0) to @base (1) that @of recovers */
};

/* A published figure, and the same of ours. */
struct study_shape {
	const char *what;
	const char *published; /* NULL: nothing was */
	enum study_formula formula;
	struct study_place of, to, base;
};

struct study_results;

struct study {
	const char *name;
	const char *what;     /* one line, for the list */
	const char *document; /* where the published figures are from */
	const char *honesty;  /* a paragraph below the table: what this is not, and what a larger machine must confirm */
	const char *program;  /* "lockdep-keys/lockdep-keys": below cases/ of the build; NULL: @run does it */
	const char *const *arguments; /* of the program; NULL: none */
	const char *missing;  /* the packages to install if the program was not built */
	const struct study_variant *variants;  /* NULL name at the end, as in the other lists */
	const struct study_column *columns;    /* NULL metric at the end */
	const struct study_shape *shapes;      /* NULL what at the end; NULL: none */
	int rounds, quick_rounds;
	double seconds, quick_seconds; /* of each measurement; 0: the program's own */
	int watchdog_s;                /* silent for that long: hung; 0: 60 */
	/* For a case that subcommands measure: add to @results. */
	void (*run)(const struct study *study, const struct options *options, int rounds, struct study_results *results);
};
/* Of each measurement. */
static inline double study_seconds(const struct study *study, const struct options *options)
{
	return options->seconds > 0 ? options->seconds : options->quick ? study->quick_seconds : study->seconds;
}
#define STUDY_MAX 16
#define STUDY_MAX_VARIANTS 64
extern const struct study study_lockdep_keys, study_label, study_timers, study_toggle, study_hash2003, study_reload;
/* All of them, NULL at the end. */
extern const struct study *const study_table[];

/* ---- study_results.c ---- */

struct study_value {
	const struct study *study;
	char *scenario, *variant, *metric;
	const char *fence; /* NULL: none */
	double *sample;
	size_t nr;
};

struct study_results {
	struct study_value *value;
	size_t nr, capacity;
	struct results notes; /* only its notes */
	int failures;
};

void study_add(struct study_results *results, const struct study *study, const struct study_place *place, double value);
const struct study_value *study_find(const struct study_results *results, const struct study *study, const struct study_place *place);
/* Over rounds. */
struct study_range {
	double median, min, max;
	double spread; /* (max - min) / median; NAN: one sample */
};
struct study_range study_range(const struct study_value *value); /* NULL: all are NAN */
/* What a shape comes to here, by the samples of one round each; all NAN: it was not measured. */
struct study_range study_shape_range(const struct study_results *results, const struct study *study, const struct study_shape *shape);
void study_results_free(struct study_results *results);

/* ---- study_program.c ---- */

/* Is the case's program there? */
bool study_has_program(const struct study *study);
/* One run of it, its results and notes added to @results.  Returns its exit status; -1: it crashed, hung or could not start. */
int study_run_program(const struct study *study, const struct study_variant *variant, int round, const struct options *options,
		      struct study_results *results);

/* ---- study_cells.c: what subcommands have measured ---- */

/* The median of each round, times @scale. */
void study_add_cell(struct study_results *results, const struct study *study, const struct study_place *place, const struct cell *cell,
		    double scale);
/* Notes and failures of @from become those of @results. */
void study_take_notes(struct study_results *results, const struct study *study, const struct results *from);

/* ---- study_emit.c ---- */

/* The tables of one case. */
void study_emit(FILE *out, const struct options *options, const struct study_results *results, const struct study *study);
/* Which cases there are, as JSON. */
void study_emit_list(FILE *out);
/* JSON or CSV of all. */
void study_emit_rows(FILE *out, const struct options *options, const struct study_results *results, const struct study *const *studies);

#endif
