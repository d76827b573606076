/* SPDX-License-Identifier: MIT */
/* hashscale_emit.c - the output of hashscale. */
#include <jansson.h>
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
static double of_table(const struct results *results, const struct cell *c, enum hash_metric metric)
{
	return cell_median(results_metric_of(results, c, hash_scenario(hash_set_of(c->scenario), 0), metric, 0));
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

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double middle(const double *v, size_t n)
{
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* The number of values at each end that lie outside an interval for the
 * median, by the sign test; -1: @n is too small. */
static int outside(size_t n)
{
	double chance = pow(0.5, (double)n), below = 0;
	int k = -1;

	for (size_t i = 0; i < n / 2; i++) {
		below += chance;
		if (below > 0.025)
			break;
		k = (int)i;
		chance *= (double)(n - i) / (double)(i + 1);
	}
	return k;
}

static const struct cell *base_cell(const struct results *results, const struct cell *c)
{
	for (size_t i = 0; i < results->nr; i++) {
		const struct cell *other = &results->cell[i];

		if (other->op == base && !other->metric && other->scenario == c->scenario && other->threads == c->threads &&
		    (other->fence == c->fence || other->fence == OP_FENCE_NONE || c->fence == OP_FENCE_NONE))
			return other;
	}
	return NULL;
}

/* The ratio of the values of two cells within each round; NANs: there are none. */
struct hash_ratio hashscale_ratio(const struct cell *c, const struct cell *other)
{
	struct hash_ratio r = { NAN, NAN, NAN };
	double *v = c && other ? calloc(c->nr + 1, sizeof(*v)) : NULL;
	size_t n = 0;
	int k;

	for (size_t i = 0; v && i < c->nr; i++)
		for (size_t j = 0; j < other->nr; j++)
			if (c->group[i] == other->group[j])
				v[n++] = c->sample[i] / other->sample[j];
	if (n) {
		qsort(v, n, sizeof(*v), by_value);
		r.median = middle(v, n);
		k = outside(n);
		if (k >= 0) {
			r.low = v[k];
			r.high = v[n - 1 - (size_t)k];
		}
	}
	free(v);
	return r;
}

static struct hash_ratio ratio_to_base(const struct results *results, const struct cell *c)
{
	return hashscale_ratio(c, base_cell(results, c));
}

/* The part of the rate of @other that is missing in the rate of @c. */
static struct hash_ratio cost_of(const struct cell *c, const struct cell *other)
{
	struct hash_ratio r = hashscale_ratio(c, other);

	return (struct hash_ratio){ 1 - r.median, 1 - r.high, 1 - r.low };
}

/* ---- JSON and CSV ---- */

static void add_number(json_t *row, const char *name, double v)
{
	json_object_set_new(row, name, isfinite(v) ? json_real(v) : json_null());
}

static void resize_columns(json_t *row, const struct results *results, const struct cell *c)
{
	const struct cell *resized = results_metric(results, c, HASH_RESIZED);
	struct hash_ratio cost = cost_of(resized, results_metric(results, c, HASH_CONTROL));

	add_number(row, "control_small", cell_median(results_metric(results, c, HASH_CONTROL_SMALL)));
	add_number(row, "control_large", cell_median(results_metric(results, c, HASH_CONTROL_LARGE)));
	add_number(row, "control", cell_median(results_metric(results, c, HASH_CONTROL)));
	add_number(row, "resized", cell_median(resized));
	add_number(row, "cost", cost.median);
	add_number(row, "cost_low", cost.low);
	add_number(row, "cost_high", cost.high);
	add_number(row, "cost_in_all", cost_of(resized, c).median);
	add_number(row, "worst_us", cell_most(results_metric(results, c, HASH_WORST)));
	add_number(row, "control_worst_us", cell_most(results_metric(results, c, HASH_CONTROL_WORST)));
	add_number(row, "resized_worst_us", cell_most(results_metric(results, c, HASH_RESIZED_WORST)));
	add_number(row, "resizes", cell_median(results_metric(results, c, HASH_RESIZES)));
	add_number(row, "resize_ms", cell_median(results_metric(results, c, HASH_RESIZE_MS)));
}

void hashscale_columns(json_t *row, const struct results *results, const struct cell *c)
{
	double efficiency = hashscale_efficiency(results, c), keys = of_table(results, c, HASH_KEYS);
	struct hash_ratio ratio = ratio_to_base(results, c);

	json_object_set_new(row, "keys", json_string(plan->set[hash_set_of(c->scenario)].name));
	json_object_set_new(row, "nr_keys", isfinite(keys) ? json_integer((json_int_t)keys) : json_null());
	json_object_set_new(row, "distribution", json_string(hash_distribution_name(plan->distribution)));
	add_number(row, "updates", plan->updates[hash_updates_of(c->scenario)]);
	json_object_set_new(row, "turnovers", json_integer((json_int_t)plan->turnovers));
	add_number(row, "efficiency", efficiency);
	add_number(row, "slowdown", 1 / efficiency);
	add_number(row, "article_efficiency", hashscale_article(c->op->name));
	json_object_set_new(row, "base", json_string(base->name));
	add_number(row, "to_base", ratio.median);
	add_number(row, "to_base_low", ratio.low);
	add_number(row, "to_base_high", ratio.high);
	add_number(row, "element_bytes", of_table(results, c, HASH_ELEMENT_BYTES));
	add_number(row, "empty_bytes", of_table(results, c, HASH_EMPTY_BYTES));
	add_number(row, "fill_ns", of_table(results, c, HASH_FILL_NS));
	resize_columns(row, results, c);
	add_number(row, "warm_up", cell_median(results_metric(results, c, HASH_WARM)));
	add_number(row, "window_s", cell_median(results_metric(results, c, HASH_WINDOW_S)));
}

/* ---- tables ---- */

static void number(FILE *out, int width, double v)
{
	if (!isfinite(v))
		fprintf(out, " %*s", width, "-");
	else
		fprintf(out, " %*.*f", width, v < 10 ? 2 : v < 100 ? 1 : 0, v);
}

static void percent(FILE *out, int width, double v)
{
	if (isfinite(v))
		fprintf(out, " %*.0f%%", width - 1, v * 100);
	else
		fprintf(out, " %*s", width, "-");
}

static const char *fence_of(const struct cell *c)
{
	return c->fence == OP_FENCE_NONE ? "-" : fence_name(c->fence);
}

static int width_of_names(const struct results *results)
{
	size_t width = 4;

	for (size_t i = 0; i < results->nr; i++)
		if (strlen(results->cell[i].op->name) > width)
			width = strlen(results->cell[i].op->name);
	return (int)width;
}

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

/* Returns true if other processes disturbed most rounds of the cell. */
static bool is_disturbed(const struct cell *c)
{
	return c && c->disturbed * 2 > c->nr;
}

static void rate_row(FILE *out, const struct results *results, const struct cell *c)
{
	struct summary s = cell_summary(c);
	struct hash_ratio ratio = ratio_to_base(results, c);
	double efficiency = hashscale_efficiency(results, c);

	number(out, 8, s.p50 / 1e6);
	number(out, 8, s.min / 1e6);
	number(out, 8, s.max / 1e6);
	percent(out, 8, c->threads > 1 ? efficiency : NAN);
	number(out, 7, c->threads > 1 ? 1 / efficiency : NAN);
	percent(out, 8, c->threads > 1 ? hashscale_article(c->op->name) : NAN);
	number(out, 9, ratio.median);
	number(out, 6, ratio.low);
	number(out, 6, ratio.high);
	number(out, 8, of_table(results, c, HASH_ELEMENT_BYTES));
	number(out, 9, of_table(results, c, HASH_EMPTY_BYTES));
	number(out, 8, of_table(results, c, HASH_FILL_NS));
	fprintf(out, "%s\n", is_disturbed(c) ? "  disturbed" : "");
}

static void rate_title(FILE *out, const struct cell *c, int width)
{
	title(out, c);
	fprintf(out, "; ratios to %s with 95 %% intervals\n"
		     "%-*s %-5s %8s %8s %8s %8s %7s %8s %9s %13s %8s %9s %8s\n", base->name, width, "type", "fence",
		"median", "min", "max", "of ideal", "slower", "article", "ratio", "interval", "bytes", "empty", "fill ns");
}

static void resize_row(FILE *out, const struct results *results, const struct cell *c)
{
	const struct cell *small = results_metric(results, c, HASH_CONTROL_SMALL);
	const struct cell *large = results_metric(results, c, HASH_CONTROL_LARGE);
	const struct cell *resized = results_metric(results, c, HASH_RESIZED);
	struct hash_ratio cost = cost_of(resized, results_metric(results, c, HASH_CONTROL));
	bool disturbed = is_disturbed(c) || is_disturbed(small) || is_disturbed(large) || is_disturbed(resized);

	number(out, 8, cell_median(c) / 1e6);
	number(out, 8, cell_median(small) / 1e6);
	number(out, 8, cell_median(large) / 1e6);
	number(out, 8, cell_median(resized) / 1e6);
	percent(out, 6, cost.median);
	percent(out, 6, cost.low);
	percent(out, 5, cost.high);
	percent(out, 7, cost_of(resized, c).median);
	number(out, 9, cell_most(results_metric(results, c, HASH_WORST)));
	number(out, 8, cell_most(results_metric(results, c, HASH_CONTROL_WORST)));
	number(out, 8, cell_most(results_metric(results, c, HASH_RESIZED_WORST)));
	number(out, 8, cell_median(results_metric(results, c, HASH_RESIZES)));
	number(out, 8, cell_median(results_metric(results, c, HASH_RESIZE_MS)));
	fprintf(out, "%s\n", disturbed ? "  disturbed" : "");
}

static void resize_title(FILE *out, const struct cell *c, int width)
{
	title(out, c);
	fprintf(out, ";\n'small', 'large': one thread more resizes another table, and theirs has the least and the largest size of that; "
		     "'resized': theirs;\n'cost' of that to the mean of 'small' and 'large', with a 95 %% interval; 'in all' to 'alone'; "
		     "'worst' us: the slowest %d operations\nof any round alone, with another table resized, with theirs; resizes in a "
		     "round, and ms for each\n%-*s %-5s %8s %8s %8s %8s %6s %12s %7s %9s %8s %8s %8s %8s\n",
		HASH_CHUNK, width, "type", "fence", "alone", "small", "large", "resized", "cost", "interval", "in all", "worst", "control",
		"resized", "resizes", "ms each");
}

static void print_table(FILE *out, const struct results *results, const struct cell *first)
{
	int width = width_of_names(results);

	(plan->resize ? resize_title : rate_title)(out, first, width);
	for (const struct cell *c = first; c < results->cell + results->nr; c++) {
		if (c->metric || c->scenario != first->scenario || c->threads != first->threads)
			continue;
		fprintf(out, "%-*s %-5s", width, c->op->name, fence_of(c));
		(plan->resize ? resize_row : rate_row)(out, results, c);
	}
}

void hashscale_emit(FILE *out, const struct options *options, const struct results *results)
{
	emit_by_scenario(out, options, results, print_table);
}
