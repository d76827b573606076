/* SPDX-License-Identifier: MIT */
/* process.h - a program that the tool starts, listens to and watches over. */
#ifndef QUIESCE_TOOL_PROCESS_H
#define QUIESCE_TOOL_PROCESS_H

#include <sys/types.h>

#include "tool.h"

struct process {
	const char *path; /* the executable */
	const char *name; /* for notes */
	int watchdog_s;   /* silent for that long: hung */
	pid_t pid;
	int from; /* read end of what it writes */
};

/* A pipe with both ends above the descriptors that the program gets. */
bool process_pipe(int fd[2]);
/* Start it with @in (-1: nothing to read) as descriptor 0; what it writes to descriptor @out comes back.  0 or -errno. */
int process_start(struct process *p, char *const argv[], char *const environment[], int in, int out);
/* Call @take for what it writes until it closes its end, then reap it; Ctrl-C first asks it to come to an end.
 * Returns its exit status; what goes wrong becomes a note in @results and -1. */
int process_finish(struct process *p, void (*take)(void *arg, const char *data, size_t size), void *arg, struct results *results);

#endif
