/* SPDX-License-Identifier: MIT */
/* quiesce/ds/calls.h - every public call of containers as a function, for other languages; see quiesce/calls.h. */
#ifndef QUIESCE_DS_CALLS_H
#define QUIESCE_DS_CALLS_H

#include <quiesce/ds/hash.h>
#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/hashtable.h>
#include <quiesce/ds/ida.h>
#include <quiesce/ds/idr.h>
#include <quiesce/ds/lfqueue.h>
#include <quiesce/ds/lfstack.h>
#include <quiesce/ds/rcuhlist.h>
#include <quiesce/ds/rculist.h>
#include <quiesce/ds/rculist_nulls.h>
#include <quiesce/ds/value_queue.h>
#include <quiesce/ds/wfcqueue.h>
#include <quiesce/ds/wfstack.h>
#include <quiesce/ds/xarray.h>

/* A call that is a function anyway is declared by its own header as well. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls"

QUIESCE_BEGIN_DECLS

/* quiesce/ds/hash.h */
QUIESCE_API uint64_t quiesce_hash_bytes(const void *start, size_t length, uint64_t seed);

/* quiesce/ds/hashmap.h */
QUIESCE_API uint64_t quiesce_hashmap_lookup(const struct hashmap *map, uint64_t key);
QUIESCE_API int quiesce_hashmap_init(struct hashmap *map);
QUIESCE_API int quiesce_hashmap_init_seeded(struct hashmap *map, uint64_t seed);
QUIESCE_API int quiesce_hashmap_insert(struct hashmap *map, uint64_t key, uint64_t value, uint64_t *ret_existing);
QUIESCE_API int quiesce_hashmap_set(struct hashmap *map, uint64_t key, uint64_t value, uint64_t *ret_old);
QUIESCE_API int quiesce_hashmap_replace(struct hashmap *map, uint64_t key, uint64_t old, uint64_t value);
QUIESCE_API uint64_t quiesce_hashmap_remove(struct hashmap *map, uint64_t key);
QUIESCE_API int quiesce_hashmap_remove_value(struct hashmap *map, uint64_t key, uint64_t value);
QUIESCE_API int quiesce_hashmap_update(struct hashmap *map, uint64_t key, uint64_t (*fn)(uint64_t value, void *arg), void *arg,
	uint64_t *ret_old);
QUIESCE_API void quiesce_hashmap_clear(struct hashmap *map);
QUIESCE_API size_t quiesce_hashmap_remove_if(struct hashmap *map, bool (*match)(uint64_t key, uint64_t value, void *arg), void *arg);
QUIESCE_API size_t quiesce_hashmap_lookup_many(const struct hashmap *map, const uint64_t *keys, size_t nr, uint64_t *ret_values);
QUIESCE_API int quiesce_hashmap_reserve(struct hashmap *map, size_t nr);
QUIESCE_API size_t quiesce_hashmap_count(const struct hashmap *map);
QUIESCE_API void quiesce_hashmap_stats(const struct hashmap *map, struct quiesce_table_stats *ret);
QUIESCE_API void quiesce_hashmap_destroy(struct hashmap *map);
QUIESCE_API void quiesce_hashmap_walk_enter(const struct hashmap *map, struct hashmap_walk *walk);
QUIESCE_API bool quiesce_hashmap_walk_start(struct hashmap_walk *walk);
QUIESCE_API bool quiesce_hashmap_walk_next(struct hashmap_walk *walk, uint64_t *ret_key, uint64_t *ret_value);
QUIESCE_API void quiesce_hashmap_walk_stop(struct hashmap_walk *walk);
QUIESCE_API bool quiesce_hashmap_next(const struct hashmap *map, struct hashmap_iter *it, uint64_t *ret_key, uint64_t *ret_value);

/* quiesce/ds/hashtable.h */
QUIESCE_API void *quiesce_hashtable_lookup(const struct hashtable *ht, const struct hashtable_type *type, const void *key);
QUIESCE_API void *quiesce_hashtable_lookup_hazptr(const struct hashtable *ht, const struct hashtable_type *type, const void *key,
	hazptr_t *slot, size_t offset);
QUIESCE_API size_t quiesce_hashtable_lookup_many(const struct hashtable *ht, const struct hashtable_type *type, const void *const *keys,
	size_t nr, void **ret_objects);
QUIESCE_API int quiesce_hashtable_init(struct hashtable *ht, const struct hashtable_type *type);
QUIESCE_API int quiesce_hashtable_init_seeded(struct hashtable *ht, const struct hashtable_type *type, uint64_t seed);
QUIESCE_API int quiesce_hashtable_insert(struct hashtable *ht, void *object);
QUIESCE_API int quiesce_hashtable_insert_unique(struct hashtable *ht, void *object, void **ret_existing);
QUIESCE_API int quiesce_hashtable_set(struct hashtable *ht, void *object, void **ret_old);
QUIESCE_API int quiesce_hashtable_replace(struct hashtable *ht, void *old, void *fresh);
QUIESCE_API int quiesce_hashtable_remove(struct hashtable *ht, void *object);
QUIESCE_API void *quiesce_hashtable_remove_key(struct hashtable *ht, const void *key);
QUIESCE_API int quiesce_hashtable_update(struct hashtable *ht, const void *key, void *(*fn)(void *object, void *arg), void *arg,
	void **ret_old);
QUIESCE_API size_t quiesce_hashtable_remove_all(struct hashtable *ht, const void *key, void (*drop)(void *object, void *arg), void *arg);
QUIESCE_API size_t quiesce_hashtable_remove_if(struct hashtable *ht, bool (*match)(void *object, void *arg),
	void (*drop)(void *object, void *arg), void *arg);
QUIESCE_API void quiesce_hashtable_clear(struct hashtable *ht, void (*drop)(void *object, void *arg), void *arg);
QUIESCE_API int quiesce_hashtable_reserve(struct hashtable *ht, size_t nr);
QUIESCE_API size_t quiesce_hashtable_count(const struct hashtable *ht);
QUIESCE_API void quiesce_hashtable_stats(const struct hashtable *ht, struct quiesce_table_stats *ret);
QUIESCE_API void quiesce_hashtable_destroy(struct hashtable *ht, void (*drop)(void *object, void *arg), void *arg);
QUIESCE_API void quiesce_hashtable_walk_enter(const struct hashtable *ht, struct hashtable_walk *walk);
QUIESCE_API bool quiesce_hashtable_walk_start(struct hashtable_walk *walk);
QUIESCE_API void *quiesce_hashtable_walk_next(struct hashtable_walk *walk);
QUIESCE_API void quiesce_hashtable_walk_stop(struct hashtable_walk *walk);
QUIESCE_API void *quiesce_hashtable_next(const struct hashtable *ht, struct hashtable_iter *iter);
QUIESCE_API void *quiesce_hashtable_next_match(const struct hashtable *ht, struct hashtable_iter *iter, const void *key);

/* quiesce/ds/idr.h: @preload is NULL, or has the nodes of quiesce_idr_preload(). */
QUIESCE_API void quiesce_idr_init(struct idr *idr);
QUIESCE_API void *quiesce_idr_find(const struct idr *idr, unsigned long id);
QUIESCE_API int quiesce_idr_alloc(struct idr *idr, void *ptr, int start, int end, struct idr_nodes *preload);
QUIESCE_API int quiesce_idr_alloc_u32(struct idr *idr, void *ptr, uint32_t *nextid, unsigned long max);
QUIESCE_API int quiesce_idr_alloc_cyclic(struct idr *idr, void *ptr, int start, int end);
QUIESCE_API unsigned int quiesce_idr_get_cursor(const struct idr *idr);
QUIESCE_API void quiesce_idr_set_cursor(struct idr *idr, unsigned int next);
QUIESCE_API int quiesce_idr_preload(struct idr_nodes *preload);
QUIESCE_API void quiesce_idr_preload_end(struct idr_nodes *preload);
QUIESCE_API int quiesce_idr_replace(struct idr *idr, void *ptr, unsigned long id, void **ret_old);
QUIESCE_API void *quiesce_idr_remove(struct idr *idr, unsigned long id);
QUIESCE_API void *quiesce_idr_get_next_ul(const struct idr *idr, unsigned long *nextid);
QUIESCE_API void *quiesce_idr_get_next(const struct idr *idr, int *nextid);
QUIESCE_API int quiesce_idr_for_each(const struct idr *idr, int (*fn)(int id, void *ptr, void *data), void *data);
QUIESCE_API bool quiesce_idr_is_empty(const struct idr *idr);
QUIESCE_API size_t quiesce_idr_count(const struct idr *idr);
QUIESCE_API void quiesce_idr_destroy(struct idr *idr);

/* quiesce/ds/ida.h */
QUIESCE_API void quiesce_ida_init(struct ida *ida);
QUIESCE_API int quiesce_ida_alloc_range(struct ida *ida, unsigned int min, unsigned int max);
QUIESCE_API int quiesce_ida_alloc(struct ida *ida);
QUIESCE_API int quiesce_ida_alloc_min(struct ida *ida, unsigned int min);
QUIESCE_API int quiesce_ida_alloc_max(struct ida *ida, unsigned int max);
QUIESCE_API void quiesce_ida_free(struct ida *ida, unsigned int id);
QUIESCE_API int quiesce_ida_find_first_range(struct ida *ida, unsigned int min, unsigned int max);
QUIESCE_API int quiesce_ida_find_first(struct ida *ida);
QUIESCE_API bool quiesce_ida_exists(struct ida *ida, unsigned int id);
QUIESCE_API bool quiesce_ida_is_empty(const struct ida *ida);
QUIESCE_API void quiesce_ida_destroy(struct ida *ida);

/* quiesce/ds/xarray.h */
QUIESCE_API void quiesce_xa_init(struct xarray *xa);
QUIESCE_API void *quiesce_xa_load(const struct xarray *xa, unsigned long index);
QUIESCE_API int quiesce_xa_store(struct xarray *xa, unsigned long index, void *entry, void **ret_old);
QUIESCE_API int quiesce_xa_insert(struct xarray *xa, unsigned long index, void *entry);
QUIESCE_API int quiesce_xa_cmpxchg(struct xarray *xa, unsigned long index, void *old, void *entry, void **ret_old);
QUIESCE_API void *quiesce_xa_erase(struct xarray *xa, unsigned long index);
QUIESCE_API int quiesce_xa_reserve(struct xarray *xa, unsigned long index);
QUIESCE_API void quiesce_xa_release(struct xarray *xa, unsigned long index);
QUIESCE_API int quiesce_xa_alloc(struct xarray *xa, uint32_t *id, void *entry, struct xa_limit limit);
QUIESCE_API int quiesce_xa_alloc_cyclic(struct xarray *xa, uint32_t *id, void *entry, struct xa_limit limit, uint32_t *next);
QUIESCE_API void quiesce_xa_set_mark(struct xarray *xa, unsigned long index, xa_mark_t mark);
QUIESCE_API void quiesce_xa_clear_mark(struct xarray *xa, unsigned long index, xa_mark_t mark);
QUIESCE_API bool quiesce_xa_get_mark(const struct xarray *xa, unsigned long index, xa_mark_t mark);
QUIESCE_API bool quiesce_xa_marked(const struct xarray *xa, xa_mark_t mark);
QUIESCE_API void *quiesce_xa_find(const struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t filter);
QUIESCE_API void *quiesce_xa_find_after(const struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t filter);
QUIESCE_API void *quiesce_xa_find_reverse(const struct xarray *xa, unsigned long *index, unsigned long min, xa_mark_t filter);
QUIESCE_API void *quiesce_xa_find_before(const struct xarray *xa, unsigned long *index, unsigned long min, xa_mark_t filter);
QUIESCE_API unsigned int quiesce_xa_extract(const struct xarray *xa, void **dst, unsigned long start, unsigned long max,
	unsigned int n, xa_mark_t filter);
QUIESCE_API bool quiesce_xa_empty(const struct xarray *xa);
QUIESCE_API size_t quiesce_xa_count(const struct xarray *xa);
QUIESCE_API void quiesce_xa_destroy(struct xarray *xa);
QUIESCE_API void *quiesce_xa_mk_value(unsigned long value);
QUIESCE_API unsigned long quiesce_xa_to_value(const void *entry);
QUIESCE_API bool quiesce_xa_is_value(const void *entry);
QUIESCE_API int quiesce_xa_alloc_range(struct xarray *xa, uint32_t *id, void *entry, struct xa_limit limit, uint32_t *next);
QUIESCE_API void quiesce_xa_mark(struct xarray *xa, unsigned long index, xa_mark_t mark, bool on);

/* quiesce/ds/rculist.h: @offset is that of the struct list_head in an object. Both calls return the object, or NULL at the end:
 * they replace the loops. */
QUIESCE_API void quiesce_INIT_LIST_HEAD(struct list_head *list);
QUIESCE_API bool quiesce_list_empty(const struct list_head *head);
QUIESCE_API void quiesce_list_add_rcu(struct list_head *fresh, struct list_head *after);
QUIESCE_API void quiesce_list_add_tail_rcu(struct list_head *fresh, struct list_head *before);
QUIESCE_API void quiesce_list_del_rcu(struct list_head *entry);
QUIESCE_API void quiesce_list_replace_rcu(struct list_head *old, struct list_head *fresh);
QUIESCE_API void quiesce_list_splice_init_rcu(struct list_head *list, struct list_head *head, void (*sync)(void));
QUIESCE_API void quiesce_list_splice_tail_init_rcu(struct list_head *list, struct list_head *head, void (*sync)(void));
QUIESCE_API bool quiesce_list_is_first(const struct list_head *node, const struct list_head *head);
QUIESCE_API bool quiesce_list_is_last(const struct list_head *node, const struct list_head *head);
QUIESCE_API bool quiesce_list_is_singular(const struct list_head *head);
QUIESCE_API void quiesce_list_add(struct list_head *fresh, struct list_head *after);
QUIESCE_API void quiesce_list_add_tail(struct list_head *fresh, struct list_head *before);
QUIESCE_API void quiesce_list_del(struct list_head *entry);
QUIESCE_API void quiesce_list_del_init(struct list_head *entry);
QUIESCE_API void *quiesce_list_first_or_null_rcu(struct list_head *head, size_t offset);
QUIESCE_API void *quiesce_list_next_or_null_rcu(struct list_head *head, struct list_head *node, size_t offset);

/* quiesce/ds/rcuhlist.h: A reader walks with quiesce_rcu_dereference_raw() of &head->first and &node->next. */
QUIESCE_API void quiesce_INIT_HLIST_HEAD(struct hlist_head *head);
QUIESCE_API void quiesce_INIT_HLIST_NODE(struct hlist_node *node);
QUIESCE_API bool quiesce_hlist_empty(const struct hlist_head *head);
QUIESCE_API bool quiesce_hlist_unhashed(const struct hlist_node *node);
QUIESCE_API bool quiesce_hlist_unhashed_lockless(const struct hlist_node *node);
QUIESCE_API void quiesce_hlist_add_head_rcu(struct hlist_node *fresh, struct hlist_head *head);
QUIESCE_API void quiesce_hlist_add_before_rcu(struct hlist_node *fresh, struct hlist_node *next);
QUIESCE_API void quiesce_hlist_add_behind_rcu(struct hlist_node *fresh, struct hlist_node *prev);
QUIESCE_API void quiesce_hlist_add_tail_rcu(struct hlist_node *fresh, struct hlist_head *head);
QUIESCE_API void quiesce_hlist_del_rcu(struct hlist_node *node);
QUIESCE_API void quiesce_hlist_del_init_rcu(struct hlist_node *node);
QUIESCE_API void quiesce_hlist_replace_rcu(struct hlist_node *old, struct hlist_node *fresh);
QUIESCE_API void quiesce_hlists_swap_heads_rcu(struct hlist_head *left, struct hlist_head *right);
QUIESCE_API void quiesce_hlist_add_fake(struct hlist_node *node);
QUIESCE_API bool quiesce_hlist_fake(const struct hlist_node *node);
QUIESCE_API void quiesce_hlist_add_head(struct hlist_node *fresh, struct hlist_head *head);
QUIESCE_API void quiesce_hlist_add_before(struct hlist_node *fresh, struct hlist_node *next);
QUIESCE_API void quiesce_hlist_add_behind(struct hlist_node *fresh, struct hlist_node *prev);
QUIESCE_API void quiesce_hlist_del(struct hlist_node *node);
QUIESCE_API void quiesce_hlist_del_init(struct hlist_node *node);

/* quiesce/ds/rculist_nulls.h: A reader walks with quiesce_rcu_dereference_raw() of &head->first and &node->next until
 * quiesce_is_a_nulls(). */
QUIESCE_API void quiesce_INIT_HLIST_NULLS_HEAD(struct hlist_nulls_head *head, unsigned long value);
QUIESCE_API bool quiesce_is_a_nulls(const struct hlist_nulls_node *node);
QUIESCE_API unsigned long quiesce_get_nulls_value(const struct hlist_nulls_node *end);
QUIESCE_API bool quiesce_hlist_nulls_strayed(const struct hlist_nulls_node *pos, unsigned long value);
QUIESCE_API bool quiesce_hlist_nulls_empty(const struct hlist_nulls_head *head);
QUIESCE_API bool quiesce_hlist_nulls_unhashed(const struct hlist_nulls_node *node);
QUIESCE_API bool quiesce_hlist_nulls_unhashed_lockless(const struct hlist_nulls_node *node);
QUIESCE_API void quiesce_hlist_nulls_add_tail_rcu(struct hlist_nulls_node *fresh, struct hlist_nulls_head *head);
QUIESCE_API void quiesce_hlist_nulls_add_head_rcu(struct hlist_nulls_node *fresh, struct hlist_nulls_head *head);
QUIESCE_API void quiesce_hlist_nulls_del_rcu(struct hlist_nulls_node *node);
QUIESCE_API void quiesce_hlist_nulls_del_init_rcu(struct hlist_nulls_node *node);
QUIESCE_API void quiesce_hlist_nulls_add_fake(struct hlist_nulls_node *node);

/* quiesce/ds/wfcqueue.h */
QUIESCE_API void quiesce_wfcq_init(struct wfcq_head *head, struct wfcq_tail *tail);
QUIESCE_API void quiesce_wfcq_node_init(struct wfcq_node *node);
QUIESCE_API bool quiesce_wfcq_empty(const struct wfcq_head *head, const struct wfcq_tail *tail);
QUIESCE_API bool quiesce_wfcq_enqueue(struct wfcq_head *head, struct wfcq_tail *tail, struct wfcq_node *node);
QUIESCE_API struct wfcq_node *quiesce_wfcq_dequeue_with_state_nonblocking(struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state);
QUIESCE_API struct wfcq_node *quiesce_wfcq_dequeue_nonblocking(struct wfcq_head *head, struct wfcq_tail *tail);
QUIESCE_API struct wfcq_node *quiesce_wfcq_dequeue_with_state_blocking(struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state);
QUIESCE_API struct wfcq_node *quiesce_wfcq_dequeue_blocking(struct wfcq_head *head, struct wfcq_tail *tail);
QUIESCE_API enum wfcq_ret quiesce_wfcq_splice_nonblocking(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail,
	struct wfcq_head *src_head, struct wfcq_tail *src_tail);
QUIESCE_API enum wfcq_ret quiesce_wfcq_splice_blocking(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail,
	struct wfcq_head *src_head, struct wfcq_tail *src_tail);
QUIESCE_API struct wfcq_node *quiesce_wfcq_next_nonblocking(const struct wfcq_head *head, const struct wfcq_tail *tail,
	const struct wfcq_node *node);
QUIESCE_API struct wfcq_node *quiesce_wfcq_first_nonblocking(const struct wfcq_head *head, const struct wfcq_tail *tail);
QUIESCE_API struct wfcq_node *quiesce_wfcq_next_blocking(const struct wfcq_head *head, const struct wfcq_tail *tail,
	const struct wfcq_node *node);
QUIESCE_API struct wfcq_node *quiesce_wfcq_first_blocking(const struct wfcq_head *head, const struct wfcq_tail *tail);

/* quiesce/ds/lfqueue.h */
QUIESCE_API void quiesce_lfq_init(struct lfq_queue *q);
QUIESCE_API void quiesce_lfq_node_init(struct lfq_node *node);
QUIESCE_API bool quiesce_lfq_empty(const struct lfq_queue *q);
QUIESCE_API void quiesce_lfq_enqueue(struct lfq_queue *q, struct lfq_node *node);
QUIESCE_API struct lfq_node *quiesce_lfq_dequeue(struct lfq_queue *q);
QUIESCE_API int quiesce_lfq_destroy(struct lfq_queue *q);

/* quiesce/ds/value_queue.h */
QUIESCE_API int quiesce_value_queue_init(struct value_queue *q, size_t size, size_t capacity);
QUIESCE_API void quiesce_value_queue_destroy(struct value_queue *q, void (*drop)(void *value, void *arg), void *arg);
QUIESCE_API int quiesce_value_queue_push(struct value_queue *q, const void *value);
QUIESCE_API int quiesce_value_queue_push_try(struct value_queue *q, const void *value);
QUIESCE_API int quiesce_value_queue_push_timeout(struct value_queue *q, const void *value, uint64_t timeout_ns);
QUIESCE_API long quiesce_value_queue_push_many(struct value_queue *q, const void *values, size_t nr);
QUIESCE_API long quiesce_value_queue_push_many_timeout(struct value_queue *q, const void *values, size_t nr, uint64_t timeout_ns);
QUIESCE_API int quiesce_value_queue_pop(struct value_queue *q, void *ret_value);
QUIESCE_API int quiesce_value_queue_pop_try(struct value_queue *q, void *ret_value);
QUIESCE_API int quiesce_value_queue_pop_timeout(struct value_queue *q, void *ret_value, uint64_t timeout_ns);
QUIESCE_API long quiesce_value_queue_pop_many(struct value_queue *q, void *ret_values, size_t max);
QUIESCE_API long quiesce_value_queue_pop_many_timeout(struct value_queue *q, void *ret_values, size_t max, uint64_t timeout_ns);
QUIESCE_API void quiesce_value_queue_close(struct value_queue *q);
QUIESCE_API bool quiesce_value_queue_is_closed(const struct value_queue *q);
QUIESCE_API size_t quiesce_value_queue_count(const struct value_queue *q);

/* quiesce/ds/wfstack.h */
QUIESCE_API void quiesce_wfs_init(struct wfs_stack *s);
QUIESCE_API void quiesce_wfs_destroy(struct wfs_stack *s);
QUIESCE_API void quiesce_wfs_node_init(struct wfs_node *node);
QUIESCE_API bool quiesce_wfs_empty(const struct wfs_stack *s);
QUIESCE_API bool quiesce_wfs_push(struct wfs_stack *s, struct wfs_node *node);
QUIESCE_API struct wfs_node *quiesce_wfs_first(struct wfs_head *head);
QUIESCE_API struct wfs_node *quiesce_wfs_next_nonblocking(struct wfs_node *node);
QUIESCE_API struct wfs_node *quiesce_wfs_next_blocking(struct wfs_node *node);
QUIESCE_API struct wfs_node *quiesce_wfs_pop_with_state_blocking(struct wfs_stack *s, int *ret_state);
QUIESCE_API struct wfs_node *quiesce_wfs_pop_with_state_nonblocking(struct wfs_stack *s, int *ret_state);
QUIESCE_API struct wfs_node *quiesce_wfs_pop_blocking(struct wfs_stack *s);
QUIESCE_API struct wfs_node *quiesce_wfs_pop_nonblocking(struct wfs_stack *s);
QUIESCE_API struct wfs_head *quiesce_wfs_pop_all(struct wfs_stack *s);

/* quiesce/ds/lfstack.h */
QUIESCE_API void quiesce_lfs_init(struct lfs_stack *s);
QUIESCE_API void quiesce_lfs_destroy(struct lfs_stack *s);
QUIESCE_API void quiesce_lfs_node_init(struct lfs_node *node);
QUIESCE_API bool quiesce_lfs_empty(const struct lfs_stack *s);
QUIESCE_API bool quiesce_lfs_push(struct lfs_stack *s, struct lfs_node *node);
QUIESCE_API struct lfs_node *quiesce_lfs_pop(struct lfs_stack *s);
QUIESCE_API struct lfs_head *quiesce_lfs_pop_all(struct lfs_stack *s);

QUIESCE_END_DECLS

#pragma GCC diagnostic pop

#endif
