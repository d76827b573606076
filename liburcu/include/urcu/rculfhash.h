/* SPDX-License-Identifier: MIT */
/* urcu/rculfhash.h - liburcu's resizable hash table.
 *
 * The table is that of liburcu itself: programs are linked with -lurcu-cds of the distribution, 0.13 or newer (SONAME
 * liburcu-cds.so.8).  That library uses RCU only through the struct rcu_flavor_struct of a table, so its readers and grace periods are
 * those of quiesce.  This header declares its binary interface; quiesce's own table is in quiesce/ds/hashtable.h.
 *
 * All calls that take a table, except new, destroy, resize and count, are made inside a section of its flavour; nodes removed by del,
 * replace or add_replace are freed after a grace period.  new, destroy and resize are called outside of sections, by registered threads.
 */
#ifndef URCU_RCULFHASH_H
#define URCU_RCULFHASH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <urcu/compiler.h>
#include <urcu/config.h>

#include <quiesce/base.h>

QUIESCE_BEGIN_DECLS

struct rcu_flavor_struct;
struct cds_lfht;

/* A member of the program's object. */
struct cds_lfht_node {
	struct cds_lfht_node *next;
	unsigned long reverse_hash;
} __attribute__((__aligned__(8)));

struct cds_lfht_iter {
	struct cds_lfht_node *node, *next;
};

/* Flags of cds_lfht_new(). */
enum {
	CDS_LFHT_AUTO_RESIZE = 1U << 0, /* a worker thread of liburcu-cds resizes the table */
	CDS_LFHT_ACCOUNTING = 1U << 1,  /* the table counts its nodes, for the resizes */
};

/* Returns not 0 if @node has @key. */
typedef int (*cds_lfht_match_fct)(struct cds_lfht_node *node, const void *key);

/* How a table stores its buckets; NULL instead of a pointer to one: the library chooses.  The type is incomplete on
 * purpose: liburcu 0.13 and 0.15 call its members with different arguments, so a program cannot define one that fits
 * both. */
struct cds_lfht_mm_type;
extern const struct cds_lfht_mm_type cds_lfht_mm_order;
extern const struct cds_lfht_mm_type cds_lfht_mm_chunk;
extern const struct cds_lfht_mm_type cds_lfht_mm_mmap;

/* ---- a table ---- */

/* NULL: no memory, or sizes that are no powers of two.  @max_nr_buckets 0: no limit.  @attr: attributes of the worker
 * thread, or NULL. */
extern struct cds_lfht *_cds_lfht_new(unsigned long init_size, unsigned long min_nr_alloc_buckets, unsigned long max_nr_buckets, int flags,
				      const struct cds_lfht_mm_type *mm, const struct rcu_flavor_struct *flavor, pthread_attr_t *attr);

static inline struct cds_lfht *cds_lfht_new_flavor(unsigned long init_size, unsigned long min_nr_alloc_buckets,
						   unsigned long max_nr_buckets, int flags, const struct rcu_flavor_struct *flavor,
						   pthread_attr_t *attr)
{
	return _cds_lfht_new(init_size, min_nr_alloc_buckets, max_nr_buckets, flags, NULL, flavor, attr);
}

#ifdef URCU_API_MAP
/* Uses the flavour of the header that was included before: urcu.h, urcu-bp.h ... */
static inline struct cds_lfht *cds_lfht_new(unsigned long init_size, unsigned long min_nr_alloc_buckets, unsigned long max_nr_buckets,
					    int flags, pthread_attr_t *attr)
{
	return _cds_lfht_new(init_size, min_nr_alloc_buckets, max_nr_buckets, flags, NULL, &rcu_flavor, attr);
}
#endif

/* Returns 0; -EPERM: the table is not empty.  *@attr: the attributes that it was made with, unless @attr is NULL. */
extern int cds_lfht_destroy(struct cds_lfht *ht, pthread_attr_t **attr);
extern void cds_lfht_resize(struct cds_lfht *ht, unsigned long new_size);
extern void cds_lfht_count_nodes(struct cds_lfht *ht, long *split_count_before, unsigned long *count, long *split_count_after);

/* ---- nodes ---- */

static inline void cds_lfht_node_init(struct cds_lfht_node *node) { (void)node; }

/* Makes a node for which cds_lfht_is_node_deleted() returns true, though it never was in a table: the mark is the
 * lowest bit of a link. */
static inline void cds_lfht_node_init_deleted(struct cds_lfht_node *node)
{
	node->next = QUIESCE_AS_POINTER(struct cds_lfht_node *, QUIESCE_CAST(uintptr_t, 1));
}

extern void cds_lfht_add(struct cds_lfht *ht, unsigned long hash, struct cds_lfht_node *node);

/* Returns @node, or the node with the same key that was in the table. */
extern struct cds_lfht_node *cds_lfht_add_unique(struct cds_lfht *ht, unsigned long hash, cds_lfht_match_fct match, const void *key,
						 struct cds_lfht_node *node);

/* Returns NULL, or the node with the same key that @node has replaced. */
extern struct cds_lfht_node *cds_lfht_add_replace(struct cds_lfht *ht, unsigned long hash, cds_lfht_match_fct match, const void *key,
						  struct cds_lfht_node *node);

/* Returns 0; -ENOENT: the node of @old_iter is not in the table any more; -EINVAL: @new_node has another key. */
extern int cds_lfht_replace(struct cds_lfht *ht, struct cds_lfht_iter *old_iter, unsigned long hash, cds_lfht_match_fct match,
			    const void *key, struct cds_lfht_node *new_node);

/* Returns 0 if the caller has removed the node; else another thread has. */
extern int cds_lfht_del(struct cds_lfht *ht, struct cds_lfht_node *node);
extern int cds_lfht_is_node_deleted(const struct cds_lfht_node *node);

/* ---- lookups; cds_lfht_iter_get_node() returns the node, NULL if there is none ---- */

static inline struct cds_lfht_node *cds_lfht_iter_get_node(const struct cds_lfht_iter *iter) { return iter->node; }

extern void cds_lfht_lookup(struct cds_lfht *ht, unsigned long hash, cds_lfht_match_fct match, const void *key, struct cds_lfht_iter *iter);
extern void cds_lfht_next_duplicate(struct cds_lfht *ht, cds_lfht_match_fct match, const void *key, struct cds_lfht_iter *iter);
extern void cds_lfht_first(struct cds_lfht *ht, struct cds_lfht_iter *iter);
extern void cds_lfht_next(struct cds_lfht *ht, struct cds_lfht_iter *iter);

/* ---- functions that liburcu-cds has since 0.15 only ---- */

struct cds_lfht_alloc {
	void *(*malloc)(void *state, size_t size);
	void *(*calloc)(void *state, size_t nmemb, size_t size);
	void *(*realloc)(void *state, void *ptr, size_t size);
	void *(*aligned_alloc)(void *state, size_t alignment, size_t size);
	void (*free)(void *state, void *ptr);
	void *state;
};

#if defined(__has_attribute)
#if __has_attribute(__error__)
#define QUIESCE_URCU_ABSENT \
	__attribute__((__error__("liburcu-cds has tables with a program's own allocator from 0.15 on; this builds for 0.13 too")))
#endif
#endif
#ifndef QUIESCE_URCU_ABSENT
#define QUIESCE_URCU_ABSENT /* the linker reports them */
#endif

extern struct cds_lfht *_cds_lfht_new_with_alloc(unsigned long init_size, unsigned long min_nr_alloc_buckets, unsigned long max_nr_buckets,
						 int flags, const struct cds_lfht_mm_type *mm, const struct rcu_flavor_struct *flavor,
						 const struct cds_lfht_alloc *alloc, pthread_attr_t *attr) QUIESCE_URCU_ABSENT;
extern struct cds_lfht *cds_lfht_new_with_flavor_alloc(unsigned long init_size, unsigned long min_nr_alloc_buckets,
						       unsigned long max_nr_buckets, int flags, const struct rcu_flavor_struct *flavor,
						       const struct cds_lfht_alloc *alloc, pthread_attr_t *attr) QUIESCE_URCU_ABSENT;
#undef QUIESCE_URCU_ABSENT

QUIESCE_END_DECLS

/* ---- loops; @iter: a struct cds_lfht_iter *, @node or @pos: a variable, NULL at the end ---- */

/* The object of a node; NULL if the node is NULL. */
#define cds_lfht_entry(ptr, type, member) caa_container_of_check_null(ptr, type, member)

#define cds_lfht_for_each(ht, iter, node) \
	for (cds_lfht_first(ht, iter); ((node) = cds_lfht_iter_get_node(iter)) != NULL; cds_lfht_next(ht, iter))

#define cds_lfht_for_each_duplicate(ht, hash, match, key, iter, node)                                                       \
	for (cds_lfht_lookup(ht, hash, match, key, iter); ((node) = cds_lfht_iter_get_node(iter)) != NULL;                  \
	     cds_lfht_next_duplicate(ht, match, key, iter))

#define cds_lfht_for_each_entry(ht, iter, pos, member)                                                                      \
	for (cds_lfht_first(ht, iter);                                                                                      \
	     ((pos) = cds_lfht_entry(cds_lfht_iter_get_node(iter), __typeof__(*(pos)), member)) != NULL; cds_lfht_next(ht, iter))

#define cds_lfht_for_each_entry_duplicate(ht, hash, match, key, iter, pos, member)                                          \
	for (cds_lfht_lookup(ht, hash, match, key, iter);                                                                   \
	     ((pos) = cds_lfht_entry(cds_lfht_iter_get_node(iter), __typeof__(*(pos)), member)) != NULL;                    \
	     cds_lfht_next_duplicate(ht, match, key, iter))

#endif
