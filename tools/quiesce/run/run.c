/* SPDX-License-Identifier: MIT */
/* run.c - all measurements side by side: six lines first, in at most 80 seconds, then tables as they are complete. */
#include <errno.h>
#include <string.h>

#include "emit.h"
#include "hashscale/hashscale.h"
#include "run.h"
#include "rcuscale/rcuscale.h"
#include "retirescale/retirescale.h"
#include "rwscale/rwscale.h"
#include "team.h"

#define HEADLINE_ROUNDS 3
#define ROUNDS 2
/* A cell of each kind takes so many seconds. */
#define DOCUMENT_S 0.3
#define READ_S 0.15
#define WAIT_S 0.1
#define RETIRE_S 0.08
#define BURST_S 0.2 /* limit of a burst */
#define LOOKUP_S 0.03

int run_document_readers(void)
{
	return cpus_online() > 2 ? cpus_online() : 2;
}

static bool is_listed(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (!strcmp(*list, name))
			return true;
	return false;
}

enum op_fence run_default_fence(void)
{
	static struct options options; /* kept, so that the mode is chosen once */

	options_one_fence(&options);
	return options.fences & (1u << OP_FENCE_LIGHT) ? OP_FENCE_LIGHT : OP_FENCE_FULL;
}

/* ---- which types ---- */

static const char *const document_types[] = { "rcu", "shazptr", "shazptr_skip_self_scan", "shazptr_wildcard",
					      "shazptr_wildcard_skip_self_scan", NULL };

/* Tables have two sizes: one fits into the caches, one does not. */
static const struct hash_plan hash_plan = {
	.set = { { .name = "uniform:1000", .nr = 1000 }, { .name = "uniform:1000000", .nr = 1000000 } }, .nr_sets = 2, .nr_updates = 1,
};

/* ---- the parts, in the order in which they are printed ---- */

struct part {
	const struct subcommand *command;
	double cell_s;
	double until_s; /* no job of the part begins later, counted from the start of the run; a quiet machine needs much less */
	uint64_t scenarios;
	int readers[MAX_READERS]; /* numbers of readers, ended by 0; none: as in the document */
	uint32_t groups; /* its types: bits of enum type_group; 0: those that the document names */
	void (*print)(struct sheet *s, const struct results *results); /* prints what is complete after this part; NULL: nothing */
};

#define BIT(scenario) SCENARIO_BIT(SCENARIO_##scenario)

/* A later part leaves out a type that an earlier one has measured under one of its scenarios: so both have the same numbers of readers. */
static const struct part headline[] = {
	{ &refscale_command, READ_S, 30, 0, { 1, 2, 64 }, RUN_SIX | PEER_ANY, NULL },
	{ &rcuscale_command, WAIT_S, 55, BIT(IDLE) | BIT(OTHERS), { 1, 64 }, RUN_SIX_WAIT | PEER_ANY, NULL },
	{ &retirescale_command, RETIRE_S, 65, BIT(RETIRE_IDLE) | BIT(RETIRE_STALLED), { 1, 2 }, RUN_SIX | PEER_ANY, NULL },
	{ &hashscale_command, LOOKUP_S, 80, 0, { 1, 2 }, RUN_SIX | PEER_ANY, run_print_headline },
	{ 0 },
};

static const struct part tables[] = {
	{ &rcuscale_command, DOCUMENT_S, 90, BIT(DOCUMENT), { 0 }, 0, run_print_document },
	{ &rcuscale_command, WAIT_S, 110, BIT(SAME), { 1, 2, 64 }, RUN_WAIT_SAME, NULL },
	{ &rcuscale_command, WAIT_S, 120, BIT(LONG) | BIT(HELD), { 8 }, RUN_WAIT_LONG, run_print_same },
	{ &rcuscale_command, WAIT_S, 136, BIT(IDLE) | BIT(OTHERS), { 1, 64 }, RUN_WAIT, run_print_others },
	{ &refscale_command, READ_S, 166, 0, { 1, 2 }, RUN_SLOW, NULL },
	{ &refscale_command, READ_S, 166, 0, { 1, 2, 64 }, RUN_READS, run_print_reads },
	{ &rwscale_command, BURST_S, 174, BIT(RW_SPARSE) | BIT(RW_DENSE), { 2 }, RUN_BURST, run_print_bursts },
	{ &retirescale_command, RETIRE_S, 186, BIT(RETIRE_IDLE) | BIT(RETIRE_STALLED), { 1, 2 }, RUN_TABLE, run_print_retire },
	{ &hashscale_command, LOOKUP_S, 198, 0, { 1, 2 }, RUN_TABLE, run_print_lookups },
	{ 0 },
};

/* ---- measuring ---- */

/* Yardsticks first: without them there are no ratios if time runs out. */
static void yardsticks_first(const struct op **types, int nr)
{
	static const char *const yardsticks[] = { RUN_YARDSTICK, "refcnt", "pthread_rwlock", "rcu_sync", RUN_LOOKUP_YARDSTICK, NULL };
	int first = 0;

	for (int i = 0; i < nr; i++)
		if (is_listed(yardsticks, types[i]->name)) {
			const struct op *other = types[first];

			types[first++] = types[i];
			types[i] = other;
		}
}

static int choose_types(const struct options *options, const struct part *part, const struct op *types[MAX_TYPES])
{
	int nr = options_types(options, part->command, types), kept = 0;

	for (int i = 0; i < nr; i++)
		if (part->groups ? types[i]->groups & part->groups : is_listed(document_types, types[i]->name))
			types[kept++] = types[i];
	yardsticks_first(types, kept);
	return kept;
}

static void measure(const struct options *options, const struct part *part, uint64_t begin_ns, struct results *results)
{
	struct job base = { .seconds = part->cell_s, .scenarios = part->scenarios, .watchdog_s = 30,
			    .deadline_ns = begin_ns + (uint64_t)(part->until_s * 1e9) };
	const struct op *types[MAX_TYPES];
	struct options mine = *options;
	int nr = choose_types(options, part, types);

	if (options->seconds > 0) {
		base.seconds = options->seconds;
		base.deadline_ns = 0;
	}
	for (; part->readers[base.nr_readers]; base.nr_readers++)
		base.readers[base.nr_readers] = part->readers[base.nr_readers];
	if (!base.nr_readers)
		base.readers[base.nr_readers++] = run_document_readers();
	if (part->command == &hashscale_command) {
		OWN(struct hash_options, &base)->plan = hash_plan;
		options_one_fence(&mine);
	}
	if (part->command == &retirescale_command)
		OWN(struct retire_options, &base)->rates = true;
	jobs_run(part->command, &mine, &base, types, nr, results);
}

static void measure_all(const struct options *options, const struct part *part, uint64_t begin_ns, struct sheet *s,
			struct results *results)
{
	for (; part->command; part++) {
		if (!interrupted())
			measure(options, part, begin_ns, results);
		if (!s || !part->print)
			continue;
		part->print(s, results);
		sheet_end_table(s);
		fflush(s->out);
	}
}

static void print_notes(struct sheet *s, const struct results *results)
{
	for (size_t i = 0; i < results->nr_notes; i++)
		sheet_note(s, "note: %s", results->note[i]);
}

struct run_options {
	const char *record; /* file of the figures beside the tables; NULL: none */
};

static FILE *open_record(const struct options *options)
{
	const char *name = OWN(const struct run_options, options)->record;
	FILE *record = name ? fopen(name, "we") : NULL;

	if (name && !record)
		usage_error("cannot write '%s': %s", name, strerror(errno));
	return record;
}

static json_t *document_of(const struct results *results)
{
	json_t *document = emit_document(emit_rows(results), results);

	json_object_set_new(document, "faster", run_faster_rows(results));
	return document;
}

/* Writes the figures of the tables to --record; returns the exit status. */
static int close_record(FILE *record, const struct options *options, const struct results *results)
{
	struct options its = *options;

	if (!record)
		return 0;
	its.output = OWN(const struct run_options, options)->record;
	emit_document_print(record, document_of(results));
	return emit_close(record, &its);
}

static void print_end(struct sheet *s, FILE *out, const struct options *options, const struct results *results)
{
	if (s) {
		run_print_faster(s, results);
		print_notes(s, results);
	} else if (options->format == FORMAT_JSON) {
		emit_document_print(out, document_of(results));
		emit_notes(results);
	} else {
		emit_results(out, NULL, options, results);
	}
}

static int run(const struct options *options)
{
	bool print = options->format == FORMAT_TABLE || options->format == FORMAT_MARKDOWN;
	struct options few = *options, many = *options;
	struct results results = { 0 };
	struct sheet sheet = { .out = emit_open(options), .markdown = options->format == FORMAT_MARKDOWN }, *s = print ? &sheet : NULL;
	FILE *record = open_record(options);
	uint64_t begin = now_ns();
	int status;

	few.runs = options->runs_given ? options->runs : HEADLINE_ROUNDS;
	few.fences = 1u << run_default_fence();
	many.runs = options->runs_given ? options->runs : ROUNDS;
	hashscale_emit_plan(&hash_plan, command_type(&hashscale_command, RUN_LOOKUP_YARDSTICK));
	if (print)
		run_print_head(s);
	measure_all(&few, headline, begin, s, &results);
	measure_all(&many, tables, begin, s, &results);
	print_end(s, sheet.out, options, &results);
	status = close_record(record, options, &results);
	status = emit_close(sheet.out, options) || status ? EXIT_FAILED : 0;
	if (!status && results.failures)
		status = EXIT_FAILED;
	results_free(&results);
	return interrupted() ? EXIT_INTERRUPTED : status;
}

static const struct option_row own[] = {
	{ "record", "FILE", "write the figures to FILE as well, as one JSON object", OPTION_TEXT, OPTION_OWN(struct run_options, record),
	  .output = true },
	{ 0 }
};

const struct subcommand run_command = {
	.name = "run",
	.what = "Six lines in plain words, then tables, in three minutes: ours beside other libraries, locks and raw floors.",
	.doc = "Six lines in about a minute, then short tables of rcuscale, refscale, rwscale, retirescale and hashscale. Ratios are to "
	       "liburcu, a reference count, pthread_rwlock, or a spinlock in each bucket. See quiesce-run(1).",
	OPTIONS(options_seconds, options_runs, options_markdown, own),
	.run = run,
};
