/* SPDX-License-Identifier: MIT */
/* report.c - one page about all measurements: runs report.py, which runs this program's subcommands and draws. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "place.h"
#include "tool.h"

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
	const char *argv[16] = { "python3", script, "--tool", self };
	int n = 4;

	check(options);
	if (!place_self(self, sizeof(self)) || !place_find(script, sizeof(script), "report/report.py", "report/report.py")) {
		fprintf(stderr, "quiesce report: report.py is not where it was built or installed\n");
		return EXIT_FAILED;
	}
	if (options->quick)
		argv[n++] = "--quick";
	if (options->format == FORMAT_JSON)
		argv[n++] = "--json";
	if (options->output)
		argv[n++] = "--output", argv[n++] = options->output;
	if (options->compare)
		argv[n++] = "--compare", argv[n++] = options->words[0], argv[n++] = options->words[1];
	interrupt_hand_over();
	execvp(argv[0], (char *const *)argv);
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
