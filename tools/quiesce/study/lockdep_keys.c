/* SPDX-License-Identifier: MIT */
/* lockdep_keys.c - the replacement of a device's lock keys, a use of simple hazard pointers in the kernel:
 * cases/lockdep-keys. */
#include "study.h"

static const struct study_variant variants[] = {
	{ "rcu", "light", "synchronize_rcu() for each key" },
	{ "rcu_expedited", "light", "synchronize_rcu_expedited() for each key" },
	{ "rcu_expedited", "full", NULL },
	{ "rcu_batched", "light", "all keys unlinked, one synchronize_rcu(), all freed" },
	{ "shazptr_bucket", "light", "lookups guard the bucket, as in the document; synchronize_shazptr() for each key" },
	{ "shazptr_bucket", "full", NULL },
	{ "shazptr_object", "light", "lookups guard key after key; synchronize_shazptr() for each key" },
	{ "shazptr_object", "full", NULL },
	{ "hazptr_cohort", "light", "lookups protect key after key in slots; all keys retired, one wait" },
	{ "hazptr_cohort", "full", NULL },
	{ NULL, NULL, NULL },
};

static const struct study_column columns[] = {
	{ "us_key", "us/key", false }, { "ms", "ms", false }, { "membarriers", "membarr.", false }, { "interrupts", "IPIs", false },
	{ "grace_periods", "GPs", false }, { "cpu_ms", "CPU ms", false }, { "lookups_M", "lookups M/s", false },
	{ "worst_ms", "worst ms", true }, { "cut", "cut", true }, { NULL, NULL, false },
};

#define RATIO(text, figure, metric, a, a_fence, b, b_fence, where) \
	{ text, figure, STUDY_RATIO, { a, a_fence, where ", Q=64", metric }, { b, b_fence, where ", Q=64", metric }, STUDY_NOWHERE }
#define VALUE(text, figure, metric, a, a_fence, where) \
	{ text, figure, STUDY_VALUE, { a, a_fence, where ", Q=64", metric }, STUDY_NOWHERE, STUDY_NOWHERE }

static const struct study_shape shapes[] = {
	RATIO("time: rcu / shazptr_bucket, others", "19.6 (1.039/0.053 s)", "ms", "rcu", "light", "shazptr_bucket", "light", "others"),
	RATIO("time: rcu / shazptr_object, others", "19.6 (1.039/0.053 s)", "ms", "rcu", "light", "shazptr_object", "light", "others"),
	RATIO("time: rcu / rcu_expedited, others", "7.4 (13.195/1.789 s)", "ms", "rcu", "light", "rcu_expedited", "light", "others"),
	RATIO("time: rcu / rcu_batched, others", NULL, "ms", "rcu", "light", "rcu_batched", "light", "others"),
	RATIO("time: rcu_batched / hazptr_cohort, others", NULL, "ms", "rcu_batched", "light", "hazptr_cohort", "light", "others"),
	VALUE("IPIs of a replacement: rcu_expedited light, others", "140 a second, core", "interrupts", "rcu_expedited", "light", "others"),
	VALUE("IPIs of a replacement: shazptr_bucket full, others", "14 a second, core", "interrupts", "shazptr_bucket", "full", "others"),
	RATIO("membarriers: rcu_expedited / hazptr_cohort, light", "10 (140/14 IPIs)", "membarriers", "rcu_expedited", "light",
	      "hazptr_cohort", "light", "others"),
	RATIO("membarriers: rcu_expedited / shazptr_bucket, light", "10 (140/14 IPIs)", "membarriers", "rcu_expedited", "light",
	      "shazptr_bucket", "light", "others"),
	RATIO("time: rcu / shazptr_bucket, idle", NULL, "ms", "rcu", "light", "shazptr_bucket", "light", "idle"),
	RATIO("time: rcu / shazptr_bucket, stopped", NULL, "ms", "rcu", "light", "shazptr_bucket", "light", "stopped"),
	RATIO("time: shazptr_bucket / rcu, held", NULL, "ms", "shazptr_bucket", "light", "rcu", "light", "held"),
	RATIO("time: shazptr_bucket / rcu_batched, held", NULL, "ms", "shazptr_bucket", "light", "rcu_batched", "light", "held"),
	STUDY_END,
};

const struct study study_lockdep_keys = {
	.name = "lockdep-keys",
	.what = "a device's lock keys replaced one by one, beside lookups that must be waited for",
	.document = "B. Feng, \"Introduce simple hazard pointers for lockdep\", LKML, 2025: tc qdisc replace on 96 CPUs, and at Meta",
	.honesty = "Figures are for one replacement of Q keys; where one did not fit into the time it is scaled (cut: 1). A "
		   "userspace grace period waits for readers only: where no reader stays inside, plain RCU is as fast as a guard "
		   "(idle), while the kernel's takes milliseconds; readers of 1 ms stand for that here, and decide the factor. An "
		   "expedited grace period does not shorten a reader's sleep, so the document's gain by it is not here. IPIs: the "
		   "kernel's guards pay a full fence and their updater interrupts no CPU, so its figure compares with shazptr at "
		   "full fences against expedited RCU at light ones. With light fences either kind of wait is one membarrier, and "
		   "only one wait for all keys (hazptr_cohort, rcu_batched) saves them. IPIs are those of the whole machine, CPU ms "
		   "those of lookups too. A larger machine must confirm what a membarrier costs there.",
	.program = "lockdep-keys/lockdep-keys",
	.variants = variants,
	.columns = columns,
	.shapes = shapes,
	.rounds = 3,
	.quick_rounds = 1,
	.seconds = 0.1,
	.quick_seconds = 0.3,
};
