/* SPDX-License-Identifier: MIT */
/* hogs.h - processes that only use a CPU. */
#ifndef QUIESCE_TOOL_HOGS_H
#define QUIESCE_TOOL_HOGS_H

#include <sys/types.h>

#define MAX_HOGS 8

struct hogs {
	pid_t pid[MAX_HOGS];
	int nr;
};
void hogs_start(struct hogs *hogs, int nr);
void hogs_stop(struct hogs *hogs);
/* A process that occupies a CPU runs this main function. */
int hog_main(const char *parent);

#endif
