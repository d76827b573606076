/* SPDX-License-Identifier: MIT */
/* costs_emit.c - the output of costs: rows, tables, and the matrix of pairs of CPUs. */
#include <math.h>
#include <stdlib.h>

#include "costs.h"
#include "emit.h"

#define ARTICLE_CYCLE_NS 1.4

static const struct cost *cost_of(const struct cell *c)
{
	return (const struct cost *)c->op; /* struct op is the first member of struct cost */
}

static bool is_pair(const struct cell *c)
{
	return c->threads >= COST_CPUS;
}

static double in(const struct results *results, const struct cell *c, const struct cost *unit)
{
	return cell_summary(c).p50 /
	       cell_median(results_find(results, &costs_command, unit->op.name, SCENARIO_COST, OP_FENCE_NONE, 1));
}

/* ---- columns ---- */

int costs_threads(const struct cell *c)
{
	return is_pair(c) ? 2 : c->threads;
}

static const char *cpus_of(const struct row *row)
{
	static char text[32];

	snprintf(text, sizeof(text), "%d-%d", COST_PAIR_A(row->cell->threads), COST_PAIR_B(row->cell->threads));
	return is_pair(row->cell) ? text : NULL;
}

static double positive(double v)
{
	return v > 0 ? v : NAN;
}

ROW_VALUE(cycles_of, positive(in(row->results, row->cell, &cost_cycle)))
ROW_VALUE(instructions_of, positive(in(row->results, row->cell, &cost_instruction)))
ROW_VALUE(l1_hits_of, positive(in(row->results, row->cell, &cost_l1)))
ROW_VALUE(article_of, positive(cost_of(row->cell)->article))
ROW_VALUE(article_max_of, positive(cost_of(row->cell)->article_max))

const struct column costs_columns[] = {
	{ "cpus", "the numbers of two CPUs that share a line, as \"0-1\", with one row for each pair; `null` in other rows",
	  COLUMN_TEXT, .text = cpus_of },
	{ "bytes", "size of the memory that is read, in rows about caches and memory", COLUMN_COUNT, .metric = COST_BYTES },
	{ "cycles", "`p50` divided by that of `cycle`, `instruction` and `l1`: estimates, because the clock frequency may change",
	  COLUMN_NUMBER, .value = cycles_of },
	{ "instructions", NULL, COLUMN_NUMBER, .value = instructions_of },
	{ "l1_hits", NULL, COLUMN_NUMBER, .value = l1_hits_of },
	{ "article_ns", "figure of the article of 2003 for a Pentium III of 700 MHz, and the upper end if it gave a range; `null` where "
	  "it gave none", COLUMN_NUMBER, .value = article_of },
	{ "article_max_ns", NULL, COLUMN_NUMBER, .value = article_max_of },
	{ 0 }
};

/* ---- tables ---- */

static void number(FILE *out, int width, double v)
{
	if (!isfinite(v) || v <= 0)
		fprintf(out, " %*s", width, "-");
	else
		fprintf(out, " %*.*f", width, v < 10 ? 2 : v < 1000 ? 1 : 0, v);
}

static void print_article(FILE *out, const struct cost *cost)
{
	char text[32] = "-";

	if (cost->article_max > 0)
		snprintf(text, sizeof(text), "%.0f-%.0f", cost->article, cost->article_max);
	else if (cost->article > 0)
		snprintf(text, sizeof(text), "%.1f", cost->article);
	fprintf(out, " %9s", text);
	if (cost->article_max > 0)
		fprintf(out, " %4.0f-%.0f", cost->article / ARTICLE_CYCLE_NS, cost->article_max / ARTICLE_CYCLE_NS);
	else
		number(out, 8, cost->article / ARTICLE_CYCLE_NS);
}

static void print_bytes(FILE *out, double bytes)
{
	if (isfinite(bytes))
		fprintf(out, bytes >= 1 << 20 ? ", of %.0f MB" : ", of %.0f kB", bytes / (bytes >= 1 << 20 ? 1 << 20 : 1 << 10));
}

static void print_row(FILE *out, const struct results *results, const struct cell *c)
{
	struct summary s = cell_summary(c);

	fprintf(out, "%-16s", c->op->name);
	number(out, 8, s.p50);
	number(out, 8, s.min);
	number(out, 8, s.max);
	if (isfinite(s.spread))
		fprintf(out, " %6.0f%%", s.spread * 100);
	else
		fprintf(out, " %7s", "-");
	number(out, 8, in(results, c, &cost_cycle));
	number(out, 8, in(results, c, &cost_instruction));
	print_article(out, cost_of(c));
	fprintf(out, "  %s", c->op->what);
	if (is_pair(c))
		fprintf(out, ", CPUs %d and %d", COST_PAIR_A(c->threads), COST_PAIR_B(c->threads));
	print_bytes(out, cell_median(results_metric(results, c, COST_BYTES)));
	fputc('\n', out);
}

/* With --pairs=all a matrix of the pairs follows the table. */
static void print_table(FILE *out, bool all_pairs, const struct results *results)
{
	fprintf(out, "\n%-16s %8s %8s %8s %7s %8s %8s %9s %8s\n", "operation", "ns", "min", "max", "spread", "cycles", "instr.",
		"2003: ns", "cycles");
	for (size_t i = 0; i < results->nr; i++)
		if (!results->cell[i].metric && !(all_pairs && results->cell[i].op == &cost_transfer.op))
			print_row(out, results, &results->cell[i]);
}

/* ---- all pairs ---- */

static double transfer_ns(const struct results *results, int a, int b)
{
	int threads = a < b ? COST_PAIR(a, b) : COST_PAIR(b, a);
	const struct cell *c = results_find(results, &costs_command, cost_transfer.op.name, SCENARIO_COST, OP_FENCE_NONE, threads);

	return c ? cell_summary(c).p50 : NAN;
}

/* All CPUs that the pairs contain, in ascending order. */
static int cpus_of_pairs(const struct results *results, int ret[COST_CPUS])
{
	static bool seen[COST_CPUS];
	int nr = 0;

	for (size_t i = 0; i < results->nr; i++)
		if (results->cell[i].op == &cost_transfer.op)
			seen[COST_PAIR_A(results->cell[i].threads)] = seen[COST_PAIR_B(results->cell[i].threads)] = true;
	for (int cpu = 0; cpu < COST_CPUS; cpu++)
		if (seen[cpu])
			ret[nr++] = cpu;
	return nr;
}

static void print_matrix(FILE *out, const struct results *results)
{
	static int cpu[COST_CPUS];
	int nr = cpus_of_pairs(results, cpu);

	if (nr < 2)
		return;
	fprintf(out, "\ntransfer between each two CPUs, ns\n%5s", "");
	for (int i = 0; i < nr; i++)
		fprintf(out, " %5d", cpu[i]);
	for (int i = 0; i < nr; i++) {
		fprintf(out, "\n%5d", cpu[i]);
		for (int k = 0; k < nr; k++) {
			double ns = i == k ? NAN : transfer_ns(results, cpu[i], cpu[k]);

			if (isfinite(ns))
				fprintf(out, " %5.0f", ns);
			else
				fprintf(out, " %5s", "-");
		}
	}
	fputc('\n', out);
}

void costs_print(FILE *out, const struct options *options, const struct results *results)
{
	bool all_pairs = OWN(const struct cost_options, options)->all_pairs;

	print_table(out, all_pairs, results);
	if (all_pairs)
		print_matrix(out, results);
}
