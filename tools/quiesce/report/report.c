/* SPDX-License-Identifier: MIT */
/* report.c - one page about all measurements: runs report.py, which runs this program's subcommands and draws. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "place.h"
#include "tool.h"

#define MAX_ARGUMENTS 16

/* Appends @word to a list that ends with NULL. */
static void add(char *argv[MAX_ARGUMENTS + 1], const char *word)
{
	int n = 0;

	while (argv[n])
		n++;
	if (n < MAX_ARGUMENTS)
		argv[n] = (char *)word;
}

static void check(const struct options *options)
{
	if (options->compare != (options->nr_words == 2) || (!options->compare && options->nr_words))
		usage_error(options->compare ? "--compare: two files are needed, OLD.json NEW.json" :
					       "unexpected argument '%s'; see quiesce report --help", options->words[0]);
	if (options->compare && (options->quick || options->output))
		usage_error("--compare: it prints its table, and takes neither --quick nor --output");
	if (options->format == FORMAT_CSV)
		usage_error("--csv: the figures are in report.json");
	if (options->format == FORMAT_JSON && !options->compare)
		usage_error("--json: the figures are in report.json");
}

static int run(const struct options *options)
{
	char script[PLACE_MAX], self[PLACE_MAX];
	char *argv[MAX_ARGUMENTS + 1] = { NULL };

	check(options);
	if (!place_self(self, sizeof(self)) || !place_find(script, sizeof(script), "report/report.py", "report/report.py")) {
		fprintf(stderr, "quiesce report: report.py is not where it was built or installed\n");
		return EXIT_FAILED;
	}
	add(argv, "python3");
	add(argv, script);
	add(argv, "--tool");
	add(argv, self);
	if (options->quick)
		add(argv, "--quick");
	if (options->format == FORMAT_JSON)
		add(argv, "--json");
	if (options->output) {
		add(argv, "--output");
		add(argv, options->output);
	}
	if (options->compare) {
		add(argv, "--compare");
		add(argv, options->words[0]);
		add(argv, options->words[1]);
	}
	interrupt_hand_over();
	execvp(argv[0], argv);
	fprintf(stderr, "quiesce report: python3: %s\n", strerror(errno));
	return EXIT_FAILED;
}

const struct subcommand report_command = {
	.name = "report",
	.what = "One page with all tables and pictures of this machine, or two of them side by side.",
	.arguments = "[--compare OLD.json NEW.json]",
	.doc = "Writes index.html, report.json and pictures to the directory of --output (default: quiesce-report), in about twelve "
	       "minutes, or three with --quick. --compare prints the differences of two report.json. See quiesce-report(1).",
	.accepts = OPT_REPORT,
	.run = run,
};
