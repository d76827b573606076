/* SPDX-License-Identifier: MIT */
/* hashscale.c - lookups and updates of hash tables over the number of threads. */
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "hashscale.h"
#include "types/hash_array.h"

#define DEFAULT_CELL_S 0.03 /* seconds of a cell, and the addition for each key */
#define DEFAULT_KEY_S 1e-7
#define DEFAULT_BASE "raw_open_addressing"
#define STREAM_WORDS ((uint64_t)1 << 20)      /* words of each thread's stream, unless it needs more for many keys */
#define STREAM_OF_KEY 2                       /* words of all streams for each key, so that seven eighths of the keys are met */
#define ALL_STREAM_WORDS ((uint64_t)32 << 20) /* most words of all streams together */
#define STREAM_RATE 35e6                      /* words for each second of a short window, which needs fewer */
#define FILL_CHUNK 16 /* operations between two quiescent states while a table grows in the background */
#define SETTLE_NS 100000000 /* longest pause for growth after a table has been filled */
#define ALIVE_CHUNKS 4096 /* chunks between two messages to the parent while a table is filled or turned over */
#define BARRIER_CHUNKS (8 * ALIVE_CHUNKS) /* chunks between two waits for the removed elements to be freed */

/* Each set of keys has a scenario for each share of updates. */
#define HASH_SET(set, name) \
	[(set) * HASH_MAX_UPDATES ... ((set) + 1) * HASH_MAX_UPDATES - 1] = { name, "operations/s", NULL }
const struct scenario_info hash_scenarios[HASH_CONFIGS] = {
	HASH_SET(0, "hash"), HASH_SET(1, "hash2"), HASH_SET(2, "hash3"), HASH_SET(3, "hash4"),
};
_Static_assert(HASH_MAX_SETS == 4, "each set has a name");

/* ---- the child: a table and its memory ---- */

/* Bytes that malloc() has handed out; NAN: the C library does not count them. */
static double allocated(void)
{
#ifdef HAVE_MALLINFO2
	struct mallinfo2 info = mallinfo2();

	return (double)(info.uordblks + info.hblkhd);
#else
	return NAN;
#endif
}

/* malloc() counts the chunks in its thread cache as handed out.  They are taken from it while memory is measured, so
 * that they always count. */
#define CACHED_SIZES 64
#define CACHED_CHUNKS 16
static void *cached[CACHED_SIZES][CACHED_CHUNKS];

static void cache_empty(void)
{
	for (size_t size = 0; size < CACHED_SIZES; size++)
		for (int i = 0; i < CACHED_CHUNKS; i++)
			cached[size][i] = malloc(16 * size + 8);
}

static void cache_restore(void)
{
	for (size_t size = 0; size < CACHED_SIZES; size++)
		for (int i = 0; i < CACHED_CHUNKS; i++)
			free(cached[size][i]);
}

static double mapped(const struct hash_cell *c)
{
	return c->op->hash->mapped ? (double)c->op->hash->mapped(c->table) : 0;
}

static void barrier(const struct op *op)
{
	if (op->hash->barrier)
		op->hash->barrier();
}

static void destroy(struct hash_cell *c)
{
	c->op->hash->destroy(c->table);
	c->table = NULL;
	barrier(c->op);
}

static bool create(struct hash_cell *c, uint64_t nr)
{
	c->table = c->op->hash->create(nr);
	if (!c->table)
		job_send_note("no memory for a table of %llu elements", (unsigned long long)nr);
	return c->table;
}

static void run_words(const struct hash_cell *c, const uint64_t *word, uint64_t nr, struct hash_tally *tally)
{
	c->op->hash->run(c->table, word, nr, tally);
	if (c->op->hash->between)
		c->op->hash->between();
}

/* The keys come in an order that no later stream has. */
static void run_all(const struct hash_cell *c, uint64_t what, struct hash_tally *tally)
{
	uint64_t word[HASH_CHUNK];

	for (uint64_t done = 0, chunk = 0; done < c->keys.nr; chunk++) {
		uint64_t left = c->keys.nr - done, most = what ? FILL_CHUNK : HASH_CHUNK, n = left < most ? left : most;

		for (uint64_t i = 0; i < n; i++)
			word[i] = c->keys.key[done + i] | what;
		run_words(c, word, n, tally);
		if (chunk % ALIVE_CHUNKS == 0)
			job_flush();
		done += n;
	}
}

static void send_metric(const struct hash_cell *c, enum hash_metric metric, double value)
{
	if (value > 0) /* a malloc() that counts nothing, a sanitizer's for example, is left out */
		job_send_metric(c->scenario, metric, 0, c->job->round, value);
}

static bool send_empty(struct hash_cell *c)
{
	bool good;
	double before;

	cache_empty();
	before = allocated();
	good = create(c, 1);
	if (good) {
		send_metric(c, HASH_EMPTY_BYTES, allocated() - before + mapped(c));
		destroy(c);
	}
	cache_restore();
	return good;
}

static void let_grow(const struct hash_cell *c, uint64_t ns)
{
	if (!c->op->hash->grows)
		return;
	op_sleep_begin(c->op);
	sleep_ns(ns < SETTLE_NS ? ns : SETTLE_NS);
	op_sleep_end(c->op);
}

/* Growth in the background gets as much time again as the filling took. */
static void settle(const struct hash_cell *c, uint64_t ns)
{
	if (c->op->hash->settle)
		c->op->hash->settle(c->table, c->keys.nr);
	let_grow(c, ns);
}

static bool create_full(struct hash_cell *c, uint64_t *ret_ns)
{
	struct hash_tally tally = { 0 };
	uint64_t begin;

	if (!create(c, c->keys.nr))
		return false;
	begin = now_ns();
	run_all(c, HASH_INSERT, &tally);
	*ret_ns = now_ns() - begin;
	settle(c, *ret_ns);
	barrier(c->op);
	return hash_tally_good(&tally, "filling the table");
}

static void run_turnover(const struct hash_cell *c, struct hash_turnover *turnover, struct hash_tally *tally)
{
	uint64_t word[FILL_CHUNK], n;

	for (uint64_t chunk = 1; (n = hash_turnover_words(turnover, word, FILL_CHUNK)); chunk++) {
		run_words(c, word, n, tally);
		if (chunk % BARRIER_CHUNKS == 0)
			barrier(c->op);
		if (chunk % ALIVE_CHUNKS == 0)
			job_flush();
	}
}

/* The thread that filled the table does this alone, so it works for types that cannot be updated beside lookups. */
static bool turn_over(struct hash_cell *c)
{
	struct hash_tally tally = { 0 };
	struct hash_turnover turnover;

	if (!hash_plan_of(c->job)->turnovers)
		return true;
	if (!hash_turnover_begin(&turnover, &c->keys, hash_plan_of(c->job)->turnovers, c->job->round)) {
		job_send_note("out of memory");
		return false;
	}
	run_turnover(c, &turnover, &tally);
	hash_turnover_end(&turnover);
	let_grow(c, SETTLE_NS); /* the size is not set by hand again: it might differ from that of a new table */
	barrier(c->op);
	return hash_tally_good(&tally, "removing and inserting again");
}

static bool fill(struct hash_cell *c)
{
	double before, nr = (double)c->keys.nr;
	uint64_t took;
	bool good;

	cache_empty();
	before = allocated();
	good = create_full(c, &took);
	if (good) {
		send_metric(c, HASH_FILL_NS, (double)took / nr);
		send_metric(c, HASH_ELEMENT_BYTES, (allocated() - before + mapped(c)) / nr);
		send_metric(c, HASH_KEYS, nr);
	}
	cache_restore();
	return good && turn_over(c);
}

static bool fill_other(struct hash_cell *c)
{
	void *table = c->table;
	uint64_t took;
	bool good;

	if (!hash_plan_of(c->job)->resize)
		return true;
	good = create_full(c, &took) && turn_over(c);
	c->other = c->table;
	c->table = table;
	return good && hash_resize_prepare(c);
}

static void destroy_all(struct hash_cell *c)
{
	if (c->table)
		destroy(c);
	c->table = c->other;
	c->other = NULL;
	if (c->table)
		destroy(c);
}

/* Checks that all keys are in the table after all threads have ended. */
static bool verify(struct hash_cell *c)
{
	struct hash_tally tally = { 0 };

	run_all(c, 0, &tally);
	tally.lost += tally.absent;
	return hash_tally_good(&tally, "all keys at the end");
}

/* ---- the child: cells ---- */

static bool measure_threads(struct hash_cell *c, int threads)
{
	c->threads = threads;
	c->window = HASH_WINDOW_ALONE;
	return hash_plan_of(c->job)->resize ? hash_resize_measure(c) : hash_cell_measure(c);
}

static bool measure_set(struct hash_cell *c)
{
	const struct job *job = c->job;
	bool good = true;

	for (int u = 0; u < hash_plan_of(job)->nr_updates; u++) {
		c->updates = hash_plan_of(job)->updates[u];
		if (c->updates > 0 && c->op->hash->read_only) {
			if (job->round == 0)
				job_send_note("left out with updates: they may not run beside lookups");
			continue;
		}
		c->scenario = hash_scenario(hash_set_of(c->scenario), u);
		for (int i = 0; i < job->nr_readers; i++)
			good = measure_threads(c, job->readers[i]) && good;
	}
	return verify(c) && good;
}

static bool read_set(struct hash_cell *c, const struct hash_set *set)
{
	if (!hash_keys_make(&c->keys, set)) {
		job_send_note("--keys=%s: cannot be read, has less than %d different lines, or one of more than %d characters",
			      set->name, HASH_MIN_KEYS, HASH_MAX_LINE);
		return false;
	}
	for (int i = 0; i < c->job->nr_readers; i++)
		if (2 * (uint64_t)c->job->readers[i] > c->keys.nr) {
			job_send_note("--keys=%s: too few keys for %d threads", set->name, c->job->readers[i]);
			return false;
		}
	return true;
}

static bool fits_set(const struct hash_cell *c, const struct hash_set *set)
{
	uint64_t most = set->dense || !c->op->hash->most_scattered ? c->op->hash->most_keys : c->op->hash->most_scattered;

	if (!most || c->keys.nr <= most)
		return true;
	if (c->op->hash->most_scattered)
		job_send_note("left out with %s: it is for keys with neighbours, --keys=dense:N", set->name);
	return false;
}

static bool measure(struct hash_cell *c)
{
	bool good = true;

	for (int s = 0; s < hash_plan_of(c->job)->nr_sets && good; s++) {
		c->scenario = hash_scenario(s, 0);
		good = read_set(c, &hash_plan_of(c->job)->set[s]);
		c->seconds = c->job->seconds > 0 ? c->job->seconds : DEFAULT_CELL_S + DEFAULT_KEY_S * (double)c->keys.nr;
		if (good && fits_set(c, &hash_plan_of(c->job)->set[s]))
			good = send_empty(c) && fill(c) && fill_other(c) && measure_set(c);
		destroy_all(c);
		hash_keys_free(&c->keys);
		job_flush();
	}
	return good;
}

static int most_threads(const struct job *job)
{
	int most = 1;

	for (int i = 0; i < job->nr_readers; i++)
		most = job->readers[i] > most ? job->readers[i] : most;
	return most;
}

/* The number of keys in the largest generated set; sets from files are smaller. */
static double most_keys(const struct hash_plan *plan)
{
	uint64_t most = 0;

	for (int s = 0; s < plan->nr_sets; s++)
		most = plan->set[s].nr > most ? plan->set[s].nr : most;
	return (double)most;
}

/* Enough words for a window without repetition, at most STREAM_WORDS; or two for each key, if that is more. */
static double words_wanted(const struct job *job, int threads)
{
	double of_keys = STREAM_OF_KEY * most_keys(hash_plan_of(job)) / threads;
	double of_window = job->seconds > 0 ? job->seconds * STREAM_RATE : (double)STREAM_WORDS;

	return fmax(fmin(of_window, (double)STREAM_WORDS), of_keys);
}

static bool make_streams(struct hash_cell *c, int threads)
{
	double most = fmin(words_wanted(c->job, threads), (double)ALL_STREAM_WORDS / threads);

	c->stream_words = ((uint64_t)most + HASH_CHUNK - 1) / HASH_CHUNK * HASH_CHUNK;
	c->stream = calloc((size_t)threads, sizeof(*c->stream));
	for (int i = 0; c->stream && i < threads; i++) {
		c->stream[i] = hash_array_alloc(c->stream_words * sizeof(uint64_t));
		if (!c->stream[i])
			return false;
	}
	return c->stream;
}

int hashscale_child(const struct job *job)
{
	struct hash_cell cell = { .job = job, .op = job->op };
	int threads = most_threads(job);
	bool good;

	if (hash_plan_of(job)->resize)
		hash_resize_bind();
	if (!make_streams(&cell, threads)) {
		job_send_note("out of memory");
		return EXIT_FAILED;
	}
	op_thread_enter(job->op);
	good = measure(&cell);
	op_thread_exit(job->op);
	for (int i = 0; i < threads; i++)
		hash_array_free(cell.stream[i], cell.stream_words * sizeof(uint64_t));
	free(cell.stream);
	return good ? 0 : EXIT_FAILED;
}

/* ---- the parent ---- */

static bool fits(const struct op *op)
{
	return op->hash && !op->walk;
}

void hash_plan_complete(struct hash_plan *plan, const char *const *keys, const double *updates, int nr_updates)
{
	for (bool any = plan->nr_sets; !any && *keys; keys++)
		hash_plan_add_set(plan, *keys);
	if (plan->nr_updates)
		return;
	memcpy(plan->updates, updates, (size_t)nr_updates * sizeof(*updates));
	plan->nr_updates = nr_updates;
}

/* By default 1, 2 and as many threads as CPUs; with --resize one CPU is for the resizing thread. */
static void default_threads(struct options *o, bool resize)
{
	int most = resize ? cpus_online() - 1 : cpus_online() < 2 ? 2 : cpus_online();

	o->readers[o->nr_readers++] = 1;
	if (most >= 2)
		o->readers[o->nr_readers++] = 2;
	if (most > 2)
		o->readers[o->nr_readers++] = most < HASH_CELL_THREADS ? most : HASH_CELL_THREADS;
}

static void check(struct options *options)
{
	static const char *const keys[] = { "uniform:1000", "uniform:1000000", NULL };
	struct hash_options *o = OWN(struct hash_options, options);

	hash_plan_complete(&o->plan, keys + o->plan.resize, (const double[]){ 0 }, 1);
	if (!options->nr_readers)
		default_threads(options, o->plan.resize);
	hashscale_emit_plan(&o->plan, o->base ? o->base : command_type(&hashscale_command, DEFAULT_BASE));
}

static void take_base(const char *arg, struct options *o)
{
	OWN(struct hash_options, o)->base = option_type("base", arg);
}

#define OPTION(field) OPTION_OWN(struct hash_options, plan.field)
static const struct option_row own[] = {
	{ "base", "TYPE", "ratios are to this type (default raw_open_addressing)", .take = take_base },
	{ "turnovers", "N", "remove and insert each key again N times before measuring (default 0)", OPTION_WHOLE, 0, HASH_MAX_TURNOVERS,
	  OPTION(turnovers) },
	{ "resize", NULL, "lookups while the table is resized", OPTION_FLAG, OPTION(resize) },
	{ 0 }
};

/* Variants are measured only on request, so that a default run takes a minute. */
static bool is_variant(const char *name)
{
	static const char *const variants[] = { "xarray", "std_map_shared_mutex", "hashmap_update", "hashmap_many",
						"hashtable_update", "hashtable_many", "hashtable_hazptr", "rcu_unordered_map",
						"brlock_atomic", "liburcu_lfht_fixed", "liburcu_lfht_qsbr_fixed",
						"libcds_split_rcu", "tbb_unordered_map", "std_mutex" };

	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
		if (!strcmp(variants[i], name))
			return true;
	return false;
}

static bool contains(const struct op *const *types, int nr, const struct op *op)
{
	for (int i = 0; i < nr; i++)
		if (types[i] == op)
			return true;
	return false;
}

/* With --resize only the types that can be resized; otherwise also the type that ratios are to. */
static int choose_types(const struct options *options, const struct op *types[MAX_TYPES])
{
	const struct hash_options *o = OWN(const struct hash_options, options);
	int nr = options_types(options, &hashscale_command, types), kept = 0;

	for (int i = 0; i < nr; i++) {
		if (o->plan.resize ? types[i]->hash->resize != NULL : options->nr_types || !is_variant(types[i]->name))
			types[kept++] = types[i];
		else if (options->nr_types)
			usage_error("--type=%s --resize: it cannot be made larger and smaller, or another type shows that", types[i]->name);
	}
	if (!kept)
		usage_error("--resize: this build has no type that grows and shrinks");
	if (o->base && !o->plan.resize && kept < MAX_TYPES && !contains(types, kept, o->base))
		types[kept++] = o->base;
	hashscale_figure_check(o->figure);
	return kept;
}

int hashscale_finish(const struct options *options, const struct results *results)
{
	const char *figure = OWN(const struct hash_options, options)->figure;

	return figure ? hashscale_figure(figure, results) : 0;
}

const struct subcommand hashscale_command = {
	.name = "hashscale",
	.what = "Lookups in hash tables, and updates, over the number of threads.",
	.doc = "Result: operations per second of all threads together, the median over rounds; with --resize also while a table is "
	       "resized. Default: 1 and 2 threads and one for each CPU; 1000 and 1000000 keys; no updates. See quiesce-hashscale(1).",
	OPTIONS(options_type, options_rounds, options_runs, options_seconds, hash_options_keys, own, hash_options_figure),
	.fits = fits,
	SCENARIOS(hash_scenarios),
	.columns = hashscale_columns,
	.tables = hashscale_tables,
	.runs = DEFAULT_RUNS_OF_RATIOS,
	.one_fence = true,
	.check = check,
	.choose = choose_types,
	.finish = hashscale_finish,
	.child = hashscale_child,
};
