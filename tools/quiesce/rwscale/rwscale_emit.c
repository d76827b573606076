/* SPDX-License-Identifier: MIT */
/* rwscale_emit.c - the columns and tables of rwscale. */
#include <math.h>

#include "emit.h"
#include "rwscale.h"

static bool is_burst(const struct cell *c)
{
	return c->scenario == SCENARIO_RW_SPARSE || c->scenario == SCENARIO_RW_DENSE;
}

double rwscale_section_us(const struct results *results, const struct cell *c)
{
	const struct cell *sections = results_metric(results, c, RW_SECTIONS);

	return sections ? cell_summary(c).mean * 1e3 / cell_summary(sections).mean : NAN;
}

ROW_VALUE(section_us_of, is_burst(row->cell) ? rwscale_section_us(row->results, row->cell) : NAN)

const struct column rwscale_columns[] = {
	{ "sections", "write sections in a burst, median: the value of `--sections`, unless the burst was cut off",
	  COLUMN_NUMBER, .metric = RW_SECTIONS },
	{ "section_us", "mean time of a write section: time of all bursts divided by the number of sections",
	  COLUMN_NUMBER, .value = section_us_of },
	{ "grace_periods", "those of the process during one burst, median; `null` for locks that do not use the library",
	  COLUMN_NUMBER, .metric = RW_GRACE },
	{ "burst_membarriers", NULL, COLUMN_NUMBER, .metric = RW_MEMBARRIERS },
	{ "quiet_ns", "CPU time of one read section before the bursts, all readers at once", COLUMN_NUMBER, .metric = RW_QUIET },
	{ "reads", "read sections during one burst", COLUMN_NUMBER, .metric = RW_READS },
	{ "wait_us", "time for which readers waited for the lock during bursts: median, and longest of all rounds",
	  COLUMN_NUMBER, .metric = RW_WAIT },
	{ "worst_us", NULL, COLUMN_NUMBER, .metric = RW_WORST, .most = true },
	{ "back_ms", "time from the end of a burst until readers take their fast path again, median; `null` for locks whose readers have "
	  "one path only", COLUMN_NUMBER, .metric = RW_BACK },
	{ "cut", "1: in some round a time limit ended the burst: readers stopped, so that the writer could enter",
	  COLUMN_NUMBER, .metric = RW_CUT, .most = true },
	{ 0 }
};

/* ---- tables ---- */

ROW_PART(bursts, is_burst(row->cell) ? 0 : -1)
ROW_PART(latencies, is_burst(row->cell) ? -1 : 0)

static void title(FILE *out, const struct row *first)
{
	fprintf(out, "\nrwscale %s, %d readers: %s\n", cell_scenario(first->cell), first->cell->threads,
		rwscale_command.scenarios[first->cell->scenario].what);
}

static const char *cut_off(const struct row *row)
{
	static char text[80];

	snprintf(text, sizeof(text), "  cut off after %.0f sections", row_median(row, RW_SECTIONS));
	return row_most(row, RW_CUT) > 0 ? text : "";
}

ROW_TEXT(starved, row_most(row, RW_CUT) > 0 ? "  starved" : "")

static const struct view burst_views[] = {
	V("ms", 8, "p50"), V("min", 8, "min"), V("max", 8, "max"), V("us/sect.", 9, "section_us"), V("GPs", 7, "grace_periods"),
	V("mb", 7, "burst_membarriers"), V("quiet ns", 8, "quiet_ns"), V("wait us", 8, "wait_us"), V("worst us", 9, "worst_us"),
	V("back ms", 8, "back_ms"), V("reads", 8, "reads"), { 0 }
};
static const struct view latency_views[] = {
	V("mean us", 8, "mean"), V("min", 8, "min"), V("p50", 8, "p50"), V("p90", 8, "p90"), V("p99", 8, "p99"), V("max", 8, "max"),
	V("n", 7, "n"), { 0 }
};
const struct table_form rwscale_tables[] = {
	{ bursts, title, burst_views, cut_off }, { latencies, title, latency_views, starved }, { 0 }
};
