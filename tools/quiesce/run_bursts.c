/* SPDX-License-Identifier: MIT */
/* run_bursts.c - the headline's table of bursts of writes, beside the figures that came with rcu_sync. */
#include <math.h>
#include <string.h>

#include "run.h"
#include "rwscale.h"

#define READERS 2

/* Seconds; O. Nesterov's measurement in the kernel, as published. */
static const struct {
	const char *type;
	double s;
} document[] = { { "gp", 67.5 }, { "expedited", 13.5 }, { "rcu_sync", 13.3 } };
#define DOCUMENT_YARDSTICK 13.3

static double document_s(const char *type)
{
	for (size_t i = 0; i < sizeof(document) / sizeof(document[0]); i++)
		if (!strcmp(document[i].type, type))
			return document[i].s;
	return NAN;
}

static void figure(FILE *out, int width, double v)
{
	if (isfinite(v))
		fprintf(out, " %*.*f", width, v > 0 && v < 10 ? 2 : v > 0 && v < 100 ? 1 : 0, v);
	else
		fprintf(out, " %*s", width, "-");
}

static void factor(FILE *out, double v)
{
	if (isfinite(v))
		fprintf(out, " %6.*fx", v < 10 ? 2 : 0, v);
	else
		fprintf(out, " %7s", "-");
}

static const struct cell *cell_of(const struct results *results, const char *type, enum scenario scenario, enum op_fence fence)
{
	return results_find(results, &rwscale_command, type, scenario, fence, READERS);
}

static double section_us(const struct results *results, const char *type, enum scenario scenario, enum op_fence fence)
{
	const struct cell *c = cell_of(results, type, scenario, fence);

	return c ? rwscale_section_us(results, c) : NAN;
}

static void print_row(FILE *out, const struct results *results, const char *type, enum op_fence fence)
{
	const struct cell *sparse = cell_of(results, type, SCENARIO_RW_SPARSE, fence);
	enum op_fence ours = fence == OP_FENCE_NONE ? OP_FENCE_LIGHT : fence;
	double us = section_us(results, type, SCENARIO_RW_SPARSE, fence);

	if (!sparse)
		return;
	fprintf(out, "%-22s %-5s", type, fence ? fence_name(fence) : "-");
	figure(out, 9, cell_summary(sparse).p50);
	figure(out, 9, us);
	figure(out, 9, section_us(results, type, SCENARIO_RW_DENSE, fence));
	figure(out, 7, rwscale_metric(results, sparse, RW_GRACE));
	figure(out, 7, rwscale_metric(results, sparse, RW_MEMBARRIERS));
	figure(out, 9, rwscale_metric(results, sparse, RW_QUIET));
	figure(out, 8, rwscale_metric(results, sparse, RW_BACK));
	fprintf(out, " |");
	factor(out, us / section_us(results, "rcu_sync", SCENARIO_RW_SPARSE, ours));
	figure(out, 9, fence == OP_FENCE_FULL ? NAN : document_s(type));
	factor(out, fence == OP_FENCE_FULL ? NAN : document_s(type) / DOCUMENT_YARDSTICK);
	fputc('\n', out);
}

void run_print_bursts(FILE *out, const struct results *results)
{
	fprintf(out, "\nBursts of %d writes beside %d readers that read once in a millisecond, median; also us for a write beside readers\n"
		     "back to back, and CPU ns of a read section before the burst\n"
		     "%-22s %-5s %9s %9s %9s %7s %7s %9s %8s | %7s %9s %7s\n", RW_SECTIONS_DEFAULT, READERS, "lock", "fence", "ms",
		"us/write", "beside b.", "GPs", "mb", "quiet ns", "back ms", "factor", "document", "factor");
	for (const char *const *type = run_burst_types; *type; type++)
		for (enum op_fence fence = OP_FENCE_NONE; fence < OP_NR_FENCES; fence++)
			print_row(out, results, *type, fence);
	fprintf(out, "factor: to rcu_sync, of time for a write.  document: 1000 uprobes switched on and off, s; 2-CPU VM, kernel,\n"
		     "O. Nesterov, LKML 2015.  There 6.7 ms of each are the uprobe's own work, here 1.5 us: compare the order, not the\n"
		     "factors.\n");
}
