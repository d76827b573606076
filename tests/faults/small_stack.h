/* SPDX-License-Identifier: MIT */
/* small_stack.h - threads with the smallest stack that the system allows. */
#ifndef SMALL_STACK_H
#define SMALL_STACK_H

#include "../unit/testing.h"

static inline pthread_attr_t small_stack(void)
{
	size_t size = (size_t)sysconf(_SC_THREAD_STACK_MIN);
	pthread_attr_t attr;

	if (size < (size_t)PTHREAD_STACK_MIN)
		size = (size_t)PTHREAD_STACK_MIN;
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, size), 0);
	return attr;
}

/* The smallest stack suffices for @fn, which starts the worker and stores its success by its argument. */
static inline void suffices_for(void *(*fn)(void *ret_ok))
{
	pthread_attr_t attr = small_stack();
	pthread_t thread;
	int ok = 0;

	assert_int_equal(quiesce_shutdown(0), 0);
	thread_must(pthread_create(&thread, &attr, fn, &ok));
	pthread_join(thread, NULL);
	assert_true(ok);
	pthread_attr_destroy(&attr);
}

#endif
