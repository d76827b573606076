/* SPDX-License-Identifier: MIT */
/* process.h - a program that the tool starts, reads from, and kills if it hangs. */
#ifndef QUIESCE_TOOL_PROCESS_H
#define QUIESCE_TOOL_PROCESS_H

#include <sys/types.h>

#include "tool.h"

struct process {
	const char *path; /* path of the executable */
	const char *name; /* name in notes */
	int watchdog_s;   /* silence that counts as a hang */
	pid_t pid;
	int from; /* read end of the pipe that it writes to */
};

/* A pipe with both ends above the descriptors that the program gets. */
bool process_pipe(int fd[2]);
/* Starts it with @in (-1: nothing to read) as descriptor 0; the pipe gets what it
 * writes to descriptor @out.  Returns 0 or -errno. */
int process_start(struct process *p, char *const argv[], char *const environment[], int in, int out);
/* Calls @take for its output until it closes its end, then reaps it; Ctrl-C asks it to end early.
 * Returns its exit status, or -1 after a note in @results. */
int process_finish(struct process *p, void (*take)(void *arg, const char *data, size_t size), void *arg, struct results *results);

#endif
