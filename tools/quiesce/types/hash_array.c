/* SPDX-License-Identifier: MIT */
/* hash_array.c - arrays of buckets for the tables made for this comparison. */
#include <stdbool.h>
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

/* Smaller arrays come from malloc(). */
static bool is_mapped(uint64_t bytes)
{
	return bytes >= HUGE_PAGE;
}

static uint64_t room(uint64_t bytes)
{
	uint64_t unit = is_mapped(bytes) ? 4096 : 64;

	return (bytes + unit - 1) / unit * unit;
}

/* Maps the array at the boundary of a huge page, and unmaps the rest around it. */
static void *map(uint64_t size)
{
	char *p = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t before;

	if (p == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)p % HUGE_PAGE;
	if (before)
		munmap(p, before);
	munmap(p + before + size, HUGE_PAGE - before);
#ifdef MADV_HUGEPAGE
	(void)madvise(p + before, size, MADV_HUGEPAGE); /* a failure only makes it slower */
#endif
	return p + before;
}

void *hash_array_alloc(uint64_t bytes)
{
	uint64_t size = room(bytes);
	void *p = is_mapped(bytes) ? map(size) : aligned_alloc(64, size);

	return p ? memset(p, 0, size) : NULL;
}

void hash_array_free(void *array, uint64_t bytes)
{
	if (is_mapped(bytes))
		munmap(array, room(bytes));
	else
		free(array);
}

uint64_t hash_array_mapped(uint64_t bytes)
{
	return is_mapped(bytes) ? room(bytes) : 0;
}
