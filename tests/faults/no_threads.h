/* SPDX-License-Identifier: MIT */
/* no_threads.h - a pthread_create() that fails or delays on demand; to be included by one source file of a program. */
#ifndef NO_THREADS_H
#define NO_THREADS_H

#include "../unit/testing.h"

#include <dlfcn.h>

static int no_threads;             /* if set, pthread_create() fails */
static __thread int may_create;    /* if set, it succeeds in this thread even so */
static int slow_start, starting;   /* the next call lasts until @slow_start is reset */
static int nr_refused, nr_started;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	void *found = dlsym(RTLD_NEXT, "pthread_create");

	if (flag_get(&no_threads) && !may_create) {
		count_up(&nr_refused);
		return EAGAIN;
	}
	if (flag_get(&slow_start)) {
		flag_set(&starting);
		wait_until(!flag_get(&slow_start));
	}
	count_up(&nr_started);
	memcpy(&real, &found, sizeof real);
	return real(thread, attr, fn, arg);
}

#endif
