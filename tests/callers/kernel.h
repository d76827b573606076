/* SPDX-License-Identifier: MIT */
/* kernel.h - calls of the C library are interposed, and fail or return false results on demand (kernel.c). */
#ifndef CALLERS_KERNEL_H
#define CALLERS_KERNEL_H

#include "callers.h"

enum { FAIL_THREAD, FAIL_MMAP, FAIL_MPROTECT, FAIL_MADVISE, FAIL_FUTEX_EINTR, FAIL_FUTEX_WAKE, FAIL_MEMBARRIER, NR_FAILS };

extern const char *const fail_names[NR_FAILS];

/* Let the @n-th call of that kind from now on fail, counted from 1; 0: none. */
void kernel_fails(int what, int n);
/* Return how many calls of the kind @what were made since. */
int kernel_count(int what);
/* Fail as CALLERS_FAIL=WHAT:N specifies, counted from the first call of the process. */
void kernel_fails_from_start(int what, int n);

/* Simulate a restore: the kernel forgets its state of the process. */
enum {
	FORGETS_MEMBARRIER = 1, /* the registration */
	RENUMBERS = 2,          /* threads and the process */
	MORE_CPUS = 4,
	FORGETS_RSEQ = 8,       /* registered again by the restoring program */
};
void kernel_before_restore(int what);
void kernel_restore(void);

#endif
