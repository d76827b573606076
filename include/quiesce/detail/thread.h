/* SPDX-License-Identifier: MIT */
/* quiesce/detail/thread.h - threads like the library's own; private, for the face of liburcu. */
#ifndef QUIESCE_DETAIL_THREAD_H
#define QUIESCE_DETAIL_THREAD_H

#include <pthread.h>
#include <quiesce/base.h>

QUIESCE_BEGIN_DECLS

/* Create a thread that inherits neither policy, priority nor CPUs of its creator, and receives no
 * signals but those of its own faults; it is to be joined or detached.  @func calls
 * quiesce__thread_begin() first.  Returns 0 or -errno. */
QUIESCE_API int quiesce__thread_create(pthread_t *ret, void *(*func)(void *arg), void *arg);
QUIESCE_API void quiesce__thread_begin(const char *name);

/* A call of callbacks of the program; to be embedded in a structure of its state. */
struct quiesce__callbacks {
	void (*code)(struct quiesce__callbacks *c);
	void (*ended)(struct quiesce__callbacks *c);
	const char *call; /* name of the program's call that queued them, such as "call_rcu()" */
	uintptr_t func;   /* the callback that is running; 0: none */
};
/* Call @code(@c), in which the thread cannot be cancelled; if a callback ends the thread,
 * @ended(@c) releases whatever @code holds. */
QUIESCE_API void quiesce__callbacks_run(struct quiesce__callbacks *c);

QUIESCE_END_DECLS

#endif
