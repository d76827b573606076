/* SPDX-License-Identifier: MIT */
/* xarray_edges.h - an xarray with entries where levels of its tree begin and end. */
#ifndef XARRAY_EDGES_H
#define XARRAY_EDGES_H

#include <quiesce/ds/xarray.h>

#include "testing.h"

#define PTR(n) ((void *)(uintptr_t)(n))
#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* Indices at which levels begin and end, in order. */
static const unsigned long edge[] = {
	0, 1, 62, 63, 64, 65, 4095, 4096, 262143, 262144, (1ul << 24) - 1, 1ul << 24, (1ul << 30) - 1, 1ul << 30,
	(1ul << 36) - 1, 1ul << 36, (1ul << 42) - 1, 1ul << 42, (1ul << 48) - 1, 1ul << 48, (1ul << 54) - 1, 1ul << 54,
	(1ul << 60) - 1, 1ul << 60, ULONG_MAX / 2, ULONG_MAX / 2 + 1, ULONG_MAX - 64, ULONG_MAX - 63, ULONG_MAX - 1, ULONG_MAX,
};
enum { NR_EDGES = LENGTH(edge) };

static inline void *edge_entry(int i)
{
	return PTR(i + 1000);
}

static inline void store_edges(struct xarray *xa)
{
	xa_init(xa);
	for (int i = 0; i < NR_EDGES; i++)
		assert_int_equal(xa_store(xa, edge[i], edge_entry(i), NULL), 0);
}

#endif
