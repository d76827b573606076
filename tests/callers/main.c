/* SPDX-License-Identifier: MIT */
/* main.c - callers SITUATION [PATTERN]: the cells of a situation, or those whose names have PATTERN in them.
 *
 * CALLERS_ALARM=SECONDS   a cell that takes longer is reported as hanging
 * CALLERS_SEED=N          the seed that draws combinations
 * CALLERS_PLANT=NAME      a broken call replaces all: the situation has to detect it
 * CI_LONG=1               run all combinations
 */
#include "callers.h"

static const struct {
	const char *name;
	int (*run)(void);
} situations[] = {
	{ "forks", situation_forks },         { "callbacks", situation_callbacks }, { "acts", situation_acts },
	{ "ends", situation_ends },           { "failing", situation_failing },     { "restored", situation_restored },
	{ "twice", situation_twice },         { "stopped", situation_stopped },
	{ "planted", situation_planted },
};
enum { NR_SITUATIONS = sizeof situations / sizeof *situations };

static const struct call *const rooms[] = { calls_rcu, calls_hazard, calls_retire, calls_percpu, calls_ref, calls_slab,
					    calls_tables, calls_ids, calls_lists, calls_control };

const struct call *call_at(size_t i)
{
	if (planted_call())
		return i ? NULL : planted_call();
	for (size_t room = 0; room < sizeof rooms / sizeof *rooms; room++)
		for (const struct call *call = rooms[room]; call->name; call++)
			if (!i--)
				return call;
	return NULL;
}

int main(int argc, char **argv)
{
	if (again_when())
		return again_main();
	plant();
	for (int i = 0; argc > 1 && i < NR_SITUATIONS; i++)
		if (!strcmp(argv[1], situations[i].name)) {
			cells_only(argc > 2 ? argv[2] : NULL);
			return situations[i].run();
		}
	fprintf(stderr, "usage: callers SITUATION [PATTERN]\n");
	return 2;
}
