/* SPDX-License-Identifier: MIT */
/* thread_create.c - threads like the library's own (thread.c, I1), for who builds upon it: they have ids, and end. */
#include <quiesce/detail/thread.h>

#include "thread.h"

int quiesce__thread_create(pthread_t *ret, void *(*main)(void *arg), void *arg)
{
	struct platform_thread how;

	quiesce__init();
	quiesce__thread_defaults(&how);
	return platform_thread_create(ret, main, arg, &how);
}

void quiesce__thread_begin(const char *name)
{
	static const struct platform_thread normal; /* its CPUs were set by who created it */

	platform_thread_begin(name, &normal);
}
