/* SPDX-License-Identifier: MIT */
/* urcu/rculfhash.h - liburcu's resizable hash table.
 *
 * This one is liburcu's itself: programs are linked with -lurcu-cds of the distribution, 0.13 or newer (SONAME liburcu-cds.so.8).
 * That library reaches RCU only through the struct rcu_flavor_struct that a table is made with, so its readers and grace periods are
 * those of quiesce.  What is declared here is its binary interface; that of quiesce's own table is quiesce/ds/hashtable.h.
 *
 * Calls that take a table, but for new, destroy, resize and count, are made inside a section of its flavour; what del, replace or
 * add_replace took out is freed after a grace period.  new, destroy and resize are called outside, by registered threads.
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

/* In the program's object. */
struct cds_lfht_node {
	struct cds_lfht_node *next;
	unsigned long reverse_hash;
} __attribute__((__aligned__(8)));

struct cds_lfht_iter {
	struct cds_lfht_node *node, *next;
};

/* Flags of cds_lfht_new(). */
enum {
	CDS_LFHT_AUTO_RESIZE = 1U << 0, /* by a worker thread of liburcu-cds */
	CDS_LFHT_ACCOUNTING = 1U << 1,  /* nodes are counted, for that */
};

/* Does @node have @key?  Not zero: yes. */
typedef int (*cds_lfht_match_fct)(struct cds_lfht_node *node, const void *key);

/* How a table keeps its buckets; NULL in place of a pointer to one: the library chooses.  Its members are unknown here on purpose: liburcu
 * 0.13 and 0.15 call them with different arguments, so a program cannot have one of its own that fits both. */
struct cds_lfht_mm_type;
extern const struct cds_lfht_mm_type cds_lfht_mm_order;
extern const struct cds_lfht_mm_type cds_lfht_mm_chunk;
extern const struct cds_lfht_mm_type cds_lfht_mm_mmap;

/* ---- a table ---- */

/* NULL: no memory, or sizes that are no powers of two.  @max_nr_buckets 0: no limit.  @attr: of the worker thread, or NULL. */
extern struct cds_lfht *_cds_lfht_new(unsigned long init_size, unsigned long min_nr_alloc_buckets, unsigned long max_nr_buckets, int flags,
				      const struct cds_lfht_mm_type *mm, const struct rcu_flavor_struct *flavor, pthread_attr_t *attr);

static inline struct cds_lfht *cds_lfht_new_flavor(unsigned long init_size, unsigned long min_nr_alloc_buckets,
						   unsigned long max_nr_buckets, int flags, const struct rcu_flavor_struct *flavor,
						   pthread_attr_t *attr)
{
	return _cds_lfht_new(init_size, min_nr_alloc_buckets, max_nr_buckets, flags, NULL, flavor, attr);
}

#ifdef URCU_API_MAP
/* With the flavour of the header that was included before: urcu.h, urcu-bp.h ... */
static inline struct cds_lfht *cds_lfht_new(unsigned long init_size, unsigned long min_nr_alloc_buckets, unsigned long max_nr_buckets,
					    int flags, pthread_attr_t *attr)
{
	return _cds_lfht_new(init_size, min_nr_alloc_buckets, max_nr_buckets, flags, NULL, &rcu_flavor, attr);
}
#endif

/* 0; -EPERM: it is not empty.  *@attr: what the table was made with, unless @attr is NULL. */
extern int cds_lfht_destroy(struct cds_lfht *ht, pthread_attr_t **attr);
extern void cds_lfht_resize(struct cds_lfht *ht, unsigned long new_size);
extern void cds_lfht_count_nodes(struct cds_lfht *ht, long *split_count_before, unsigned long *count, long *split_count_after);

/* ---- nodes ---- */

static inline void cds_lfht_node_init(struct cds_lfht_node *node) { (void)node; }

/* A node that cds_lfht_is_node_deleted() says is deleted, though it never was in a table: the lowest bit of a link says so. */
static inline void cds_lfht_node_init_deleted(struct cds_lfht_node *node)
{
	node->next = QUIESCE_AS_POINTER(struct cds_lfht_node *, QUIESCE_CAST(uintptr_t, 1));
}

extern void cds_lfht_add(struct cds_lfht *ht, unsigned long hash, struct cds_lfht_node *node);

/* @node, or the one with the same key that was there. */
extern struct cds_lfht_node *cds_lfht_add_unique(struct cds_lfht *ht, unsigned long hash, cds_lfht_match_fct match, const void *key,
						 struct cds_lfht_node *node);

/* NULL, or the one with the same key that @node has replaced. */
extern struct cds_lfht_node *cds_lfht_add_replace(struct cds_lfht *ht, unsigned long hash, cds_lfht_match_fct match, const void *key,
						  struct cds_lfht_node *node);

/* 0; -ENOENT: what @old_iter found is not in the table any more; -EINVAL: @new_node has another key. */
extern int cds_lfht_replace(struct cds_lfht *ht, struct cds_lfht_iter *old_iter, unsigned long hash, cds_lfht_match_fct match,
			    const void *key, struct cds_lfht_node *new_node);

/* 0: the caller has taken it out; else another thread had. */
extern int cds_lfht_del(struct cds_lfht *ht, struct cds_lfht_node *node);
extern int cds_lfht_is_node_deleted(const struct cds_lfht_node *node);

/* ---- looks; the node is cds_lfht_iter_get_node(), NULL if there is none ---- */

static inline struct cds_lfht_node *cds_lfht_iter_get_node(const struct cds_lfht_iter *iter) { return iter->node; }

extern void cds_lfht_lookup(struct cds_lfht *ht, unsigned long hash, cds_lfht_match_fct match, const void *key, struct cds_lfht_iter *iter);
extern void cds_lfht_next_duplicate(struct cds_lfht *ht, cds_lfht_match_fct match, const void *key, struct cds_lfht_iter *iter);
extern void cds_lfht_first(struct cds_lfht *ht, struct cds_lfht_iter *iter);
extern void cds_lfht_next(struct cds_lfht *ht, struct cds_lfht_iter *iter);

/* ---- what liburcu-cds has from 0.15 on only ---- */

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
#define QUIESCE_URCU_ABSENT /* the linker says it */
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

/* The object of a node; NULL if that is. */
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
