/* SPDX-License-Identifier: MIT */
/* run_bursts.c - the headline's table of bursts of writes, beside the figures that came with rcu_sync. */
#include <math.h>
#include <string.h>

#include "run.h"
#include "scale/rwscale.h"
#include "sheet.h"

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

static void figure(struct sheet *s, int width, double v)
{
	if (isfinite(v))
		sheet_cell(s, width, "%.*f", v > 0 && v < 10 ? 2 : v > 0 && v < 100 ? 1 : 0, v);
	else
		sheet_cell(s, width, "-");
}

static void factor(struct sheet *s, double v)
{
	if (isfinite(v))
		sheet_cell(s, 7, "%.*fx", v < 10 ? 2 : 0, v);
	else
		sheet_cell(s, 7, "-");
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

static void print_row(struct sheet *s, const struct results *results, const char *type, enum op_fence fence)
{
	const struct cell *sparse = cell_of(results, type, SCENARIO_RW_SPARSE, fence);
	enum op_fence ours = fence == OP_FENCE_NONE ? OP_FENCE_LIGHT : fence;
	double us = section_us(results, type, SCENARIO_RW_SPARSE, fence);

	if (!sparse)
		return;
	sheet_cell(s, -22, "%s", type);
	sheet_cell(s, -5, "%s", fence ? fence_name(fence) : "-");
	figure(s, 9, cell_summary(sparse).p50);
	figure(s, 9, us);
	figure(s, 9, section_us(results, type, SCENARIO_RW_DENSE, fence));
	figure(s, 7, rwscale_metric(results, sparse, RW_GRACE));
	figure(s, 7, rwscale_metric(results, sparse, RW_MEMBARRIERS));
	figure(s, 9, rwscale_metric(results, sparse, RW_QUIET));
	figure(s, 8, rwscale_metric(results, sparse, RW_BACK));
	sheet_bar(s);
	factor(s, us / section_us(results, "rcu_sync", SCENARIO_RW_SPARSE, ours));
	figure(s, 9, fence == OP_FENCE_FULL ? NAN : document_s(type));
	factor(s, fence == OP_FENCE_FULL ? NAN : document_s(type) / DOCUMENT_YARDSTICK);
	sheet_end_row(s);
}

static void head(struct sheet *s)
{
	static const struct {
		int width;
		const char *title;
	} column[] = { { -22, "lock" }, { -5, "fence" }, { 9, "ms" }, { 9, "us/write" }, { 9, "beside b." }, { 7, "GPs" }, { 7, "mb" },
		       { 9, "quiet ns" }, { 8, "back ms" }, { 7, "factor" }, { 9, "document" }, { 7, "factor" } };

	sheet_title(s, "Bursts of %d writes beside %d readers that read once in a millisecond, median; also us for a write beside readers\n"
		       "back to back, and CPU ns of a read section before the burst", RW_SECTIONS_DEFAULT, READERS);
	for (size_t i = 0; i < sizeof(column) / sizeof(column[0]); i++) {
		if (i == 9)
			sheet_bar(s);
		sheet_cell(s, column[i].width, "%s", column[i].title);
	}
	sheet_end_head(s);
}

void run_print_bursts(struct sheet *s, const struct results *results)
{
	head(s);
	for (const char *const *type = run_burst_types; *type; type++)
		for (enum op_fence fence = OP_FENCE_NONE; fence < OP_NR_FENCES; fence++)
			print_row(s, results, *type, fence);
	sheet_note(s, "factor: to rcu_sync, of time for a write.  document: 1000 uprobes switched on and off, s; 2-CPU VM, kernel,\n"
		      "O. Nesterov, LKML 2015.  There 6.7 ms of each are the uprobe's own work, here 1.5 us: compare the order, not the\n"
		      "factors.");
}
