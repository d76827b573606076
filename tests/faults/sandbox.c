/* SPDX-License-Identifier: MIT */
/* sandbox.c - run a command whose system calls fail by rules: sandbox RULE... -- COMMAND...
 *
 * Rules: see filter.h.  Exit status of the command, or 77 without seccomp.
 */
#include "filter.h"

int main(int argc, char **argv)
{
	int i = 1;

	for (; i < argc && strcmp(argv[i], "--"); i++)
		filter_now(argv[i]);
	if (i + 1 >= argc) {
		fprintf(stderr, "usage: sandbox RULE... -- COMMAND...\n");
		return 2;
	}
	execvp(argv[i + 1], argv + i + 1);
	perror(argv[i + 1]);
	return 2;
}
