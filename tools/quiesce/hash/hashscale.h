/* SPDX-License-Identifier: MIT */
/* hashscale.h - the parts of hashscale. */
#ifndef QUIESCE_TOOL_HASHSCALE_H
#define QUIESCE_TOOL_HASHSCALE_H

#include "ops/hash.h"
#include "team.h"
#include "tool.h"

/* A configuration: which keys, and how many updates. */
#define HASH_CONFIGS (HASH_MAX_SETS * HASH_MAX_UPDATES)
_Static_assert(HASH_CONFIGS == SCENARIO_HASH_END - SCENARIO_HASH, "each has a scenario");

static inline enum scenario hash_scenario(int set, int updates)
{
	return (enum scenario)(SCENARIO_HASH + set * HASH_MAX_UPDATES + updates);
}

static inline int hash_set_of(enum scenario scenario)
{
	return (scenario - SCENARIO_HASH) / HASH_MAX_UPDATES;
}

static inline int hash_updates_of(enum scenario scenario)
{
	return (scenario - SCENARIO_HASH) % HASH_MAX_UPDATES;
}

/* What is measured besides: of a set of keys, with no threads; with --resize of each cell. */
enum hash_metric {
	HASH_KEYS,          /* how many there are */
	HASH_ELEMENT_BYTES, /* memory of the full table, for each element */
	HASH_EMPTY_BYTES,   /* memory of a table for one element, without it */
	HASH_FILL_NS,       /* to insert an element, one thread alone */
	HASH_CONTROL_SMALL, /* of a cell: operations/s of the same threads while another table is resized, */
	HASH_CONTROL_LARGE, /* with theirs as large as it becomes in the next, */
	HASH_CONTROL,       /* and the mean of both; */
	HASH_RESIZED,       /* while theirs is resized */
	HASH_WORST,         /* us: the slowest HASH_CHUNK operations of a thread when no table is resized, */
	HASH_CONTROL_WORST, /* while another one is, */
	HASH_RESIZED_WORST, /* and theirs */
	HASH_RESIZES,       /* how often it was resized, */
	HASH_RESIZE_MS,     /* and how long each took */
	HASH_WARM,          /* of a cell: operations before it was measured, of all threads, */
	HASH_WINDOW_S,      /* and for how long it was, as planned */
	HASH_WAITING,       /* of a cell of walkscale: how many removed elements wait, at most */
	NR_HASH_METRICS
};
_Static_assert(NR_HASH_METRICS * HASH_CONFIGS <= NR_SCENARIOS - SCENARIO_MORE, "numbers of scenarios");

static inline enum scenario hash_more(enum hash_metric metric, enum scenario scenario)
{
	return (enum scenario)(SCENARIO_MORE + (int)metric * HASH_CONFIGS + (int)(scenario - SCENARIO_HASH));
}

/* ---- hashscale_keys.c ---- */

struct hash_keys {
	uint64_t *key;
	uint64_t nr;
};

/* false: it cannot be read, or is no list of HASH_MIN_KEYS keys at least, or there is no memory. */
bool hash_keys_make(struct hash_keys *ret, const struct hash_set *set);
void hash_keys_free(struct hash_keys *keys);
/* The @i-th number of the generator; beyond those of a set it is none of its keys. */
uint64_t hash_key_number(uint64_t i);

struct hash_work {
	const struct hash_keys *keys;
	enum hash_distribution distribution;
	double updates; /* percent */
	int thread, threads;
	uint64_t seed;
};

/* @nr words of one thread; from its end it can go on at its beginning. */
void hash_stream_make(uint64_t *word, uint64_t nr, const struct hash_work *work);
/* How many keys are removed and not yet inserted again after the first @nr words. */
uint64_t hash_stream_away(const uint64_t *word, uint64_t nr);

/* Removes of all keys, in no order, each inserted again when others have gone: for a table that nobody else uses. */
struct hash_turnover {
	uint64_t *key; /* @nr; the last @room of them, in a ring, are those that are out meanwhile */
	uint64_t nr, room;
	uint64_t step, removes; /* done, and in all */
	uint64_t state;
};

/* @times as many removes as keys.  False: there is no memory. */
bool hash_turnover_begin(struct hash_turnover *ret, const struct hash_keys *keys, uint64_t times, uint64_t seed);
/* The next words, @most at most.  Returns how many; 0: all have been, and everything is there. */
uint64_t hash_turnover_words(struct hash_turnover *turnover, uint64_t *word, uint64_t most);
void hash_turnover_end(struct hash_turnover *turnover);

/* ---- hashscale_cell.c ---- */

#define HASH_CHUNK 256 /* words between two looks at the clock, or at whether it is over */

/* One thread more resizes a table in all but the first. */
enum hash_window {
	HASH_WINDOW_ALONE,
	HASH_WINDOW_SMALL, /* another table, */
	HASH_WINDOW_LARGE, /* also another; theirs has the size that it has at most in the next */
	HASH_WINDOW_RESIZED,
	HASH_NR_WINDOWS
};

struct hash_cell {
	const struct job *job;
	const struct op *op;
	void *table;
	void *other; /* with --resize: as many elements, which nobody looks up */
	struct hash_keys keys;
	enum scenario scenario;
	double updates;
	int threads;
	double seconds; /* of a window of these keys */
	uint64_t **stream; /* of each thread, stream_words long */
	uint64_t stream_words;
	enum hash_window window;
	double rate[HASH_NR_WINDOWS]; /* of the windows so far */
};

/* Measure and send; false, with a note, if the table was wrong. */
bool hash_cell_measure(struct hash_cell *cell);
/* What is wrong with @tally, as a note; true: nothing. */
bool hash_tally_good(const struct hash_tally *tally, const char *where);

/* ---- hashscale_resize.c ---- */

#define HASH_RESIZES_OF_CYCLE 3

/* Both tables are full: let them have the size between two cycles; and threads that work for them begin. */
bool hash_resize_prepare(const struct hash_cell *cell);
/* Resize the table that the window is about, to its largest size and back. */
void hash_resize_cycle(const struct hash_cell *cell, struct hash_tally *tally);
/* All windows of a cell. */
bool hash_resize_measure(struct hash_cell *cell);
/* Nobody who looks up is where tables are resized: their threads and workers have the last CPU. */
bool hash_resize_apart(const struct hash_cell *cell);
void hash_resize_bind(void);

/* ---- hashscale.c ---- */

/* Sets the fences of @options if nobody asked for any. */
void hashscale_default_fence(struct options *options);

/* ---- hashscale_emit.c, hashscale_figure.c ---- */

struct hash_ratio {
	double median, low, high; /* the interval contains the median of all rounds that could be with 95 % */
};
/* Of each round's values to each other; NANs: there are none. */
struct hash_ratio hashscale_ratio(const struct cell *c, const struct cell *other);
const struct cell *hashscale_more_of(const struct results *results, const struct cell *c, enum hash_metric metric);

bool hashscale_is_row(const struct cell *c);
void hashscale_columns(struct json_t *row, const struct results *results, const struct cell *c);
/* The plan of the run, for names in rows; and the type that ratios are to. */
void hashscale_emit_plan(const struct hash_plan *plan, const struct op *base);
void hashscale_emit(FILE *out, const struct options *options, const struct results *results);
/* "uniform:1000, uniform, 1% updates", in a static buffer. */
const char *hashscale_title(enum scenario scenario);
/* T(n) / (n T(1)), n at most the CPUs; NAN: T(1) is not there. */
double hashscale_efficiency(const struct results *results, const struct cell *c);
/* The article's, at four CPUs; NAN: it has none of that name. */
double hashscale_article(const char *type);
/* 0, or EXIT_FAILED with a line on stderr. */
int hashscale_figure(const char *path, const struct results *results);
/* Is @path one that a figure can have?  Ends the program if not, or if there is no gnuplot. */
void hashscale_figure_check(const char *path);

#endif
