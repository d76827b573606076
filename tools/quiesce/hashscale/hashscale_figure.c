/* SPDX-License-Identifier: MIT */
/* hashscale_figure.c - the figure, drawn by a script of the report, which reads the rows as JSON from a pipe. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "hashscale.h"
#include "place.h"

static bool ends_in(const char *path, const char *suffix)
{
	size_t n = strlen(path), m = strlen(suffix);

	return n > m && !strcmp(path + n - m, suffix);
}

/* The names are in the environment, where the shell does not read them as its own. */
static FILE *script(const char *path)
{
	char name[PLACE_MAX];

	if (!place_find(name, sizeof(name), "report/lines.py", "report/lines.py"))
		return NULL;
	setenv("QUIESCE_LINES", name, 1);
	setenv("QUIESCE_FIGURE", path, 1);
	return popen(strcmp(path, "--check") ? "exec python3 \"$QUIESCE_LINES\" \"$QUIESCE_FIGURE\"" :
					       "{ python3 \"$QUIESCE_LINES\" --check; } 2>/dev/null", "we");
}

void hashscale_figure_check(const char *path)
{
	FILE *f;

	if (!path)
		return;
	if (!ends_in(path, ".svg") && !ends_in(path, ".png"))
		usage_error("--figure=%s: the name must end in .png or .svg", path);
	f = script("--check");
	if (!f || pclose(f)) {
		fprintf(stderr, "quiesce hashscale: --figure needs python3 with matplotlib, which is not installed (Debian: "
				"python3-matplotlib)\n");
		exit(EXIT_FAILED);
	}
	f = fopen(path, "ae"); /* opened before the measurement, so that a wrong path does not lose it */
	if (!f)
		usage_error("cannot write '%s': %s", path, strerror(errno));
	fclose(f);
}

int hashscale_figure(const char *path, const struct results *results)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	FILE *to = script(path);
	int status;

	if (!to) {
		fprintf(stderr, "quiesce hashscale: cannot start python3: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	sigaction(SIGPIPE, &ignore, &before); /* a script that ends early reports its error itself */
	emit_document_print(to, emit_document(emit_rows(results), results));
	status = pclose(to);
	sigaction(SIGPIPE, &before, NULL);
	if (!status)
		return 0;
	fprintf(stderr, "quiesce hashscale: '%s' could not be drawn\n", path);
	return EXIT_FAILED;
}
