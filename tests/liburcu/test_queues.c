/* SPDX-License-Identifier: MIT */
/* test_queues.c - queues and stacks under liburcu's names: results of calls, holders of the mutex, the loops, threads. */
#define _GNU_SOURCE
static int nr_pauses;
static void pause_of_ours(int ms);
#define CDS_WFCQ_WAIT_SLEEP(ms) pause_of_ours(ms)
#include <urcu.h>

#define CDS_WFQ_DEPRECATED
#define CDS_LFS_RCU_DEPRECATED
#include <urcu/lfstack.h>
#include <urcu/rculfqueue.h>
#include <urcu/rculfstack.h>
#include <urcu/wfcqueue.h>
#include <urcu/wfqueue.h>
#include <urcu/wfstack.h>

#include "../unit/watched.h"

#include <errno.h>

/* ---- wfcqueue ---- */

static struct cds_wfcq_head head;
static struct __cds_wfcq_head other;
static struct cds_wfcq_tail tail, other_tail;
static struct cds_wfcq_node node[8];

static void wfcq_in_order(void **state)
{
	int last = 9;

	(void)state;
	cds_wfcq_init(&head, &tail);
	assert_true(cds_wfcq_empty(&head, &tail));
	assert_null(cds_wfcq_dequeue_blocking(&head, &tail));
	assert_false(cds_wfcq_enqueue(&head, &tail, &node[0]));
	assert_true(cds_wfcq_enqueue(&head, &tail, &node[1]));
	assert_ptr_equal(__cds_wfcq_first_blocking(&head, &tail), &node[0]);
	assert_ptr_equal(__cds_wfcq_next_nonblocking(&head, &tail, &node[0]), &node[1]);
	assert_null(__cds_wfcq_next_blocking(&head, &tail, &node[1]));
	assert_ptr_equal(cds_wfcq_dequeue_with_state_blocking(&head, &tail, &last), &node[0]);
	assert_int_equal(last, 0);
	assert_ptr_equal(__cds_wfcq_dequeue_with_state_nonblocking(&head, &tail, &last), &node[1]);
	assert_int_equal(last, CDS_WFCQ_STATE_LAST);
	assert_null(__cds_wfcq_dequeue_nonblocking(&head, &tail));
	cds_wfcq_destroy(&head, &tail);
}

static void wfcq_spliced(void **state)
{
	struct cds_wfcq_node *n, *next;
	int nr = 0;

	(void)state;
	cds_wfcq_init(&head, &tail);
	__cds_wfcq_init(&other, &other_tail);
	assert_int_equal(__cds_wfcq_splice_blocking(&other, &other_tail, &head, &tail), CDS_WFCQ_RET_SRC_EMPTY);
	for (int i = 0; i < 4; i++) {
		cds_wfcq_enqueue(&head, &tail, &node[i]);
		assert_int_equal(__cds_wfcq_splice_nonblocking(&other, &other_tail, &head, &tail),
				 i ? CDS_WFCQ_RET_DEST_NON_EMPTY : CDS_WFCQ_RET_DEST_EMPTY);
	}
	assert_true(cds_wfcq_empty(&head, &tail));
	__cds_wfcq_for_each_blocking(&other, &other_tail, n)
		assert_ptr_equal(n, &node[nr++]);
	assert_int_equal(nr, 4);
	nr = 0;
	__cds_wfcq_for_each_blocking_safe(&other, &other_tail, n, next) {
		assert_ptr_equal(n, &node[nr++]);
		n->next = (struct cds_wfcq_node *)8; /* the node belongs to the caller now */
	}
	assert_int_equal(nr, 4);
	cds_wfcq_destroy(&head, &tail);
}

static struct cds_wfcq_node *not_linked;

static void pause_of_ours(int ms)
{
	assert_int_equal(ms, 10);
	nr_pauses++;
	head.node.next = not_linked; /* the enqueuer goes on */
}

/* An enqueuer that stopped before its link: nonblocking calls report it, the others wait by the program's own pause. */
static void wfcq_waits(void **state)
{
	(void)state;
	cds_wfcq_init(&head, &tail);
	cds_wfcq_enqueue(&head, &tail, &node[0]);
	not_linked = head.node.next;
	head.node.next = NULL;
	assert_ptr_equal(__cds_wfcq_dequeue_nonblocking(&head, &tail), CDS_WFCQ_WOULDBLOCK);
	assert_ptr_equal(__cds_wfcq_first_nonblocking(&head, &tail), CDS_WFCQ_WOULDBLOCK);
	__cds_wfcq_init(&other, &other_tail);
	assert_int_equal(__cds_wfcq_splice_nonblocking(&other, &other_tail, &head, &tail), CDS_WFCQ_RET_WOULDBLOCK);
	assert_int_equal(nr_pauses, 0);
	assert_ptr_equal(cds_wfcq_dequeue_blocking(&head, &tail), &node[0]);
	assert_int_equal(nr_pauses, 1);
	cds_wfcq_destroy(&head, &tail);
}

/* ---- stacks ---- */

static void wfs_in_order(void **state)
{
	struct cds_wfs_stack s;
	struct __cds_wfs_stack t;
	struct cds_wfs_node n[3], *at, *next;
	int last = 9, nr = 3;

	(void)state;
	cds_wfs_init(&s);
	__cds_wfs_init(&t);
	assert_true(cds_wfs_empty(&s) && cds_wfs_empty(&t));
	assert_null(cds_wfs_pop_blocking(&s));
	assert_null(cds_wfs_pop_all_blocking(&s));
	for (int i = 0; i < 3; i++)
		assert_int_equal(cds_wfs_push(&s, &n[i]), i > 0);
	assert_ptr_equal(__cds_wfs_pop_with_state_nonblocking(&s, &last), &n[2]);
	assert_int_equal(last, 0);
	assert_ptr_equal(cds_wfs_pop_blocking(&s), &n[1]);
	assert_ptr_equal(cds_wfs_pop_with_state_blocking(&s, &last), &n[0]);
	assert_int_equal(last, CDS_WFS_STATE_LAST);
	for (int i = 0; i < 3; i++)
		cds_wfs_push(&t, &n[i]);
	cds_wfs_for_each_blocking_safe(__cds_wfs_pop_all(&t), at, next)
		assert_ptr_equal(at, &n[--nr]);
	assert_int_equal(nr, 0);
	assert_null(__cds_wfs_pop_nonblocking(&t));
	cds_wfs_destroy(&s);
}

static void lfs_in_order(void **state)
{
	struct cds_lfs_stack s;
	struct cds_lfs_node n[3], *at, *next;
	struct cds_lfs_stack_rcu old;
	struct cds_lfs_node_rcu m[2];
	int nr = 3;

	(void)state;
	cds_lfs_init(&s);
	assert_true(cds_lfs_empty(&s));
	for (int i = 0; i < 3; i++)
		assert_int_equal(cds_lfs_push(&s, &n[i]), i > 0);
	assert_ptr_equal(cds_lfs_pop_blocking(&s), &n[2]);
	cds_lfs_push(&s, &n[2]);
	cds_lfs_for_each_safe(cds_lfs_pop_all_blocking(&s), at, next)
		assert_ptr_equal(at, &n[--nr]);
	assert_int_equal(nr, 0);
	assert_null(__cds_lfs_pop(&s));
	cds_lfs_destroy(&s);
	cds_lfs_init_rcu(&old);
	assert_int_equal(cds_lfs_push_rcu(&old, &m[0]), 0);
	assert_int_equal(cds_lfs_push_rcu(&old, &m[1]), 1);
	assert_ptr_equal(cds_lfs_pop_rcu(&old), &m[1]);
}

/* ---- rculfqueue, wfqueue ---- */

static void lfq_in_order(void **state)
{
	struct cds_lfq_queue_rcu q;
	struct cds_lfq_node_rcu n[3];

	(void)state;
	cds_lfq_init_rcu(&q, call_rcu);
	rcu_read_lock();
	assert_null(cds_lfq_dequeue_rcu(&q));
	for (int i = 0; i < 3; i++)
		cds_lfq_enqueue_rcu(&q, &n[i]);
	assert_int_equal(cds_lfq_destroy_rcu(&q), -EPERM);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(cds_lfq_dequeue_rcu(&q), &n[i]);
	assert_null(cds_lfq_dequeue_rcu(&q));
	rcu_read_unlock();
	assert_int_equal(cds_lfq_destroy_rcu(&q), 0);
}

static void wfq_in_order(void **state)
{
	struct cds_wfq_queue q;
	struct cds_wfq_node n[2];

	(void)state;
	cds_wfq_init(&q);
	assert_null(cds_wfq_dequeue_blocking(&q));
	cds_wfq_enqueue(&q, &n[0]);
	cds_wfq_enqueue(&q, &n[1]);
	assert_ptr_equal(cds_wfq_dequeue_blocking(&q), &n[0]);
	assert_ptr_equal(__cds_wfq_dequeue_blocking(&q), &n[1]);
	cds_wfq_destroy(&q);
}

/* ---- two takers that know nothing of each other: calls without __ have the mutex ---- */

static struct cds_wfs_stack stack;
static uint32_t go;

static void *taker(void *unused)
{
	(void)unused;
	assert_non_null(cds_wfcq_dequeue_blocking(&head, &tail));
	assert_non_null(cds_wfs_pop_blocking(&stack));
	flag_set(&go);
	return NULL;
}

static void mutex_is_taken(void **state)
{
	pthread_t thread;

	(void)state;
	cds_wfcq_init(&head, &tail);
	cds_wfs_init(&stack);
	cds_wfcq_enqueue(&head, &tail, &node[0]);
	cds_wfs_push(&stack, (struct cds_wfs_node *)&node[1]);
	cds_wfcq_dequeue_lock(&head, &tail);
	cds_wfs_pop_lock(&stack);
	assert_int_equal(pthread_mutex_trylock(&head.lock), EBUSY);
	assert_int_equal(pthread_mutex_trylock(&stack.lock), EBUSY);
	assert_int_equal(pthread_create(&thread, NULL, taker, NULL), 0);
	usleep(20000);
	assert_false(cds_wfcq_empty(&head, &tail));
	cds_wfcq_dequeue_unlock(&head, &tail);
	usleep(20000);
	assert_false(cds_wfs_empty(&stack));
	cds_wfs_pop_unlock(&stack);
	pthread_join(thread, NULL);
	assert_true(cds_wfcq_empty(&head, &tail) && cds_wfs_empty(&stack));
	cds_wfs_destroy(&stack);
	cds_wfcq_destroy(&head, &tail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wfcq_in_order), cmocka_unit_test(wfcq_spliced), cmocka_unit_test(wfcq_waits),
		cmocka_unit_test(wfs_in_order), cmocka_unit_test(lfs_in_order), cmocka_unit_test(lfq_in_order),
		cmocka_unit_test(wfq_in_order), cmocka_unit_test(mutex_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
