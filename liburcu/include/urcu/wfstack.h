/* SPDX-License-Identifier: MIT */
/* urcu/wfstack.h - liburcu's stack onto which any thread pushes without waiting.
 *
 * This is quiesce/ds/wfstack.h under liburcu's names; that header describes concurrency, order, signals and fork().
 * For calls that begin with __ the caller serialises pops, or is in a section of RCU and frees or pushes again a node
 * only after a grace period; cds_wfs_pop_blocking(), _with_state_blocking() and cds_wfs_pop_all_blocking() lock the
 * stack's mutex.
 *
 * A struct __cds_wfs_stack has no mutex.  Where a call takes cds_wfs_stack_ptr_t, pass a pointer to either stack.
 *
 * Differences from liburcu: a node needs no initialisation; zeroed memory is an empty stack (CDS_WFS_END is NULL);
 * and a caller that waits for a push that has lost its CPU sleeps after microseconds, in pauses from 20 us to 1.3 ms
 * instead of 10 ms.
 */
#ifndef URCU_WFSTACK_H
#define URCU_WFSTACK_H

#include <assert.h> /* programs rely on this header to include it */
#include <pthread.h>
#include <quiesce-urcu/lock.h>
#include <quiesce/detail/wfstack.h>
#include <stdbool.h>
#include <urcu/compiler.h>

/* Returned by nonblocking calls that meet an unfinished push, or lose against another pop. */
#define CDS_WFS_WOULDBLOCK QUIESCE_AS_POINTER(struct cds_wfs_node *, UINTPTR_MAX)

enum cds_wfs_state {
	CDS_WFS_STATE_LAST = WFS_STATE_LAST, /* the stack became empty */
};

struct cds_wfs_node {
	__extension__ union {
		struct cds_wfs_node *next;
		struct wfs_node quiesce;
	};
};

struct cds_wfs_head {
	struct cds_wfs_node node;
};

struct __cds_wfs_stack {
	__extension__ union {
		struct cds_wfs_head *head;
		struct wfs_stack quiesce;
	};
};

struct cds_wfs_stack {
	__extension__ union {
		struct cds_wfs_head *head;
		struct wfs_stack quiesce;
	};
	pthread_mutex_t lock;
};

#ifdef __cplusplus
extern "C++" { /* overloads have C++ linkage, wherever this header is included */

union cds_wfs_stack_ptr_t {
	struct __cds_wfs_stack *_s;
	struct cds_wfs_stack *s;

	cds_wfs_stack_ptr_t() = default;
	cds_wfs_stack_ptr_t(struct __cds_wfs_stack *stack) : _s(stack) {}
	cds_wfs_stack_ptr_t(struct cds_wfs_stack *stack) : s(stack) {}
};

union cds_wfs_stack_const_ptr_t {
	const struct __cds_wfs_stack *_s;
	const struct cds_wfs_stack *s;

	cds_wfs_stack_const_ptr_t() = default;
	cds_wfs_stack_const_ptr_t(const struct __cds_wfs_stack *stack) : _s(stack) {}
	cds_wfs_stack_const_ptr_t(const struct cds_wfs_stack *stack) : s(stack) {}
	cds_wfs_stack_const_ptr_t(cds_wfs_stack_ptr_t stack) : _s(stack._s) {}
};

static inline cds_wfs_stack_ptr_t cds_wfs_stack_cast(struct __cds_wfs_stack *s) { return s; }
static inline cds_wfs_stack_ptr_t cds_wfs_stack_cast(struct cds_wfs_stack *s) { return s; }
static inline cds_wfs_stack_const_ptr_t cds_wfs_stack_const_cast(const struct __cds_wfs_stack *s) { return s; }
static inline cds_wfs_stack_const_ptr_t cds_wfs_stack_const_cast(const struct cds_wfs_stack *s) { return s; }

} /* extern "C++" */

#else

typedef union {
	struct __cds_wfs_stack *_s;
	struct cds_wfs_stack *s;
} __attribute__((__transparent_union__)) cds_wfs_stack_ptr_t;

typedef union {
	const struct __cds_wfs_stack *_s;
	const struct cds_wfs_stack *s;
} __attribute__((__transparent_union__)) cds_wfs_stack_const_ptr_t;

#endif

QUIESCE_BEGIN_DECLS

static inline void cds_wfs_node_init(struct cds_wfs_node *node) { node->next = NULL; }

static inline void __cds_wfs_init(struct __cds_wfs_stack *s) { quiesce__wfs_init(&s->quiesce); }

static inline void cds_wfs_init(struct cds_wfs_stack *s)
{
	quiesce__wfs_init(&s->quiesce);
	quiesce_urcu__lock_init(&s->lock);
}

static inline void cds_wfs_destroy(struct cds_wfs_stack *s) { quiesce_urcu__lock_destroy(&s->lock); }

/* ---- any thread may call these at any time ---- */

/* Orders nothing. */
static inline bool cds_wfs_empty(cds_wfs_stack_const_ptr_t u_stack) { return quiesce__wfs_empty(&u_stack._s->quiesce); }

/* A full fence.  Returns true if the stack was not empty. */
static inline int cds_wfs_push(cds_wfs_stack_ptr_t u_stack, struct cds_wfs_node *node)
{
	return quiesce__wfs_push(&u_stack._s->quiesce, &node->quiesce);
}

/* ---- for one thread at a time, holders of the mutex, or callers inside sections.  @state may be NULL ---- */

static inline void cds_wfs_pop_lock(struct cds_wfs_stack *s) { quiesce_urcu__lock(&s->lock); }
static inline void cds_wfs_pop_unlock(struct cds_wfs_stack *s) { quiesce_urcu__unlock(&s->lock); }

static inline struct cds_wfs_node *__cds_wfs_pop_with_state_blocking(cds_wfs_stack_ptr_t u_stack, int *state)
{
	int ignored;

	return (struct cds_wfs_node *)quiesce__wfs_pop_blocking(&u_stack._s->quiesce, state ? state : &ignored);
}

static inline struct cds_wfs_node *__cds_wfs_pop_blocking(cds_wfs_stack_ptr_t u_stack)
{
	return __cds_wfs_pop_with_state_blocking(u_stack, NULL);
}

static inline struct cds_wfs_node *__cds_wfs_pop_with_state_nonblocking(cds_wfs_stack_ptr_t u_stack, int *state)
{
	int ignored;

	return (struct cds_wfs_node *)quiesce__wfs_pop(&u_stack._s->quiesce, state ? state : &ignored);
}

static inline struct cds_wfs_node *__cds_wfs_pop_nonblocking(cds_wfs_stack_ptr_t u_stack)
{
	return __cds_wfs_pop_with_state_nonblocking(u_stack, NULL);
}

/* Pops all nodes, newest first, for the loops below; NULL: the stack is empty.  Concurrent __cds_wfs_pop_all() need
 * no protection. */
static inline struct cds_wfs_head *__cds_wfs_pop_all(cds_wfs_stack_ptr_t u_stack)
{
	return (struct cds_wfs_head *)quiesce__wfs_pop_all(&u_stack._s->quiesce);
}

/* ---- calls that take the mutex themselves ---- */

static inline struct cds_wfs_node *cds_wfs_pop_with_state_blocking(struct cds_wfs_stack *s, int *state)
{
	int ignored;
	struct wfs_node *node;

	quiesce_urcu__lock(&s->lock);
	node = quiesce__wfs_pop_blocking(&s->quiesce, state ? state : &ignored);
	quiesce_urcu__unlock(&s->lock);
	return (struct cds_wfs_node *)node;
}

static inline struct cds_wfs_node *cds_wfs_pop_blocking(struct cds_wfs_stack *s) { return cds_wfs_pop_with_state_blocking(s, NULL); }

static inline struct cds_wfs_head *cds_wfs_pop_all_blocking(struct cds_wfs_stack *s)
{
	struct wfs_head *head;

	quiesce_urcu__lock(&s->lock);
	head = quiesce__wfs_pop_all(&s->quiesce);
	quiesce_urcu__unlock(&s->lock);
	return (struct cds_wfs_head *)head;
}

/* ---- the nodes of a pop_all ---- */

static inline struct cds_wfs_node *cds_wfs_first(struct cds_wfs_head *head) { return (struct cds_wfs_node *)head; }

static inline struct cds_wfs_node *cds_wfs_next_blocking(struct cds_wfs_node *node)
{
	return (struct cds_wfs_node *)quiesce__wfs_next_blocking(&node->quiesce);
}

static inline struct cds_wfs_node *cds_wfs_next_nonblocking(struct cds_wfs_node *node)
{
	return (struct cds_wfs_node *)quiesce__wfs_next(&node->quiesce);
}

QUIESCE_END_DECLS

/* @node is NULL at the end.  _safe: the body may free @node or push it again; @n is a second variable. */
#define cds_wfs_for_each_blocking(head, node) for ((node) = cds_wfs_first(head); (node); (node) = cds_wfs_next_blocking(node))

#define cds_wfs_for_each_blocking_safe(head, node, n) \
	for ((node) = cds_wfs_first(head); (node) && ((n) = cds_wfs_next_blocking(node), true); (node) = (n))

#ifdef _LGPL_SOURCE
#include <urcu/static/wfstack.h>
#endif

#endif
