/* SPDX-License-Identifier: MIT */
/* hash_ours.h - what the types of the library's own tables share. */
#ifndef QUIESCE_TOOL_HASH_OURS_H
#define QUIESCE_TOOL_HASH_OURS_H

#include <stdlib.h>

#include <quiesce/ds/buckets.h>

#define HASH_OURS_PAGES (128u << 10) /* arrays from here on are pages, smaller ones from malloc() */

/* Nobody else is there. */
static inline uint64_t hash_ours_mapped(const struct quiesce__table *table)
{
	uint64_t bytes = 0;

	for (const struct quiesce__buckets *array = table->array; array; array = array->next)
		bytes += array->bytes >= HASH_OURS_PAGES ? array->bytes : 0;
	return bytes;
}

#endif
