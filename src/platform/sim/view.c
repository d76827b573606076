/* SPDX-License-Identifier: MIT */
/* view.c - the knowledge of threads: vector clocks, and in the weak model time stamps per location. */
#include "machine.h"

#include <string.h>

void view_join_clock(uint32_t *into, const uint32_t *from)
{
	for (int i = 0; i < SIM_MAX_THREADS; i++)
		into[i] = into[i] > from[i] ? into[i] : from[i];
}

static void join_stamps(struct view *into, const struct view *from)
{
	/* Joined in whole vectors; stamps beyond nr_locations are not used. */
	int n = (M->nr_locations + 7) & ~7;

	for (int i = 0; i < n; i++)
		into->stamp[i] = into->stamp[i] > from->stamp[i] ? into->stamp[i] : from->stamp[i];
}

void view_join(struct view *into, const struct view *from)
{
	view_join_clock(into->clock, from->clock);
	if (M->opt.model == SIM_WEAK)
		join_stamps(into, from);
}

void view_copy(struct view *into, const struct view *from)
{
	memcpy(into->clock, from->clock, sizeof into->clock);
	if (M->opt.model == SIM_WEAK)
		memcpy(into->stamp, from->stamp, ((M->nr_locations + 7) & ~7) * sizeof into->stamp[0]);
}

/* Fences agree on the stores that may still be read, in one order over all fences.  A fence by itself orders
 * no accesses: clocks are passed on by reads only. */
void view_fence(struct thread *t)
{
	if (t->acq_any)
		view_join(&t->cur, &t->acq);
	if (M->opt.model == SIM_WEAK) {
		join_stamps(&t->cur, &M->sc);
		join_stamps(&M->sc, &t->cur);
	}
	view_copy(&t->rel, &t->cur);
	t->rel_any = true;
}
