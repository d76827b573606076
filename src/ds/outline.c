/* SPDX-License-Identifier: MIT */
/* outline.c - exported wrappers of the inline fast paths of containers, as src/outline.c has of those of
 * primitives. */
#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/hashtable.h>
#include <quiesce/ds/idr.h>
#include <quiesce/ds/wfcqueue.h>
#include <quiesce/ds/lfstack.h>
#include <quiesce/ds/wfstack.h>
#include <quiesce/ds/xarray.h>

QUIESCE_API uint64_t quiesce_hashmap_lookup(const struct hashmap *map, uint64_t key);
QUIESCE_API void *quiesce_hashtable_lookup(const struct hashtable *ht, const struct hashtable_type *type, const void *key);
QUIESCE_API void *quiesce_hashtable_lookup_hazptr(const struct hashtable *ht, const struct hashtable_type *type, const void *key,
						  hazptr_t *slot, size_t offset);
QUIESCE_API void *quiesce_idr_find(const struct idr *idr, unsigned long id);
QUIESCE_API bool quiesce_wfcq_enqueue(struct wfcq_head *head, struct wfcq_tail *tail, struct wfcq_node *node);
QUIESCE_API struct wfcq_node *quiesce_wfcq_dequeue_with_state_nonblocking(struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state);
QUIESCE_API enum wfcq_ret quiesce_wfcq_splice_nonblocking(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail,
							  struct wfcq_head *src_head, struct wfcq_tail *src_tail);
QUIESCE_API bool quiesce_lfs_push(struct lfs_stack *s, struct lfs_node *node);
QUIESCE_API struct lfs_node *quiesce_lfs_pop(struct lfs_stack *s);
QUIESCE_API struct lfs_head *quiesce_lfs_pop_all(struct lfs_stack *s);
QUIESCE_API bool quiesce_wfs_push(struct wfs_stack *s, struct wfs_node *node);
QUIESCE_API struct wfs_node *quiesce_wfs_pop_blocking(struct wfs_stack *s);
QUIESCE_API struct wfs_node *quiesce_wfs_pop_nonblocking(struct wfs_stack *s);
QUIESCE_API struct wfs_head *quiesce_wfs_pop_all(struct wfs_stack *s);
QUIESCE_API void *quiesce_xa_load(const struct xarray *xa, unsigned long index);

uint64_t quiesce_hashmap_lookup(const struct hashmap *map, uint64_t key)
{
	return hashmap_lookup(map, key);
}

void *quiesce_hashtable_lookup(const struct hashtable *ht, const struct hashtable_type *type, const void *key)
{
	return hashtable_lookup(ht, type, key);
}

void *quiesce_hashtable_lookup_hazptr(const struct hashtable *ht, const struct hashtable_type *type, const void *key,
				      hazptr_t *slot, size_t offset)
{
	return hashtable_lookup_hazptr(ht, type, key, slot, offset);
}

void *quiesce_idr_find(const struct idr *idr, unsigned long id)
{
	return idr_find(idr, id);
}

bool quiesce_wfcq_enqueue(struct wfcq_head *head, struct wfcq_tail *tail, struct wfcq_node *node)
{
	return wfcq_enqueue(head, tail, node);
}

struct wfcq_node *quiesce_wfcq_dequeue_with_state_nonblocking(struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state)
{
	return wfcq_dequeue_with_state_nonblocking(head, tail, ret_state);
}

enum wfcq_ret quiesce_wfcq_splice_nonblocking(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail, struct wfcq_head *src_head,
					      struct wfcq_tail *src_tail)
{
	return wfcq_splice_nonblocking(dest_head, dest_tail, src_head, src_tail);
}

void *quiesce_xa_load(const struct xarray *xa, unsigned long index)
{
	return xa_load(xa, index);
}

bool quiesce_lfs_push(struct lfs_stack *s, struct lfs_node *node)
{
	return lfs_push(s, node);
}

struct lfs_node *quiesce_lfs_pop(struct lfs_stack *s)
{
	return lfs_pop(s);
}

struct lfs_head *quiesce_lfs_pop_all(struct lfs_stack *s)
{
	return lfs_pop_all(s);
}

bool quiesce_wfs_push(struct wfs_stack *s, struct wfs_node *node)
{
	return wfs_push(s, node);
}

struct wfs_node *quiesce_wfs_pop_blocking(struct wfs_stack *s)
{
	return wfs_pop_blocking(s);
}

struct wfs_node *quiesce_wfs_pop_nonblocking(struct wfs_stack *s)
{
	return wfs_pop_nonblocking(s);
}

struct wfs_head *quiesce_wfs_pop_all(struct wfs_stack *s)
{
	return wfs_pop_all(s);
}
