/* SPDX-License-Identifier: MIT */
/* hazptr_plugin.c - a plug-in that retires objects whose callback is in the plug-in, and can be unloaded. */
#include <quiesce/hazptr.h>

#include <stdlib.h>

int plugin_use(int nr, int *nr_freed);

struct object {
	struct hazptr_head hazptr;
	int *nr_freed;
};

static struct object *current;

static void free_object(struct hazptr_head *head)
{
	struct object *o = (struct object *)(void *)head;

	quiesce_fetch_add_relaxed(o->nr_freed, 1); /* Relaxed: hazptr_barrier() orders it. */
	free(o);
}

static struct object *object_new(int *nr_freed)
{
	struct object *o = malloc(sizeof *o);

	if (!o)
		abort();
	o->nr_freed = nr_freed;
	return o;
}

/* Replace an object @nr times; returns how many were retired. */
int plugin_use(int nr, int *nr_freed)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	int retired = 0;

	for (int i = 0; i <= nr; i++) {
		struct object *old = rcu_xchg_pointer(&current, i == nr ? NULL : object_new(nr_freed));

		if (old)
			call_hazptr(&old->hazptr, free_object);
		retired += old != NULL;
		if (i < nr && hazptr_protect(slot, &current)->nr_freed != nr_freed)
			abort();
	}
	hazptr_free(NULL, slot);
	return retired;
}
