/* SPDX-License-Identifier: MIT */
/* hash2003.c - lookups in a hash table under the locks of 2003, and the costs
 * that explain them: runs of hashscale and costs. */
#include <math.h>
#include <string.h>

#include "costs/costs.h"
#include "hashscale/hashscale.h"
#include "study.h"

#define ARTICLE_CPUS 4

static const struct study_variant variants[] = {
	{ "spinlock", NULL, "a spinlock in each bucket" },
	{ "refcnt", NULL, "a spinlock in each bucket, and a reference to what is found" },
	{ "rwlock", NULL, "a reader-writer lock in each bucket, fair" },
	{ "brlock", NULL, "the big-reader lock: a counter of its own for each CPU, one barrier; writers visit all" },
	{ "seqlock", NULL, "a sequence count in each bucket" },
	{ "rcu", NULL, "buckets whose readers are under RCU" },
	{ "hazptr", NULL, "buckets whose readers use hazard pointers" },
	{ "hashmap", NULL, "quiesce/ds/hashmap.h" },
	{ "hashtable", NULL, "quiesce/ds/hashtable.h" },
	{ "raw_open_addressing", NULL, "a table that no thread may change: the limit" },
	/* The table of costs has these rows. */
	{ "instruction", NULL, NULL }, { "cycle", NULL, NULL }, { "l2", NULL, NULL }, { "atomic_inc", NULL, NULL },
	{ "cmpxchg_inc", NULL, NULL }, { "memory", NULL, NULL }, { "spin_lock", NULL, NULL }, { "transfer", NULL, NULL },
	{ NULL, NULL, NULL },
};

static const struct study_column columns[] = {
	{ "Mops", "M/s", false }, { "ns", "ns", false }, { "efficiency", "% of ideal", false }, { "article", "2003", false },
	{ NULL, NULL, false },
};

#define MANY "lookups, 4 threads or one for each CPU"
#define COSTS "one operation, ns, beside that of a 700 MHz Pentium III"
#define NOWHERE { NULL, NULL, NULL, NULL }
#define EFFICIENCY(text, figure, type) { text, figure, STUDY_VALUE, { type, NULL, MANY, "efficiency" }, NOWHERE, NOWHERE }
#define TIMES(text, a, b) { text, NULL, STUDY_RATIO, { a, NULL, MANY, "Mops" }, { b, NULL, MANY, "Mops" }, NOWHERE }

static const struct study_shape shapes[] = {
	EFFICIENCY("% of ideal, spinlock", "57", "spinlock"), EFFICIENCY("% of ideal, refcnt", "54", "refcnt"),
	EFFICIENCY("% of ideal, rwlock", "39", "rwlock"), EFFICIENCY("% of ideal, brlock", "100, but slow", "brlock"),
	EFFICIENCY("% of ideal, rcu", "100", "rcu"), EFFICIENCY("% of ideal, hazptr", NULL, "hazptr"),
	TIMES("rcu / spinlock", "rcu", "spinlock"), TIMES("rcu / refcnt", "rcu", "refcnt"), TIMES("rcu / rwlock", "rcu", "rwlock"),
	TIMES("rcu / brlock", "rcu", "brlock"), TIMES("hazptr / refcnt", "hazptr", "refcnt"),
	{ NULL, NULL, STUDY_VALUE, NOWHERE, NOWHERE, NOWHERE },
};

static const double updates[] = { 0, 0.1, 1, 10 };
#define NR_UPDATES (sizeof(updates) / sizeof(updates[0]))

/* Takes a cell of hashscale; its share of updates and number of threads select the scenario. */
static void take_lookups(const struct study *study, const struct results *from, const struct cell *c, struct study_results *to)
{
	struct study_place place = { c->op->name, NULL, MANY, "Mops" };
	int share = hash_updates_of(c->scenario);
	char name[64];

	if (share) {
		snprintf(name, sizeof(name), "%g %% updates, 4 threads or one for each CPU", updates[share]);
		place.scenario = name;
	} else if (c->threads == 1) {
		place.scenario = "lookups, 1 thread";
	}
	if (share && c->threads == 1)
		return;
	study_add_cell(to, study, &place, c, 1e-6);
	place.metric = "ns";
	study_add(to, study, &place, 1e9 * c->threads / cell_summary(c).p50);
	place.metric = "efficiency";
	if (c->threads > 1 && isfinite(hashscale_efficiency(from, c)))
		study_add(to, study, &place, 100 * hashscale_efficiency(from, c));
	place.metric = "article";
	if (c->threads > 1 && !share && isfinite(hashscale_article(c->op->name)))
		study_add(to, study, &place, 100 * hashscale_article(c->op->name));
}

static void take_cost(const struct study *study, const struct cell *c, struct study_results *to)
{
	const struct cost *cost = (const struct cost *)c->op; /* struct op is the first member of struct cost */
	struct study_place place = { c->op->name, NULL, COSTS, "ns" };

	study_add_cell(to, study, &place, c, 1);
	place.metric = "article";
	if (cost->article > 0)
		study_add(to, study, &place, cost->article);
}

static int types_of(const struct subcommand *command, const struct op *types[STUDY_MAX_VARIANTS])
{
	int nr = 0;

	for (const struct study_variant *v = variants; v->name; v++)
		if (command_type(command, v->name))
			types[nr++] = command_type(command, v->name);
	return nr;
}

static void run_lookups(const struct study *study, const struct options *options, int rounds, struct study_results *results)
{
	int many = cpus_online() < 2 ? 2 : cpus_online() < ARTICLE_CPUS ? cpus_online() : ARTICLE_CPUS;
	const struct study_options *o = study_options(options);
	struct job base = { .readers = { 1, many }, .nr_readers = 2, .watchdog_s = 60, .seconds = study_seconds(study, options) };
	struct hash_plan *plan = &OWN(struct hash_options, &base)->plan;
	const struct op *types[STUDY_MAX_VARIANTS];
	int nr = types_of(&hashscale_command, types);
	struct options mine = *options;
	struct results from = { 0 };

	hash_plan_add_set(plan, "uniform:1000");
	hash_plan_complete(plan, NULL, updates, o->quick ? 1 : NR_UPDATES);
	mine.runs = rounds;
	options_one_fence(&mine);
	hashscale_emit_plan(plan, command_type(&hashscale_command, "spinlock"));
	jobs_run(&hashscale_command, &mine, &base, types, nr, &from);
	for (size_t i = 0; i < from.nr; i++)
		if (!from.cell[i].metric)
			take_lookups(study, &from, &from.cell[i], results);
	study_take_notes(results, study, &from);
	if (o->figure && from.nr && hashscale_figure(o->figure, &from))
		results->failures++;
	results_free(&from);
}

static void run_costs(const struct study *study, const struct options *options, int rounds, struct study_results *results)
{
	struct job base = { .watchdog_s = 60 };
	const struct op *types[STUDY_MAX_VARIANTS];
	int nr = types_of(&costs_command, types);
	struct options mine = *options;
	struct results from = { 0 };

	mine.runs = rounds;
	jobs_run(&costs_command, &mine, &base, types, nr, &from);
	for (size_t i = 0; i < from.nr; i++)
		if (!from.cell[i].metric)
			take_cost(study, &from.cell[i], results);
	study_take_notes(results, study, &from);
	results_free(&from);
}

static void run(const struct study *study, const struct options *options, int rounds, struct study_results *results)
{
	run_lookups(study, options, rounds, results);
	if (!interrupted())
		run_costs(study, options, rounds, results);
}

const struct study study_hash2003 = {
	.name = "hash2003",
	.what = "lookups in a hash table under the locks of 2003, RCU and hazard pointers, and what explains them",
	.document = "\"Using RCU in the Linux 2.5 Kernel\", Linux Journal, 2003: four CPUs, 700 MHz Pentium III",
	.honesty = "Ideal is n times the rate of one thread of the same type. The article has four CPUs, and buckets of one element that "
		   "are looked up and never changed; where there are fewer CPUs here, there is less to lose. It puts less than a quarter "
		   "of the spinlock's loss down to waiting, the rest to lines that move between caches and to what barriers stop: the last "
		   "table has these costs for this machine. hashscale and costs measure more of each.",
	.variants = variants,
	.columns = columns,
	.shapes = shapes,
	.rounds = 5,
	.quick_rounds = 2,
	.seconds = 0.1,
	.quick_seconds = 0.04,
	.run = run,
};
