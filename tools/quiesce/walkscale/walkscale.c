/* SPDX-License-Identifier: MIT */
/* walkscale.c - structures whose readers protect the nodes that they walk through,
 * under several schemes; measured as hash tables are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "hashscale/hashscale.h"
#include "types/retire.h"
#include "retirescale/retirescale.h"

#define DEFAULT_CELL_S 0.03
#define BASE "exchange"

static const struct hash_plan *plan;

static bool fits(const struct op *op)
{
	return op->walk;
}

static void check(struct options *options)
{
	static const char *const keys[] = { "uniform:500", "uniform:100000", NULL };
	struct hash_options *o = OWN(struct hash_options, options);

	hash_plan_complete(&o->plan, keys, (const double[]){ 0, 10, 50 }, 3);
	hashscale_emit_plan(&o->plan, NULL);
	plan = &o->plan;
}

static int choose_types(const struct options *options, const struct op *types[MAX_TYPES])
{
	hashscale_figure_check(OWN(const struct hash_options, options)->figure);
	return options_types(options, &walkscale_command, types);
}

static void prepare(const struct job *job)
{
	retire_set(0, OWN(const struct hash_options, job)->batch);
}

static const struct option_row own[] = {
	{ "batch", "N", "objects in a batch of types that have none of their own (default 1024)", OPTION_WHOLE, 1, MAX_BATCH,
	  OPTION_OWN(struct hash_options, batch) },
	{ "stall", NULL, "one more reader, which stays inside a lookup", OPTION_FLAG, OPTION_OWN(struct hash_options, plan.stall) },
	{ 0 }
};

/* ---- output ---- */

/* Returns the structure in the name of a type: "_list" of "ck_hp_list". */
static const char *structure_of(const struct op *op)
{
	return strrchr(op->name, '_');
}

ROW_TEXT(structure_name_of, structure_of(row->cell->op) + 1)
ROW_VALUE(stalled_of, plan->stall)

/* The cell of the same structure with an exchange for each protection. */
static const struct cell *exchange_of(const struct row *row)
{
	const struct cell *c = row->cell;
	char name[64];

	snprintf(name, sizeof(name), BASE "%s", structure_of(c->op));
	return results_find(row->results, c->command, name, c->scenario, OP_FENCE_NONE, c->threads);
}

/* A CPU's time for an operation. */
ROW_VALUE(operation_ns, 1e9 * (row->cell->threads < cpus_online() ? row->cell->threads : cpus_online()) / row->s.p50)
ROW_RATIO(to_exchange, row->cell, exchange_of(row))

static const struct column columns[] = {
	{ "structure", "`list`, `map`, `tree` or `skip`: the end of the type's name", COLUMN_TEXT, .text = structure_name_of },
	{ "keys", "as those of hashscale", COLUMN_TEXT, .text = hash_keys_of },
	{ "distribution", NULL, COLUMN_TEXT, .text = hash_distribution_of },
	{ "updates", NULL, COLUMN_NUMBER, .value = hash_updates_percent },
	{ "stalled", "true if an additional thread stayed in the middle of a lookup", COLUMN_TRUTH, .value = stalled_of },
	{ "to_exchange", "ratio to the same structure of scheme `exchange`, as `to_base` of hashscale; `null` where that was not measured",
	  COLUMN_NUMBER, .value = to_exchange },
	{ "to_exchange_low", NULL, COLUMN_NUMBER, .value = to_exchange_low },
	{ "to_exchange_high", NULL, COLUMN_NUMBER, .value = to_exchange_high },
	{ "waiting", "removed elements that were not freed yet, at most, and the mean of the samples; medians over rounds",
	  COLUMN_NUMBER, .metric = HASH_WAITING },
	{ "waiting_mean", NULL, COLUMN_NUMBER, .metric = HASH_WAITING_MEAN },
	{ 0 }
};

/* Structures one after another. */
static int part(const struct row *row)
{
	static const char *const structures[] = { "list", "map", "tree", "skip" };
	int i = 0;

	while (strcmp(structures[i], structure_name_of(row)))
		i++;
	return i;
}

static void title(FILE *out, const struct row *first)
{
	fprintf(out, "\nwalkscale %s, %d thread%s%s: million operations/s of all threads, median over rounds;\n"
		     "ratios to the same structure with an exchange for each protection, 95 %% intervals; 'ns': a CPU's time for an "
		     "operation;\n'waiting': removed elements, at most, and in the mean\n", hashscale_title(first->cell->scenario),
		first->cell->threads, first->cell->threads > 1 ? "s" : "", plan->stall ? " and one that stays inside" : "");
}

static const struct view views[] = {
	VIEW_MILLIONS, V("ns", 9, NULL, .value = operation_ns),
	V("ratio", 9, "to_exchange"), V("", 6, "to_exchange_low"), V("interval", 6, "to_exchange_high"), V("waiting", 9, "waiting"),
	V("mean", 9, "waiting_mean"), { 0 }
};
static const struct table_form tables[] = { { part, title, views, row_remark }, { 0 } };

const struct subcommand walkscale_command = {
	.name = "walkscale",
	.what = "Lists, maps, trees and skip lists whose readers protect each node, under several schemes.",
	.doc = "Result: operations per second of all threads together, the median over rounds, and the removed elements that wait to be "
	       "freed. Default: 1 and 2 threads; 500 and 100000 keys; 0, 10 and 50 % updates. See quiesce-walkscale(1).",
	OPTIONS(options_type, options_rounds, options_runs, options_seconds, hash_options_keys, own, hash_options_figure),
	.fits = fits,
	SCENARIOS(hash_scenarios),
	.columns = columns,
	.tables = tables,
	.runs = DEFAULT_RUNS_OF_RATIOS,
	.cell_s = DEFAULT_CELL_S,
	.readers = { 1, 2 },
	.one_fence = true,
	.check = check,
	.choose = choose_types,
	.finish = hashscale_finish,
	.prepare = prepare,
	.child = hashscale_child,
};
