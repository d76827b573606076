/* SPDX-License-Identifier: MIT */
/* thread.h - the library's own threads: how they are started, and where and how they run. */
#ifndef QUIESCE_THREAD_H
#define QUIESCE_THREAD_H

#include "core.h"

#include <quiesce/control.h>

/* After failed starts only now and then: is it time for another attempt? */
bool quiesce__thread_may_start(enum quiesce_thread which);
/* Start one that calls @main and then @over, which it also does if a callback ends the thread in @main; false if that cannot be.
 * Does not wait for it. */
bool quiesce__thread_start(enum quiesce_thread which, void (*main)(void), void (*over)(void));
/* How one runs for which the program has chosen nothing. */
void quiesce__thread_defaults(struct platform_thread *ret);
/* Is none left, for the kernel too?  Waits 2 ms at most for those that are about to end. */
bool quiesce__threads_gone(void);
/* Has the last start failed? */
bool quiesce__thread_failed(enum quiesce_thread which);
/* It has, or has not; of others for tests. */
void quiesce__thread_set_failed(enum quiesce_thread which, bool failed);
void quiesce__threads_fork_child(void);

#endif
