/* SPDX-License-Identifier: MIT */
/* report.c - one page about all measurements: runs report.py, which runs this program's subcommands and draws. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "place.h"
#include "tool.h"

#define MAX_ARGUMENTS 16

struct report_options {
	bool quick, compare;
};

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
	if (o->quick)
		add(argv, "--quick");
	if (options->format == FORMAT_JSON)
		add(argv, "--json");
	if (options->output) {
		add(argv, "--output");
		add(argv, options->output);
	}
	if (o->compare) {
		add(argv, "--compare");
		add(argv, options->words[0]);
		add(argv, options->words[1]);
	}
	interrupt_hand_over();
	execvp(argv[0], argv);
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
	.doc = "Runs refscale, rcuscale, retirescale, hashscale, rwscale and the case studies, and writes to the directory of "
	       "--output (default: quiesce-report) index.html, which needs no other file, report.json with all figures, and each "
	       "picture as PNG and SVG. It takes about twelve minutes; with --quick about three, with less reliable figures. "
	       "After Ctrl-C the page has the figures that were measured. It needs python3 with matplotlib and Jinja (Debian: "
	       "python3-matplotlib python3-jinja2).\n"
	       "--compare prints the figures of two report.json: each with its spread, the change, and a verdict, better or "
	       "worse; a change within the spread of either is none. With --json it prints the same as an object.",
	OPTIONS(own),
	.run = run,
};
