/* SPDX-License-Identifier: MIT */
/* idr.c - allocation of ids for pointers, in a tree that records which ids are free; see radix.h. */
#include "radix/radix.h"
#include "runtime/lock.h"

#include <quiesce/ds/idr.h>

#include <errno.h>

static int alloc_int(struct idr *idr, void *ptr, int start, int end, uint32_t *next, struct idr_nodes *preload)
{
	uint32_t id;
	struct radix_request request = {
		.ptr = ptr,
		.ret_index = &id,
		.from = start,
		.max = end > 0 ? end - 1 : INT_MAX,
		.next = next,
		.preload = preload ? &preload->nodes : NULL,
	};
	int result = start < 0 ? -EINVAL : quiesce__radix_alloc(&idr->tree, &request);

	return result ? result : (int)id;
}

int quiesce_idr_alloc(struct idr *idr, void *ptr, int start, int end, struct idr_nodes *preload)
{
	return alloc_int(idr, ptr, start, end, NULL, preload);
}

int quiesce_idr_alloc_cyclic(struct idr *idr, void *ptr, int start, int end)
{
	return alloc_int(idr, ptr, start, end, &idr->tree.next, NULL);
}

int quiesce_idr_alloc_u32(struct idr *idr, void *ptr, uint32_t *nextid, unsigned long max)
{
	struct radix_request request = { .ptr = ptr, .ret_index = nextid, .from = *nextid, .max = max < UINT32_MAX ? max : UINT32_MAX };

	return quiesce__radix_alloc(&idr->tree, &request);
}

int quiesce_idr_preload(struct idr_nodes *preload)
{
	return quiesce__radix_fill(&preload->nodes, QUIESCE_IDR_PRELOAD) ? 0 : -ENOMEM;
}

void quiesce_idr_preload_end(struct idr_nodes *preload)
{
	quiesce__radix_free_spare(&preload->nodes);
}

int quiesce_idr_replace(struct idr *idr, void *ptr, unsigned long id, void **ret_old)
{
	struct radix_node *leaf;
	void *old;

	quiesce__lock(&idr->tree.lock);
	old = quiesce__radix_lookup(&idr->tree, id, &leaf);
	if (leaf)
		quiesce__radix_replace(leaf, id, ptr);
	quiesce__unlock(&idr->tree.lock);
	if (leaf && ret_old)
		*ret_old = old;
	return leaf ? 0 : -ENOENT;
}

void *quiesce_idr_remove(struct idr *idr, unsigned long id)
{
	struct radix_node *leaf, *out = NULL;
	void *old;

	quiesce__lock(&idr->tree.lock);
	old = quiesce__radix_lookup(&idr->tree, id, &leaf);
	if (leaf)
		out = quiesce__radix_give_back(&idr->tree, leaf, id);
	quiesce__unlock(&idr->tree.lock);
	quiesce__radix_retire(out);
	return old;
}

void quiesce_idr_destroy(struct idr *idr)
{
	quiesce__radix_destroy(&idr->tree);
}

void *quiesce_idr_get_next_ul(const struct idr *idr, unsigned long *nextid)
{
	return quiesce__radix_up(&idr->tree, nextid, ULONG_MAX, RADIX_USED);
}
