/* SPDX-License-Identifier: MIT */
/* hashscale_figure.c - the figure, drawn by a gnuplot process that gets its commands through a pipe.
 *
 * Above there is one panel for each configuration: rates over threads.  Below it the same is shown relative to the
 * ideal, beside the article's figures at four CPUs.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hashscale.h"

#define PANEL_WIDTH 760
#define PANEL_HEIGHT 520
#define NR_COLOURS 8
static const char *const colours[NR_COLOURS] = { "#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad",
						 "#d68910", "#16a0a0", "#7f5539", "#5d6d7e" };

static bool ends_in(const char *path, const char *suffix)
{
	size_t n = strlen(path), m = strlen(suffix);

	return n > m && !strcmp(path + n - m, suffix);
}

static bool in_path(const char *program)
{
	const char *path = getenv("PATH");
	char *copy = strdup(path ? path : "/usr/bin"), *rest = copy, *directory, name[512];
	bool found = false;

	while (copy && !found && (directory = strsep(&rest, ":")) != NULL) {
		snprintf(name, sizeof(name), "%s/%s", *directory ? directory : ".", program);
		found = !access(name, X_OK);
	}
	free(copy);
	return found;
}

void hashscale_figure_check(const char *path)
{
	FILE *f;

	if (!path)
		return;
	if (!ends_in(path, ".svg") && !ends_in(path, ".png"))
		usage_error("--figure=%s: the name must end in .png or .svg", path);
	if (strpbrk(path, "'\n"))
		usage_error("--figure: no quotes or line breaks in the name, please");
	if (!in_path("gnuplot")) {
		fprintf(stderr, "quiesce hashscale: --figure needs gnuplot, which is not installed (Debian: gnuplot-nox)\n");
		exit(EXIT_FAILED);
	}
	f = fopen(path, "ae"); /* opened before the measurement, so that a wrong path does not lose it */
	if (!f)
		usage_error("cannot write '%s': %s", path, strerror(errno));
	fclose(f);
}

/* ---- commands for gnuplot ---- */

struct panel {
	const struct results *results;
	int scenario;
	int most; /* most threads of any cell */
};

/* Returns true for the first cell of a type's line. */
static bool begins_line(const struct panel *p, const struct cell *c)
{
	if (c->metric || c->scenario != p->scenario)
		return false;
	for (const struct cell *before = p->results->cell; before < c; before++)
		if (before->op == c->op && before->fence == c->fence && before->scenario == c->scenario && !before->metric)
			return false;
	return true;
}

static int nr_lines(const struct panel *p)
{
	int nr = 0;

	for (size_t i = 0; i < p->results->nr; i++)
		nr += begins_line(p, &p->results->cell[i]);
	return nr;
}

static void print_points(FILE *to, const struct panel *p, const struct cell *first, bool efficiency)
{
	for (int threads = 1; threads <= p->most; threads++) {
		const struct cell *c = results_find(p->results, first->command, first->op->name, p->scenario, first->fence, threads);
		double y = !c ? NAN : efficiency ? hashscale_efficiency(p->results, c) * 100 : cell_summary(c).p50 / 1e6;

		if (isfinite(y))
			fprintf(to, "%d %.6g\n", threads, y);
	}
	fputs("e\n", to);
}

static void plot_lines(FILE *to, const struct panel *p)
{
	int i = 0;

	for (size_t k = 0; k < p->results->nr; k++) {
		const struct cell *c = &p->results->cell[k];

		if (!begins_line(p, c))
			continue;
		fprintf(to, "%s'-' using 1:2 with linespoints lw 1.6 ps 0.8 pt %d dt %d lc rgb '%s' title '%s%s'", i ? ", " : "",
			4 + i % 10, 1 + i / NR_COLOURS % 4, colours[i % NR_COLOURS], c->op->name,
			c->fence == OP_FENCE_FULL ? ", full fences" : "");
		i++;
	}
}

static void send_lines(FILE *to, const struct panel *p, bool efficiency)
{
	for (size_t k = 0; k < p->results->nr; k++)
		if (begins_line(p, &p->results->cell[k]))
			print_points(to, p, &p->results->cell[k], efficiency);
}

/* The rate of one thread of the type that is fastest alone. */
static double best_alone(const struct panel *p)
{
	double best = NAN;

	for (size_t i = 0; i < p->results->nr; i++) {
		const struct cell *c = &p->results->cell[i];

		if (!c->metric && c->scenario == p->scenario && c->threads == 1)
			best = fmax(best, cell_summary(c).p50 / 1e6);
	}
	return best;
}

static void rate_panel(FILE *to, const struct panel *p)
{
	double alone = best_alone(p);

	fprintf(to, "set title '%s' noenhanced\nset ylabel 'million operations/s'\nset xrange [0.8:%g]\nset yrange [0:*]\nplot ",
		hashscale_title(p->scenario), p->most + 0.2);
	if (isfinite(alone))
		fprintf(to, "%.6g * x with lines lc rgb '#999999' dt 3 title 'ideal for the best', ", alone);
	plot_lines(to, p);
	fputc('\n', to);
	send_lines(to, p, false);
}

static void article_points(FILE *to)
{
	static const char *const types[] = { "spinlock", "refcnt", "rwlock" };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		fprintf(to, "4 %g\n", hashscale_article(types[i]) * 100);
	fputs("e\n", to);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		fprintf(to, "4 %g %s\n", hashscale_article(types[i]) * 100, types[i]);
	fputs("e\n", to);
}

static void efficiency_panel(FILE *to, const struct panel *p)
{
	fprintf(to, "set title 'of ideal: the rate of n threads over n times that of one'\nset ylabel 'percent'\n"
		    "set xrange [0.8:%g]\nset yrange [0:*]\nplot 100 with lines lc rgb '#999999' dt 3 title 'ideal', "
		    "'-' using 1:2 with points pt 3 ps 1.2 lc rgb '#000000' title '2003, four CPUs of 700 MHz', "
		    "'-' using 1:2:3 with labels offset -1.2,0 right font ',8' notitle, ", (p->most > 4 ? p->most : 4) + 0.4);
	plot_lines(to, p);
	fputc('\n', to);
	article_points(to);
	send_lines(to, p, true);
}

/* Fills in the panel of the @index-th configuration that was measured. */
static bool panel_of(const struct results *results, int index, struct panel *ret)
{
	for (int s = 0; s < HASH_CONFIGS; s++) {
		*ret = (struct panel){ results, s, 0 };
		for (size_t i = 0; i < results->nr; i++)
			if (!results->cell[i].metric && results->cell[i].scenario == ret->scenario &&
			    results->cell[i].threads > ret->most)
				ret->most = results->cell[i].threads;
		if (ret->most && index-- == 0)
			return true;
	}
	return false;
}

static void draw(FILE *to, const char *path, const struct results *results)
{
	struct panel p;
	int columns = 0, keys;

	while (panel_of(results, columns, &p))
		columns++;
	(void)panel_of(results, 0, &p);
	keys = nr_lines(&p) > 12;
	fprintf(to, "set terminal %s size %d,%d %s\nset output '%s'\n", ends_in(path, ".svg") ? "svg" : "pngcairo",
		columns * (PANEL_WIDTH + 140 * keys), 2 * PANEL_HEIGHT, "font 'sans,10' background '#ffffff'", path);
	fprintf(to, "set multiplot layout 2,%d columnsfirst\nset grid ytics lc rgb '#dddddd'\nset border 3\nset tics nomirror out\n"
		    "set xlabel 'threads'\nset xtics 1\nset key outside right top font ',8' noenhanced samplen 2\n", columns);
	if (p.most > 16)
		fprintf(to, "set xtics auto\n");
	for (int i = 0; panel_of(results, i, &p); i++) {
		rate_panel(to, &p);
		efficiency_panel(to, &p);
	}
	fprintf(to, "unset multiplot\n");
}

int hashscale_figure(const char *path, const struct results *results)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	FILE *to = popen("gnuplot -d", "we");
	int status;

	if (!to) {
		fprintf(stderr, "quiesce hashscale: cannot start gnuplot: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	sigaction(SIGPIPE, &ignore, &before); /* a gnuplot that ends early reports its error itself */
	draw(to, path, results);
	status = pclose(to);
	sigaction(SIGPIPE, &before, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	fprintf(stderr, "quiesce hashscale: gnuplot could not draw '%s'\n", path);
	return EXIT_FAILED;
}
