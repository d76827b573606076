/* SPDX-License-Identifier: MIT */
/* run_headline.c - the costs of this library and of its peers on this machine, in six lines. */
#include <math.h>
#include <stdarg.h>

#include "hash/hashscale.h"
#include "run.h"

#define INDENT 11
#define WIDE 0.1 /* smallest spread that is mentioned */

/* The figure of a cell converts its median v to nanoseconds: v * @factor, or @factor / v. */
struct figure {
	const struct subcommand *command;
	const char *type;
	enum scenario scenario;
	int threads;
	double factor;
	bool rate;
};
#define READ(type, threads) { &refscale_command, type, SCENARIO_NONE, threads, 1, false }
#define WAIT(type, readers) { &rcuscale_command, type, SCENARIO_OTHERS, readers, 1e3, false }
#define RETIRE(type) { &retirescale_command, type, SCENARIO_RETIRE_IDLE, 1, 1e9, true }
#define LOOKUP(type, set) { &hashscale_command, type, hash_scenario(set, 0), 1, 1e9, true }
#define NO_FIGURE { NULL, NULL, SCENARIO_NONE, 0, 0, false }

struct line {
	const char *label;
	struct figure ours[2];
	const char *what[2]; /* text before our figures */
	const char *peer;
	struct figure theirs[2]; /* a peer's figure for each of ours, as far as there are any */
};

static const struct cell *cell_of(const struct results *results, const struct figure *f)
{
	const struct op *op = f->command ? command_type(f->command, f->type) : NULL;
	enum op_fence fence = op && op->fence_modes ? run_default_fence() : OP_FENCE_NONE;

	return op ? results_find(results, f->command, f->type, f->scenario, fence, f->threads) : NULL;
}

static double ns_of(const struct results *results, const struct figure *f)
{
	const struct cell *cell = cell_of(results, f);
	double v = cell ? cell_summary(cell).p50 : NAN;

	return f->rate ? f->factor / v : f->factor * v;
}

/* ---- the text of a line ---- */

struct text {
	char line[200];
	size_t n;
	const char *unit; /* unit of the last duration in the text */
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	t->n += (size_t)vsnprintf(t->line + t->n, sizeof(t->line) - t->n, format, args);
	va_end(args);
	if (t->n >= sizeof(t->line))
		t->n = sizeof(t->line) - 1;
}

/* Adds a duration; its unit is left out if it is that of the duration before. */
static void add_duration(struct text *t, double ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	int u = 0;

	for (; u < 3 && ns >= 999.5; u++)
		ns /= 1000;
	add(t, "%.*f", ns < 9.995 ? 2 : ns < 99.95 ? 1 : 0, ns);
	if (t->unit != units[u])
		add(t, " %s", units[u]);
	t->unit = units[u];
}

static void add_ours(struct text *t, const struct results *results, const struct line *line)
{
	for (int i = 0; i < 2; i++) {
		double ns = ns_of(results, &line->ours[i]);

		if (!isfinite(ns))
			continue;
		add(t, "%s%s", i ? ", " : "", line->what[i]);
		add_duration(t, ns);
	}
}

/* Adds the ratios of the peers' figures to ours. */
static void add_ratios(struct text *t, const double *ratio, int nr)
{
	bool slower = false;

	add(t, " (");
	for (int i = 0; i < nr; i++) {
		add(t, "%s%.*fx", i ? ", " : "", ratio[i] < 0.995 ? 2 : ratio[i] < 9.95 ? 1 : 0, ratio[i]);
		slower = slower || ratio[i] < 0.995;
	}
	add(t, "%s)", slower ? ": slower" : "");
}

static void add_theirs(struct text *t, const struct results *results, const struct line *line)
{
	double ratio[2];
	int nr = 0;

	if (!command_type(line->theirs[0].command, line->theirs[0].type)) {
		add(t, "; %s is not installed", line->peer);
		return;
	}
	for (int i = 0; i < 2; i++) {
		double theirs = ns_of(results, &line->theirs[i]), ours = ns_of(results, &line->ours[i]);

		if (!isfinite(theirs / ours))
			continue;
		if (nr)
			add(t, ", ");
		else
			add(t, "; %s ", line->peer);
		add_duration(t, theirs);
		ratio[nr++] = theirs / ours;
	}
	if (nr)
		add_ratios(t, ratio, nr);
}

static void print_line(struct sheet *s, const struct results *results, const struct line *line)
{
	struct text t = { .n = 0 };

	add(&t, "%s%-*s", s->markdown ? "- " : "", s->markdown ? 0 : INDENT, line->label);
	if (s->markdown)
		add(&t, ": ");
	add_ours(&t, results, line);
	add_theirs(&t, results, line);
	sheet_text(s, INDENT, t.line);
}

/* ---- the whole headline ---- */

static double spread_of(const struct results *results, const struct line *line)
{
	double spread = 0;

	for (int i = 0; i < 4; i++) {
		const struct cell *cell = cell_of(results, i < 2 ? &line->ours[i] : &line->theirs[i - 2]);

		if (cell)
			spread = fmax(spread, cell_summary(cell).spread / 2); /* fmax() ignores a spread that is not a number */
	}
	return spread;
}

static void print_spreads(struct sheet *s, const struct results *results, const struct line *line, int nr)
{
	struct text t = { .n = 0 };

	for (int i = 0; i < nr; i++) {
		double spread = spread_of(results, &line[i]);

		if (spread > WIDE)
			add(&t, "%s %s +-%.0f %%", t.n ? "," : "; they differ:", line[i].label, 100 * fmin(spread, 9.99));
	}
	sheet_note(s, "\nMedians of rounds in turn, %s fences%s. (2x): there it takes twice as long.", fence_name(run_default_fence()),
		   t.line);
}

static void print_legend(struct sheet *s, const struct results *results)
{
	const struct line alone = { "", { WAIT("rcu", 1), WAIT("shazptr", 1) }, { "all readers ", "one object " },
				    "liburcu", { WAIT(RUN_YARDSTICK, 1), NO_FIGURE } };
	struct text t = { .n = 0 };

	if (isfinite(ns_of(results, &alone.ours[0]))) {
		add(&t, "; beside one: ");
		add_ours(&t, results, &alone);
		add_theirs(&t, results, &alone);
	}
	sheet_note(s, "Read: a section with a load. Wait: beside 64 busy readers of other objects%s. Retirement: an object from malloc() "
		      "to free(), by kfree_rcu(), call_hazptr(), and liburcu's call_rcu(). Read lock: percpu_rwsem and pthread_rwlock; "
		      "by two: two threads at once. Reference: percpu_ref, up and down. Lookup: hashtable and liburcu's lfht, of 1000 "
		      "and of a million objects.", t.line);
}

void run_print_headline(struct sheet *s, const struct results *results)
{
	const struct line lines[] = {
		{ "Read", { READ("rcu", 1), READ("hazptr", 1) }, { "RCU ", "hazard pointer " },
		  "liburcu", { READ(RUN_YARDSTICK, 1), NO_FIGURE } },
		{ "Wait", { WAIT("rcu", 64), WAIT("shazptr", 64) }, { "all readers ", "one object " },
		  "liburcu", { WAIT(RUN_YARDSTICK, 64), NO_FIGURE } },
		{ "Retirement", { RETIRE("rcu_free"), RETIRE("hazptr") }, { "RCU ", "hazard pointer " },
		  "liburcu", { RETIRE(RUN_YARDSTICK), NO_FIGURE } },
		{ "Read lock", { READ("percpu_rwsem", 1), READ("percpu_rwsem", 2) }, { "", "by two " },
		  "pthreads", { READ("pthread_rwlock", 1), READ("pthread_rwlock", 2) } },
		{ "Reference", { READ("percpu_ref", 1), READ("percpu_ref", 2) }, { "", "by two " },
		  "atomic count", { READ("refcnt", 1), READ("refcnt", 2) } },
		{ "Lookup", { LOOKUP("hashtable", 0), LOOKUP("hashtable", 1) }, { "of 1000 ", "of 1M " },
		  "liburcu", { LOOKUP("liburcu_lfht", 0), LOOKUP("liburcu_lfht", 1) } },
	};
	const int nr = sizeof(lines) / sizeof(lines[0]);
	int printed = 0;

	for (int i = 0; i < nr; i++) {
		if (!isfinite(ns_of(results, &lines[i].ours[0])))
			continue;
		if (!printed++)
			sheet_title(s, "What it costs on this machine, and elsewhere%s", s->markdown ? "" : "\n");
		print_line(s, results, &lines[i]);
	}
	if (!printed)
		return;
	print_spreads(s, results, lines, nr);
	print_legend(s, results);
}
