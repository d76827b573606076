/* SPDX-License-Identifier: MIT */
/* hash_ours.h - functions that the types of the library's own tables share. */
#ifndef QUIESCE_TOOL_HASH_OURS_H
#define QUIESCE_TOOL_HASH_OURS_H

#include <stdlib.h>

#include <quiesce/detail/buckets.h>
#include <quiesce/rcu.h>

#define HASH_OURS_PAGES (128u << 10) /* arrays of at least this size are mapped, smaller ones come from malloc() */

/* No other thread uses @table. */
static inline uint64_t hash_ours_mapped(const struct quiesce__table *table)
{
	uint64_t bytes = 0;

	for (const struct quiesce__buckets *array = table->array; array; array = array->next) {
		size_t its = quiesce__buckets_bytes(array);

		bytes += its >= HASH_OURS_PAGES ? its : 0;
	}
	return bytes;
}

static inline uint64_t hash_ours_lines(const struct quiesce__table *table)
{
	uint64_t lines;

	rcu_read_lock();
	/* raw: acquire, for an array that the library has published. */
	lines = __atomic_load_n(&table->array, __ATOMIC_ACQUIRE)->mask / sizeof(struct quiesce__bucket) + 1;
	rcu_read_unlock();
	return lines;
}

/* The table grows on request.  It shrinks when an update finds that an eighth of its room is in use, to a quarter,
 * but not below what was last reserved.  A second reservation waits for a resize that is under way. */
static inline bool hash_ours_resize(struct quiesce__table *table, uint64_t nr_keys)
{
	return quiesce__table_reserve(table, nr_keys) == 0 &&
	       hash_ours_lines(table) == quiesce_load_relaxed(&table->min_lines); /* Relaxed: the calling thread wrote it. */
}

/* Defines create(), destroy(), mapped() and resize() of a table of @TYPE, which grows by itself; INIT and END are statements on @t. */
#define HASH_OURS(TYPE, INIT, END)                                                             \
	static void *create(uint64_t nr_keys)                                                  \
	{                                                                                      \
		TYPE *t = malloc(sizeof(*t));                                                  \
                                                                                               \
		(void)nr_keys;                                                                 \
		if (t)                                                                         \
			INIT;                                                                  \
		return t;                                                                      \
	}                                                                                      \
	static void destroy(void *table)                                                       \
	{                                                                                      \
		TYPE *t = table;                                                               \
                                                                                               \
		END;                                                                           \
		rcu_barrier(); /* callbacks of the resize use the table's memory */            \
		free(t);                                                                       \
	}                                                                                      \
	static uint64_t mapped(const void *table)                                              \
	{                                                                                      \
		return hash_ours_mapped(&((const TYPE *)table)->table);                        \
	}                                                                                      \
	static bool resize(void *table, uint64_t nr_keys)                                      \
	{                                                                                      \
		return hash_ours_resize(&((TYPE *)table)->table, nr_keys);                     \
	}

#endif
