/* SPDX-License-Identifier: MIT */
/* object.h - give the memory of an object back to the heap that it is from: an object cache, or malloc().
 *
 * The memory of all object caches is one range of addresses, so that a subtraction and a comparison find the heap of an
 * object.  The range is empty until the program has a cache; then it only grows, and @free is set before it has an object.
 * The caller of an object of a cache has it from an allocation, which followed the growth; that of another object has not, and
 * may find the range at any moment of its beginning: the size is read first, and is not 0 only if the start is set.
 *
 * RU3  start and @free set, then the size | size read, then start and @free
 */
#ifndef QUIESCE_OBJECT_H
#define QUIESCE_OBJECT_H

#include "core.h"

struct quiesce__object_range {
	uintptr_t start;
	size_t bytes;
	/* Give @nr objects of the range back, which may be of several caches. */
	void (*free)(void *const *objects, size_t nr);
};
extern struct quiesce__object_range quiesce__object_range;

/* True if @object is of an object cache. */
static inline bool quiesce__object_is_cached(const void *object)
{
	size_t bytes = quiesce_load_acquire(RU3, &quiesce__object_range.bytes); /* RU3: acquire, pairs with RU3 in extend() */

	return (uintptr_t)object - quiesce_load_relaxed(&quiesce__object_range.start) < bytes; /* Relaxed: RU3 precedes. */
}

/* Free @object, which the program has retired. */
static inline void quiesce__object_free(void *object)
{
	if (quiesce__object_is_cached(object))
		quiesce__object_range.free(&object, 1);
	else
		platform_free(object);
}

/* Free @object as part of the library's own work: what a free() of the program retires meanwhile frees nothing, or that free()
 * would be entered again, maybe under its own lock. */
static inline void quiesce__object_free_in_heap(void *object)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	bool first = !QUIESCE_MUTANT(heap_unmarked) && quiesce__heap_begin(self);

	quiesce__object_free(object);
	if (first)
		quiesce__heap_end(self);
}

/* Free @nr objects, which may be of several heaps. */
void quiesce__objects_free(void *const *objects, size_t nr);

#endif
