/* SPDX-License-Identifier: MIT */
/* doctor_fence.c - membarrier: its announced commands, its effect, and the fences that the library therefore uses. */
#include <errno.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <quiesce/control.h>

#include "doctor.h"

#define LITMUS_S 0.1 /* seconds of each of three runs */

long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

static void name_commands(long mask, char *text, size_t size)
{
	static const struct { int bit; const char *name; } command[] = {
		{ MEMBARRIER_CMD_GLOBAL, "global" },
		{ MEMBARRIER_CMD_GLOBAL_EXPEDITED, "global_expedited" },
		{ MEMBARRIER_CMD_PRIVATE_EXPEDITED, "private_expedited" },
		{ MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, "private_expedited_sync_core" },
		{ MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, "private_expedited_rseq" },
	};
	size_t n = (size_t)snprintf(text, size, "mask 0x%lx:", mask);

	for (size_t i = 0; i < sizeof(command) / sizeof(command[0]) && n < size; i++)
		if (mask & command[i].bit)
			n += (size_t)snprintf(text + n, size - n, " %s", command[i].name);
}

static bool find_membarrier(struct findings *f)
{
	long mask = membarrier(MEMBARRIER_CMD_QUERY);
	char text[256];

	if (mask < 0) {
		finding(f, "membarrier", "readers need full fences", "refused: %s", strerror(errno));
		return false;
	}
	name_commands(mask, text, sizeof(text));
	finding(f, "membarrier", NULL, "%s", text);
	if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) {
		finding(f, "membarrier registration", "readers need full fences", "refused: %s", strerror(errno));
		return false;
	}
	if (membarrier(1 << 30) == 0)
		finding(f, "membarrier honesty", "something between us and the kernel says yes to everything",
			"accepts a command that does not exist");
	return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

static void time_membarrier(struct findings *f)
{
	uint64_t begin = now_ns();
	int n = 0;

	do
		membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	while (n++, now_ns() - begin < 20000000 && !interrupted());
	finding(f, "membarrier, no sibling runs", NULL, "%.2f us", (double)(now_ns() - begin) / 1e3 / n);
}

static struct litmus_result one_litmus(struct findings *f, const char *name, enum litmus_fence fence)
{
	struct litmus_result r = litmus_run(fence, LITMUS_S);

	finding(f, name, NULL, "%llu of %llu rounds reordered", (unsigned long long)r.both_missed,
		(unsigned long long)r.rounds);
	return r;
}

/* A clean result is evidence only if the same test without fences is not clean. */
static void try_membarrier(struct findings *f)
{
	struct litmus_result none, heavy;

	if (cpus_online() < 2) {
		finding(f, "membarrier in practice", NULL, "not tried: one CPU cannot show reordering");
		return;
	}
	if (!find_threads(f, "membarrier in practice", 2))
		return;
	none = one_litmus(f, "litmus, no fence", LITMUS_NONE);
	one_litmus(f, "litmus, full fences", LITMUS_FULL);
	heavy = one_litmus(f, "litmus, light and membarrier", LITMUS_LIGHT_HEAVY);
	if (heavy.both_missed)
		finding(f, "membarrier in practice", "set QUIESCE_FENCE=full", "DOES NOT ORDER its siblings");
	else if (!none.both_missed)
		finding(f, "membarrier in practice", NULL,
			"no verdict: this machine did not reorder without fences either");
	else
		finding(f, "membarrier in practice", NULL, "orders: nothing reordered in %llu rounds",
			(unsigned long long)heavy.rounds);
}

static const char *why_mode(bool light, bool works)
{
	const char *asked = getenv("QUIESCE_FENCE");

	if (asked && !strcmp(asked, light ? "light" : "full"))
		return "QUIESCE_FENCE asks for it";
	if (light)
		return "membarrier works";
	return works ? "the library's own test of membarrier failed" : "membarrier does not work here";
}

static void find_mode(struct findings *f, bool works)
{
	bool light = quiesce_fence() == QUIESCE_FENCE_LIGHT;

	finding(f, "fence mode in force", light ? "readers: a compiler barrier; updaters: membarrier" :
						  "readers: a full fence; updaters: a full fence",
		"%s (%s)", light ? "light" : "full", why_mode(light, works));
}

void doctor_fences(struct findings *f)
{
	bool works = find_membarrier(f);

	if (works) {
		time_membarrier(f);
		try_membarrier(f);
	}
	find_mode(f, works);
}
