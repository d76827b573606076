/* SPDX-License-Identifier: MIT */
/* urcu/wfcqueue.h - liburcu's queue: any thread enqueues without waiting, one thread at a time dequeues.
 *
 * This is quiesce/ds/wfcqueue.h under liburcu's names; what that header documents of order, signals and fork() holds
 * here.
 * For calls that begin with __ the caller serialises the calls that take nodes (dequeue, splice from, first and next
 * against the first two); cds_wfcq_dequeue_blocking(), _with_state_blocking() and cds_wfcq_splice_blocking() lock the
 * mutex of the queue from which they take.
 *
 * A struct __cds_wfcq_head has no mutex.  Where a call takes cds_wfcq_head_ptr_t, pass a pointer to either head;
 * neither C nor C++ programs need a cast, but cds_wfcq_head_cast() is there for both.
 *
 * Differences from liburcu: a node needs no initialisation; and a caller that waits for an enqueuer that has lost its
 * CPU sleeps after microseconds, in pauses from 20 us to 1.3 ms instead of 10 ms, unless the program defines
 * CDS_WFCQ_WAIT_SLEEP(ms) before it includes this header.
 */
#ifndef URCU_WFCQUEUE_H
#define URCU_WFCQUEUE_H

#include <assert.h> /* programs rely on this header to include it */
#include <pthread.h>
#include <quiesce-urcu/lock.h>
#include <quiesce/detail/wfcqueue.h>
#include <stdbool.h>
#include <urcu/arch.h>
#include <urcu/compiler.h>

/* Returned by nonblocking calls that meet an unfinished enqueue. */
#define CDS_WFCQ_WOULDBLOCK QUIESCE_AS_POINTER(struct cds_wfcq_node *, QUIESCE_CAST(intptr_t, -1))

enum cds_wfcq_ret {
	CDS_WFCQ_RET_WOULDBLOCK = WFCQ_RET_WOULDBLOCK,
	CDS_WFCQ_RET_DEST_EMPTY = WFCQ_RET_DEST_EMPTY,
	CDS_WFCQ_RET_DEST_NON_EMPTY = WFCQ_RET_DEST_NON_EMPTY,
	CDS_WFCQ_RET_SRC_EMPTY = WFCQ_RET_SRC_EMPTY,
};

enum cds_wfcq_state {
	CDS_WFCQ_STATE_LAST = WFCQ_STATE_LAST, /* the queue became empty */
};

struct cds_wfcq_node {
	__extension__ union {
		struct cds_wfcq_node *next;
		struct wfcq_node quiesce;
	};
};

struct __cds_wfcq_head {
	__extension__ union {
		struct cds_wfcq_node node;
		struct wfcq_head quiesce;
	};
};

struct cds_wfcq_head {
	__extension__ union {
		struct cds_wfcq_node node;
		struct wfcq_head quiesce;
	};
	pthread_mutex_t lock;
};

struct cds_wfcq_tail {
	__extension__ union {
		struct cds_wfcq_node *p;
		struct wfcq_tail quiesce;
	};
};

#ifdef __cplusplus
extern "C++" { /* overloads have C++ linkage, wherever this header is included */

union cds_wfcq_head_ptr_t {
	struct __cds_wfcq_head *_h;
	struct cds_wfcq_head *h;

	cds_wfcq_head_ptr_t() = default;
	cds_wfcq_head_ptr_t(struct __cds_wfcq_head *head) : _h(head) {}
	cds_wfcq_head_ptr_t(struct cds_wfcq_head *head) : h(head) {}
};

union cds_wfcq_head_const_ptr_t {
	const struct __cds_wfcq_head *_h;
	const struct cds_wfcq_head *h;

	cds_wfcq_head_const_ptr_t() = default;
	cds_wfcq_head_const_ptr_t(const struct __cds_wfcq_head *head) : _h(head) {}
	cds_wfcq_head_const_ptr_t(const struct cds_wfcq_head *head) : h(head) {}
	cds_wfcq_head_const_ptr_t(cds_wfcq_head_ptr_t head) : _h(head._h) {}
};

static inline cds_wfcq_head_ptr_t __cds_wfcq_head_cast(struct __cds_wfcq_head *head) { return head; }
static inline cds_wfcq_head_ptr_t cds_wfcq_head_cast(struct cds_wfcq_head *head) { return head; }
static inline cds_wfcq_head_const_ptr_t __cds_wfcq_head_const_cast(const struct __cds_wfcq_head *head) { return head; }
static inline cds_wfcq_head_const_ptr_t cds_wfcq_head_const_cast(const struct cds_wfcq_head *head) { return head; }
static inline cds_wfcq_head_ptr_t cds_wfcq_head_cast_cpp(struct __cds_wfcq_head *head) { return head; }
static inline cds_wfcq_head_ptr_t cds_wfcq_head_cast_cpp(struct cds_wfcq_head *head) { return head; }
static inline cds_wfcq_head_const_ptr_t cds_wfcq_head_const_cast_cpp(const struct __cds_wfcq_head *head) { return head; }
static inline cds_wfcq_head_const_ptr_t cds_wfcq_head_const_cast_cpp(const struct cds_wfcq_head *head) { return head; }

} /* extern "C++" */

#else

typedef union {
	struct __cds_wfcq_head *_h;
	struct cds_wfcq_head *h;
} __attribute__((__transparent_union__)) cds_wfcq_head_ptr_t;

typedef union {
	const struct __cds_wfcq_head *_h;
	const struct cds_wfcq_head *h;
} __attribute__((__transparent_union__)) cds_wfcq_head_const_ptr_t;

static inline struct __cds_wfcq_head *__cds_wfcq_head_cast(struct __cds_wfcq_head *head) { return head; }
static inline struct cds_wfcq_head *cds_wfcq_head_cast(struct cds_wfcq_head *head) { return head; }
static inline const struct __cds_wfcq_head *__cds_wfcq_head_const_cast(const struct __cds_wfcq_head *head) { return head; }
static inline const struct cds_wfcq_head *cds_wfcq_head_const_cast(const struct cds_wfcq_head *head) { return head; }

#endif

QUIESCE_BEGIN_DECLS

/* ---- waiting: by the library's function, or the program's ---- */

#ifdef CDS_WFCQ_WAIT_SLEEP

static inline void quiesce_urcu__wfcq_pause(int *attempt)
{
	if (++*attempt < 10) {
		quiesce_cpu_relax();
		return;
	}
	*attempt = 0;
	CDS_WFCQ_WAIT_SLEEP(10);
}

static inline struct wfcq_node *quiesce_urcu__wfcq_dequeue(struct wfcq_head *head, struct wfcq_tail *tail, int *state)
{
	struct wfcq_node *node;

	for (int attempt = 0; (node = quiesce__wfcq_dequeue(head, tail, state)) == WFCQ_WOULDBLOCK;)
		quiesce_urcu__wfcq_pause(&attempt);
	return node;
}

static inline enum wfcq_ret quiesce_urcu__wfcq_splice(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail, struct wfcq_head *src_head,
						      struct wfcq_tail *src_tail)
{
	enum wfcq_ret ret;

	for (int attempt = 0; (ret = quiesce__wfcq_splice(dest_head, dest_tail, src_head, src_tail)) == WFCQ_RET_WOULDBLOCK;)
		quiesce_urcu__wfcq_pause(&attempt);
	return ret;
}

static inline struct wfcq_node *quiesce_urcu__wfcq_next(const struct wfcq_tail *tail, const struct wfcq_node *node)
{
	struct wfcq_node *next;

	for (int attempt = 0; (next = quiesce__wfcq_next(tail, node)) == WFCQ_WOULDBLOCK;)
		quiesce_urcu__wfcq_pause(&attempt);
	return next;
}

#else
#define quiesce_urcu__wfcq_dequeue quiesce__wfcq_dequeue_blocking
#define quiesce_urcu__wfcq_splice quiesce__wfcq_splice_blocking
#define quiesce_urcu__wfcq_next quiesce__wfcq_next_blocking
#endif

/* ---- initialisation ---- */

static inline void cds_wfcq_node_init(struct cds_wfcq_node *node) { node->next = NULL; }

static inline void cds_wfcq_init(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail)
{
	quiesce__wfcq_init(&head->quiesce, &tail->quiesce);
	quiesce_urcu__lock_init(&head->lock);
}

static inline void cds_wfcq_destroy(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail)
{
	(void)tail;
	quiesce_urcu__lock_destroy(&head->lock);
}

static inline void __cds_wfcq_init(struct __cds_wfcq_head *head, struct cds_wfcq_tail *tail)
{
	quiesce__wfcq_init(&head->quiesce, &tail->quiesce);
}

/* ---- any thread may call these at any time ---- */

/* Orders nothing. */
static inline bool cds_wfcq_empty(cds_wfcq_head_const_ptr_t head, const struct cds_wfcq_tail *tail)
{
	return quiesce__wfcq_empty(&head._h->quiesce, &tail->quiesce);
}

/* A full fence.  Returns true if the queue was not empty. */
static inline bool cds_wfcq_enqueue(cds_wfcq_head_ptr_t head, struct cds_wfcq_tail *tail, struct cds_wfcq_node *node)
{
	return quiesce__wfcq_enqueue(&head._h->quiesce, &tail->quiesce, &node->quiesce);
}

/* ---- for one thread at a time, or holders of the mutex.  @state may be NULL ---- */

static inline void cds_wfcq_dequeue_lock(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail)
{
	(void)tail;
	quiesce_urcu__lock(&head->lock);
}

static inline void cds_wfcq_dequeue_unlock(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail)
{
	(void)tail;
	quiesce_urcu__unlock(&head->lock);
}

static inline struct cds_wfcq_node *__cds_wfcq_dequeue_with_state_blocking(cds_wfcq_head_ptr_t head, struct cds_wfcq_tail *tail, int *state)
{
	int ignored;

	return (struct cds_wfcq_node *)quiesce_urcu__wfcq_dequeue(&head._h->quiesce, &tail->quiesce, state ? state : &ignored);
}

static inline struct cds_wfcq_node *__cds_wfcq_dequeue_blocking(cds_wfcq_head_ptr_t head, struct cds_wfcq_tail *tail)
{
	return __cds_wfcq_dequeue_with_state_blocking(head, tail, NULL);
}

static inline struct cds_wfcq_node *__cds_wfcq_dequeue_with_state_nonblocking(cds_wfcq_head_ptr_t head, struct cds_wfcq_tail *tail,
									      int *state)
{
	int ignored;

	return (struct cds_wfcq_node *)quiesce__wfcq_dequeue(&head._h->quiesce, &tail->quiesce, state ? state : &ignored);
}

static inline struct cds_wfcq_node *__cds_wfcq_dequeue_nonblocking(cds_wfcq_head_ptr_t head, struct cds_wfcq_tail *tail)
{
	return __cds_wfcq_dequeue_with_state_nonblocking(head, tail, NULL);
}

static inline enum cds_wfcq_ret __cds_wfcq_splice_blocking(cds_wfcq_head_ptr_t dest_q_head, struct cds_wfcq_tail *dest_q_tail,
							   cds_wfcq_head_ptr_t src_q_head, struct cds_wfcq_tail *src_q_tail)
{
	return (enum cds_wfcq_ret)quiesce_urcu__wfcq_splice(&dest_q_head._h->quiesce, &dest_q_tail->quiesce, &src_q_head._h->quiesce,
							    &src_q_tail->quiesce);
}

static inline enum cds_wfcq_ret __cds_wfcq_splice_nonblocking(cds_wfcq_head_ptr_t dest_q_head, struct cds_wfcq_tail *dest_q_tail,
							      cds_wfcq_head_ptr_t src_q_head, struct cds_wfcq_tail *src_q_tail)
{
	return (enum cds_wfcq_ret)quiesce__wfcq_splice(&dest_q_head._h->quiesce, &dest_q_tail->quiesce, &src_q_head._h->quiesce,
						       &src_q_tail->quiesce);
}

static inline struct cds_wfcq_node *__cds_wfcq_next_blocking(cds_wfcq_head_ptr_t head, struct cds_wfcq_tail *tail,
							     struct cds_wfcq_node *node)
{
	(void)head;
	return (struct cds_wfcq_node *)quiesce_urcu__wfcq_next(&tail->quiesce, &node->quiesce);
}

static inline struct cds_wfcq_node *__cds_wfcq_next_nonblocking(cds_wfcq_head_ptr_t head, struct cds_wfcq_tail *tail,
								struct cds_wfcq_node *node)
{
	(void)head;
	return (struct cds_wfcq_node *)quiesce__wfcq_next(&tail->quiesce, &node->quiesce);
}

static inline struct cds_wfcq_node *__cds_wfcq_first_blocking(cds_wfcq_head_ptr_t head, struct cds_wfcq_tail *tail)
{
	return __cds_wfcq_next_blocking(head, tail, &head._h->node);
}

static inline struct cds_wfcq_node *__cds_wfcq_first_nonblocking(cds_wfcq_head_ptr_t head, struct cds_wfcq_tail *tail)
{
	return __cds_wfcq_next_nonblocking(head, tail, &head._h->node);
}

/* ---- calls that take the mutex themselves ---- */

static inline struct cds_wfcq_node *cds_wfcq_dequeue_with_state_blocking(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail, int *state)
{
	struct cds_wfcq_node *node;

	quiesce_urcu__lock(&head->lock);
	node = __cds_wfcq_dequeue_with_state_blocking(cds_wfcq_head_cast(head), tail, state);
	quiesce_urcu__unlock(&head->lock);
	return node;
}

static inline struct cds_wfcq_node *cds_wfcq_dequeue_blocking(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail)
{
	return cds_wfcq_dequeue_with_state_blocking(head, tail, NULL);
}

static inline enum cds_wfcq_ret cds_wfcq_splice_blocking(struct cds_wfcq_head *dest_q_head, struct cds_wfcq_tail *dest_q_tail,
							 struct cds_wfcq_head *src_q_head, struct cds_wfcq_tail *src_q_tail)
{
	enum cds_wfcq_ret ret;

	quiesce_urcu__lock(&src_q_head->lock);
	ret = __cds_wfcq_splice_blocking(cds_wfcq_head_cast(dest_q_head), dest_q_tail, cds_wfcq_head_cast(src_q_head), src_q_tail);
	quiesce_urcu__unlock(&src_q_head->lock);
	return ret;
}

QUIESCE_END_DECLS

/* Visits all nodes, which stay in the queue; @node is NULL at the end.  _safe: the body may free @node, of a queue
 * that no other thread uses; @n is a second variable. */
#define __cds_wfcq_for_each_blocking(head, tail, node) \
	for ((node) = __cds_wfcq_first_blocking(head, tail); (node); (node) = __cds_wfcq_next_blocking(head, tail, node))

#define __cds_wfcq_for_each_blocking_safe(head, tail, node, n)                                              \
	for ((node) = __cds_wfcq_first_blocking(head, tail);                                                \
	     (node) && ((n) = __cds_wfcq_next_blocking(head, tail, node), true); (node) = (n))

#ifdef _LGPL_SOURCE
#include <urcu/static/wfcqueue.h>
#endif

#endif
