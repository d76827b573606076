/* SPDX-License-Identifier: MIT */
/* urcu/lfstack.h - liburcu's lock-free stack.
 *
 * This is quiesce/ds/lfstack.h under liburcu's names; that header describes concurrency, order, signals and fork().
 * __cds_lfs_pop() needs one of these: it is called inside a section of RCU, and popped nodes are freed or pushed
 * again after a grace period; the caller holds cds_lfs_pop_lock(); only one thread pops.  cds_lfs_pop_blocking() and
 * cds_lfs_pop_all_blocking() lock the mutex.
 *
 * A struct __cds_lfs_stack has no mutex.  Where a call takes cds_lfs_stack_ptr_t, pass a pointer to either stack.
 */
#ifndef URCU_LFSTACK_H
#define URCU_LFSTACK_H

#include <pthread.h>
#include <quiesce-urcu/lock.h>
#include <quiesce/detail/lfstack.h>
#include <stdbool.h>

struct cds_lfs_node {
	__extension__ union {
		struct cds_lfs_node *next;
		struct lfs_node quiesce;
	};
};

struct cds_lfs_head {
	struct cds_lfs_node node;
};

struct __cds_lfs_stack {
	__extension__ union {
		struct cds_lfs_head *head;
		struct lfs_stack quiesce;
	};
};

struct cds_lfs_stack {
	__extension__ union {
		struct cds_lfs_head *head;
		struct lfs_stack quiesce;
	};
	pthread_mutex_t lock;
};

#ifdef __cplusplus
extern "C++" { /* overloads have C++ linkage, wherever this header is included */

union cds_lfs_stack_ptr_t {
	struct __cds_lfs_stack *_s;
	struct cds_lfs_stack *s;

	cds_lfs_stack_ptr_t() = default;
	cds_lfs_stack_ptr_t(struct __cds_lfs_stack *stack) : _s(stack) {}
	cds_lfs_stack_ptr_t(struct cds_lfs_stack *stack) : s(stack) {}
};

union cds_lfs_stack_const_ptr_t {
	const struct __cds_lfs_stack *_s;
	const struct cds_lfs_stack *s;

	cds_lfs_stack_const_ptr_t() = default;
	cds_lfs_stack_const_ptr_t(const struct __cds_lfs_stack *stack) : _s(stack) {}
	cds_lfs_stack_const_ptr_t(const struct cds_lfs_stack *stack) : s(stack) {}
	cds_lfs_stack_const_ptr_t(cds_lfs_stack_ptr_t stack) : _s(stack._s) {}
};

static inline cds_lfs_stack_ptr_t cds_lfs_stack_cast(struct __cds_lfs_stack *s) { return s; }
static inline cds_lfs_stack_ptr_t cds_lfs_stack_cast(struct cds_lfs_stack *s) { return s; }
static inline cds_lfs_stack_const_ptr_t cds_lfs_stack_const_cast(const struct __cds_lfs_stack *s) { return s; }
static inline cds_lfs_stack_const_ptr_t cds_lfs_stack_const_cast(const struct cds_lfs_stack *s) { return s; }

} /* extern "C++" */

#else

typedef union {
	struct __cds_lfs_stack *_s;
	struct cds_lfs_stack *s;
} __attribute__((__transparent_union__)) cds_lfs_stack_ptr_t;

typedef union {
	const struct __cds_lfs_stack *_s;
	const struct cds_lfs_stack *s;
} __attribute__((__transparent_union__)) cds_lfs_stack_const_ptr_t;

#endif

QUIESCE_BEGIN_DECLS

static inline void cds_lfs_node_init(struct cds_lfs_node *node) { (void)node; }

static inline void __cds_lfs_init(struct __cds_lfs_stack *s) { quiesce__lfs_init(&s->quiesce); }

static inline void cds_lfs_init(struct cds_lfs_stack *s)
{
	quiesce__lfs_init(&s->quiesce);
	quiesce_urcu__lock_init(&s->lock);
}

static inline void cds_lfs_destroy(struct cds_lfs_stack *s) { quiesce_urcu__lock_destroy(&s->lock); }

/* Orders nothing. */
static inline bool cds_lfs_empty(cds_lfs_stack_const_ptr_t s) { return quiesce__lfs_empty(&s._s->quiesce); }

/* Any thread may call it, outside of sections, too.  A full fence.  Returns true if the stack was not empty. */
static inline bool cds_lfs_push(cds_lfs_stack_ptr_t s, struct cds_lfs_node *node)
{
	return quiesce__lfs_push(&s._s->quiesce, &node->quiesce);
}

/* ---- for callers inside sections, holders of the mutex, or one thread at a time ---- */

static inline void cds_lfs_pop_lock(struct cds_lfs_stack *s) { quiesce_urcu__lock(&s->lock); }
static inline void cds_lfs_pop_unlock(struct cds_lfs_stack *s) { quiesce_urcu__unlock(&s->lock); }

static inline struct cds_lfs_node *__cds_lfs_pop(cds_lfs_stack_ptr_t s)
{
	return (struct cds_lfs_node *)quiesce__lfs_pop(&s._s->quiesce);
}

/* Pops all nodes, newest first, for the loops below; NULL: the stack is empty.  Concurrent __cds_lfs_pop_all() need
 * no protection. */
static inline struct cds_lfs_head *__cds_lfs_pop_all(cds_lfs_stack_ptr_t s)
{
	return (struct cds_lfs_head *)quiesce__lfs_pop_all(&s._s->quiesce);
}

/* ---- calls that take the mutex themselves ---- */

static inline struct cds_lfs_node *cds_lfs_pop_blocking(struct cds_lfs_stack *s)
{
	struct lfs_node *node;

	quiesce_urcu__lock(&s->lock);
	node = quiesce__lfs_pop(&s->quiesce);
	quiesce_urcu__unlock(&s->lock);
	return (struct cds_lfs_node *)node;
}

static inline struct cds_lfs_head *cds_lfs_pop_all_blocking(struct cds_lfs_stack *s)
{
	struct lfs_head *head;

	quiesce_urcu__lock(&s->lock);
	head = quiesce__lfs_pop_all(&s->quiesce);
	quiesce_urcu__unlock(&s->lock);
	return (struct cds_lfs_head *)head;
}

/* Private, for the loops. */
QUIESCE_FAST struct cds_lfs_node *quiesce_urcu__lfs_first(struct cds_lfs_head *head) { return (struct cds_lfs_node *)head; }
QUIESCE_FAST struct cds_lfs_node *quiesce_urcu__lfs_below(const struct cds_lfs_node *node)
{
	return (struct cds_lfs_node *)quiesce__lfs_below(&node->quiesce);
}

QUIESCE_END_DECLS

/* @node is NULL at the end.  _safe: the body may free or reuse @node; @n is a second variable. */
#define cds_lfs_for_each(head, node) for ((node) = quiesce_urcu__lfs_first(head); (node); (node) = quiesce_urcu__lfs_below(node))

#define cds_lfs_for_each_safe(head, node, n) \
	for ((node) = quiesce_urcu__lfs_first(head); (node) && ((n) = quiesce_urcu__lfs_below(node), true); (node) = (n))

#ifdef _LGPL_SOURCE
#include <urcu/static/lfstack.h>
#endif

#endif
