/* SPDX-License-Identifier: MIT */
/* heap.h - the bytes that malloc() has given out, where the C library reports them (musl does not: always 0). */
#ifndef QUIESCE_TESTS_HEAP_H
#define QUIESCE_TESTS_HEAP_H

#include <malloc.h>
#include <stddef.h>

#include "../sanitized.h"

#ifdef __GLIBC__
#define HEAP_COUNTED (!SANITIZED)
static inline size_t heap_used(void)
{
	return mallinfo2().uordblks + mallinfo2().hblkhd;
}
#else
#define HEAP_COUNTED 0
static inline size_t heap_used(void)
{
	return 0;
}
#endif

#endif
