/* SPDX-License-Identifier: MIT */
/* report.c - one page about all measurements: runs report.py, which runs this program's subcommands and draws. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "place.h"
#include "tool.h"

struct report_options {
	bool quick, compare;
};

static void check(const struct options *options)
{
	const struct report_options *o = OWN(const struct report_options, options);

	if (o->compare != (options->nr_words == 2) || (!o->compare && options->nr_words))
		usage_error(o->compare ? "--compare: two files are needed, OLD.json NEW.json" :
					       "unexpected argument '%s'; see quiesce report --help", options->words[0]);
	if (o->compare && (o->quick || options->output))
		usage_error("--compare: it prints its table, and takes neither --quick nor --output");
	if (options->format == FORMAT_CSV)
		usage_error("--csv: the figures are in report.json");
	if (options->format == FORMAT_JSON && !o->compare)
		usage_error("--json: the figures are in report.json");
}

static int run(const struct options *options)
{
	const struct report_options *o = OWN(const struct report_options, options);
	char script[PLACE_MAX], self[PLACE_MAX];
	const char *argv[16] = { "python3", script, "--tool", self };
	int n = 4;

	check(options);
	if (!place_self(self, sizeof(self)) || !place_find(script, sizeof(script), "report/report.py", "report/report.py")) {
		fprintf(stderr, "quiesce report: report.py is not where it was built or installed\n");
		return EXIT_FAILED;
	}
	if (o->quick)
		argv[n++] = "--quick";
	if (options->format == FORMAT_JSON)
		argv[n++] = "--json";
	if (options->output)
		argv[n++] = "--output", argv[n++] = options->output;
	if (o->compare)
		argv[n++] = "--compare", argv[n++] = options->words[0], argv[n++] = options->words[1];
	interrupt_hand_over();
	execvp(argv[0], (char *const *)argv);
	fprintf(stderr, "quiesce report: python3: %s\n", strerror(errno));
	return EXIT_FAILED;
}

#define OPTION(field) OPTION_FLAG, OPTION_OWN(struct report_options, field)
static const struct option_row own[] = {
	{ "quick", NULL, "fewer rounds, shorter measurements", OPTION(quick) },
	{ "compare", NULL, "two reports side by side", OPTION(compare) },
	{ 0 }
};

const struct subcommand report_command = {
	.name = "report",
	.what = "One page with all tables and pictures of this machine, or two of them side by side.",
	.arguments = "[--compare OLD.json NEW.json]",
	.doc = "Writes index.html, report.json and pictures to the directory of --output (default: quiesce-report), in about twelve "
	       "minutes, or three with --quick. --compare prints the differences of two report.json. See quiesce-report(1).",
	OPTIONS(own),
	.run = run,
};
