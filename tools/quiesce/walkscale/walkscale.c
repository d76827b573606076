/* SPDX-License-Identifier: MIT */
/* walkscale.c - structures whose readers protect the nodes that they walk through,
 * under several schemes; measured as hash tables are. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "hashscale/hashscale.h"
#include "ops/retire.h"
#include "retirescale/retirescale.h"

#define DEFAULT_CELL_S 0.03
#define BASE "exchange"

static const struct hash_plan *plan;

static bool fits(const struct op *op)
{
	return op->hash;
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

/* Returns the cell of the same structure with an exchange for each protection. */
static const struct cell *base_cell(const struct results *results, const struct cell *c)
{
	char name[64];

	snprintf(name, sizeof(name), BASE "%s", structure_of(c->op));
	return results_find(results, c->command, name, c->scenario, OP_FENCE_NONE, c->threads);
}

static double most_waiting(const struct results *results, const struct cell *c)
{
	return cell_median(results_metric(results, c, HASH_WAITING));
}

static void add_number(json_t *row, const char *name, double v)
{
	json_object_set_new(row, name, isfinite(v) ? json_real(v) : json_null());
}

static void columns(json_t *row, const struct results *results, const struct cell *c)
{
	struct hash_ratio ratio = hashscale_ratio(c, base_cell(results, c));

	json_object_set_new(row, "structure", json_string(structure_of(c->op) + 1));
	json_object_set_new(row, "keys", json_string(plan->set[hash_set_of(c->scenario)].name));
	json_object_set_new(row, "distribution", json_string(hash_distribution_name(plan->distribution)));
	add_number(row, "updates", plan->updates[hash_updates_of(c->scenario)]);
	json_object_set_new(row, "stalled", json_boolean(plan->stall));
	add_number(row, "to_exchange", ratio.median);
	add_number(row, "to_exchange_low", ratio.low);
	add_number(row, "to_exchange_high", ratio.high);
	add_number(row, "waiting", most_waiting(results, c));
}

static void number(FILE *out, int width, double v)
{
	if (!isfinite(v))
		fprintf(out, " %*s", width, "-");
	else
		fprintf(out, " %*.*f", width, v < 10 ? 2 : v < 100 ? 1 : 0, v);
}

static void print_row(FILE *out, const struct results *results, const struct cell *c, int width)
{
	struct summary s = cell_summary(c);
	struct hash_ratio ratio = hashscale_ratio(c, base_cell(results, c));

	fprintf(out, "%-*s %-5s", width, c->op->name, c->fence == OP_FENCE_NONE ? "-" : fence_name(c->fence));
	number(out, 8, s.p50 / 1e6);
	number(out, 8, s.min / 1e6);
	number(out, 8, s.max / 1e6);
	number(out, 9, 1e9 * (c->threads < cpus_online() ? c->threads : cpus_online()) / s.p50);
	number(out, 9, ratio.median);
	number(out, 6, ratio.low);
	number(out, 6, ratio.high);
	if (isfinite(most_waiting(results, c)))
		fprintf(out, " %9.0f", most_waiting(results, c));
	fprintf(out, "%s\n", c->disturbed * 2 > c->nr ? "  disturbed" : "");
}

static void print_table(FILE *out, const struct results *results, const struct cell *first)
{
	size_t width = 4;

	for (size_t i = 0; i < results->nr; i++)
		width = strlen(results->cell[i].op->name) > width ? strlen(results->cell[i].op->name) : width;
	fprintf(out,
		"\nwalkscale %s, %d thread%s%s: million operations/s of all threads, median over rounds;\n"
		"ratios to the same structure with an exchange for each protection, 95 %% intervals; 'ns': a CPU's time for an "
		"operation;\n'waiting': removed elements, at most\n"
		"%-*s %-5s %8s %8s %8s %9s %9s %13s %9s\n",
		hashscale_title(first->scenario), first->threads, first->threads > 1 ? "s" : "",
		plan->stall ? " and one that stays inside" : "", (int)width, "type", "fence", "median", "min", "max", "ns", "ratio",
		"interval", "waiting");
	for (const char *const *structure = (const char *const[]){ "_list", "_map", "_tree", "_skip", NULL }; *structure; structure++)
		for (const struct cell *c = first; c < results->cell + results->nr; c++)
			if (!c->metric && c->scenario == first->scenario && c->threads == first->threads &&
			    !strcmp(structure_of(c->op), *structure))
				print_row(out, results, c, (int)width);
}

static void emit(FILE *out, const struct options *options, const struct results *results)
{
	emit_by_scenario(out, options, results, print_table);
}

const struct subcommand walkscale_command = {
	.name = "walkscale",
	.what = "Lists, maps, trees and skip lists whose readers protect each node, under several schemes.",
	.doc = "Result: operations per second of all threads together, the median over rounds; each round measures every type in "
	       "a process of its own, in turn, with the same keys in the same order. Each lookup is checked: a lost key "
	       "or a wrong value is an error, BROKEN. An update removes or inserts a key of the thread's own, in turn, so that "
	       "the size stays. X_list is Michael's list, sorted and lock-free, with three slots; X_map a table with as many "
	       "such lists as keys; X_tree an external binary tree whose updates lock one or two inner nodes; X_skip a skip list "
	       "with one lock for updates. All schemes run the same code, except that readers in sections (none, rcu, liburcu, "
	       "ck_epoch) may pass through unlinked nodes, and check less.\n"
	       "Schemes: none frees nothing, a limit; rcu and hazptr are quiesce's; exchange and asymmetric are hazard pointers "
	       "as one writes them by hand, with an exchange for each protection, or with a store for each protection and a "
	       "membarrier for each scan.\n"
	       "'waiting' is the largest number of removed elements that were not freed yet, of samples taken every half "
	       "millisecond, the median over rounds. --batch is the number of retired elements of a thread that causes a scan, "
	       "for all schemes that have one; default 1024, for hazptr the library's own choice. libcds_hp has a least batch of "
	       "its own, dhp has none. With --stall one more thread begins a lookup and stays inside.\n"
	       "Threads are bound to CPUs as long as there are enough. Default: 1 and 2 threads; 500 and 100000 generated keys "
	       "(lists of at most 5000); 0, 10 and 50 % updates.",
	.options = (const struct option_row *const[]){ options_type, options_rounds, options_runs, options_seconds,
						      hash_options_keys, own, hash_options_figure, NULL },
	.fits = fits,
	.types = walk_types,
	SCENARIOS(hash_scenarios),
	.columns = columns,
	.runs = DEFAULT_RUNS_OF_RATIOS,
	.cell_s = DEFAULT_CELL_S,
	.readers = { 1, 2 },
	.one_fence = true,
	.check = check,
	.choose = choose_types,
	.emit = emit,
	.finish = hashscale_finish,
	.prepare = prepare,
	.child = hashscale_child,
};
