/* SPDX-License-Identifier: MIT */
/* test_wfcqueue.c - wfcqueue, one thread at a time, and with an enqueuer that stands between its exchange and its link. */
#include <quiesce/ds/wfcqueue.h>

#include "testing.h"

struct item {
	int number;
	struct wfcq_node node;
};

static struct wfcq_head head = WFCQ_HEAD_INIT;
static struct wfcq_tail tail = WFCQ_TAIL_INIT(head);
static struct item items[8];

static bool enqueue(int i)
{
	memset(&items[i].node, 0xa5, sizeof items[i].node); /* the node needs no initialisation */
	items[i].number = i;
	return wfcq_enqueue(&head, &tail, &items[i].node);
}

/* Return the item's number; -1: empty, -2: would block. */
static int number_of(const struct wfcq_node *node)
{
	return !node ? -1 : node == WFCQ_WOULDBLOCK ? -2 : wfcq_entry(node, struct item, node)->number;
}

static int dequeue(void)
{
	return number_of(wfcq_dequeue_nonblocking(&head, &tail));
}

/* Act as an enqueuer that got as far as its exchange.  No other thread uses the queue. */
static struct wfcq_node *exchanged(int i)
{
	struct wfcq_node *before = quiesce_load_relaxed(&tail.p);

	items[i].number = i;
	wfcq_node_init(&items[i].node);
	quiesce_store_relaxed(&tail.p, &items[i].node);
	return before;
}

static void linked(struct wfcq_node *before, int i)
{
	__atomic_store_n(&before->next, &items[i].node, __ATOMIC_RELEASE); /* raw: the second half of an enqueue by hand */
}

static void empty(void **state)
{
	struct wfcq_head fresh_head, dest_head = WFCQ_HEAD_INIT;
	struct wfcq_tail fresh_tail, dest_tail = WFCQ_TAIL_INIT(dest_head);
	int last = 7;

	(void)state;
	assert_true(wfcq_empty(&head, &tail));
	assert_int_equal(dequeue(), -1);
	wfcq_init(&fresh_head, &fresh_tail);
	assert_true(wfcq_empty(&fresh_head, &fresh_tail));
	assert_null(wfcq_dequeue_with_state_blocking(&fresh_head, &fresh_tail, &last));
	assert_int_equal(last, 0);
	assert_null(wfcq_dequeue_blocking(&fresh_head, &fresh_tail));
	assert_null(wfcq_first_blocking(&fresh_head, &fresh_tail));
	assert_null(wfcq_first_nonblocking(&fresh_head, &fresh_tail));
	assert_int_equal(wfcq_splice_nonblocking(&dest_head, &dest_tail, &fresh_head, &fresh_tail), WFCQ_RET_SRC_EMPTY);
	assert_int_equal(wfcq_splice_blocking(&dest_head, &dest_tail, &fresh_head, &fresh_tail), WFCQ_RET_SRC_EMPTY);
	assert_true(wfcq_empty(&dest_head, &dest_tail));
}

static void first_in_first_out(void **state)
{
	int last = 7;

	(void)state;
	for (int round = 0; round < 3; round++) {
		assert_false(enqueue(0));
		assert_false(wfcq_empty(&head, &tail));
		assert_int_equal(dequeue(), 0);
		assert_true(wfcq_empty(&head, &tail));
		for (int i = 0; i < 8; i++)
			assert_int_equal(enqueue(i), i > 0);
		for (int i = 0; i < 8; i++) {
			assert_int_equal(number_of(i % 2 ? wfcq_dequeue_with_state_nonblocking(&head, &tail, &last) :
							   wfcq_dequeue_with_state_blocking(&head, &tail, &last)), i);
			assert_int_equal(last, i == 7 ? WFCQ_STATE_LAST : 0);
		}
		assert_int_equal(dequeue(), -1);
	}
}

static void moved(void **state)
{
	struct wfcq_head dest_head = WFCQ_HEAD_INIT;
	struct wfcq_tail dest_tail = WFCQ_TAIL_INIT(dest_head);

	(void)state;
	enqueue(0);
	enqueue(1);
	assert_int_equal(wfcq_splice_nonblocking(&dest_head, &dest_tail, &head, &tail), WFCQ_RET_DEST_EMPTY);
	assert_true(wfcq_empty(&head, &tail));
	assert_int_equal(dequeue(), -1);
	assert_false(enqueue(2));
	assert_true(enqueue(3));
	assert_int_equal(wfcq_splice_blocking(&dest_head, &dest_tail, &head, &tail), WFCQ_RET_DEST_NON_EMPTY);
	assert_int_equal(wfcq_splice_blocking(&dest_head, &dest_tail, &head, &tail), WFCQ_RET_SRC_EMPTY);
	for (int i = 0; i < 4; i++)
		assert_int_equal(number_of(wfcq_dequeue_nonblocking(&dest_head, &dest_tail)), i);
	assert_true(wfcq_empty(&dest_head, &dest_tail));
}

static void visited(void **state)
{
	struct wfcq_head mine = WFCQ_HEAD_INIT;
	struct wfcq_tail mine_tail = WFCQ_TAIL_INIT(mine);
	struct wfcq_node *node, *next;
	int n = 0;

	(void)state;
	wfcq_for_each_blocking(&head, &tail, node)
		fail();
	for (int i = 0; i < 5; i++)
		enqueue(i);
	wfcq_for_each_blocking(&head, &tail, node)
		assert_int_equal(number_of(node), n++);
	assert_int_equal(n, 5);
	assert_int_equal(number_of(wfcq_first_nonblocking(&head, &tail)), 0);
	assert_int_equal(number_of(wfcq_next_nonblocking(&head, &tail, &items[3].node)), 4);
	assert_null(wfcq_next_nonblocking(&head, &tail, &items[4].node));
	wfcq_splice_blocking(&mine, &mine_tail, &head, &tail);
	n = 0;
	wfcq_for_each_blocking_safe(&mine, &mine_tail, node, next) {
		assert_int_equal(number_of(node), n);
		memset(node, 0xa5, sizeof *node);
		items[n++].number = -7;
	}
	assert_int_equal(n, 5);
}

/* ---- an enqueuer between its two steps ---- */

static void would_block(void **state)
{
	struct wfcq_head dest_head = WFCQ_HEAD_INIT;
	struct wfcq_tail dest_tail = WFCQ_TAIL_INIT(dest_head);
	struct wfcq_node *before = exchanged(0);
	int last = 7;

	(void)state;
	for (int i = 0; i < 2; i++) { /* the first round must change nothing for the second */
		assert_false(wfcq_empty(&head, &tail));
		assert_int_equal(dequeue(), -2);
		assert_int_equal(number_of(wfcq_dequeue_with_state_nonblocking(&head, &tail, &last)), -2);
		assert_int_equal(last, 0);
		assert_int_equal(number_of(wfcq_first_nonblocking(&head, &tail)), -2);
		assert_int_equal(wfcq_splice_nonblocking(&dest_head, &dest_tail, &head, &tail), WFCQ_RET_WOULDBLOCK);
	}
	assert_true(enqueue(1)); /* enqueuers do not wait */
	assert_int_equal(dequeue(), -2);
	linked(before, 0);
	assert_int_equal(dequeue(), 0);
	assert_int_equal(dequeue(), 1);
	assert_int_equal(dequeue(), -1);
	assert_true(wfcq_empty(&dest_head, &dest_tail));
}

static void would_block_behind(void **state)
{
	struct wfcq_node *before;
	int last = 7;

	(void)state;
	enqueue(0);
	before = exchanged(1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(number_of(wfcq_first_nonblocking(&head, &tail)), 0);
		assert_int_equal(number_of(wfcq_next_nonblocking(&head, &tail, &items[0].node)), -2);
		assert_int_equal(number_of(wfcq_dequeue_with_state_nonblocking(&head, &tail, &last)), -2);
		assert_int_equal(last, 0);
		assert_false(wfcq_empty(&head, &tail));
	}
	assert_true(enqueue(2));
	assert_int_equal(dequeue(), -2);
	linked(before, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(dequeue(), i);
	assert_int_equal(dequeue(), -1);
}

/* A splice includes a node that is not linked yet. */
static void moved_unlinked(void **state)
{
	struct wfcq_head dest_head = WFCQ_HEAD_INIT;
	struct wfcq_tail dest_tail = WFCQ_TAIL_INIT(dest_head);
	struct wfcq_node *before;

	(void)state;
	enqueue(0);
	before = exchanged(1);
	assert_int_equal(wfcq_splice_nonblocking(&dest_head, &dest_tail, &head, &tail), WFCQ_RET_DEST_EMPTY);
	assert_true(wfcq_empty(&head, &tail));
	assert_false(enqueue(2));
	assert_int_equal(number_of(wfcq_dequeue_nonblocking(&dest_head, &dest_tail)), -2);
	linked(before, 1);
	assert_int_equal(number_of(wfcq_dequeue_nonblocking(&dest_head, &dest_tail)), 0);
	assert_int_equal(number_of(wfcq_dequeue_nonblocking(&dest_head, &dest_tail)), 1);
	assert_null(wfcq_dequeue_nonblocking(&dest_head, &dest_tail));
	assert_int_equal(dequeue(), 2);
}

/* ---- callers that wait ---- */

static struct wfcq_head private_head = WFCQ_HEAD_INIT;
static struct wfcq_tail private_tail = WFCQ_TAIL_INIT(private_head);

struct waiter {
	int (*call)(void);
	int result;
	pid_t tid;
};

static int waits_dequeue(void)
{
	int last, number = number_of(wfcq_dequeue_with_state_blocking(&head, &tail, &last));

	return 10 * last + number;
}

static int waits_first(void)
{
	return number_of(wfcq_first_blocking(&head, &tail));
}

static int waits_next(void)
{
	return number_of(wfcq_next_blocking(&head, &tail, &items[0].node));
}

static int waits_splice(void)
{
	return (int)wfcq_splice_blocking(&private_head, &private_tail, &head, &tail);
}

static void *waiter_main(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, my_tid(), __ATOMIC_RELEASE); /* raw: a handshake of the test */
	w->result = w->call();
	return NULL;
}

/* The caller sleeps until item @i is linked, so that threads of any priority can run; then it returns @result. */
static void sleeps_until_linked(int (*call)(void), struct wfcq_node *before, int i, int result)
{
	struct waiter w = { .call = call };
	pthread_t thread;
	pid_t tid;

	thread_must(pthread_create(&thread, NULL, waiter_main, &w));
	wait_until((tid = __atomic_load_n(&w.tid, __ATOMIC_ACQUIRE)) != 0); /* raw: a handshake of the test */
	wait_until(voluntary_switches(tid) >= 5);
	linked(before, i);
	pthread_join(thread, NULL);
	assert_int_equal(w.result, result);
}

static void waits_for_the_first(void **state)
{
	(void)state;
	sleeps_until_linked(waits_dequeue, exchanged(0), 0, 10);
	sleeps_until_linked(waits_first, exchanged(0), 0, 0);
	assert_int_equal(dequeue(), 0);
	sleeps_until_linked(waits_splice, exchanged(1), 1, WFCQ_RET_DEST_EMPTY);
	assert_true(wfcq_empty(&head, &tail));
	assert_int_equal(number_of(wfcq_dequeue_blocking(&private_head, &private_tail)), 1);
}

static void waits_for_the_second(void **state)
{
	(void)state;
	enqueue(0);
	sleeps_until_linked(waits_next, exchanged(1), 1, 1);
	assert_int_equal(dequeue(), 0);
	assert_int_equal(dequeue(), 1);
	enqueue(0);
	sleeps_until_linked(waits_dequeue, exchanged(1), 1, 0);
	assert_int_equal(waits_dequeue(), 11);
	assert_int_equal(dequeue(), -1);
}

/* ---- fork ---- */

#ifndef __SANITIZE_THREAD__
static void use_in_child(void)
{
	must(dequeue() == 0 && dequeue() == 1 && dequeue() == -1);
	must(!enqueue(2) && dequeue() == 2);
}

static void in_a_child(void **state)
{
	(void)state;
	enqueue(0);
	enqueue(1);
	succeeds(use_in_child);
	assert_int_equal(dequeue(), 0);
	assert_int_equal(dequeue(), 1);
	assert_int_equal(dequeue(), -1);
}

/* A child that inherits a missing link, whose enqueuer does not exist there, can still call the functions that do not wait, and
 * enqueue. */
static void use_half_in_child(void)
{
	must(enqueue(2));
	must(dequeue() == -2 && !wfcq_empty(&head, &tail));
	wfcq_init(&head, &tail);
	must(!enqueue(3) && dequeue() == 3);
}

static void half_in_a_child(void **state)
{
	struct wfcq_node *before = exchanged(0);

	(void)state;
	succeeds(use_half_in_child);
	linked(before, 0);
	assert_int_equal(dequeue(), 0);
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(empty), TEST(first_in_first_out), TEST(moved), TEST(visited), TEST(would_block), TEST(would_block_behind),
		TEST(moved_unlinked), TEST(waits_for_the_first), TEST(waits_for_the_second),
#ifndef __SANITIZE_THREAD__
		TEST(in_a_child), TEST(half_in_a_child),
#endif
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
