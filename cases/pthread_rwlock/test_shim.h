/* SPDX-License-Identifier: MIT */
/* test_shim.h - between the two files of the test. */
#ifndef TEST_SHIM_H
#define TEST_SHIM_H

#include <pthread.h>
#include <stdbool.h>

extern bool shim;    /* true if the shim is loaded */
extern int failures; /* number of failures of this case */

#define CHECK(got, want) check((got), (want), #got, __LINE__)
void check(long got, long want, const char *what, int line);

struct timespec in_ns(clockid_t clock, long ns);

enum call { RDLOCK, TRYRD, WRLOCK, TRYWR, UNLOCK, TRYRD_UNLOCK, TRYWR_UNLOCK, WRLOCK_UNLOCK, RDLOCK_UNLOCK };
/* Make one call in another thread, which ends; its result. */
int in_other(pthread_rwlock_t *lock, enum call call);

/* test_threads.c */
void first_use_race(void), exclusion(void), last_one_frees(void), locks_in_destructors(void), forks(void);

#endif
