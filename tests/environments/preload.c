/* SPDX-License-Identifier: MIT */
/* preload.c - in every process of a program that is not changed, a thread uses the library, and writes a line to the file TRY_REPORT. */
#include "plug.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *use(void *when)
{
	const char *path = getenv("TRY_REPORT");
	char line[64];
	int fd, bad = quiesce_try();

	snprintf(line, sizeof(line), "%s %d %s\n", (const char *)when, (int)getpid(), bad ? "bad" : "good");
	fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	if (fd >= 0 && write(fd, line, strlen(line)) < 0)
		abort();
	if (fd >= 0)
		close(fd);
	return NULL;
}

static void begin(const char *when)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, use, (void *)when) == 0)
		pthread_detach(thread);
}

static void in_child(void)
{
	begin("child");
}

__attribute__((constructor)) static void at_load(void)
{
	pthread_atfork(NULL, NULL, in_child);
	begin("program");
}
