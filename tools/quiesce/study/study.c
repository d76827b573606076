/* SPDX-License-Identifier: MIT */
/* study.c - the documents' case studies on this machine. */
#include "study.h"

#include <string.h>

#include "hashscale/hashscale.h"

static int list(const struct options *options)
{
	FILE *out = emit_open(options);

	if (options->format == FORMAT_JSON) {
		study_emit_list(out);
		return emit_close(out, options);
	}
	for (const struct study *const *s = study_table; *s; s++)
		fprintf(out, "%-13s %s%s\n", (*s)->name, (*s)->what, study_has_program(*s) ? "" : " (not built)");
	fprintf(out, "\n'quiesce study NAME...' or 'quiesce study all' runs them; --quick takes less than two minutes for all.\n");
	return emit_close(out, options);
}

static const struct study *find(const char *name)
{
	for (const struct study *const *s = study_table; *s; s++)
		if (!strcmp((*s)->name, name))
			return *s;
	fprintf(stderr, "quiesce study: unknown case '%s'; valid: all", name);
	for (const struct study *const *s = study_table; *s; s++)
		fprintf(stderr, " %s", (*s)->name);
	fputc('\n', stderr);
	return NULL;
}

/* Returns false if a case is unknown. */
static bool choose(const struct options *options, const struct study *ret[STUDY_MAX + 1])
{
	for (int i = 0; i < options->nr_words; i++) {
		const struct study *s = NULL, **place = ret;

		if (!strcmp(options->words[i], "all")) {
			for (int k = 0; study_table[k]; k++)
				ret[k] = study_table[k];
			return true;
		}
		s = find(options->words[i]);
		if (!s)
			return false;
		while (*place && *place != s)
			place++;
		*place = s; /* each once; the list began empty */
	}
	return true;
}

/* Variants take turns, so that disturbances of the machine affect them alike. */
static void run_rounds(const struct study *study, const struct options *options, int rounds, struct study_results *results)
{
	bool refused[STUDY_MAX_VARIANTS] = { false };
	int nr = 0;

	while (study->variants[nr].name)
		nr++;
	progress_begin((size_t)(rounds * nr));
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < nr && !interrupted(); i++) {
			int status;

			progress_step("%s %s", study->name, study->variants[i].name);
			if (refused[i])
				continue;
			status = study_run_program(study, &study->variants[i], round, options, results);
			refused[i] = status != 0; /* reported once, not in each round */
			if (status && status != EXIT_UNAVAILABLE && !interrupted())
				results->failures++;
		}
	progress_end();
	if (interrupted())
		results_note(&results->notes, "interrupted: %s has not all of its rounds", study->name);
}

static void run_one(const struct study *study, const struct options *options, struct study_results *results)
{
	int rounds = options->runs_given ? options->runs : study_options(options)->quick ? study->quick_rounds : study->rounds;

	if (study->run)
		study->run(study, options, rounds, results);
	else if (study_has_program(study))
		run_rounds(study, options, rounds, results);
	else
		results_note(&results->notes, "%s: its program was not built%s%s", study->name,
			     study->missing ? "; it needs the packages " : "", study->missing ? study->missing : "");
}

static bool measured(const struct study_results *results, const struct study *study)
{
	for (size_t i = 0; i < results->nr; i++)
		if (results->value[i].study == study)
			return true;
	return false;
}

/* Tables are printed as they are complete, JSON and CSV at the end. */
static int run_all(FILE *out, const struct options *options, const struct study *const *studies, struct study_results *results)
{
	bool tables = options->format == FORMAT_TABLE || options->format == FORMAT_MARKDOWN, all = true;

	if (tables)
		emit_head(out);
	for (const struct study *const *s = studies; *s && !interrupted(); s++) {
		run_one(*s, options, results);
		all = all && measured(results, *s);
		if (tables && measured(results, *s))
			study_emit(out, options, results, *s);
		fflush(out);
	}
	if (!tables)
		study_emit_rows(out, options, results, studies);
	emit_notes(&results->notes);
	return all && !results->failures ? 0 : EXIT_FAILED;
}

static int run(const struct options *options)
{
	const struct study *studies[STUDY_MAX + 1] = { NULL };
	struct study_results results = { 0 };
	FILE *out;
	int status, close_status;

	study_load();
	if (!options->nr_words)
		return list(options);
	if (!choose(options, studies))
		return EXIT_USAGE;
	hashscale_figure_check(study_options(options)->figure);
	out = emit_open(options);
	status = run_all(out, options, studies, &results);
	close_status = emit_close(out, options);
	study_results_free(&results);
	return interrupted() ? EXIT_INTERRUPTED : close_status ? close_status : status;
}

static const struct option_row own[] = {
	{ "quick", NULL, "fewer rounds, shorter measurements", OPTION_FLAG, OPTION_OWN(struct study_options, quick) },
	{ "figure", "FILE", "draw a figure, .png or .svg, with matplotlib", OPTION_TEXT, OPTION_OWN(struct study_options, figure),
	  .output = true },
	{ 0 }
};

const struct subcommand study_command = {
	.name = "study",
	.what = "The documents' case studies: registries, labels, hash tables, timers, probes, reloads.",
	.arguments = "[CASE...|all]",
	.doc = "Without a case it prints a list of them. Result: a table for each scenario, then the published figures beside those of "
	       "this machine. See quiesce-study(1).",
	OPTIONS(options_runs, options_seconds, own, options_markdown),
	.run = run,
};
