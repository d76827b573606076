/* SPDX-License-Identifier: MIT */
/* toggle.c - 1000 probes switched on and off, after the kernel's rcu_sync: bursts of rwscale. */
#include <math.h>

#include "rwscale/rwscale.h"
#include "study.h"

#define TOGGLES 1000 /* on and off are two write sections each */
#define READERS 2
#define BYSTANDERS 16

/* The scenarios of cases/toggle/toggle.json. */
#define FORKS "fork-like readers: 2 threads, each reads once in a millisecond"
#define BUSY "busy readers: 2 threads, back to back"
#define OTHERS "fork-like readers, and 16 threads that read under RCU and not under the lock"

static const struct {
	const char *name;
	int scenario;
	int bystanders;
} scenarios[] = { { FORKS, SCENARIO_RW_SPARSE, 0 }, { BUSY, SCENARIO_RW_DENSE, 0 }, { OTHERS, SCENARIO_RW_SPARSE, BYSTANDERS } };
#define NR_SCENES (sizeof(scenarios) / sizeof(scenarios[0]))

static const struct {
	enum rw_metric metric;
	const char *name;
	bool per_section; /* true: a count of the whole burst, which may have been cut off */
} metrics[] = {
	{ RW_GRACE, "grace_periods", true }, { RW_MEMBARRIERS, "membarriers", true }, { RW_QUIET, "quiet_ns", false },
	{ RW_WAIT, "wait_us", false }, { RW_WORST, "worst_us", false }, { RW_BACK, "back_ms", false },
};

/* Takes one row and scales it to all toggles: a burst that was cut off had fewer. */
static void take(const struct study *study, const char *name, const struct results *from, const struct cell *c, struct study_results *to)
{
	struct study_place place = { c->op->name, c->fence ? fence_name(c->fence) : NULL, name, "ms" };
	double scale = 2.0 * TOGGLES / cell_median(results_metric(from, c, RW_SECTIONS));

	study_add_cell(to, study, &place, c, scale);
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		place.metric = metrics[i].name;
		study_add_cell(to, study, &place, results_metric(from, c, metrics[i].metric),
			       metrics[i].per_section ? scale : 1);
	}
}

static void run(const struct study *study, const struct options *options, int rounds, struct study_results *results)
{
	const struct op *types[STUDY_MAX_VARIANTS];
	struct options mine = *options;
	int nr = 0;

	mine.runs = rounds;
	for (const struct study_variant *v = study->variants; v->name; v++)
		if (!nr || types[nr - 1] != command_type(&rwscale_command, v->name))
			types[nr++] = command_type(&rwscale_command, v->name);
	for (size_t i = 0; i < NR_SCENES && !interrupted(); i++) {
		struct job base = { .readers = { READERS }, .nr_readers = 1, .scenarios = SCENARIO_BIT(scenarios[i].scenario),
				    .watchdog_s = 60, .seconds = study_seconds(study, options) };
		struct results from = { 0 };

		*OWN(struct rw_options, &base) = (struct rw_options){ .sections = 2 * TOGGLES, .bystanders = scenarios[i].bystanders };
		jobs_run(&rwscale_command, &mine, &base, types, nr, &from);
		for (size_t k = 0; k < from.nr; k++)
			if (!from.cell[k].metric)
				take(study, scenarios[i].name, &from, &from.cell[k], results);
		study_take_notes(results, study, &from);
		results_free(&from);
	}
}

struct study study_toggle = { .name = "toggle", .run = run };
