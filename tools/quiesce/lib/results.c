/* SPDX-License-Identifier: MIT */
/* results.c - samples by cell, and their statistics. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static void *grow(void *old, size_t nr, size_t size)
{
	void *fresh = reallocarray(old, nr, size);

	if (!fresh) {
		fprintf(stderr, "quiesce: out of memory\n");
		exit(EXIT_FAILED);
	}
	return fresh;
}

static struct cell *find(const struct results *results, const struct subcommand *command, const char *type,
			 int scenario, int metric, enum op_fence fence, int threads)
{
	for (size_t i = 0; i < results->nr; i++) {
		struct cell *c = &results->cell[i];

		if (c->command == command && c->scenario == scenario && c->metric == metric && c->fence == fence &&
		    c->threads == threads && !strcmp(c->op->name, type))
			return c;
	}
	return NULL;
}

struct cell *results_cell(struct results *results, const struct subcommand *command, const struct op *op,
			  int scenario, int metric, enum op_fence fence, int threads)
{
	struct cell *c = find(results, command, op->name, scenario, metric, fence, threads);

	if (c)
		return c;
	if (results->nr == results->capacity) {
		results->capacity = results->capacity ? 2 * results->capacity : 64;
		results->cell = grow(results->cell, results->capacity, sizeof(*c));
	}
	c = &results->cell[results->nr++];
	*c = (struct cell){ .command = command, .op = op, .scenario = scenario, .metric = metric, .fence = fence, .threads = threads };
	return c;
}

const struct cell *results_find(const struct results *results, const struct subcommand *command, const char *type,
				int scenario, enum op_fence fence, int threads)
{
	return find(results, command, type, scenario, 0, fence, threads);
}

const struct cell *results_metric_of(const struct results *results, const struct cell *cell, int scenario, int metric, int threads)
{
	return find(results, cell->command, cell->op->name, scenario, metric, cell->fence, threads);
}

const struct cell *results_metric(const struct results *results, const struct cell *cell, int metric)
{
	return results_metric_of(results, cell, cell->scenario, metric, cell->threads);
}

const char *cell_scenario(const struct cell *cell)
{
	return cell->command->scenarios[cell->scenario].name;
}

const char *cell_unit(const struct cell *cell)
{
	return cell->command->scenarios[cell->scenario].unit;
}

void cell_add(struct cell *cell, double value, uint32_t group)
{
	if (cell->nr == cell->capacity) {
		cell->capacity = cell->capacity ? 2 * cell->capacity : 64;
		cell->sample = grow(cell->sample, cell->capacity, sizeof(*cell->sample));
		cell->group = grow(cell->group, cell->capacity, sizeof(*cell->group));
	}
	cell->sample[cell->nr] = value;
	cell->disturbed += (group & GROUP_DISTURBED) != 0;
	cell->group[cell->nr++] = group & ~GROUP_DISTURBED;
}

static const char *const slot_kinds[] = { "thread", "cpu_id", "mm_cid", "shared" };
#define NR_SLOT_KINDS (sizeof(slot_kinds) / sizeof(slot_kinds[0]))

void cell_add_slot(struct cell *cell, const char *kind)
{
	for (size_t i = 0; i < NR_SLOT_KINDS; i++)
		if (!strcmp(slot_kinds[i], kind))
			cell->slots |= 1u << i;
}

const char *cell_slots(const struct cell *cell)
{
	static char text[64];
	size_t n = 0;

	for (size_t i = 0; i < NR_SLOT_KINDS; i++)
		if (cell->slots & (1u << i))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? "+" : "", slot_kinds[i]);
	return n ? text : NULL;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void sort_values(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
}

/* Returns the quantile @p, 0..1, of the sorted values @v, interpolated. */
static double percentile(const double *v, size_t n, double p)
{
	double at = p * (double)(n - 1);
	size_t below = (size_t)at;

	if (below + 1 >= n)
		return v[n - 1];
	return v[below] + (at - (double)below) * (v[below + 1] - v[below]);
}

#define MAX_GROUPS 64

/* Stores the medians of the groups, sorted; returns their number. */
static size_t group_medians(const struct cell *cell, double median[MAX_GROUPS])
{
	double *v = grow(NULL, cell->nr, sizeof(*v));
	size_t nr = 0;

	for (uint32_t group = 0; group < MAX_GROUPS; group++) {
		size_t n = 0;

		for (size_t i = 0; i < cell->nr; i++)
			if (cell->group[i] == group)
				v[n++] = cell->sample[i];
		if (!n)
			continue;
		sort_values(v, n);
		median[nr++] = percentile(v, n, 0.5);
	}
	free(v);
	sort_values(median, nr);
	return nr;
}

static double mean(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return sum / (double)n;
}

/* A group is a code layout in refscale, where the medians of the layouts are compared.  It is a round in rcuscale,
 * where all waits count and rounds give the spread. */
struct summary cell_summary(const struct cell *cell)
{
	struct summary s = { 0, NAN, NAN, NAN, NAN, NAN, NAN, NAN };
	double median[MAX_GROUPS], *v;
	size_t groups;

	if (!cell->nr)
		return s;
	groups = group_medians(cell, median);
	s.n = cell->nr;
	if (cell->command->layouts) {
		s.mean = mean(median, groups);
		s.min = median[0];
		s.p50 = percentile(median, groups, 0.5);
		s.max = median[groups - 1];
	} else {
		v = grow(NULL, cell->nr, sizeof(*v));
		memcpy(v, cell->sample, cell->nr * sizeof(*v));
		sort_values(v, cell->nr);
		s.mean = mean(v, cell->nr);
		s.min = v[0];
		s.p50 = percentile(v, cell->nr, 0.5);
		s.p90 = percentile(v, cell->nr, 0.9);
		s.p99 = percentile(v, cell->nr, 0.99);
		s.max = v[cell->nr - 1];
		free(v);
	}
	if (groups > 1 && s.p50 > 0)
		s.spread = (median[groups - 1] - median[0]) / s.p50;
	return s;
}

double cell_median(const struct cell *cell)
{
	return cell ? cell_summary(cell).p50 : NAN;
}

double cell_most(const struct cell *cell)
{
	return cell ? cell_summary(cell).max : NAN;
}

/* ---- ratios ---- */

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

/* The ratio of the values of two cells within each round; NANs: there are none. */
struct ratio cell_ratio(const struct cell *c, const struct cell *other)
{
	struct ratio r = { NAN, NAN, NAN };
	double *v = c && other ? calloc(c->nr + 1, sizeof(*v)) : NULL;
	size_t n = 0;
	int k;

	for (size_t i = 0; v && i < c->nr; i++)
		for (size_t j = 0; j < other->nr; j++)
			if (c->group[i] == other->group[j])
				v[n++] = c->sample[i] / other->sample[j];
	if (n) {
		sort_values(v, n);
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

/* ---- */

void results_note(struct results *results, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	if (!text)
		return;
	results->note = grow(results->note, results->nr_notes + 1, sizeof(*results->note));
	results->note[results->nr_notes++] = text;
}

void results_free(struct results *results)
{
	for (size_t i = 0; i < results->nr; i++) {
		free(results->cell[i].sample);
		free(results->cell[i].group);
	}
	for (size_t i = 0; i < results->nr_notes; i++)
		free(results->note[i]);
	free(results->cell);
	free(results->note);
}

const char *fence_name(enum op_fence fence)
{
	static const char *const name[OP_NR_FENCES] = { NULL, "light", "full" };

	return name[fence];
}
