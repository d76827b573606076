/* SPDX-License-Identifier: MIT */
/* calls_lists.c - queues, stacks, and lists that wait. */
#include "world.h"

#include <quiesce/ds/rculist.h>

struct item {
	struct wfcq_node wfcq;
	struct lfq_node lfq;
	struct wfs_node wfs;
	struct lfs_node lfs;
	struct list_head list;
};

/* ---- queues ---- */

static bool call_wfcq_put(struct world *w)
{
	struct wfcq_head head;
	struct wfcq_tail tail;
	struct item a, b;
	int state = 0;
	bool ok;

	(void)w;
	wfcq_init(&head, &tail);
	wfcq_node_init(&a.wfcq);
	ok = wfcq_empty(&head, &tail) && !wfcq_enqueue(&head, &tail, &a.wfcq) && wfcq_enqueue(&head, &tail, &b.wfcq);
	ok = ok && wfcq_first_nonblocking(&head, &tail) == &a.wfcq && wfcq_next_nonblocking(&head, &tail, &a.wfcq) == &b.wfcq;
	ok = ok && wfcq_dequeue_nonblocking(&head, &tail) == &a.wfcq;
	return ok && wfcq_dequeue_with_state_nonblocking(&head, &tail, &state) == &b.wfcq && state == WFCQ_STATE_LAST;
}

static bool call_wfcq_take(struct world *w)
{
	struct wfcq_head head[2];
	struct wfcq_tail tail[2];
	struct wfcq_node *node, *next;
	struct item item[3];
	int nr = 0, state;

	(void)w;
	for (int i = 0; i < 2; i++)
		wfcq_init(&head[i], &tail[i]);
	for (int i = 0; i < 3; i++)
		wfcq_enqueue(&head[0], &tail[0], &item[i].wfcq);
	if (wfcq_splice_blocking(&head[1], &tail[1], &head[0], &tail[0]) != WFCQ_RET_DEST_EMPTY ||
	    wfcq_splice_nonblocking(&head[1], &tail[1], &head[0], &tail[0]) != WFCQ_RET_SRC_EMPTY)
		return false;
	wfcq_for_each_blocking(&head[1], &tail[1], node)
		nr++;
	wfcq_for_each_blocking_safe(&head[1], &tail[1], node, next)
		nr++;
	if (wfcq_first_blocking(&head[1], &tail[1]) != wfcq_dequeue_blocking(&head[1], &tail[1]))
		return false;
	node = wfcq_dequeue_with_state_blocking(&head[1], &tail[1], &state);
	return nr == 6 && node == &item[1].wfcq && !wfcq_next_blocking(&head[1], &tail[1], &item[2].wfcq);
}

static bool call_lfq(struct world *w)
{
	struct lfq_queue own = LFQ_INIT, *q = &own;
	struct item a, b;
	bool ok;

	(void)w;
	lfq_init(q);
	lfq_node_init(&a.lfq);
	rcu_read_lock();
	lfq_enqueue(q, &a.lfq);
	lfq_enqueue(q, &b.lfq);
	ok = !lfq_empty(q) && lfq_dequeue(q) == &a.lfq && lfq_destroy(q) == -EPERM && lfq_dequeue(q) == &b.lfq && !lfq_dequeue(q);
	rcu_read_unlock();
	return ok && lfq_destroy(q) == 0;
}

/* Calls that have to wait until their time is over. */
static bool call_value_queue_wait(struct world *w)
{
	uint64_t values[4] = { 0 };
	struct value_queue q;
	bool ok;

	(void)w;
	if (value_queue_init(&q, sizeof *values, 2))
		return false;
	ok = value_queue_pop_timeout(&q, values, 1000) == -ETIMEDOUT;
	ok = value_queue_pop_many_timeout(&q, values, 4, 1000) == -ETIMEDOUT && ok;
	ok = value_queue_push_many_timeout(&q, values, 4, 1000) == 2 && ok;
	ok = value_queue_push_timeout(&q, values, 1000) == -ETIMEDOUT && ok;
	value_queue_destroy(&q, NULL, NULL);
	return ok;
}

/* ---- stacks ---- */

/* Both kinds of queue; the unbounded one grows, and rings are retired. */
static bool use_values(struct value_queue *q, uint64_t most)
{
	uint64_t value = 1, found[4] = { 0 }, nr;

	if (value_queue_pop_try(q, &value) != -EAGAIN)
		return false;
	for (nr = 0; nr < most; nr++)
		if (value_queue_push_try(q, &value) != 0)
			break;
	if (value_queue_count(q) != nr)
		return false;
	for (uint64_t i = 0; i < nr; i++)
		if (value_queue_pop_try(q, &found[0]) != 0 || found[0] != value)
			return false;
	if (value_queue_push_many(q, found, 4) != 4 || value_queue_pop_many(q, found, 2) != 2 || value_queue_pop(q, found) != 0)
		return false;
	if (value_queue_push_timeout(q, found, 1000) != 0 || value_queue_pop_timeout(q, found, 1000) != 0)
		return false;
	if (value_queue_push_many_timeout(q, found, 3, 1000) != 3 || value_queue_pop_many_timeout(q, found, 3, UINT64_MAX) != 3)
		return false;
	if (value_queue_push(q, found) != 0 || value_queue_push(q, found) != 0 || value_queue_is_closed(q))
		return false;
	value_queue_close(q);
	return value_queue_is_closed(q) && value_queue_push(q, found) == -EPIPE;
}

static void counts_values(void *value, void *arg)
{
	int *nr = arg;

	(void)value;
	++*nr;
}

static bool call_value_queue(struct world *w)
{
	struct value_queue q;
	bool ok = true;
	int nr;

	(void)w;
	for (size_t capacity = 0; ok && capacity <= 8; capacity += 8) {
		if (value_queue_init(&q, sizeof(uint64_t), capacity))
			return false;
		ok = use_values(&q, 500);
		nr = 0;
		value_queue_destroy(&q, counts_values, &nr);
		ok = ok && nr == 3;
	}
	return ok;
}

static bool call_wfs(struct world *w)
{
	struct wfs_stack s;
	struct item a, b;
	struct wfs_node *node;
	int state = 0, nr = 0;
	bool ok;

	(void)w;
	wfs_init(&s);
	wfs_node_init(&a.wfs);
	ok = wfs_empty(&s) && !wfs_push(&s, &a.wfs) && wfs_push(&s, &b.wfs) && wfs_pop_nonblocking(&s) == &b.wfs;
	ok = ok && wfs_pop_with_state_nonblocking(&s, &state) == &a.wfs && state == WFS_STATE_LAST;
	wfs_push(&s, &a.wfs);
	wfs_push(&s, &b.wfs);
	node = wfs_first(wfs_pop_all(&s));
	for (; node && node != WFS_WOULDBLOCK; node = wfs_next_nonblocking(node))
		nr++;
	wfs_destroy(&s);
	return ok && nr == 2;
}

static bool call_wfs_take(struct world *w)
{
	struct wfs_stack s = WFS_STACK_INIT;
	struct item a, b, c;
	struct wfs_node *node, *next;
	struct wfs_head *all;
	int state, nr = 0;
	bool ok;

	(void)w;
	wfs_push(&s, &a.wfs);
	wfs_push(&s, &b.wfs);
	ok = wfs_pop_blocking(&s) == &b.wfs && wfs_pop_with_state_blocking(&s, &state) == &a.wfs;
	wfs_push(&s, &a.wfs);
	wfs_push(&s, &c.wfs);
	all = wfs_pop_all(&s);
	wfs_for_each_blocking(all, node)
		nr++;
	wfs_for_each_blocking_safe(all, node, next)
		nr++;
	return ok && nr == 4 && wfs_next_blocking(&c.wfs) == &a.wfs;
}

static bool call_lfs(struct world *w)
{
	struct lfs_stack s;
	struct item a, b;
	struct lfs_node *node;
	int nr = 0;
	bool ok;

	(void)w;
	lfs_init(&s);
	lfs_node_init(&a.lfs);
	ok = lfs_empty(&s) && !lfs_push(&s, &a.lfs) && lfs_push(&s, &b.lfs);
	rcu_read_lock();
	ok = ok && lfs_pop(&s) == &b.lfs;
	rcu_read_unlock();
	lfs_for_each(lfs_pop_all(&s), node)
		nr++;
	lfs_destroy(&s);
	return ok && nr == 1;
}

/* ---- lists that wait for their readers before they are published elsewhere ---- */

static bool call_splice(struct world *w)
{
	LIST_HEAD(from);
	LIST_HEAD(to);
	struct item a, b;
	bool ok;

	(void)w;
	list_add_tail_rcu(&a.list, &from);
	list_splice_init_rcu(&from, &to, synchronize_rcu);
	ok = list_empty(&from) && list_is_singular(&to);
	list_add_rcu(&b.list, &from);
	list_splice_tail_init_rcu(&from, &to, synchronize_rcu);
	return ok && list_is_first(&a.list, &to) && list_is_last(&b.list, &to);
}

enum { ANYWHERE = IN_READER | IN_CALLBACK | AT_THREAD_END };

const struct call calls_lists[] = {
	CALL(wfcq_put, "wfcq_init wfcq_node_init wfcq_empty wfcq_enqueue wfcq_first_nonblocking wfcq_next_nonblocking"
	     " wfcq_dequeue_nonblocking wfcq_dequeue_with_state_nonblocking", NEVER_WAITS | ANYWHERE),
	CALL(wfcq_take, "wfcq_splice_blocking wfcq_splice_nonblocking wfcq_for_each_blocking wfcq_for_each_blocking_safe"
	     " wfcq_first_blocking wfcq_next_blocking wfcq_dequeue_blocking wfcq_dequeue_with_state_blocking", ANYWHERE),
	CALL(lfq, "lfq_init lfq_node_init lfq_empty lfq_enqueue lfq_dequeue lfq_destroy", NEVER_WAITS | ANYWHERE),
	CALL(value_queue, "value_queue_init value_queue_destroy value_queue_push value_queue_push_try value_queue_push_timeout"
	     " value_queue_push_many value_queue_push_many_timeout value_queue_pop value_queue_pop_try value_queue_pop_timeout"
	     " value_queue_pop_many value_queue_pop_many_timeout value_queue_close value_queue_is_closed value_queue_count",
	     ANYWHERE | MAY_FAIL),
	CALL(value_queue_wait, "value_queue_pop_timeout value_queue_pop_many_timeout value_queue_push_timeout"
	     " value_queue_push_many_timeout",
	     WAITS | NOT_IN_READER | IN_CALLBACK | AT_THREAD_END | MAY_FAIL),
	CALL(wfs, "wfs_init wfs_destroy wfs_node_init wfs_empty wfs_push wfs_pop_nonblocking wfs_pop_with_state_nonblocking wfs_pop_all"
	     " wfs_first wfs_next_nonblocking", NEVER_WAITS | ANYWHERE),
	CALL(wfs_take, "wfs_pop_blocking wfs_pop_with_state_blocking wfs_for_each_blocking wfs_for_each_blocking_safe wfs_next_blocking",
	     ANYWHERE),
	CALL(lfs, "lfs_init lfs_destroy lfs_node_init lfs_empty lfs_push lfs_pop lfs_pop_all lfs_for_each", NEVER_WAITS | ANYWHERE),
	CALL(splice, "list_splice_init_rcu list_splice_tail_init_rcu", WAITS | IN_CALLBACK | AT_THREAD_END),
	END_OF_CALLS,
};
