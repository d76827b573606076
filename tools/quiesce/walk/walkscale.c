/* SPDX-License-Identifier: MIT */
/* walkscale.c - structures whose readers protect the nodes that they walk through,
 * under several schemes; measured as hash tables are. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "hash/hashscale.h"

#define DEFAULT_RUNS 6 /* the fewest rounds for which a ratio has an interval */
#define DEFAULT_CELL_S 0.03
#define WATCHDOG_S 60
#define BASE "exchange"

static const struct hash_plan *plan;

static bool fits(const struct op *op)
{
	return op->walk;
}

static void default_plan(struct hash_plan *p)
{
	if (!p->nr_sets) {
		hash_plan_add_set(p, "uniform:500");
		hash_plan_add_set(p, "uniform:100000");
	}
	if (p->nr_updates)
		return;
	p->updates[p->nr_updates++] = 0;
	p->updates[p->nr_updates++] = 10;
	p->updates[p->nr_updates++] = 50;
}

static void default_threads(struct job *base)
{
	base->readers[base->nr_readers++] = 1;
	base->readers[base->nr_readers++] = 2;
}

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
	const struct cell *more = hashscale_more_of(results, c, HASH_WAITING);

	return more ? cell_summary(more).p50 : NAN;
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
			if (c->scenario == first->scenario && c->threads == first->threads && !strcmp(structure_of(c->op), *structure))
				print_row(out, results, c, (int)width);
}

/* ---- the parent ---- */

static int run(const struct options *options)
{
	struct options mine = *options;
	struct job base = { .nr_readers = options->nr_readers, .alive = options->alive, .watchdog_s = WATCHDOG_S + (int)options->seconds,
			    .batch = options->batch, .seconds = options->seconds > 0 ? options->seconds : DEFAULT_CELL_S };
	const struct op *types[MAX_TYPES];
	struct results results = { 0 };
	int nr, status;
	FILE *out;

	default_plan(&mine.hash);
	hashscale_default_fence(&mine);
	mine.runs = options->runs_given ? options->runs : DEFAULT_RUNS;
	base.hash = mine.hash;
	memcpy(base.readers, options->readers, sizeof(base.readers));
	if (!base.nr_readers)
		default_threads(&base);
	nr = options_types(options, &walkscale_command, types);
	if (mine.figure)
		hashscale_figure_check(mine.figure);
	out = emit_open(&mine);
	plan = &mine.hash;
	hashscale_emit_plan(plan, NULL);
	jobs_run(&walkscale_command, &mine, &base, types, nr, &results);
	emit_by_scenario(out, &mine, &results, print_table);
	status = emit_end(out, &mine, &walkscale_command, &results);
	if (mine.figure && results.nr)
		status = hashscale_figure(mine.figure, &results) || status ? EXIT_FAILED : 0;
	results_free(&results);
	return interrupted() ? EXIT_INTERRUPTED : status;
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
	.accepts = OPT_TYPE | OPT_ROUNDS | OPT_SECONDS | OPT_HASH | OPT_WALK,
	.fits = fits,
	.is_row = hashscale_is_row,
	.columns = columns,
	.run = run,
};
