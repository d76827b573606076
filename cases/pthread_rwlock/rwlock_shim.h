/* SPDX-License-Identifier: MIT */
/* rwlock_shim.h - what the shim counts; for its test, which finds out by it that the shim is there. */
#ifndef RWLOCK_SHIM_H
#define RWLOCK_SHIM_H

#include <stdint.h>

/* Words only: they are added as an array. */
struct rwlock_shim_counts {
	uint64_t init, destroy;
	uint64_t read, write, unlock; /* that succeeded */
	uint64_t again;               /* read locks by a thread that had the lock already */
	uint64_t refused;             /* what a pthread_rwlock_t may do and this one does not */
};

/* Return the counts of threads that have ended and of the caller. */
void rwlock_shim_get_counts(struct rwlock_shim_counts *ret_counts) __attribute__((weak));

#endif
