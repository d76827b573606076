/* SPDX-License-Identifier: MIT */
/* hash_xarray.c - xarray of quiesce: values in the order of their keys. */
#include <quiesce/ds/xarray.h>
#include <quiesce/rcu.h>

#include <stdlib.h>

#include "ours.h"
#include "types/hash.h"
#include "registry.h"

#define MOST_SCATTERED 20000 /* each of which needs several nodes */

static void *create(uint64_t nr_keys)
{
	struct xarray *xa = aligned_alloc(_Alignof(struct xarray), sizeof(*xa));

	(void)nr_keys; /* the xarray grows by itself */
	if (xa)
		xa_init(xa);
	return xa;
}

static void destroy(void *table)
{
	xa_destroy(table);
	rcu_barrier();
	free(table);
}

/* Removes the mark of churned keys, which would put every second key far away. */
static inline unsigned long index_of(uint64_t key)
{
	return key & (HASH_CHURNED - 1);
}

HASH_LOOKUP array_lookup(struct xarray *xa, uint64_t key)
{
	uint64_t value;

	rcu_read_lock();
	value = (uintptr_t)xa_load(xa, index_of(key));
	rcu_read_unlock();
	return value;
}

static inline bool array_insert(struct xarray *xa, uint64_t key, uint64_t value)
{
	return xa_insert(xa, index_of(key), (void *)(uintptr_t)value) == 0;
}

static inline bool array_remove(struct xarray *xa, uint64_t key)
{
	return xa_erase(xa, index_of(key)) != NULL;
}

HASH_RUN(array, struct xarray)

OP_FUNCTION(barrier, rcu_barrier())

static const struct hash_op xarray_hash = {
	.create = create, .destroy = destroy, .run = array_run, .barrier = barrier, .most_scattered = MOST_SCATTERED,
};
TYPE(xarray, .rank = 350,
	.what = "xarray of quiesce: a radix tree, values in order of their keys; for --keys=dense:N",
	OURS, .hash = &xarray_hash, .thread_enter = rcu_first_section);
