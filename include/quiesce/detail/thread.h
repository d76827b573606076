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

QUIESCE_END_DECLS

#endif
