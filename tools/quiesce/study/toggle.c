/* SPDX-License-Identifier: MIT */
/* toggle.c - 1000 probes switched on and off, after the kernel's rcu_sync: bursts of rwscale. */
#include <math.h>

#include "rwscale/rwscale.h"
#include "study.h"

#define TOGGLES 1000 /* on and off are two write sections each */
#define READERS 2
#define BYSTANDERS 16

static const struct study_variant variants[] = {
	{ "gp", "light", "a grace period in each lock and each unlock of the writer: synchronize_rcu()" },
	{ "gp", "full", NULL },
	{ "expedited", "light", "a grace period in each lock and each unlock: synchronize_rcu_expedited()" },
	{ "expedited", "full", NULL },
	{ "rcu_sync", "light", "percpu_rwsem: rcu_sync lets a burst share one grace period" },
	{ "rcu_sync", "full", NULL },
	{ "pthread_rwlock", NULL, "the C library's lock, which prefers readers" },
	{ "pthread_rwlock_writer", NULL, "pthread_rwlock that prefers writers" },
	{ NULL, NULL, NULL },
};

static const struct study_column columns[] = {
	{ "ms", "ms", false }, { "grace_periods", "GPs", true }, { "membarriers", "membarr.", false }, { "quiet_ns", "quiet ns", false },
	{ "wait_us", "wait us", false }, { "worst_us", "worst us", true }, { "back_ms", "back ms", false }, { NULL, NULL, false },
};

#define FORKS "fork-like readers: 2 threads, each reads once in a millisecond"
#define BUSY "busy readers: 2 threads, back to back"
#define OTHERS "fork-like readers, and 16 threads that read under RCU and not under the lock"

#define RATIO(text, figure, a, b, where) \
	{ text, figure, STUDY_RATIO, { a, "light", where, "ms" }, { b, "light", where, "ms" }, NOWHERE }
#define NOWHERE { NULL, NULL, NULL, NULL }
#define COUNT(text, figure, where) { text, figure, STUDY_VALUE, { "rcu_sync", "light", where, "grace_periods" }, NOWHERE, NOWHERE }

static const struct study_shape shapes[] = {
	RATIO("gp / rcu_sync, others in RCU", "5.08 (67.5/13.3 s)", "gp", "rcu_sync", OTHERS),
	RATIO("expedited / rcu_sync, others in RCU", "1.02 (13.5/13.3 s)", "expedited", "rcu_sync", OTHERS),
	RATIO("gp / expedited, others in RCU", "5.00 (67.5/13.5 s)", "gp", "expedited", OTHERS),
	RATIO("gp / rcu_sync, quiet process", NULL, "gp", "rcu_sync", FORKS),
	COUNT("grace periods, rcu_sync", "1 to 3", FORKS),
	COUNT("grace periods, rcu_sync, others in RCU", "1 to 3", OTHERS),
	{ NULL, NULL, STUDY_VALUE, NOWHERE, NOWHERE, NOWHERE },
};

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
	for (const struct study_variant *v = variants; v->name; v++)
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

const struct study study_toggle = {
	.name = "toggle",
	.what = "1000 probes switched on and off: write sections in a burst, beside readers that are rare",
	.document = "O. Nesterov, \"rcu_sync\", LKML, 2015: 1000 uprobes on and off, 2-CPU VM",
	.honesty = "ms and counts are for 1000 toggles, of two write sections of 1.5 us of work each; a burst that was cut off is scaled. "
		   "The document's 6.7 ms a toggle are the uprobe's own work, so compare the order and the differences, not the factors. "
		   "Its plain grace periods wait until each CPU has passed through the scheduler; ours wait for readers, so in a process "
		   "without readers under RCU plain and expedited ones cost a membarrier alike, and differ where readers are kept from "
		   "a CPU. A lock that prefers readers hardly lets a writer in beside busy ones.",
	.variants = variants,
	.columns = columns,
	.shapes = shapes,
	.rounds = 5,
	.quick_rounds = 2,
	.seconds = 0.5,
	.quick_seconds = 0.1,
	.run = run,
};
