/* SPDX-License-Identifier: MIT */
/* torture_watch.c - decides whether a thread of a torture run waits for ever. */
#include "torture_watch.h"

#include <string.h>

static uint64_t step_ns(const struct torture_watch *watch, uint64_t now_ns)
{
	uint64_t passed = watch->polls ? now_ns - watch->now : 0;

	return passed < WATCH_STEP_NS ? passed : WATCH_STEP_NS;
}

void torture_watch_poll(struct torture_watch *watch, const uint64_t *reads, uint32_t nr, uint32_t active, uint64_t now_ns)
{
	uint64_t total = 0;
	uint32_t moved = 0;

	active = active < nr ? active : nr;
	for (uint32_t i = 0; i < nr; i++) {
		total += reads[i];
		moved += i < active && reads[i] != watch->reads[i];
	}
	watch->ns += step_ns(watch, now_ns);
	watch->now = now_ns;
	watch->polls++;
	watch->silent = total == watch->total ? watch->silent + 1 : 0;
	watch->total = total;
	if (moved <= active / 2)
		return;
	watch->turns++;
	memcpy(watch->reads, reads, nr * sizeof(*reads));
}

bool torture_watch_hangs(const struct torture_watch *watch, struct torture_watched *one, uint64_t progress, bool rests)
{
	if (!one->known || rests || progress != one->progress)
		*one = (struct torture_watched){ true, progress, watch->turns, watch->polls, watch->ns };
	if (watch->turns - one->turn >= WATCH_TURNS || watch->ns - one->ns >= WATCH_MAX_S * 1000000000ull)
		return true;
	return watch->silent >= WATCH_TURNS && watch->polls - one->poll >= WATCH_TURNS;
}

bool torture_watch_is_still(struct torture_watch *watch, struct torture_watched *one, uint64_t activity, uint64_t now_ns)
{
	torture_watch_poll(watch, &activity, 1, 0, now_ns);
	return torture_watch_hangs(watch, one, activity, false);
}
