/* SPDX-License-Identifier: MIT */
/* hashscale_resize.c - lookups in a table that is being resized, and the windows to compare them with.
 *
 * One more thread resizes a table all the time: from a size for twice as many elements to one for four times, eight
 * times, and back.  The elements stay the same: otherwise the cost would be that of more elements.  The library's
 * tables shrink by themselves only, when an eighth of their room is in use, to a quarter of it: hence the sizes.
 *
 * A resize costs lookups in another table something, too: caches, interrupts, pages that come and go.  So the control
 * windows resize a table without lookups, and the further loss in the threads' own table is the cost of its resizing.
 * A larger table is slower by itself.  While it is resized half of the lookups meet it large on average, so they are
 * compared with the mean of both sizes.
 */
#include "hashscale.h"

#include <quiesce/control.h>
#include <sched.h>

#define SMALL 2
#define MIDDLE 4
#define LARGE 8
_Static_assert(HASH_RESIZES_OF_CYCLE == 3, "from SMALL to MIDDLE to LARGE to SMALL");
#define NUDGE 64 /* elements that are inserted and removed, so that the table checks its size */
#define MOST_NUDGES 10000

static void run(const struct hash_cell *c, void *table, const uint64_t *word, uint64_t nr, struct hash_tally *tally)
{
	c->op->hash->run(table, word, nr, tally);
	if (c->op->hash->between)
		c->op->hash->between();
}

/* Inserts and removes keys without lookups, other ones each @turn: with
 * some tables only certain keys cause the check. */
static void nudge(const struct hash_cell *c, void *table, int turn, struct hash_tally *tally)
{
	uint64_t word[NUDGE], first = c->keys.nr + NUDGE * (uint64_t)turn;

	for (uint64_t i = 0; i < NUDGE; i++)
		word[i] = hash_key_number(first + i) | HASH_CHURNED | HASH_INSERT;
	run(c, table, word, NUDGE, tally);
	for (uint64_t i = 0; i < NUDGE; i++)
		word[i] ^= HASH_INSERT | HASH_REMOVE;
	run(c, table, word, NUDGE, tally);
}

static void resize(const struct hash_cell *c, void *table, uint64_t times, struct hash_tally *tally)
{
	for (int i = 0; !c->op->hash->resize(table, times * (c->keys.nr + NUDGE)); i++) {
		if (i == MOST_NUDGES) {
			tally->failed++;
			return;
		}
		nudge(c, table, i, tally);
	}
}

static bool resize_here(const struct hash_cell *c, void *table, uint64_t times)
{
	struct hash_tally tally = { 0 };

	resize(c, table, times, &tally);
	return hash_tally_good(&tally, "resizing the table");
}

void hash_resize_cycle(const struct hash_cell *c, struct hash_tally *tally)
{
	void *table = c->window == HASH_WINDOW_RESIZED ? c->table : c->other;

	resize(c, table, MIDDLE, tally);
	resize(c, table, LARGE, tally);
	resize(c, table, SMALL, tally);
}

bool hash_resize_prepare(const struct hash_cell *c)
{
	struct hash_tally tally = { 0 };

	nudge(c, c->table, 0, &tally);
	return hash_tally_good(&tally, "some elements more and less") && resize_here(c, c->table, LARGE) &&
	       resize_here(c, c->table, SMALL) && resize_here(c, c->other, LARGE) && resize_here(c, c->other, SMALL);
}

static bool measure(struct hash_cell *c, enum hash_window window)
{
	c->window = window;
	return hash_cell_measure(c);
}

bool hash_resize_measure(struct hash_cell *c)
{
	bool good = measure(c, HASH_WINDOW_ALONE);

	good = measure(c, HASH_WINDOW_SMALL) && good;
	good = measure(c, HASH_WINDOW_RESIZED) && good;
	if (!resize_here(c, c->table, LARGE))
		return false;
	good = measure(c, HASH_WINDOW_LARGE) && good;
	job_send_metric(c->scenario, HASH_CONTROL, c->threads, c->job->round,
		 (c->rate[HASH_WINDOW_SMALL] + c->rate[HASH_WINDOW_LARGE]) / 2);
	return resize_here(c, c->table, SMALL) && good;
}

bool hash_resize_apart(const struct hash_cell *c)
{
	return hash_plan_of(c->job)->resize && c->threads < cpus_online();
}

/* Binds the calling thread to the last CPU, and with it the library's threads, which do the rest of a resize. */
void hash_resize_bind(void)
{
	struct quiesce_thread_attr attr = QUIESCE_THREAD_ATTR_INIT;
	cpu_set_t one;

	bind_cpu(cpus_online() - 1);
	if (sched_getaffinity(0, sizeof one, &one))
		return;
	attr.cpus = &one;
	attr.cpus_size = sizeof one;
	quiesce_set_thread_attr(QUIESCE_THREAD_WORKER, &attr);
	quiesce_set_thread_attr(QUIESCE_THREAD_HELPER, &attr);
}
