/* SPDX-License-Identifier: MIT */
/* hash_array.h - arrays of buckets for the tables made for this comparison. */
#ifndef QUIESCE_TOOL_HASH_ARRAY_H
#define QUIESCE_TOOL_HASH_ARRAY_H

#include <stdint.h>
#include <stdlib.h>

/* The smallest power of two that is not less than @nr. */
uint64_t hash_power(uint64_t nr);

/* Returns @bytes of zeroes in whole cache lines, in huge pages where the kernel has some.  NULL: out of memory. */
void *hash_array_alloc(uint64_t bytes);
void hash_array_free(void *array, uint64_t bytes); /* @bytes as at the allocation */
/* How many of @bytes do not come from malloc(). */
uint64_t hash_array_mapped(uint64_t bytes);

#endif
