/* SPDX-License-Identifier: MIT */
/* object.c - free rows of objects: neighbours of the caches go back in one call. */
#include "object.h"

struct quiesce__object_range quiesce__object_range;

void quiesce__objects_free(void *const *objects, size_t nr)
{
	while (nr) {
		bool cached = quiesce__object_is_cached(*objects);
		size_t row = 1;

		while (cached && row < nr && quiesce__object_is_cached(objects[row]))
			row++;
		if (cached)
			quiesce__object_range.free(objects, row);
		else
			platform_free(*objects);
		objects += row;
		nr -= row;
	}
}
