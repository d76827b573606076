/* SPDX-License-Identifier: MIT */
/* scale.c - run workloads on the modelled machine, and print what each operation costs.
 *
 *     scale [--seed=N] [--pack=SHIFT] [--stay=NS] NAME CPUS [CALLERS THREADS READER]
 *     scale --list
 *     scale --check                 the limits of pins.c; with --stay before it, all but those that depend on that
 *     scale --check-shows=NAME      a build with a bad layout breaks the limit of NAME
 *
 * Each measurement has a process of its own, because the library cannot be reset.
 */
#include "cell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

/* Lines and hashes depend on addresses, which are the same in each run. */
static void same_addresses(char **argv)
{
	int now = personality(0xffffffff);

	if (now == -1 || now & ADDR_NO_RANDOMIZE)
		return;
	if (personality((unsigned long)now | ADDR_NO_RANDOMIZE) != -1)
		execv("/proc/self/exe", argv);
}

static enum reader reader_of(const char *name)
{
	static const char *const names[NR_READERS] = { "idle", "busy", "sleeping" };

	for (int i = 0; i < NR_READERS; i++)
		if (!strcmp(name, names[i]))
			return (enum reader)i;
	scale_fail("no such reader: %s", name);
}

int main(int argc, char **argv)
{
	struct cell cell = { .seed = 1, .cpus_of_socket = 64 };
	bool list = false;
	int i = 1;

	same_addresses(argv);
	for (; i < argc && argv[i][0] == '-'; i++) {
		if (!strncmp(argv[i], "--seed=", 7))
			cell.seed = strtoull(argv[i] + 7, NULL, 0);
		else if (!strncmp(argv[i], "--pack=", 7))
			scale_line_shift = (unsigned int)atoi(argv[i] + 7);
		else if (!strncmp(argv[i], "--stay=", 7))
			scale_stay_ps = strtoull(argv[i] + 7, NULL, 0) * 1000;
		else if (!strcmp(argv[i], "--list"))
			list = true;
		else if (!strcmp(argv[i], "--check"))
			return cell_check_pins(cell.seed, scale_stay_ps >= SCALE_STAY_PS);
		else if (!strncmp(argv[i], "--check-shows=", 14))
			return cell_check_shows(argv[i] + 14, cell.seed);
		else
			scale_fail("unknown option %s", argv[i]);
	}
	if (list)
		return cell_list();
	if (argc - i < 2)
		scale_fail("usage: scale [--list] [--check] [--seed=N] [--pack=SHIFT] [--stay=NS] NAME CPUS [CALLERS THREADS READER]");
	cell.workload = cell_workload(argv[i]);
	cell.cpus = atoi(argv[i + 1]);
	cell.threads = cell.callers = cell.cpus;
	if (argc - i > 2)
		cell.callers = atoi(argv[i + 2]);
	if (argc - i > 3)
		cell.threads = atoi(argv[i + 3]);
	if (argc - i > 4)
		cell.reader = reader_of(argv[i + 4]);
	cell_run(&cell);
	cell_print(&cell);
	return 0;
}
