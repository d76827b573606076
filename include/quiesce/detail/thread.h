/* SPDX-License-Identifier: MIT */
/* quiesce/detail/thread.h - threads like the library's own; private, for liburcu's face. */
#ifndef QUIESCE_DETAIL_THREAD_H
#define QUIESCE_DETAIL_THREAD_H

#include <pthread.h>
#include <quiesce/base.h>

QUIESCE_BEGIN_DECLS

/* Start one that inherits neither policy, priority nor CPUs of its creator, and takes no signals but those of its own faults; to be
 * joined or detached.  0 or -errno.  @main calls quiesce__thread_begin() first. */
QUIESCE_API int quiesce__thread_create(pthread_t *ret, void *(*main)(void *arg), void *arg);
QUIESCE_API void quiesce__thread_begin(const char *name);

/* What calls the program's callbacks, with what it has in hand; to be embedded. */
struct quiesce__callbacks {
	void (*code)(struct quiesce__callbacks *c);
	void (*ended)(struct quiesce__callbacks *c);
	const char *call; /* of the program, which has queued them: "call_rcu()" */
	uintptr_t func;   /* the callback that is running; 0: none */
};
/* Call @code(@c), in which the thread is not cancelled; if a callback ends the thread, @ended(@c), which gives everything back. */
QUIESCE_API void quiesce__callbacks_run(struct quiesce__callbacks *c);

QUIESCE_END_DECLS

#endif
