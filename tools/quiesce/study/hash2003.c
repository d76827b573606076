/* SPDX-License-Identifier: MIT */
/* hash2003.c - lookups in a hash table under the locks of 2003, and the costs
 * that explain them: runs of hashscale and costs. */
#include <math.h>
#include <string.h>

#include "costs/costs.h"
#include "hashscale/hashscale.h"
#include "study.h"

#define ARTICLE_CPUS 4

/* Scenarios of cases/hash2003/hash2003.json. */
#define MANY "lookups, 4 threads or one for each CPU"
#define COSTS "one operation, ns, beside that of a 700 MHz Pentium III"
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

	for (const struct study_variant *v = study_hash2003.variants; v->name; v++)
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

struct study study_hash2003 = { .name = "hash2003", .run = run };
