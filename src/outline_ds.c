/* SPDX-License-Identifier: MIT */
/* outline_ds.c - the functions of quiesce/ds/calls.h, as outline.c has those of quiesce/calls.h. */
#include "outline.h"
#include <quiesce/ds/calls.h>

CALL(uint64_t, hashmap_lookup, (const struct hashmap *map, uint64_t key), (map, key))
CALL(int, hashmap_reserve, (struct hashmap *map, size_t nr), (map, nr))
CALL(size_t, hashmap_count, (const struct hashmap *map), (map))
VOID_CALL(hashmap_stats, (const struct hashmap *map, struct quiesce_table_stats *ret), (map, ret))
VOID_CALL(hashmap_walk_enter, (const struct hashmap *map, struct hashmap_walk *walk), (map, walk))
CALL(bool, hashmap_walk_start, (struct hashmap_walk *walk), (walk))
VOID_CALL(hashmap_walk_stop, (struct hashmap_walk *walk), (walk))

CALL(void *, hashtable_lookup_hazptr,
	(const struct hashtable *ht, const struct hashtable_type *type, const void *key, hazptr_t *slot, size_t offset),
	(ht, type, key, slot, offset))
CALL(void *, hashtable_lookup, (const struct hashtable *ht, const struct hashtable_type *type, const void *key), (ht, type, key))
CALL(size_t, hashtable_lookup_many,
	(const struct hashtable *ht, const struct hashtable_type *type, const void *const *keys, size_t nr, void **ret_objects),
	(ht, type, keys, nr, ret_objects))
CALL(int, hashtable_reserve, (struct hashtable *ht, size_t nr), (ht, nr))
CALL(size_t, hashtable_count, (const struct hashtable *ht), (ht))
VOID_CALL(hashtable_stats, (const struct hashtable *ht, struct quiesce_table_stats *ret), (ht, ret))
VOID_CALL(hashtable_walk_enter, (const struct hashtable *ht, struct hashtable_walk *walk), (ht, walk))
CALL(bool, hashtable_walk_start, (struct hashtable_walk *walk), (walk))
VOID_CALL(hashtable_walk_stop, (struct hashtable_walk *walk), (walk))

VOID_CALL(idr_init, (struct idr *idr), (idr))
CALL(void *, idr_find, (const struct idr *idr, unsigned long id), (idr, id))
CALL(unsigned int, idr_get_cursor, (const struct idr *idr), (idr))
VOID_CALL(idr_set_cursor, (struct idr *idr, unsigned int next), (idr, next))
CALL(void *, idr_get_next, (const struct idr *idr, int *nextid), (idr, nextid))
CALL(int, idr_for_each, (const struct idr *idr, int (*fn)(int id, void *ptr, void *data), void *data), (idr, fn, data))
CALL(bool, idr_is_empty, (const struct idr *idr), (idr))
CALL(size_t, idr_count, (const struct idr *idr), (idr))

VOID_CALL(ida_init, (struct ida *ida), (ida))
CALL(int, ida_alloc, (struct ida *ida), (ida))
CALL(int, ida_alloc_min, (struct ida *ida, unsigned int min), (ida, min))
CALL(int, ida_alloc_max, (struct ida *ida, unsigned int max), (ida, max))
CALL(int, ida_find_first, (struct ida *ida), (ida))
CALL(bool, ida_exists, (struct ida *ida, unsigned int id), (ida, id))
CALL(bool, ida_is_empty, (const struct ida *ida), (ida))

VOID_CALL(xa_init, (struct xarray *xa), (xa))
CALL(void *, xa_load, (const struct xarray *xa, unsigned long index), (xa, index))
VOID_CALL(xa_release, (struct xarray *xa, unsigned long index), (xa, index))
CALL(int, xa_alloc, (struct xarray *xa, uint32_t *id, void *entry, struct xa_limit limit), (xa, id, entry, limit))
CALL(int, xa_alloc_cyclic, (struct xarray *xa, uint32_t *id, void *entry, struct xa_limit limit, uint32_t *next),
	(xa, id, entry, limit, next))
VOID_CALL(xa_set_mark, (struct xarray *xa, unsigned long index, xa_mark_t mark), (xa, index, mark))
VOID_CALL(xa_clear_mark, (struct xarray *xa, unsigned long index, xa_mark_t mark), (xa, index, mark))
CALL(void *, xa_find_after, (const struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t filter), (xa, index, max, filter))
CALL(void *, xa_find_before, (const struct xarray *xa, unsigned long *index, unsigned long min, xa_mark_t filter), (xa, index, min, filter))
CALL(bool, xa_empty, (const struct xarray *xa), (xa))
CALL(size_t, xa_count, (const struct xarray *xa), (xa))
CALL(void *, xa_mk_value, (unsigned long value), (value))
CALL(unsigned long, xa_to_value, (const void *entry), (entry))
CALL(bool, xa_is_value, (const void *entry), (entry))

VOID_CALL(INIT_LIST_HEAD, (struct list_head *list), (list))
CALL(bool, list_empty, (const struct list_head *head), (head))
VOID_CALL(list_add_rcu, (struct list_head *fresh, struct list_head *after), (fresh, after))
VOID_CALL(list_add_tail_rcu, (struct list_head *fresh, struct list_head *before), (fresh, before))
VOID_CALL(list_del_rcu, (struct list_head *entry), (entry))
VOID_CALL(list_replace_rcu, (struct list_head *old, struct list_head *fresh), (old, fresh))
VOID_CALL(list_splice_init_rcu, (struct list_head *list, struct list_head *head, void (*sync)(void)), (list, head, sync))
VOID_CALL(list_splice_tail_init_rcu, (struct list_head *list, struct list_head *head, void (*sync)(void)), (list, head, sync))
CALL(bool, list_is_first, (const struct list_head *node, const struct list_head *head), (node, head))
CALL(bool, list_is_last, (const struct list_head *node, const struct list_head *head), (node, head))
CALL(bool, list_is_singular, (const struct list_head *head), (head))
VOID_CALL(list_add, (struct list_head *fresh, struct list_head *after), (fresh, after))
VOID_CALL(list_add_tail, (struct list_head *fresh, struct list_head *before), (fresh, before))
VOID_CALL(list_del, (struct list_head *entry), (entry))
VOID_CALL(list_del_init, (struct list_head *entry), (entry))

VOID_CALL(INIT_HLIST_HEAD, (struct hlist_head *head), (head))
VOID_CALL(INIT_HLIST_NODE, (struct hlist_node *node), (node))
CALL(bool, hlist_empty, (const struct hlist_head *head), (head))
CALL(bool, hlist_unhashed, (const struct hlist_node *node), (node))
CALL(bool, hlist_unhashed_lockless, (const struct hlist_node *node), (node))
VOID_CALL(hlist_add_head_rcu, (struct hlist_node *fresh, struct hlist_head *head), (fresh, head))
VOID_CALL(hlist_add_before_rcu, (struct hlist_node *fresh, struct hlist_node *next), (fresh, next))
VOID_CALL(hlist_add_behind_rcu, (struct hlist_node *fresh, struct hlist_node *prev), (fresh, prev))
VOID_CALL(hlist_add_tail_rcu, (struct hlist_node *fresh, struct hlist_head *head), (fresh, head))
VOID_CALL(hlist_del_rcu, (struct hlist_node *node), (node))
VOID_CALL(hlist_del_init_rcu, (struct hlist_node *node), (node))
VOID_CALL(hlist_replace_rcu, (struct hlist_node *old, struct hlist_node *fresh), (old, fresh))
VOID_CALL(hlists_swap_heads_rcu, (struct hlist_head *left, struct hlist_head *right), (left, right))
VOID_CALL(hlist_add_fake, (struct hlist_node *node), (node))
CALL(bool, hlist_fake, (const struct hlist_node *node), (node))
VOID_CALL(hlist_add_head, (struct hlist_node *fresh, struct hlist_head *head), (fresh, head))
VOID_CALL(hlist_add_before, (struct hlist_node *fresh, struct hlist_node *next), (fresh, next))
VOID_CALL(hlist_add_behind, (struct hlist_node *fresh, struct hlist_node *prev), (fresh, prev))
VOID_CALL(hlist_del, (struct hlist_node *node), (node))
VOID_CALL(hlist_del_init, (struct hlist_node *node), (node))

VOID_CALL(INIT_HLIST_NULLS_HEAD, (struct hlist_nulls_head *head, unsigned long value), (head, value))
CALL(bool, is_a_nulls, (const struct hlist_nulls_node *node), (node))
CALL(unsigned long, get_nulls_value, (const struct hlist_nulls_node *end), (end))
CALL(bool, hlist_nulls_strayed, (const struct hlist_nulls_node *pos, unsigned long value), (pos, value))
CALL(bool, hlist_nulls_empty, (const struct hlist_nulls_head *head), (head))
CALL(bool, hlist_nulls_unhashed, (const struct hlist_nulls_node *node), (node))
CALL(bool, hlist_nulls_unhashed_lockless, (const struct hlist_nulls_node *node), (node))
VOID_CALL(hlist_nulls_add_tail_rcu, (struct hlist_nulls_node *fresh, struct hlist_nulls_head *head), (fresh, head))
VOID_CALL(hlist_nulls_add_head_rcu, (struct hlist_nulls_node *fresh, struct hlist_nulls_head *head), (fresh, head))
VOID_CALL(hlist_nulls_del_rcu, (struct hlist_nulls_node *node), (node))
VOID_CALL(hlist_nulls_del_init_rcu, (struct hlist_nulls_node *node), (node))
VOID_CALL(hlist_nulls_add_fake, (struct hlist_nulls_node *node), (node))

VOID_CALL(wfcq_init, (struct wfcq_head *head, struct wfcq_tail *tail), (head, tail))
CALL(enum wfcq_ret, wfcq_splice_nonblocking,
	(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail, struct wfcq_head *src_head, struct wfcq_tail *src_tail),
	(dest_head, dest_tail, src_head, src_tail))
CALL(struct wfcq_node *, wfcq_dequeue_with_state_nonblocking, (struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state),
	(head, tail, ret_state))
CALL(bool, wfcq_enqueue, (struct wfcq_head *head, struct wfcq_tail *tail, struct wfcq_node *node), (head, tail, node))
VOID_CALL(wfcq_node_init, (struct wfcq_node *node), (node))
CALL(bool, wfcq_empty, (const struct wfcq_head *head, const struct wfcq_tail *tail), (head, tail))
CALL(struct wfcq_node *, wfcq_dequeue_nonblocking, (struct wfcq_head *head, struct wfcq_tail *tail), (head, tail))
CALL(struct wfcq_node *, wfcq_dequeue_blocking, (struct wfcq_head *head, struct wfcq_tail *tail), (head, tail))
CALL(struct wfcq_node *, wfcq_next_nonblocking,
	(const struct wfcq_head *head, const struct wfcq_tail *tail, const struct wfcq_node *node), (head, tail, node))
CALL(struct wfcq_node *, wfcq_first_nonblocking, (const struct wfcq_head *head, const struct wfcq_tail *tail), (head, tail))
CALL(struct wfcq_node *, wfcq_next_blocking, (const struct wfcq_head *head, const struct wfcq_tail *tail, const struct wfcq_node *node),
	(head, tail, node))
CALL(struct wfcq_node *, wfcq_first_blocking, (const struct wfcq_head *head, const struct wfcq_tail *tail), (head, tail))

VOID_CALL(lfq_init, (struct lfq_queue *q), (q))
VOID_CALL(lfq_node_init, (struct lfq_node *node), (node))
CALL(bool, lfq_empty, (const struct lfq_queue *q), (q))

VOID_CALL(wfs_init, (struct wfs_stack *s), (s))
CALL(struct wfs_head *, wfs_pop_all, (struct wfs_stack *s), (s))
CALL(struct wfs_node *, wfs_pop_nonblocking, (struct wfs_stack *s), (s))
CALL(struct wfs_node *, wfs_pop_blocking, (struct wfs_stack *s), (s))
CALL(bool, wfs_push, (struct wfs_stack *s, struct wfs_node *node), (s, node))
VOID_CALL(wfs_destroy, (struct wfs_stack *s), (s))
VOID_CALL(wfs_node_init, (struct wfs_node *node), (node))
CALL(bool, wfs_empty, (const struct wfs_stack *s), (s))
CALL(struct wfs_node *, wfs_first, (struct wfs_head *head), (head))
CALL(struct wfs_node *, wfs_next_nonblocking, (struct wfs_node *node), (node))
CALL(struct wfs_node *, wfs_next_blocking, (struct wfs_node *node), (node))
CALL(struct wfs_node *, wfs_pop_with_state_blocking, (struct wfs_stack *s, int *ret_state), (s, ret_state))
CALL(struct wfs_node *, wfs_pop_with_state_nonblocking, (struct wfs_stack *s, int *ret_state), (s, ret_state))

VOID_CALL(lfs_init, (struct lfs_stack *s), (s))
CALL(struct lfs_head *, lfs_pop_all, (struct lfs_stack *s), (s))
CALL(struct lfs_node *, lfs_pop, (struct lfs_stack *s), (s))
CALL(bool, lfs_push, (struct lfs_stack *s, struct lfs_node *node), (s, node))
VOID_CALL(lfs_destroy, (struct lfs_stack *s), (s))
VOID_CALL(lfs_node_init, (struct lfs_node *node), (node))
CALL(bool, lfs_empty, (const struct lfs_stack *s), (s))

void *quiesce_list_first_or_null_rcu(struct list_head *head, size_t offset)
{
	return quiesce__entry(quiesce__link_load(&head->next), head, offset);
}

void *quiesce_list_next_or_null_rcu(struct list_head *head, struct list_head *node, size_t offset)
{
	return quiesce__entry(quiesce__link_load(&node->next), head, offset);
}
