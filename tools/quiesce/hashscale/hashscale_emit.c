/* SPDX-License-Identifier: MIT */
/* hashscale_emit.c - the columns and tables of hashscale. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "hashscale.h"

static const struct hash_plan *plan;
static const struct op *base;

void hashscale_emit_plan(const struct hash_plan *the_plan, const struct op *the_base)
{
	plan = the_plan;
	base = the_base;
}

/* ---- figures computed from cells ---- */

/* A metric of the table that cell @c was measured on. */
static double of_table(const struct row *row, enum hash_metric m)
{
	return cell_median(results_metric_of(row->results, row->cell, hash_scenario(hash_set_of(row->cell->scenario), 0), m, 0));
}

double hashscale_efficiency(const struct results *results, const struct cell *c)
{
	int threads = c->threads < cpus_online() ? c->threads : cpus_online();

	return cell_median(c) / threads / cell_median(results_find(results, c->command, c->op->name, c->scenario, c->fence, 1));
}

double hashscale_article(const char *type)
{
	static const struct {
		const char *type;
		double efficiency;
	} article[] = { { "spinlock", 0.57 }, { "refcnt", 0.54 }, { "rwlock", 0.39 } };

	for (size_t i = 0; i < sizeof(article) / sizeof(article[0]); i++)
		if (!strcmp(article[i].type, type))
			return article[i].efficiency;
	return NAN;
}

static const struct cell *base_cell(const struct row *row)
{
	const struct cell *c = row->cell;

	for (size_t i = 0; i < row->results->nr; i++) {
		const struct cell *other = &row->results->cell[i];

		if (other->op == base && !other->metric && other->scenario == c->scenario && other->threads == c->threads &&
		    (other->fence == c->fence || other->fence == OP_FENCE_NONE || c->fence == OP_FENCE_NONE))
			return other;
	}
	return NULL;
}

/* ---- columns ---- */

const char *hash_keys_of(const struct row *row)
{
	(void)row;
	return plan->set[hash_set_of(row->cell->scenario)].name;
}

const char *hash_distribution_of(const struct row *row)
{
	(void)row;
	return hash_distribution_name(plan->distribution);
}

ROW_TEXT(base_of, base->name)
double hash_updates_percent(const struct row *row)
{
	return plan->updates[hash_updates_of(row->cell->scenario)];
}

ROW_VALUE(nr_keys_of, of_table(row, HASH_KEYS))
ROW_VALUE(turnovers_of, (double)plan->turnovers)
ROW_VALUE(efficiency_of, hashscale_efficiency(row->results, row->cell))
ROW_VALUE(slowdown_of, 1 / efficiency_of(row))
ROW_VALUE(article_of, hashscale_article(row->cell->op->name))
ROW_RATIO(to_base, row->cell, base_cell(row))
ROW_VALUE(element_bytes_of, of_table(row, HASH_ELEMENT_BYTES))
ROW_VALUE(empty_bytes_of, of_table(row, HASH_EMPTY_BYTES))
ROW_VALUE(fill_ns_of, of_table(row, HASH_FILL_NS))

static const struct cell *metric(const struct row *row, enum hash_metric m)
{
	return results_metric(row->results, row->cell, m);
}

/* The part of the rate of the control that is missing while the table is resized. */
ROW_RATIO(resized, metric(row, HASH_RESIZED), metric(row, HASH_CONTROL))
ROW_VALUE(cost_of, 1 - resized(row))
ROW_VALUE(cost_low_of, 1 - resized_high(row))
ROW_VALUE(cost_high_of, 1 - resized_low(row))
ROW_VALUE(cost_in_all_of, 1 - cell_ratio(metric(row, HASH_RESIZED), row->cell).median)

const struct column hashscale_columns[] = {
	{ "keys", "the set of keys as in `--keys`, a file without its directory; number of keys", COLUMN_TEXT, .text = hash_keys_of },
	{ "nr_keys", NULL, COLUMN_COUNT, .value = nr_keys_of },
	{ "distribution", "distribution of the keys that are looked up: `uniform`, `zipf` (exponent 0.99) or `hot` (one key)",
	  COLUMN_TEXT, .text = hash_distribution_of },
	{ "updates", "percentage of operations that are updates, which remove and insert in turns",
	  COLUMN_NUMBER, .value = hash_updates_percent },
	{ "turnovers", "value of `--turnovers`: how often each element was removed and inserted again before the measurement, on average; "
	  "`element_bytes` and `fill_ns` are of the table before that", COLUMN_COUNT, .value = turnovers_of },
	{ "efficiency", "`p50` over that of one thread times the threads, or times the CPUs if those are fewer; `null` if one thread was "
	  "not measured", COLUMN_NUMBER, .value = efficiency_of },
	{ "slowdown", "1 / `efficiency`", COLUMN_NUMBER, .value = slowdown_of },
	{ "article_efficiency", "efficiency of the same type in the Linux Journal's article of 2003, at four CPUs of 700 MHz",
	  COLUMN_NUMBER, .value = article_of },
	{ "base", "the type of `--base`; median over rounds of the rate over the base's in the same round", COLUMN_TEXT, .text = base_of },
	{ "to_base", NULL, COLUMN_NUMBER, .value = to_base },
	{ "to_base_low", "an interval that contains the true median with at least 95 %, from the order of the rounds' ratios; `null` with "
	  "less than six rounds", COLUMN_NUMBER, .value = to_base_low },
	{ "to_base_high", NULL, COLUMN_NUMBER, .value = to_base_high },
	{ "element_bytes", "memory of the full table for each element, with the memory of key and value",
	  COLUMN_NUMBER, .value = element_bytes_of },
	{ "empty_bytes", "memory of a table made for one element, which is not in it", COLUMN_NUMBER, .value = empty_bytes_of },
	{ "fill_ns", "time to insert an element, one thread alone", COLUMN_NUMBER, .value = fill_ns_of },
	{ "control_small", "with `--resize`: operations/s while an additional thread resizes another table, see below",
	  COLUMN_NUMBER, .metric = HASH_CONTROL_SMALL },
	{ "control_large", NULL, COLUMN_NUMBER, .metric = HASH_CONTROL_LARGE },
	{ "control", "the mean of both in each round, median", COLUMN_NUMBER, .metric = HASH_CONTROL },
	{ "resized", "operations/s while the table that the threads use is resized", COLUMN_NUMBER, .metric = HASH_RESIZED },
	{ "cost", "1 - `resized` / `control` in each round: the cost of the resizing; median, and an interval as that of `to_base`",
	  COLUMN_NUMBER, .value = cost_of },
	{ "cost_low", NULL, COLUMN_NUMBER, .value = cost_low_of },
	{ "cost_high", NULL, COLUMN_NUMBER, .value = cost_high_of },
	{ "cost_in_all", "1 - `resized` / the round's rate without resizing, median: includes the costs of the additional thread and of a "
	  "larger table", COLUMN_NUMBER, .value = cost_in_all_of },
	{ "worst_us", "with `--resize`: the slowest 256 operations of any thread and round, while no table, another table, and their own "
	  "table is resized", COLUMN_NUMBER, .metric = HASH_WORST, .most = true },
	{ "control_worst_us", NULL, COLUMN_NUMBER, .metric = HASH_CONTROL_WORST, .most = true },
	{ "resized_worst_us", NULL, COLUMN_NUMBER, .metric = HASH_RESIZED_WORST, .most = true },
	{ "resizes", "number of resizes while `resized` was measured, and duration of each, medians; one CPU executes them",
	  COLUMN_NUMBER, .metric = HASH_RESIZES },
	{ "resize_ms", NULL, COLUMN_NUMBER, .metric = HASH_RESIZE_MS },
	{ "warm_up", "operations of all threads before the measurement, and duration of the measurement. There are at least as many "
	  "operations as keys, unless ten seconds were over or all threads look up the same key", COLUMN_NUMBER, .metric = HASH_WARM },
	{ "window_s", NULL, COLUMN_NUMBER, .metric = HASH_WINDOW_S },
	{ "waiting", "removed elements that were not freed yet, at most, and the mean of samples taken every half millisecond; "
	  "medians over rounds; `null` without updates, and for types that do not count them", COLUMN_NUMBER, .metric = HASH_WAITING },
	{ "waiting_mean", NULL, COLUMN_NUMBER, .metric = HASH_WAITING_MEAN },
	{ 0 }
};

/* ---- tables ---- */

const char *hashscale_title(int scenario)
{
	static char text[128];
	double updates = plan->updates[hash_updates_of(scenario)];
	int n = snprintf(text, sizeof(text), "%s, %s", plan->set[hash_set_of(scenario)].name, hash_distribution_name(plan->distribution));

	if (updates > 0)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ", %g%% updates", updates);
	if (plan->turnovers)
		snprintf(text + n, sizeof(text) - (size_t)n, ", after %llu turnover%s", (unsigned long long)plan->turnovers,
			 plan->turnovers > 1 ? "s" : "");
	return text;
}

static void title(FILE *out, const struct cell *c)
{
	fprintf(out, "\nhashscale %s, %d thread%s: million operations/s of all threads, median over rounds", hashscale_title(c->scenario),
		c->threads, c->threads > 1 ? "s" : "");
}

static void rate_title(FILE *out, const struct row *first)
{
	title(out, first->cell);
	fprintf(out, "; ratios to %s with 95 %% intervals\n", base->name);
}

static void resize_title(FILE *out, const struct row *first)
{
	title(out, first->cell);
	fprintf(out, ";\n'small', 'large': one thread more resizes another table, and theirs has the least and the largest size of that; "
		     "'resized': theirs;\n'cost' of that to the mean of 'small' and 'large', with a 95 %% interval; 'in all' to 'alone'; "
		     "'worst' us: the slowest %d operations\nof any round alone, with another table resized, with theirs; resizes in a "
		     "round, and ms for each\n", HASH_CHUNK);
}

ROW_PART(is_alone, !plan->resize && row->cell->threads == 1 ? 0 : -1)
ROW_PART(is_beside, !plan->resize && row->cell->threads > 1 ? 0 : -1)
ROW_PART(is_resize, plan->resize ? 0 : -1)

static const char *resize_remark(const struct row *row)
{
	static const enum hash_metric others[] = { HASH_CONTROL_SMALL, HASH_CONTROL_LARGE, HASH_RESIZED };
	bool disturbed = row_is_disturbed(row);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (metric(row, others[i]))
			disturbed = disturbed || row_is_disturbed(&(struct row){ row->results, metric(row, others[i]), row->s });
	return disturbed ? "  disturbed" : "";
}

/* A table of one thread has the heads of the others. */
#define IDEAL(efficiency, slowdown, article) \
	V("of ideal", 8, efficiency, .percent = true), V("slower", 7, slowdown), V("article", 8, article, .percent = true)
#define REST \
	V("ratio", 9, "to_base"), V("", 6, "to_base_low"), V("interval", 6, "to_base_high"), V("bytes", 8, "element_bytes"), \
	V("empty", 9, "empty_bytes"), V("fill ns", 8, "fill_ns"), V("waiting", 9, "waiting"), V("mean", 9, "waiting_mean"), { 0 }
static const struct view alone[] = { VIEW_MILLIONS, IDEAL(NULL, NULL, NULL), REST };
static const struct view beside[] = { VIEW_MILLIONS, IDEAL("efficiency", "slowdown", "article_efficiency"), REST };
static const struct view resizes[] = {
	V("alone", 8, "p50", .scale = 1e-6), V("small", 8, "control_small", .scale = 1e-6), V("large", 8, "control_large", .scale = 1e-6),
	V("resized", 8, "resized", .scale = 1e-6), V("cost", 6, "cost", .percent = true), V("", 6, "cost_low", .percent = true),
	V("interval", 5, "cost_high", .percent = true), V("in all", 7, "cost_in_all", .percent = true), V("worst", 9, "worst_us"),
	V("control", 8, "control_worst_us"), V("resized", 8, "resized_worst_us"), V("resizes", 8, "resizes"),
	V("ms each", 8, "resize_ms"), { 0 }
};
const struct table_form hashscale_tables[] = {
	{ is_alone, rate_title, alone, row_remark }, { is_beside, rate_title, beside, row_remark },
	{ is_resize, resize_title, resizes, resize_remark }, { 0 }
};
