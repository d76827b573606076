/* SPDX-License-Identifier: MIT */
/* test_lfqueue.c - lfqueue, one thread at a time and under load: no item is lost or taken twice, each enqueuer's items stay in order. */
#include <quiesce/ds/lfqueue.h>

#include "testing.h"

struct item {
	struct rcu_head rcu;
	struct lfq_node node;
	int from, number;
};

static struct lfq_queue queue = LFQ_INIT;

static void put(struct item *it)
{
	rcu_read_lock();
	lfq_enqueue(&queue, &it->node);
	rcu_read_unlock();
}

static struct item *take(void)
{
	struct lfq_node *node;

	rcu_read_lock();
	node = lfq_dequeue(&queue);
	rcu_read_unlock();
	return node ? lfq_entry(node, struct item, node) : NULL;
}

/* ---- one thread ---- */

static struct item items[8];

static void fresh(int i)
{
	memset(&items[i].node, 0xa5, sizeof items[i].node); /* the node needs no initialisation */
	put(&items[i]);
}

static void empty(void **state)
{
	struct lfq_queue other;

	(void)state;
	assert_true(lfq_empty(&queue));
	assert_null(take());
	lfq_init(&other);
	assert_true(lfq_empty(&other));
	rcu_read_lock();
	assert_null(lfq_dequeue(&other));
	rcu_read_unlock();
	assert_int_equal(lfq_destroy(&other), 0);
	assert_int_equal(sizeof other, 2 * QUIESCE_CACHELINE);
}

static void first_in_first_out(void **state)
{
	(void)state;
	for (int round = 1; round <= 8; round++) {
		for (int i = 0; i < round; i++) {
			fresh(i);
			assert_false(lfq_empty(&queue));
		}
		for (int i = 0; i < round; i++)
			assert_ptr_equal(take(), &items[i]);
		assert_null(take());
		assert_true(lfq_empty(&queue));
		synchronize_rcu();
	}
}

/* Put one in and take one out: the last node is taken each time. */
static void the_last_one(void **state)
{
	(void)state;
	fresh(0);
	for (int i = 1; i < 8; i++) {
		fresh(i);
		assert_ptr_equal(take(), &items[i - 1]);
	}
	assert_ptr_equal(take(), &items[7]);
	assert_null(take());
	synchronize_rcu();
	for (int i = 0; i < 8; i++) {
		fresh(i);
		assert_ptr_equal(take(), &items[i]);
		assert_null(take());
	}
	synchronize_rcu();
}

static void destroyed(void **state)
{
	(void)state;
	fresh(0);
	assert_int_equal(lfq_destroy(&queue), -EPERM);
	fresh(1);
	assert_ptr_equal(take(), &items[0]);
	assert_int_equal(lfq_destroy(&queue), -EPERM);
	assert_ptr_equal(take(), &items[1]);
	assert_int_equal(lfq_destroy(&queue), 0);
	synchronize_rcu();
	fresh(2); /* the queue stays usable */
	assert_ptr_equal(take(), &items[2]);
	synchronize_rcu();
}

/* The state left by an enqueuer that stopped after its first step: the node is linked, and the tail is where it was. */
static void link_only(int last, int i)
{
	quiesce_store_relaxed(&items[i].node.next, quiesce_load_relaxed(&items[last].node.next));
	assert_true(quiesce_load_relaxed(&queue.tail) == (uintptr_t)&items[last].node);
	quiesce_store_relaxed(&items[last].node.next, (uintptr_t)&items[i].node);
}

/* Other enqueuers advance the tail, and dequeuers do so before the head passes it. */
static void half_enqueued(void **state)
{
	(void)state;
	fresh(0);
	fresh(1);
	link_only(1, 2);
	assert_ptr_equal(take(), &items[0]);
	assert_ptr_equal(take(), &items[1]);
	assert_true(quiesce_load_relaxed(&queue.tail) == (uintptr_t)&items[2].node);
	link_only(2, 3);
	fresh(4);
	for (int i = 2; i < 5; i++)
		assert_ptr_equal(take(), &items[i]);
	assert_null(take());
	synchronize_rcu();
}

/* The state left by a dequeuer of the last node that stopped after its first step: the node is closed, by the number after that of
 * its end. */
static void close_only(int last)
{
	quiesce_store_relaxed(&items[last].node.next, quiesce_load_relaxed(&items[last].node.next) + 3);
}

/* Other dequeuers or enqueuers advance head and tail. */
static void half_taken(void **state)
{
	(void)state;
	fresh(0);
	close_only(0);
	assert_null(take());
	assert_true(lfq_empty(&queue));
	fresh(1);
	assert_ptr_equal(take(), &items[1]);
	fresh(2);
	fresh(3);
	assert_ptr_equal(take(), &items[2]);
	close_only(3);
	fresh(4);
	assert_ptr_equal(take(), &items[4]);
	assert_null(take());
	assert_int_equal(lfq_destroy(&queue), 0);
	synchronize_rcu();
}

#ifndef __SANITIZE_THREAD__
static void use_in_child(void)
{
	must(take() == &items[0] && take() == &items[1] && !take());
	put(&items[2]);
	must(take() == &items[2] && lfq_empty(&queue));
}

static void in_a_child(void **state)
{
	(void)state;
	fresh(0);
	fresh(1);
	succeeds(use_in_child);
	assert_ptr_equal(take(), &items[0]);
	assert_ptr_equal(take(), &items[1]);
	assert_null(take());
	synchronize_rcu();
}
#endif

/* ---- many threads ---- */

#define NR_THREADS 4
#define NR_EACH 60000

static int nr_wrong, nr_taken, nr_lives;

static void item_free(struct rcu_head *head)
{
	struct item *it = (struct item *)head;

	memset(&it->node, 0xa5, sizeof it->node);
	free(it);
}

static struct item *item_new(int from, int number)
{
	struct item *it = malloc(sizeof *it);

	if (!it)
		abort();
	it->from = from;
	it->number = number;
	return it;
}

static void run(int n, void *(*fn)(void *))
{
	pthread_t thread[NR_THREADS];

	nr_wrong = nr_taken = 0;
	for (int i = 0; i < n; i++)
		thread_must(pthread_create(&thread[i], NULL, fn, (void *)(uintptr_t)i));
	threads_end(thread, n);
	assert_int_equal(nr_wrong, 0);
	rcu_barrier();
}

/* Items that one thread takes of another's come in the order in which they were enqueued. */
static bool take_in_order(int *newest)
{
	struct item *it = take();

	if (!it)
		return false;
	if (it->number <= newest[it->from])
		count_up(&nr_wrong);
	newest[it->from] = it->number;
	count_up(&nr_taken);
	call_rcu(&it->rcu, item_free);
	return true;
}

/* Each thread has put in more than it has taken, so there is always an item for it. */
static void *one_for_each_main(void *arg)
{
	int me = (int)(uintptr_t)arg, newest[NR_THREADS] = { -1, -1, -1, -1 };

	for (int i = 0; i < NR_EACH;) {
		int burst = 1 + i % 3;

		for (int k = 0; k < burst; k++)
			put(item_new(me, i++));
		for (int k = 0; k < burst; k++)
			if (!take_in_order(newest))
				count_up(&nr_wrong);
	}
	return NULL;
}

static void one_for_each(void **state)
{
	(void)state;
	run(NR_THREADS, one_for_each_main);
	assert_true(nr_taken >= NR_THREADS * NR_EACH && lfq_empty(&queue));
}

static void *half_main(void *arg)
{
	int me = (int)(uintptr_t)arg, newest[NR_THREADS] = { -1, -1, -1, -1 };

	if (me % 2)
		for (int i = 0; i < NR_EACH; i++)
			put(item_new(me, i));
	else
		while (flag_get(&nr_taken) < NR_THREADS / 2 * NR_EACH)
			if (!take_in_order(newest))
				sched_yield();
	return NULL;
}

static void half_put_half_take(void **state)
{
	(void)state;
	run(NR_THREADS, half_main);
	assert_int_equal(nr_taken, NR_THREADS / 2 * NR_EACH);
	assert_true(lfq_empty(&queue));
}

/* Nodes are reused as soon as a grace period has ended. */
#define NR_LIVES 60000

static void put_again(struct rcu_head *head)
{
	put((struct item *)head);
}

static void *lives_main(void *arg)
{
	struct item *it;

	(void)arg;
	while (flag_get(&nr_lives) < NR_LIVES) {
		it = take();
		if (it) {
			count_up(&nr_lives);
			call_rcu(&it->rcu, put_again);
		} else {
			sched_yield();
		}
	}
	return NULL;
}

static void nodes_come_back(void **state)
{
	struct item *it;
	int left = 0;

	(void)state;
	nr_lives = 0;
	for (int i = 0; i < 100; i++)
		put(item_new(0, i));
	run(3, lives_main);
	while ((it = take())) {
		left++;
		call_rcu(&it->rcu, item_free);
	}
	assert_int_equal(left, 100);
	rcu_barrier();
}

/* ---- signal handlers ---- */

#define NR_SIGNALS 300
static struct item from_handler[2 * NR_SIGNALS];
static int nr_handled, nr_ours;

static void handler(int sig)
{
	int i = quiesce_fetch_add_relaxed(&nr_handled, 1);
	struct item *it;

	(void)sig;
	put(&from_handler[i]);
	it = take();
	if (!it)
		count_up(&nr_wrong);
	else if (it->from == -1)
		count_up(&nr_ours);
}

static void *interrupted_main(void *arg)
{
	struct item *mine = arg, *it;

	while (flag_get(&nr_handled) < NR_SIGNALS) {
		put(mine);
		it = take();
		if (!it) {
			count_up(&nr_wrong);
			return NULL;
		}
		synchronize_rcu();
		mine = it;
	}
	return NULL;
}

static void handlers_put_and_take(void **state)
{
	static struct item own[2];
	pthread_t thread[2];
	int n = 0;

	(void)state;
	nr_wrong = nr_handled = 0;
	for (int i = 0; i < 2 * NR_SIGNALS; i++)
		from_handler[i].from = -1;
	signal(SIGUSR1, handler);
	for (int i = 0; i < 2; i++)
		thread_must(pthread_create(&thread[i], NULL, interrupted_main, &own[i]));
	for (int i = 0; i < NR_SIGNALS; i++) {
		pthread_kill(thread[i % 2], SIGUSR1);
		wait_until(flag_get(&nr_handled) > i || flag_get(&nr_wrong));
	}
	threads_end(thread, 2);
	assert_int_equal(nr_wrong, 0);
	while (take())
		n++;
	assert_int_equal(n, 0);
	assert_true(nr_ours > 0);
	signal(SIGUSR1, SIG_DFL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(empty), TEST(first_in_first_out), TEST(the_last_one), TEST(destroyed), TEST(half_enqueued), TEST(half_taken),
#ifndef __SANITIZE_THREAD__
		TEST(in_a_child),
#endif
		TEST(one_for_each), TEST(half_put_half_take), TEST(nodes_come_back), TEST(handlers_put_and_take),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
