/* SPDX-License-Identifier: MIT */
/* hash_array.c - arrays of buckets for the tables made for this comparison. */
#include <string.h>
#include <sys/mman.h>

#include "hash_array.h"

#define HUGE_PAGE ((uint64_t)2 << 20)

uint64_t hash_power(uint64_t nr)
{
	uint64_t power = 1;

	while (power < nr)
		power *= 2;
	return power;
}

static uint64_t room(uint64_t bytes)
{
	uint64_t unit = bytes >= HUGE_PAGE ? HUGE_PAGE : 4096;

	return (bytes + unit - 1) / unit * unit;
}

void *hash_array_alloc(uint64_t bytes)
{
	uint64_t size = room(bytes);
	void *p = aligned_alloc(size >= HUGE_PAGE ? HUGE_PAGE : 64, size);

	if (!p)
		return NULL;
#ifdef MADV_HUGEPAGE
	if (size >= HUGE_PAGE)
		(void)madvise(p, size, MADV_HUGEPAGE); /* only faster */
#endif
	return memset(p, 0, size);
}
