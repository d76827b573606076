/* SPDX-License-Identifier: MIT */
/* promise.c - a program that promises light fences, and whose protections delay reclamation; see promise.py. */
#define QUIESCE_LIGHT_FENCES_ONLY
#include <quiesce/hazptr.h>

#include <stdio.h>
#include <stdlib.h>

struct object {
	struct hazptr_head head;
};
static int reclaimed;

static void reclaim(struct hazptr_head *head)
{
	free(head);
	reclaimed++;
}

int main(void)
{
	struct object *object = calloc(1, sizeof *object), *found;
	hazptr_t *slot = hazptr_alloc(NULL);

	if (!object || !slot)
		return 1;
	found = hazptr_protect(slot, &object);
	call_hazptr(&found->head, reclaim);
	hazptr_try_barrier();
	if (reclaimed)
		return 2;
	hazptr_clear(slot);
	hazptr_barrier();
	hazptr_free(NULL, slot);
	if (!reclaimed || quiesce_set_fence(QUIESCE_FENCE_FULL) == 0)
		return 3;
	puts("reached main");
	return 0;
}
