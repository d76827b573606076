/* SPDX-License-Identifier: MIT */
/* object.h - give the memory of an object back to the heap that it is from: an object cache, or malloc().
 *
 * The memory of all object caches is one range of addresses, so that a subtraction and a comparison find the heap of an
 * object.  The range is empty until the program has a cache; then it only grows, and @free is set before it has an object.
 */
#ifndef QUIESCE_OBJECT_H
#define QUIESCE_OBJECT_H

#include "platform/platform.h"

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
	/* Relaxed: the range was written before the object was allocated, and the caller has the object from there. */
	return (uintptr_t)object - quiesce_load_relaxed(&quiesce__object_range.start) < quiesce_load_relaxed(&quiesce__object_range.bytes);
}

/* Free @object, which the program has retired. */
static inline void quiesce__object_free(void *object)
{
	if (quiesce__object_is_cached(object))
		quiesce__object_range.free(&object, 1);
	else
		platform_free(object);
}

/* Free @nr objects, which may be of several heaps. */
void quiesce__objects_free(void *const *objects, size_t nr);

#endif
