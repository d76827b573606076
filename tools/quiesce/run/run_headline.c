/* SPDX-License-Identifier: MIT */
/* run_headline.c - the costs of this library and of its peers on this machine, in six lines. */
#include <math.h>
#include <stdarg.h>

#include "hashscale/hashscale.h"
#include "rcuscale/rcuscale.h"
#include "refscale/refscale.h"
#include "retirescale/retirescale.h"
#include "run.h"

#define INDENT 11
#define WIDE 0.1    /* smallest spread that is mentioned */

/* A type, its cell, the conversion of the cell's median v to nanoseconds (v * @factor, or @factor / v), and its peers. */
struct figure {
	const char *what; /* name of the figure within its line; may be empty */
	const struct subcommand *command;
	const char *type;
	int scenario;
	int threads;
	double factor;
	bool rate;
	uint32_t peers; /* the group of its peers */
};
#define READ(type, threads, peers) &refscale_command, type, SCENARIO_READ, threads, 1, false, peers
#define WAIT(type, readers, peers) &rcuscale_command, type, SCENARIO_OTHERS, readers, 1e3, false, peers
#define RETIRE(type, scenario, threads, peers) \
	&retirescale_command, type, SCENARIO_RETIRE_##scenario, threads, 1e9 * (threads), true, peers
#define LOOKUP(set, threads, peers) \
	&hashscale_command, "hashtable", (set) * HASH_MAX_UPDATES, threads, 1e9 * (threads), true, peers

#define PER_LINE 2 /* most figures of this library in a line */

struct line {
	const char *label;
	struct figure ours[PER_LINE];
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

/* As run_figure_of(), of a duration. */
static struct run_figure duration_of(const struct results *results, const struct figure *f)
{
	const struct cell *cell = cell_of(results, f);
	struct run_figure ret = { ns_of(results, f), 0 };

	if (cell && isfinite(cell_summary(cell).spread))
		ret.spread = ret.value * cell_summary(cell).spread / 2;
	return ret;
}

/* The figure of the fastest of @ours' peers that was measured; its type is NULL if none was. */
static struct figure best_peer(const struct results *results, const struct figure *ours)
{
	struct figure best = *ours, peer = *ours;
	const struct op *types[MAX_TYPES];
	int nr = ours->command ? types_all(ours->command->fits, types, MAX_TYPES) : 0;
	double least = INFINITY;

	best.type = NULL;
	for (int i = 0; i < nr; i++) {
		double ns;

		peer.type = types[i]->name;
		ns = types[i]->groups & ours->peers ? ns_of(results, &peer) : INFINITY;
		if (ns < least) {
			least = ns;
			best = peer;
		}
	}
	return best;
}

/* The best peer's figure over ours; NAN if either is missing. */
static double ratio_of(const struct results *results, const struct figure *ours)
{
	struct figure peer = best_peer(results, ours);

	return peer.type ? ns_of(results, &peer) / ns_of(results, ours) : NAN;
}

static bool is_slower(const struct results *results, const struct figure *ours)
{
	struct figure peer = best_peer(results, ours);
	struct run_figure here = duration_of(results, ours), there = duration_of(results, &peer);

	return run_is_ahead(&there, &here, false);
}

static bool is_installed(const struct figure *ours)
{
	const struct op *types[MAX_TYPES];
	int nr = types_all(ours->command->fits, types, MAX_TYPES);

	while (nr--)
		if (types[nr]->groups & ours->peers)
			return true;
	return false;
}

/* ---- the text of a line ---- */

struct text {
	char line[240];
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

/* Adds the median of @f, and its 99th percentile where that is far away. */
static void add_figure(struct text *t, const struct results *results, const struct figure *f)
{
	const struct cell *cell = cell_of(results, f);
	double tail = cell && !f->rate ? f->factor * cell_summary(cell).p99 : NAN;

	add_duration(t, ns_of(results, f));
	if (tail >= RUN_TAIL * ns_of(results, f)) {
		add(t, " (p99 ");
		add_duration(t, tail);
		add(t, ")");
	}
}

static void add_ours(struct text *t, const struct results *results, const struct line *line)
{
	for (int i = 0; i < PER_LINE; i++) {
		if (!isfinite(ns_of(results, &line->ours[i])))
			continue;
		add(t, "%s%s%s", i ? ", " : "", line->ours[i].what, *line->ours[i].what ? " " : "");
		add_figure(t, results, &line->ours[i]);
	}
}

/* Adds how many times as long as this library a peer takes. */
static void add_ratio(struct text *t, double ratio, bool slower)
{
	add(t, " (%s%.*fx)", slower ? "faster: " : "", ratio < 0.995 ? 2 : ratio < 9.95 ? 1 : 0, ratio);
}

static void add_peers(struct text *t, const struct results *results, const struct line *line)
{
	const char *name = NULL;

	if (!is_installed(&line->ours[0]))
		add(t, "; no peer is installed");
	for (int i = 0; i < PER_LINE; i++) {
		struct figure peer = best_peer(results, &line->ours[i]);

		if (!isfinite(ratio_of(results, &line->ours[i])))
			continue;
		add(t, name ? ", " : "; best peer: ");
		if (peer.type != name)
			add(t, "%s ", peer.type);
		name = peer.type;
		add_figure(t, results, &peer);
		add_ratio(t, ratio_of(results, &line->ours[i]), is_slower(results, &line->ours[i]));
	}
}

static void print_line(struct sheet *s, const struct results *results, const struct line *line)
{
	struct text t = { .n = 0 };

	add(&t, "%s%-*s", s->markdown ? "- " : "", s->markdown ? 0 : INDENT, line->label);
	if (s->markdown)
		add(&t, ": ");
	add_ours(&t, results, line);
	add_peers(&t, results, line);
	sheet_text(s, INDENT, t.line);
}

/* ---- the whole headline ---- */

static const struct line lines[] = {
	{ "Read", { { "RCU", READ("rcu", 1, PEER_RCU) }, { "hazard pointer", READ("hazptr", 1, PEER_HAZPTR) } } },
	{ "Wait", { { "all readers", WAIT("rcu", 64, PEER_RCU) }, { "one object", WAIT("shazptr", 64, PEER_RCU) } } },
	{ "Retirement", { { "RCU", RETIRE("rcu_free", IDLE, 1, PEER_RCU) },
			  { "hazard pointer", RETIRE("hazptr_free", IDLE, 1, PEER_HAZPTR) } } },
	{ "Read lock", { { "", READ("percpu_rwsem", 1, PEER_LOCK) }, { "by two", READ("percpu_rwsem", 2, PEER_LOCK) } } },
	{ "Reference", { { "", READ("percpu_ref", 1, PEER_COUNT) }, { "by two", READ("percpu_ref", 2, PEER_COUNT) } } },
	{ "Lookup", { { "of 1000", LOOKUP(0, 2, PEER_TABLE) }, { "of 1M", LOOKUP(1, 2, PEER_TABLE) } } },
};
#define NR_LINES (sizeof(lines) / sizeof(lines[0]))

static double spread_of(const struct results *results, const struct line *line)
{
	double spread = 0;

	for (int i = 0; i < PER_LINE; i++) {
		struct figure peer = best_peer(results, &line->ours[i]);
		const struct cell *cell[] = { cell_of(results, &line->ours[i]), peer.type ? cell_of(results, &peer) : NULL };

		for (int k = 0; k < 2; k++)
			if (cell[k])
				spread = fmax(spread, cell_summary(cell[k]).spread / 2); /* fmax() ignores a spread that is not a number */
	}
	return spread;
}

static void print_spreads(struct sheet *s, const struct results *results)
{
	struct text t = { .n = 0 };

	for (size_t i = 0; i < NR_LINES; i++) {
		double spread = spread_of(results, &lines[i]);

		if (spread > WIDE)
			add(&t, "%s %s +-%.0f %%", t.n ? "," : "; they differ:", lines[i].label, 100 * fmin(spread, 9.99));
	}
	sheet_note(s, "\nMedians of rounds in turn, %s fences%s. (2x): the peer takes twice as long. The best peer is the fastest of the "
		      "packaged libraries that were measured; an atomic count for references; for lookups also chains with a spinlock in "
		      "each bucket. 99th percentiles are shown where they are ten times the median.",
		   fence_name(run_default_fence()), t.line);
}

/* tools/report/headline.py has the same definitions. */
static void print_definitions(struct sheet *s)
{
	sheet_note(s, "Read: CPU time of a section with two loads, one thread. "
		      "Wait: until readers have left, beside 64 busy readers of other objects. "
		      "Retirement: an object from malloc() to free(), by kfree_rcu() and kfree_hazptr(), one thread, no readers. "
		      "Read lock: percpu_rwsem, lock and unlock, CPU time; by two: two threads at once. "
		      "Reference: percpu_ref, get and put, CPU time. "
		      "Lookup: in a hashtable of 1000 and of a million objects, time of each of two threads.");
}

void run_print_headline(struct sheet *s, const struct results *results)
{
	int printed = 0;

	for (size_t i = 0; i < NR_LINES; i++) {
		if (!isfinite(ns_of(results, &lines[i].ours[0])))
			continue;
		if (!printed++)
			sheet_title(s, "What it costs on this machine, and elsewhere%s", s->markdown ? "" : "\n");
		print_line(s, results, &lines[i]);
	}
	if (!printed)
		return;
	print_spreads(s, results);
	print_definitions(s);
}
