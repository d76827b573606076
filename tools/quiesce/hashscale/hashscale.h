/* SPDX-License-Identifier: MIT */
/* hashscale.h - the parts of hashscale. */
#ifndef QUIESCE_TOOL_HASHSCALE_H
#define QUIESCE_TOOL_HASHSCALE_H

#include "emit.h"
#include "hash_plan.h"
#include "types/hash.h"
#include "team.h"

/* A configuration is a set of keys and a share of updates. */
#define HASH_CONFIGS (HASH_MAX_SETS * HASH_MAX_UPDATES)
_Static_assert(HASH_CONFIGS <= MAX_SCENARIOS, "each has a scenario");
extern const struct scenario_info hash_scenarios[HASH_CONFIGS];

static inline int hash_scenario(int set, int updates)
{
	return set * HASH_MAX_UPDATES + updates;
}

static inline int hash_set_of(int scenario)
{
	return scenario / HASH_MAX_UPDATES;
}

static inline int hash_updates_of(int scenario)
{
	return scenario % HASH_MAX_UPDATES;
}

/* Metrics besides the rate: for each set of keys, with no threads; with --resize for each cell. */
enum hash_metric {
	HASH_KEYS = 1,      /* number of keys */
	HASH_ELEMENT_BYTES, /* memory of the full table, divided by the number of elements */
	HASH_EMPTY_BYTES,   /* memory of a table made for one element, without the element */
	HASH_FILL_NS,       /* time to insert an element, by one thread alone */
	HASH_CONTROL_SMALL, /* cell: operations/s of the same threads while another table is resized; theirs has its smallest size */
	HASH_CONTROL_LARGE, /* cell: operations/s while another table is resized and theirs has its largest size */
	HASH_CONTROL,       /* the mean of both */
	HASH_RESIZED,       /* operations/s while the threads' own table is resized */
	HASH_WORST,         /* us: the slowest HASH_CHUNK operations of a thread while no table is resized */
	HASH_CONTROL_WORST, /* us: the slowest ones while another table is resized */
	HASH_RESIZED_WORST, /* us: the slowest ones while the threads' own table is resized */
	HASH_RESIZES,       /* number of resizes in the window */
	HASH_RESIZE_MS,     /* duration of one resize */
	HASH_WARM,          /* cell: operations of all threads before the window */
	HASH_WINDOW_S,      /* planned length of the window */
	HASH_WAITING,       /* cell: largest number of removed elements that were not freed yet, and the mean of the samples */
	HASH_WAITING_MEAN
};

/* ---- hashscale_keys.c ---- */

struct hash_keys {
	uint64_t *key;
	uint64_t nr;
};

/* False: the file cannot be read, has less than HASH_MIN_KEYS keys, or there is no memory. */
bool hash_keys_make(struct hash_keys *ret, const struct hash_set *set);
void hash_keys_free(struct hash_keys *keys);
/* The @i-th number of the generator; numbers beyond the size of a set are not keys of it. */
uint64_t hash_key_number(uint64_t i);

struct hash_work {
	const struct hash_keys *keys;
	enum hash_distribution distribution;
	double updates; /* percent of updates */
	int thread, threads;
	uint64_t seed;
};

/* Fill @word with @nr words for one thread, which may begin again at its end. */
void hash_stream_make(uint64_t *word, uint64_t nr, const struct hash_work *work);
/* The number of keys that are removed and not yet inserted again after the first @nr words. */
uint64_t hash_stream_away(const uint64_t *word, uint64_t nr);

/* A sequence that removes keys at random and inserts each again after others
 * have gone, for a table that no other thread uses. */
struct hash_turnover {
	uint64_t *key; /* @nr keys; the last @room of them, a ring, are the removed ones */
	uint64_t nr, room;
	uint64_t step, removes; /* steps taken, and removes in all */
	uint64_t state;
};

/* Plan @times as many removes as keys.  False: there is no memory. */
bool hash_turnover_begin(struct hash_turnover *ret, const struct hash_keys *keys, uint64_t times, uint64_t seed);
/* Get the next words, at most @most.  Returns their number; 0: the sequence is over, and all keys are in the table. */
uint64_t hash_turnover_words(struct hash_turnover *turnover, uint64_t *word, uint64_t most);
void hash_turnover_end(struct hash_turnover *turnover);

/* ---- hashscale_cell.c ---- */

#define HASH_CHUNK 256 /* words between two reads of the clock, or of the phase */

/* With --resize one more thread resizes a table in all windows but the first. */
enum hash_window {
	HASH_WINDOW_ALONE,
	HASH_WINDOW_SMALL, /* another table is resized; the threads' own has its smallest size */
	HASH_WINDOW_LARGE, /* another table is resized; the threads' own has its largest size */
	HASH_WINDOW_RESIZED,
	HASH_NR_WINDOWS
};

struct hash_cell {
	const struct job *job;
	const struct op *op;
	void *table;
	void *other; /* with --resize: a table of as many elements, in which no thread looks up keys */
	struct hash_keys keys;
	int scenario;
	double updates;
	int threads;
	double seconds; /* length of a window for these keys */
	uint64_t **stream; /* a stream of stream_words words for each thread */
	uint64_t stream_words;
	enum hash_window window;
	double rate[HASH_NR_WINDOWS]; /* rates of the windows so far */
};

/* Measure a cell and send the results.  False, after a note: the table was wrong. */
bool hash_cell_measure(struct hash_cell *cell);
/* False, after a note: @tally has an error. */
bool hash_tally_good(const struct hash_tally *tally, const char *where);

/* ---- hashscale_resize.c ---- */

#define HASH_RESIZES_OF_CYCLE 3

/* Both tables are full: set their sizes to those between two cycles, and start the threads that work for them. */
bool hash_resize_prepare(const struct hash_cell *cell);
/* Resize the table of the current window to its largest size and back. */
void hash_resize_cycle(const struct hash_cell *cell, struct hash_tally *tally);
/* Measure all windows of a cell. */
bool hash_resize_measure(struct hash_cell *cell);
/* True if the lookups have no CPU in common with the resizing thread and its workers, which have the last CPU. */
bool hash_resize_apart(const struct hash_cell *cell);
void hash_resize_bind(void);

/* ---- hashscale.c ---- */

static inline const struct hash_plan *hash_plan_of(const struct job *job)
{
	return &OWN(const struct hash_options, job)->plan;
}

/* Fill in what --keys and --updates did not say: @keys, which ends with NULL, and @updates percent. */
void hash_plan_complete(struct hash_plan *plan, const char *const *keys, const double *updates, int nr_updates);
int hashscale_child(const struct job *job);
/* The figure of --figure, if it was given. */
int hashscale_finish(const struct options *options, const struct results *results);

/* ---- hashscale_emit.c, hashscale_figure.c ---- */

extern const struct column hashscale_columns[];
extern const struct table_form hashscale_tables[];
/* Columns that walkscale has, too. */
const char *hash_keys_of(const struct row *row);
const char *hash_distribution_of(const struct row *row);
double hash_updates_percent(const struct row *row);
/* Set the plan of the run, for the names in rows, and the type that ratios are to. */
void hashscale_emit_plan(const struct hash_plan *plan, const struct op *base);
/* Returns a title such as "uniform:1000, uniform, 1% updates", in a static buffer. */
const char *hashscale_title(int scenario);
/* T(n) / (n T(1)), where n is at most the number of CPUs; NAN: T(1) was not measured. */
double hashscale_efficiency(const struct results *results, const struct cell *c);
/* The figure of the article, at four CPUs; NAN: it has no type of that name. */
double hashscale_article(const char *type);
/* Returns 0, or EXIT_FAILED after a line on stderr. */
int hashscale_figure(const char *path, const struct results *results);
/* Ends the program if a figure cannot have the name @path, or if there is no matplotlib.  NULL: there is no figure. */
void hashscale_figure_check(const char *path);

#endif
