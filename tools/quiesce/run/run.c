/* SPDX-License-Identifier: MIT */
/* run.c - the headline: everything side by side, in two minutes. */
#include <string.h>

#include "hash/hashscale.h"
#include "run.h"
#include "scale/rwscale.h"
#include "team.h"

#define ROUNDS 2
#define DOCUMENT_S 0.5
#define READ_S 0.25
#define WAIT_S 0.15
#define RETIRE_S 0.1
#define BURST_S 0.2 /* a burst is cut off after that */
#define LOOKUP_S 0.03

const char *const run_document_types[] = { "rcu", "shazptr", "shazptr_skip_self_scan", "shazptr_wildcard",
					    "shazptr_wildcard_skip_self_scan", NULL };

int run_document_readers(void)
{
	return cpus_online() > 2 ? cpus_online() : 2;
}

struct part {
	const struct subcommand *command;
	double cell_s;
	double until_s; /* no job begins later, counted from the start of everything */
	uint32_t scenarios;
	int readers[MAX_READERS]; /* 0 ends the list; none: what the scenarios have */
	const char *const *only;    /* these types, or all, */
	const char *const *without; /* but not these */
};

bool run_listed(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (!strcmp(*list, name))
			return true;
	return false;
}

/* Without these there are no ratios, if time runs out. */
static void yardsticks_first(const struct op **types, int nr)
{
	static const char *const yardsticks[] = { RUN_YARDSTICK, "refcnt", "pthread_rwlock", "rcu_sync", RUN_LOOKUP_YARDSTICK, NULL };
	int first = 0;

	for (int i = 0; i < nr; i++)
		if (run_listed(yardsticks, types[i]->name)) {
			const struct op *other = types[first];

			types[first++] = types[i];
			types[i] = other;
		}
}

static void measure(const struct options *options, const struct part *part, uint64_t begin_ns, struct results *results)
{
	struct job base = { .seconds = part->cell_s, .scenarios = part->scenarios, .watchdog_s = 30, .sections = RW_SECTIONS_DEFAULT,
			    .deadline_ns = begin_ns + (uint64_t)(part->until_s * 1e9) };
	const struct op *types[MAX_TYPES];
	struct options mine = *options;
	int nr = options_types(options, part->command, types), kept = 0;

	for (int i = 0; i < nr; i++)
		if ((!part->only || run_listed(part->only, types[i]->name)) &&
		    (!part->without || !run_listed(part->without, types[i]->name)))
			types[kept++] = types[i];
	yardsticks_first(types, kept);
	for (; part->readers[base.nr_readers]; base.nr_readers++)
		base.readers[base.nr_readers] = part->readers[base.nr_readers];
	if (part->command == &hashscale_command) {
		base.hash = run_hash_plan;
		hashscale_default_fence(&mine);
	}
	if (!interrupted())
		jobs_run(part->command, &mine, &base, types, kept, results);
}

/* What is too slow with 64 readers, or twice the same, has its place in the subcommands. */
static const char *const waits[] = { "noop", "raw_membarrier", "rcu", "shazptr", "shazptr_skip_self_scan",
				     "shazptr_wildcard", RUN_YARDSTICK, NULL };
static const char *const more_waits[] = { "noop", "raw_membarrier", "rcu", "rcu_expedited", "shazptr",
					  "shazptr_skip_self_scan", "shazptr_wildcard", "hazptr", RUN_YARDSTICK, NULL };
static const char *const no_reads[] = { "raw_nest", "raw_flag", "raw_hp_bitmask", "seqlock", "pthread_spinlock",
					"hazptr_tryprotect", "hazptr_context", "hazard_pointer_reused", "libcds_hp_reused",
					"libcds_dhp_reused", "pthread_rwlock_writer", "ck_rwlock", "ck_pflock", "ck_swlock",
					"ck_bytelock", "tbb_spin_rw_mutex", "tbb_queuing_rw_mutex", NULL };
static const char *const retires[] = { "raw_malloc_free", "hazptr", "hazard_pointer", "rcu", RUN_YARDSTICK, "ck_hp", "ck_epoch",
				       "libcds_hp", "libcds_dhp", NULL };

/* Ways to hold one object, which have a table of their own. */
const char *const run_hazard_types[] = { "raw_hp", "raw_fence_slot", "shazptr", "hazptr", "hazptr_alloc", "hazard_pointer",
					 "counted_ptr", "ck_hp", "libcds_hp", "libcds_dhp", "std_atomic_shared_ptr", "refcnt", NULL };

/* Readers that say that they are there, and nothing else: locks and counts. */
const char *const run_lock_types[] = { "raw_rseq_counter", "srcu", "percpu_rwsem", "percpu_ref", "pthread_rwlock", "std_shared_mutex",
				       "ck_brlock", "tbb_rw_mutex", NULL };
const char *const run_no_reads[] = { "raw_fence_slot", "hazptr_alloc", "hazard_pointer", "counted_ptr", "ck_hp", "libcds_hp",
				     "libcds_dhp", "std_atomic_shared_ptr", "raw_rseq_counter", "percpu_rwsem", "percpu_ref",
				     "std_shared_mutex", "ck_brlock", "tbb_rw_mutex", NULL };
const char *const run_burst_types[] = { "gp", "expedited", "rcu_sync", "pthread_rwlock", "pthread_rwlock_writer", "tbb_rw_mutex", NULL };

/* Two sizes of tables: in the caches, and not. */
const struct hash_plan run_hash_plan = {
	.set = { { "uniform:1000", "", 1000 }, { "uniform:1000000", "", 1000000 } }, .nr_sets = 2, .nr_updates = 1,
};
static const char *const lookups[] = { "raw_open_addressing", "hashmap", "hashtable", "rcu", "spinlock", "refcnt", "rwlock",
				       "liburcu_lfht", "ck_ht", "tbb_hash_map", NULL };

#define BIT(scenario) (1u << SCENARIO_##scenario)

/* In the order of importance: if this machine is so slow that something has to give, it is the last rounds. */
static const struct part parts[] = {
	{ &rcuscale_command, WAIT_S, 50, BIT(IDLE) | BIT(OTHERS), { 1, 64 }, waits, NULL },
	{ &rcuscale_command, WAIT_S, 70, BIT(SAME), { 1, 2, 64 }, more_waits, NULL },
	{ &rcuscale_command, WAIT_S, 77, BIT(LONG) | BIT(HELD), { 8 }, waits, NULL },
	{ &refscale_command, READ_S, 124, 0, { 1, 2, 64 }, NULL, no_reads },
	{ &rwscale_command, BURST_S, 132, BIT(RW_SPARSE) | BIT(RW_DENSE), { 2 }, run_burst_types, NULL },
	{ &retirescale_command, RETIRE_S, 142, BIT(RETIRE_IDLE) | BIT(RETIRE_STALLED), { 1, 2 }, retires, NULL },
	{ &hashscale_command, LOOKUP_S, 157, 0, { 1, 2 }, lookups, NULL },
};

static void measure_all(const struct options *options, struct results *results)
{
	const struct part document = { &rcuscale_command, DOCUMENT_S, 30, BIT(DOCUMENT), { run_document_readers() },
				       run_document_types, NULL };
	uint64_t begin = now_ns();

	measure(options, &document, begin, results);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		measure(options, &parts[i], begin, results);
}

static int run(const struct options *options)
{
	struct options mine = *options;
	struct results results = { 0 };
	FILE *out = emit_open(options);
	int status;

	mine.runs = ROUNDS;
	hashscale_emit_plan(&run_hash_plan, command_type(&hashscale_command, "spinlock"));
	measure_all(&mine, &results);
	if (options->format == FORMAT_TABLE || options->format == FORMAT_MARKDOWN)
		run_print(out, options->format == FORMAT_MARKDOWN, &results);
	else
		emit_results(out, options, &results);
	status = emit_close(out, options);
	if (!status && results.failures)
		status = EXIT_FAILED;
	results_free(&results);
	return interrupted() ? EXIT_INTERRUPTED : status;
}

static bool fits(const struct op *op)
{
	(void)op;
	return false;
}

const struct subcommand run_command = {
	.name = "run",
	.what = "The headline in two minutes: hazard pointers and RCU beside liburcu, locks and raw floors.",
	.doc = "A short rcuscale, refscale, rwscale, retirescale and hashscale, as tables. The first one repeats the test that came "
	       "with the kernel's proposal of simple hazard pointers (rcuscale's scenario 'document') and shows its figures beside "
	       "those of this machine; the next ones are what that test left out: readers that are in the way. Ratios are to liburcu; "
	       "those of ways to hold one object are to a reference count, those of locks to pthread_rwlock, those of hash tables to a"
	       " spinlock in each bucket. Bursts of writes stand beside the figures that came with the kernel's rcu_sync. The "
	       "subcommands themselves show more.",
	.accepts = OPT_MARKDOWN,
	.fits = fits,
	.run = run,
};
