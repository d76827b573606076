/* SPDX-License-Identifier: MIT */
/* thread_create.c - threads with the attributes of the library's own (thread.c, I1), and runs of callbacks (run.h), for libraries that
 * build upon this one. */
#include <quiesce/detail/thread.h>

#include "run.h"
#include "thread.h"

int quiesce__thread_create(pthread_t *ret, void *(*func)(void *arg), void *arg)
{
	struct platform_thread how;

	quiesce__init();
	quiesce__thread_defaults(&how);
	return platform_thread_create(ret, func, arg, &how);
}

void quiesce__thread_begin(const char *name)
{
	static const struct platform_thread normal; /* the creator of the thread has set its CPUs */

	platform_thread_begin(name, &normal);
}

struct callbacks_run {
	struct quiesce__run run;
	struct quiesce__callbacks *c;
};

static void run_callbacks(struct quiesce__run *run)
{
	struct quiesce__callbacks *c = ((struct callbacks_run *)run)->c;

	c->code(c);
}

static void callbacks_ended(struct quiesce__run *run)
{
	struct quiesce__callbacks *c = ((struct callbacks_run *)run)->c;

	c->ended(c);
}

void quiesce__callbacks_run(struct quiesce__callbacks *c)
{
	struct callbacks_run r = { .run = { .call = c->call, .named = &c->func }, .c = c };

	quiesce__run(&r.run, run_callbacks, callbacks_ended);
}
