/* SPDX-License-Identifier: MIT */
/* run_bursts.c - the table of bursts of writes, beside the figures that were published with rcu_sync. */
#include <math.h>
#include <string.h>

#include "run.h"
#include "rwscale/rwscale.h"

#define READERS 2

/* These seconds are what O. Nesterov published of the kernel. */
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

static void figure(struct sheet *s, double v)
{
	if (isfinite(v))
		sheet_cell(s, 1, "%.*f", v > 0 && v < 10 ? 2 : v > 0 && v < 100 ? 1 : 0, v);
	else
		sheet_cell(s, 1, "-");
}

static void factor(struct sheet *s, double v)
{
	if (isfinite(v))
		sheet_cell(s, 1, "%.*fx", v < 10 ? 2 : 0, v);
	else
		sheet_cell(s, 1, "-");
}

static const struct cell *cell_of(const struct results *results, const char *type, int scenario, enum op_fence fence)
{
	return results_find(results, &rwscale_command, type, scenario, fence, READERS);
}

static double section_us(const struct results *results, const char *type, int scenario, enum op_fence fence)
{
	const struct cell *c = cell_of(results, type, scenario, fence);

	return c ? rwscale_section_us(results, c) : NAN;
}

static void print_row(struct sheet *s, const struct results *results, const char *type, enum op_fence fence)
{
	const struct cell *sparse = cell_of(results, type, SCENARIO_RW_SPARSE, fence);
	enum op_fence ours = fence == OP_FENCE_NONE ? OP_FENCE_LIGHT : fence;
	double us = section_us(results, type, SCENARIO_RW_SPARSE, fence);

	if (!sparse)
		return;
	sheet_cell(s, -1, "%s", type);
	sheet_cell(s, -1, "%s", fence ? fence_name(fence) : "-");
	figure(s, cell_summary(sparse).p50);
	figure(s, us);
	factor(s, us / section_us(results, "rcu_sync", SCENARIO_RW_SPARSE, ours));
	figure(s, section_us(results, type, SCENARIO_RW_DENSE, fence));
	figure(s, cell_median(results_metric(results, sparse, RW_GRACE)));
	figure(s, cell_median(results_metric(results, sparse, RW_MEMBARRIERS)));
	figure(s, cell_median(results_metric(results, sparse, RW_QUIET)));
	figure(s, cell_median(results_metric(results, sparse, RW_BACK)));
	figure(s, fence == OP_FENCE_FULL ? NAN : document_s(type));
	factor(s, fence == OP_FENCE_FULL ? NAN : document_s(type) / DOCUMENT_YARDSTICK);
	sheet_end_row(s);
}

static void head(struct sheet *s)
{
	static const struct {
		bool bar;
		const char *title;
	} column[] = { { true, "ms" }, { false, "us/write" }, { false, "factor" }, { true, "busy us" }, { true, "GPs" }, { false, "mb" },
		       { true, "quiet ns" }, { false, "back ms" }, { true, "document" }, { false, "factor" } };

	sheet_title(s, "Bursts of writes under a reader-writer lock");
	sheet_note(s, "%d writes beside %d readers that read once in a millisecond: median ms of a burst, us of a write, and how many "
		      "times as long as with rcu_sync; lower is better. Busy us: a write beside readers back to back. GPs, mb: grace "
		      "periods and membarriers in a burst. Quiet ns: CPU time of a read section before it. Back ms: until readers are "
		      "fast again.",
		   RW_SECTIONS_DEFAULT, READERS);
	sheet_cell(s, -1, "lock");
	sheet_cell(s, -1, "fence");
	for (size_t i = 0; i < sizeof(column) / sizeof(column[0]); i++) {
		if (column[i].bar)
			sheet_bar(s);
		sheet_cell(s, 1, "%s", column[i].title);
	}
	sheet_end_head(s);
}

static bool has_any(const struct results *results)
{
	for (size_t i = 0; i < results->nr; i++)
		if (results->cell[i].command == &rwscale_command && results->cell[i].scenario == SCENARIO_RW_SPARSE)
			return true;
	return false;
}

void run_print_bursts(struct sheet *s, const struct results *results)
{
	const struct op *types[MAX_TYPES];
	int nr = types_all(rwscale_command.fits, types, MAX_TYPES);

	if (!has_any(results))
		return;
	head(s);
	for (int i = 0; i < nr; i++)
		for (enum op_fence fence = OP_FENCE_NONE; fence < OP_NR_FENCES && types[i]->groups & RUN_BURST; fence++)
			print_row(s, results, types[i]->name, fence);
	sheet_note(s, "document: 1000 uprobes switched on and off, s; 2-CPU VM, kernel, O. Nesterov, LKML 2015, and its factor. There 6.7 "
		      "ms of each are the uprobe's own work, here 1.5 us: compare the order, not the factors.");
}
