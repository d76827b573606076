/* SPDX-License-Identifier: MIT */
/* mutants.c - names of mutants; linked into simulator and torture builds only. */
#include "mutants.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int quiesce_mutant = -1;

#define QUIESCE_X(name) #name,
static const char *const label_name[] = { QUIESCE_LABELS(QUIESCE_X) };
#undef QUIESCE_X
static const char *const kind_name[] = { "light", "full", "heavy", "acquire", "release", "rmw" };
#define QUIESCE_X(name) #name,
static const char *const guard_name[] = { "", QUIESCE_GUARDS(QUIESCE_X) };
#undef QUIESCE_X

const char *quiesce_mutant_name(int i)
{
	static char text[32];

	if (i < 0 || i >= QUIESCE_NR_MUTANTS)
		return NULL;
	if (i >= QUIESCE_G_first)
		return guard_name[i - QUIESCE_G_first];
	snprintf(text, sizeof text, "%s:%s", label_name[i / QUIESCE_NR_KINDS], kind_name[i % QUIESCE_NR_KINDS]);
	return text;
}

int quiesce_mutant_set(const char *name)
{
	quiesce_mutant = -1;
	if (!name || !*name)
		return 0;
	for (int i = 0; i < QUIESCE_NR_MUTANTS; i++)
		if (!strcmp(quiesce_mutant_name(i), name)) {
			quiesce_mutant = i;
			return 0;
		}
	return -EINVAL;
}
