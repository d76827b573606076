/* SPDX-License-Identifier: MIT */
/* study.h - the description of a case for `quiesce study`: how to run it, what to print, and what was published about
 * it.
 *
 * A case is described in its folder, cases/X.  Measurements are values of (scenario, variant, fence, metric), one or
 * more for each round; a table shows their medians.  A shape is a published figure beside the same figure of this
 * machine.
 */
#ifndef QUIESCE_TOOL_STUDY_H
#define QUIESCE_TOOL_STUDY_H

#include "tool.h"

struct study_variant {
	const char *name;  /* value of the program's --variant */
	const char *fence; /* fence mode of the process, "light" or "full"; NULL: it has none, or any will do */
	const char *what;  /* a few words for the legend */
};

/* The table has a column for each of these. */
struct study_column {
	const char *metric; /* name in the program's output */
	const char *title;  /* title with the unit: "ms", "IPIs" */
	bool total;         /* true: show the highest value of all rounds, not the median */
};

struct study_place {
	const char *variant, *fence, *scenario, *metric;
};

enum study_formula {
	STUDY_VALUE,  /* the median of @of */
	STUDY_RATIO,  /* @of divided by @to */
	STUDY_GAP,    /* the share of the gap from @to (0) to @base (1) that @of recovers */
};

/* A shape compares a published figure with the figure of this machine. */
struct study_shape {
	const char *what;
	const char *published; /* NULL: none was published */
	enum study_formula formula;
	struct study_place of, to, base;
};

struct study_results;

struct study {
	const char *name;
	const char *what;     /* one line, for the list */
	const char *document; /* source of the published figures */
	const char *honesty;  /* a paragraph below the table: limits of this comparison, and what a larger machine must confirm */
	const char *program;  /* its name, in a folder of that name below cases/ of the build; NULL: there is none */
	const char *missing;  /* packages to install if the program was not built */
	const struct study_variant *variants;  /* ends with a NULL name, as the other lists */
	const struct study_column *columns;    /* ends with a NULL metric */
	const struct study_shape *shapes;      /* ends with a NULL what; NULL: none */
	int rounds, quick_rounds;
	double seconds, quick_seconds; /* length of each measurement; 0: the program's own */
	/* For a case that subcommands measure: adds its values to @results. */
	void (*run)(const struct study *study, const struct options *options, int rounds, struct study_results *results);
};
/* Returns the length of each measurement. */
struct study_options {
	bool quick;
	const char *figure;
};

static inline const struct study_options *study_options(const struct options *options)
{
	return OWN(const struct study_options, options);
}

static inline double study_seconds(const struct study *study, const struct options *options)
{
	return options->seconds > 0 ? options->seconds : study_options(options)->quick ? study->quick_seconds : study->seconds;
}
#define STUDY_MAX 16
#define STUDY_MAX_VARIANTS 64
extern struct study study_toggle, study_hash2003; /* those that subcommands measure */
/* The table lists all cases, NULL at the end; study_load() reads their descriptions. */
extern const struct study *const *const study_table;
void study_load(void);

/* ---- study_results.c ---- */

struct study_value {
	const struct study *study;
	char *scenario, *variant, *metric;
	const char *fence; /* NULL: no fence mode */
	double *sample;
	size_t nr;
};

struct study_results {
	struct study_value *value;
	size_t nr, capacity;
	struct results notes; /* only its notes are used */
	int failures;
};

void study_add(struct study_results *results, const struct study *study, const struct study_place *place, double value);
const struct study_value *study_find(const struct study_results *results, const struct study *study, const struct study_place *place);
/* A range holds statistics over rounds. */
struct study_range {
	double median, min, max;
	double spread; /* (max - min) / median; NAN: one sample */
};
struct study_range study_range(const struct study_value *value); /* @value NULL: all are NAN */
/* The value of a shape on this machine, from the samples of each round; all NAN: it was not measured. */
struct study_range study_shape_range(const struct study_results *results, const struct study *study, const struct study_shape *shape);
void study_results_free(struct study_results *results);

/* ---- study_program.c ---- */

/* True if the case's program was built. */
bool study_has_program(const struct study *study);
/* Runs it once and adds its results and notes to @results.  Returns its exit
 * status; -1: it crashed, hung or could not start. */
int study_run_program(const struct study *study, const struct study_variant *variant, int round, const struct options *options,
		      struct study_results *results);

/* Adds the median of each round, multiplied by @scale. */
void study_add_cell(struct study_results *results, const struct study *study, const struct study_place *place, const struct cell *cell,
		    double scale);
/* Adds the notes and failures of @from to @results. */
void study_take_notes(struct study_results *results, const struct study *study, const struct results *from);

/* ---- study_emit.c ---- */

/* Prints the tables of one case. */
void study_emit(FILE *out, const struct options *options, const struct study_results *results, const struct study *study);
/* Prints the list of cases as JSON. */
void study_emit_list(FILE *out);
/* Prints JSON or CSV of all cases. */
void study_emit_rows(FILE *out, const struct options *options, const struct study_results *results, const struct study *const *studies);

#endif
