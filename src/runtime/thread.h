/* SPDX-License-Identifier: MIT */
/* thread.h - the library's own threads: how they are started, and where and how they run. */
#ifndef QUIESCE_THREAD_H
#define QUIESCE_THREAD_H

#include "core.h"

#include <quiesce/control.h>

/* Claim an attempt to start the thread; false if none is due: after failed starts attempts are limited to a rate. */
bool quiesce__thread_claim_start(enum quiesce_thread which);
/* Start a thread that calls @main and then @over, also if a callback ends the thread in @main; false if it cannot be started.  Does not
 * wait for it. */
bool quiesce__thread_start(enum quiesce_thread which, void (*main)(void), void (*over)(void));
/* Return the attributes of a thread for which the program has chosen none. */
void quiesce__thread_defaults(struct platform_thread *ret);
/* Wait, at most 2 ms, until no thread of the library is left, for the kernel too; false if one is. */
bool quiesce__threads_await_end(void);
/* Return whether the last start has failed. */
bool quiesce__thread_failed(enum quiesce_thread which);
/* Record whether the last start failed; callers other than thread.c are tests. */
void quiesce__thread_set_failed(enum quiesce_thread which, bool failed);
void quiesce__threads_fork_child(void);

#endif
