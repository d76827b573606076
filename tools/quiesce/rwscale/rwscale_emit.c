/* SPDX-License-Identifier: MIT */
/* rwscale_emit.c - the output of rwscale. */
#include <jansson.h>
#include <math.h>

#include "emit.h"
#include "rwscale.h"

static bool is_burst(const struct cell *c)
{
	return c->scenario == SCENARIO_RW_SPARSE || c->scenario == SCENARIO_RW_DENSE;
}

double rwscale_metric(const struct results *results, const struct cell *c, enum rw_metric metric)
{
	return cell_median(results_metric(results, c, metric));
}

static double most(const struct results *results, const struct cell *c, enum rw_metric metric)
{
	return cell_most(results_metric(results, c, metric));
}

double rwscale_section_us(const struct results *results, const struct cell *c)
{
	const struct cell *sections = results_metric(results, c, RW_SECTIONS);

	return sections ? cell_summary(c).mean * 1e3 / cell_summary(sections).mean : NAN;
}

/* ---- JSON and CSV ---- */

static void add_number(json_t *row, const char *name, double v)
{
	json_object_set_new(row, name, isfinite(v) ? json_real(v) : json_null());
}

void rwscale_columns(json_t *row, const struct results *results, const struct cell *c)
{
	add_number(row, "sections", rwscale_metric(results, c, RW_SECTIONS));
	add_number(row, "section_us", is_burst(c) ? rwscale_section_us(results, c) : NAN);
	add_number(row, "grace_periods", rwscale_metric(results, c, RW_GRACE));
	add_number(row, "burst_membarriers", rwscale_metric(results, c, RW_MEMBARRIERS));
	add_number(row, "quiet_ns", rwscale_metric(results, c, RW_QUIET));
	add_number(row, "reads", rwscale_metric(results, c, RW_READS));
	add_number(row, "wait_us", rwscale_metric(results, c, RW_WAIT));
	add_number(row, "worst_us", most(results, c, RW_WORST));
	add_number(row, "back_ms", rwscale_metric(results, c, RW_BACK));
	add_number(row, "cut", most(results, c, RW_CUT));
}

/* ---- tables ---- */

static void number(FILE *out, int width, double v)
{
	if (!isfinite(v))
		fprintf(out, " %*s", width, "-");
	else if (v >= 1e6)
		fprintf(out, " %*.1fM", width - 1, v / 1e6);
	else
		fprintf(out, " %*.*f", width, v > 0 && v < 10 ? 2 : v > 0 && v < 100 ? 1 : 0, v);
}

static void burst_row(FILE *out, const struct results *results, const struct cell *c)
{
	struct summary s = cell_summary(c);
	bool cut = most(results, c, RW_CUT) > 0;

	number(out, 8, s.p50);
	number(out, 8, s.min);
	number(out, 8, s.max);
	number(out, 9, rwscale_section_us(results, c));
	number(out, 7, rwscale_metric(results, c, RW_GRACE));
	number(out, 7, rwscale_metric(results, c, RW_MEMBARRIERS));
	number(out, 8, rwscale_metric(results, c, RW_QUIET));
	number(out, 8, rwscale_metric(results, c, RW_WAIT));
	number(out, 9, most(results, c, RW_WORST));
	number(out, 8, rwscale_metric(results, c, RW_BACK));
	number(out, 8, rwscale_metric(results, c, RW_READS));
	if (cut)
		fprintf(out, "  cut off after %.0f sections", rwscale_metric(results, c, RW_SECTIONS));
	fputc('\n', out);
}

static void latency_row(FILE *out, const struct results *results, const struct cell *c)
{
	struct summary s = cell_summary(c);
	const double v[] = { s.mean, s.min, s.p50, s.p90, s.p99, s.max };

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		number(out, 8, v[i]);
	fprintf(out, " %7zu%s\n", s.n, most(results, c, RW_CUT) > 0 ? "  starved" : "");
}

static void title(FILE *out, const struct cell *c)
{
	const struct scenario_info *s = &rwscale_command.scenarios[c->scenario];

	fprintf(out, "\nrwscale %s, %d readers: %s\n%-21s %-5s", s->name, c->threads, s->what, "type", "fence");
	if (is_burst(c))
		fprintf(out, " %8s %8s %8s %9s %7s %7s %8s %8s %9s %8s %8s\n", "ms", "min", "max", "us/sect.", "GPs", "mb", "quiet ns",
			"wait us", "worst us", "back ms", "reads");
	else
		fprintf(out, " %8s %8s %8s %8s %8s %8s %7s\n", "mean us", "min", "p50", "p90", "p99", "max", "n");
}

static void print_table(FILE *out, const struct results *results, const struct cell *first)
{
	title(out, first);
	for (const struct cell *c = first; c < results->cell + results->nr; c++) {
		if (c->metric || c->scenario != first->scenario || c->threads != first->threads)
			continue;
		fprintf(out, "%-21s %-5s", c->op->name, c->fence == OP_FENCE_NONE ? "-" : fence_name(c->fence));
		(is_burst(c) ? burst_row : latency_row)(out, results, c);
	}
}

void rwscale_emit(FILE *out, const struct options *options, const struct results *results)
{
	emit_by_scenario(out, options, results, print_table);
}
