/* SPDX-License-Identifier: MIT */
/* hogs.c - processes that only use a CPU. */
#include "hogs.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quiesce/atomic.h>

#include "team.h"

extern char **environ;

/* Uses posix_spawn(), not fork(): the libraries under test have handlers for fork(). */
void hogs_start(struct hogs *hogs, int nr)
{
	char parent[16];
	char *const argv[] = { (char *)"quiesce", (char *)"--hog", parent, NULL };

	snprintf(parent, sizeof(parent), "%d", (int)getpid());
	for (hogs->nr = 0; hogs->nr < nr && hogs->nr < MAX_HOGS; hogs->nr++) {
		int err = posix_spawn(&hogs->pid[hogs->nr], "/proc/self/exe", NULL, NULL, argv, environ);

		if (err) {
			bench_note("only %d of %d CPU hogs: %s", hogs->nr, nr, strerror(err));
			break;
		}
	}
}

void hogs_stop(struct hogs *hogs)
{
	for (int i = 0; i < hogs->nr; i++) {
		kill(hogs->pid[i], SIGKILL);
		waitpid(hogs->pid[i], NULL, 0);
	}
	hogs->nr = 0;
}

/* The parent may have died before the call of prctl(); then process 1 or a subreaper is the parent. */
int hog_main(const char *parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (parent && getppid() == atoi(parent))
		for (int i = 0; i < 1000000; i++)
			quiesce_fence_light(HOG);
	return 0;
}
