/* SPDX-License-Identifier: MIT */
/* run_faster.c - the cells of a run in which a packaged peer is ahead of this library, with the reason.
 *
 * Types say themselves what they are compared with: a call of this library has the groups of its peers (struct op, @peers),
 * and a peer has the reason why it can be ahead (@reason).  A cell is compared with those of its peers under the same
 * scenario with the same number of threads; of the peers that are ahead the best is named.
 */
#include <math.h>
#include <string.h>

#include "hashscale/hashscale.h"
#include "rcuscale/rcuscale.h"
#include "refscale/refscale.h"
#include "retirescale/retirescale.h"
#include "run.h"
#include "rwscale/rwscale.h"

#define NOT_KNOWN "no reason is known"
#define MAX_REASONS 64

/* The columns, each once: several tables have those of reads. */
static const struct {
	const char *what;
	const struct run_column *columns;
} sets[] = {
	{ "Wait own, us", run_waits_same }, { "Wait, us", run_waits_others }, { "Read, ns", run_reads }, { "Write, us", run_bursts },
	{ "Retire, /s", run_retirements }, { "Lookup, /s", run_lookups },
};
#define NR_SETS (sizeof(sets) / sizeof(sets[0]))

struct behind {
	const char *what;
	const struct run_column *column;
	enum op_fence fence;
	const struct op *ours, *peer;
	struct run_figure here, there;
};

bool run_is_ahead(const struct run_figure *theirs, const struct run_figure *ours, bool more_is_better)
{
	double gap = more_is_better ? theirs->value - ours->value : ours->value - theirs->value;

	/* The last condition: it is visible in a ratio of two digits. */
	return isfinite(gap) && gap > theirs->spread + ours->spread && gap > 0.005 * fmax(theirs->value, ours->value);
}

static double ratio_of(const struct behind *b)
{
	return b->column->more_is_better ? b->here.value / b->there.value : b->there.value / b->here.value;
}

/* The name of the cell, in a static buffer. */
static const char *name_of(const struct behind *b)
{
	static char name[80];

	if (b->column->most_of)
		snprintf(name, sizeof(name), "Garbage, stalled: %d", b->column->threads);
	else
		snprintf(name, sizeof(name), "%s: %s", b->what, b->column->title);
	return name;
}

static const char *reason_of(const struct op *peer)
{
	return peer->reason ? peer->reason : NOT_KNOWN;
}

/* True if a peer is ahead of @b's own type; completes @b with the best of them. */
static bool find_peer(const struct results *results, struct behind *b, const struct op *const *types, int nr)
{
	b->peer = NULL;
	for (int i = 0; i < nr; i++) {
		struct run_figure there;

		if (!(types[i]->groups & b->ours->peers))
			continue;
		there = run_figure_of(results, b->column, types[i]->name, OP_FENCE_NONE);
		if (!run_is_ahead(&there, &b->here, b->column->more_is_better))
			continue;
		if (b->peer && !(b->column->more_is_better ? there.value > b->there.value : there.value < b->there.value))
			continue;
		b->peer = types[i];
		b->there = there;
	}
	return b->peer;
}

typedef void (*behind_fn)(const struct behind *b, void *arg);

static void in_column(const struct results *results, struct behind *b, behind_fn fn, void *arg)
{
	const struct op *types[MAX_TYPES];
	int nr = types_all(b->column->command->fits, types, MAX_TYPES);

	for (int i = 0; i < nr; i++)
		for (enum op_fence fence = OP_FENCE_NONE; fence < OP_NR_FENCES && types[i]->peers; fence++) {
			b->ours = types[i];
			b->fence = fence;
			b->here = run_figure_of(results, b->column, types[i]->name, fence);
			if (isfinite(b->here.value) && find_peer(results, b, types, nr))
				fn(b, arg);
		}
}

/* Calls @fn for each cell in which a peer is ahead. */
static void for_each(const struct results *results, behind_fn fn, void *arg)
{
	for (size_t i = 0; i < NR_SETS; i++)
		for (const struct run_column *c = sets[i].columns; c->title; c++) {
			struct behind b = { .what = sets[i].what, .column = c };

			in_column(results, &b, fn, arg);
		}
}

/* ---- tables ---- */

struct print {
	struct sheet *s;
	bool others; /* true: the cells of the fence mode that is not the default */
	const struct op *peer[MAX_REASONS];
	int rows, nr_peers;
};

static enum op_fence other_fence(void)
{
	return run_default_fence() == OP_FENCE_LIGHT ? OP_FENCE_FULL : OP_FENCE_LIGHT;
}

static void print_head(struct print *p)
{
	static const char *const column[] = { "what", "ours", "here", "faster", "there", "x" };

	sheet_title(p->s, "%s%s%s", p->others ? "The same with " : "Where others are faster", p->others ? fence_name(other_fence()) : "",
		    p->others ? " fences" : "");
	if (p->others)
		sheet_note(p->s, "Full fences are for machines without membarrier, and for threads that must not be interrupted: a "
				 "section has one or two, and a wait needs no system call.");
	else
		sheet_note(p->s, "Every cell of these tables in which a peer of the same kind is ahead, by more than the rounds of both "
				 "differ: half of each spread, added. x: how well we do, as a part of how well the peer does.");
	for (size_t i = 0; i < sizeof(column) / sizeof(column[0]); i++)
		sheet_cell(p->s, i == 2 || i > 3 ? 1 : -1, "%s", column[i]);
	sheet_end_head(p->s);
}

static void print_value(struct sheet *s, double v)
{
	if (v >= 1e6)
		sheet_cell(s, 1, "%.1fM", v / 1e6);
	else
		sheet_cell(s, 1, "%.*f", v < 10 ? 2 : v < 1000 ? 1 : 0, v);
}

static void remember(struct print *p, const struct op *peer)
{
	for (int i = 0; i < p->nr_peers; i++)
		if (p->peer[i] == peer)
			return;
	if (p->nr_peers < MAX_REASONS)
		p->peer[p->nr_peers++] = peer;
}

static void print_row(const struct behind *b, void *arg)
{
	struct print *p = arg;

	if ((b->fence != OP_FENCE_NONE && b->fence != run_default_fence()) != p->others)
		return;
	if (!p->rows++)
		print_head(p);
	sheet_cell(p->s, -1, "%s", name_of(b));
	sheet_cell(p->s, -1, "%s", b->ours->name);
	print_value(p->s, b->here.value);
	sheet_cell(p->s, -1, "%s", b->peer->name);
	print_value(p->s, b->there.value);
	sheet_cell(p->s, 1, "%.*fx", ratio_of(b) < 0.1 ? 3 : 2, ratio_of(b));
	sheet_end_row(p->s);
	remember(p, b->peer);
}

static void print_reasons(const struct print *p)
{
	for (int i = 0; i < p->nr_peers; i++) {
		char line[400];

		snprintf(line, sizeof(line), "%s%s: %s.", p->s->markdown ? "- " : "", p->peer[i]->name, reason_of(p->peer[i]));
		sheet_text(p->s, 2, line);
	}
}

void run_print_faster(struct sheet *s, const struct results *results)
{
	struct print p = { .s = s };

	for_each(results, print_row, &p);
	p.rows = 0;
	p.others = true;
	for_each(results, print_row, &p);
	sheet_end_table(s);
	if (p.nr_peers)
		sheet_note(s, "Why:");
	print_reasons(&p);
}

/* ---- JSON ---- */

static const struct {
	const char *name, *meaning;
} fields[] = {
	{ "what", "the cell in words, with its unit" },
	{ "subcommand", "as in the row of `rows` that has the figure" },
	{ "scenario", NULL },
	{ "threads", NULL },
	{ "type", NULL },
	{ "fence", NULL },
	{ "field", "the field of that row" },
	{ "value", "our figure" },
	{ "peer", "the best of the peers that are ahead" },
	{ "peer_value", "its figure" },
	{ "ratio", "how well this library does, as a part of how well the peer does: below 1" },
	{ "reason", "why the peer is ahead; `null`: no reason is known" },
};

static void add_row(const struct behind *b, void *arg)
{
	const struct run_column *c = b->column;
	json_array_append_new(arg, json_pack("{ss ss ss si ss ss? ss sf ss sf sf ss?}", "what", name_of(b), "subcommand", c->command->name,
					     "scenario", c->command->scenarios[c->scenario].name, "threads", c->threads,
					     "type", b->ours->name, "fence", fence_name(b->fence), "field", c->field ? c->field : "p50",
					     "value", b->here.value, "peer", b->peer->name, "peer_value", b->there.value,
					     "ratio", ratio_of(b), "reason", b->peer->reason));
}

json_t *run_faster_rows(const struct results *results)
{
	json_t *rows = json_array();

	for_each(results, add_row, rows);
	return rows;
}

void run_faster_fields(FILE *out)
{
	fputs("| field of a cell in `faster` | meaning |\n|---|---|\n", out);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]);) {
		const char *meaning = fields[i].meaning;

		fprintf(out, "| `%s`", fields[i++].name);
		for (; i < sizeof(fields) / sizeof(fields[0]) && !fields[i].meaning; i++)
			fprintf(out, " `%s`", fields[i].name);
		fprintf(out, " | %s |\n", meaning);
	}
}
