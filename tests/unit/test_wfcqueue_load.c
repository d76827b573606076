/* SPDX-License-Identifier: MIT */
/* test_wfcqueue_load.c - wfcqueue under load: no item is lost or taken twice, and each thread's items come in their order. */
#include <quiesce/ds/wfcqueue.h>

#include "testing.h"

#define NR_PRODUCERS 3
#define NR_EACH 400000
#define NR_SIGNALLED 300

struct queue {
	struct wfcq_head head __attribute__((aligned(QUIESCE_CACHELINE)));
	struct wfcq_tail tail __attribute__((aligned(QUIESCE_CACHELINE)));
};

struct item {
	struct wfcq_node node;
	int from, number;
};

static struct queue shared, other;
static sem_t something;
static int nr_wrong, nr_taken;

static void queue_init(struct queue *q)
{
	wfcq_init(&q->head, &q->tail);
}

static bool queue_empty(const struct queue *q)
{
	return wfcq_empty(&q->head, &q->tail);
}

static void begin(void)
{
	queue_init(&shared);
	queue_init(&other);
	sem_init(&something, 0, 0);
	nr_wrong = nr_taken = 0;
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

/* The enqueuer posts if it finds the queue empty. */
static void put(struct queue *q, struct item *it)
{
	if (!wfcq_enqueue(&q->head, &q->tail, &it->node))
		sem_post(&something);
}

static void *producer_main(void *arg)
{
	for (int i = 0; i < NR_EACH; i++)
		put(&shared, item_new((int)(uintptr_t)arg, i));
	return NULL;
}

/* Items that a taker has seen of each producer. */
struct seen {
	int next[NR_PRODUCERS + 1];
};

/* The taker owns the node alone and frees it at once.  @all: it gets each item; otherwise items only come in order. */
static void taken(struct seen *seen, struct wfcq_node *node, bool all)
{
	struct item *it = wfcq_entry(node, struct item, node);
	int *next = &seen->next[it->from];

	if (all ? it->number != *next : it->number < *next)
		count_up(&nr_wrong);
	*next = it->number + 1;
	free(it);
	count_up(&nr_taken);
}

static void start(pthread_t *thread, int n, void *(*fn)(void *))
{
	for (int i = 0; i < n; i++)
		thread_must(pthread_create(&thread[i], NULL, fn, (void *)(uintptr_t)i));
}

static void join(const pthread_t *thread, int n)
{
	threads_end(thread, n);
}

/* The taker sleeps until an enqueuer has found the queue empty; a wake-up that is lost ends in the watchdog. */
static void one_takes(void **state)
{
	pthread_t producer[NR_PRODUCERS];
	struct seen seen = { { 0 } };
	struct wfcq_node *node;
	int last, nr_last = 0;

	(void)state;
	begin();
	start(producer, NR_PRODUCERS, producer_main);
	while (nr_taken < NR_PRODUCERS * NR_EACH) {
		wait_for(&something);
		while ((node = nr_taken % 2 ? wfcq_dequeue_with_state_blocking(&shared.head, &shared.tail, &last) :
					      wfcq_dequeue_with_state_nonblocking(&shared.head, &shared.tail, &last))) {
			if (node == WFCQ_WOULDBLOCK)
				continue;
			nr_last += last == WFCQ_STATE_LAST;
			taken(&seen, node, true);
		}
	}
	join(producer, NR_PRODUCERS);
	assert_int_equal(nr_wrong, 0);
	assert_true(queue_empty(&shared) && nr_last > 0);
	/* A post may be left over: the item that it announces was taken before the post. */
}

/* Two of these threads run at a time; each takes all nodes at once, without excluding the other. */
static void *splicer_main(void *arg)
{
	struct queue mine;
	struct seen seen = { { 0 } };
	struct wfcq_node *node, *next;
	enum wfcq_ret ret;
	bool blocking = (uintptr_t)arg;

	while (flag_get(&nr_taken) < NR_PRODUCERS * NR_EACH) {
		queue_init(&mine);
		ret = blocking ? wfcq_splice_blocking(&mine.head, &mine.tail, &shared.head, &shared.tail) :
				 wfcq_splice_nonblocking(&mine.head, &mine.tail, &shared.head, &shared.tail);
		if (ret == WFCQ_RET_WOULDBLOCK || ret == WFCQ_RET_SRC_EMPTY)
			sched_yield();
		else
			wfcq_for_each_blocking_safe(&mine.head, &mine.tail, node, next)
				taken(&seen, node, false);
	}
	return NULL;
}

static void two_splice(void **state)
{
	pthread_t producer[NR_PRODUCERS], splicer[2];

	(void)state;
	begin();
	start(producer, NR_PRODUCERS, producer_main);
	start(splicer, 2, splicer_main);
	join(producer, NR_PRODUCERS);
	join(splicer, 2);
	assert_int_equal(nr_wrong, 0);
	assert_int_equal(nr_taken, NR_PRODUCERS * NR_EACH);
	assert_true(queue_empty(&shared));
}

/* Nodes alternate between two queues: each is reused as soon as it was taken. */
#define NR_ROUND 5
#define NR_TURNS 100000

static void *rounds_main(void *arg)
{
	struct queue *from = arg ? &shared : &other, *to = arg ? &other : &shared;
	struct wfcq_node *node;

	for (int i = 0; i < NR_TURNS;) {
		node = wfcq_dequeue_blocking(&from->head, &from->tail);
		if (!node) {
			sched_yield();
			continue;
		}
		wfcq_enqueue(&to->head, &to->tail, node);
		i++;
	}
	return NULL;
}

static void nodes_go_round(void **state)
{
	pthread_t thread[2];
	struct wfcq_node *node;
	int left = 0;

	(void)state;
	begin();
	for (int i = 0; i < NR_ROUND; i++)
		put(&shared, item_new(0, i));
	start(thread, 2, rounds_main);
	join(thread, 2);
	wfcq_splice_blocking(&shared.head, &shared.tail, &other.head, &other.tail);
	while ((node = wfcq_dequeue_blocking(&shared.head, &shared.tail))) {
		free(wfcq_entry(node, struct item, node));
		left++;
	}
	assert_int_equal(left, NR_ROUND);
}

/* Handlers enqueue, whatever they interrupt. */
static struct item from_handler[NR_SIGNALLED];
static int nr_handled;

static void handler(int sig)
{
	int i = quiesce_fetch_add_relaxed(&nr_handled, 1);

	(void)sig;
	if (i >= NR_SIGNALLED)
		abort();
	from_handler[i].from = NR_PRODUCERS;
	from_handler[i].number = i;
	put(&shared, &from_handler[i]); /* sem_post() may be called in handlers */
}

static void *interrupted_main(void *arg)
{
	producer_main(arg);
	wait_until(flag_get(&nr_handled) == NR_SIGNALLED); /* a thread that has ended takes no signals */
	return NULL;
}

static void handlers_enqueue(void **state)
{
	pthread_t producer[NR_PRODUCERS];
	struct seen seen = { { 0 } };
	struct wfcq_node *node;
	int sent = 0, handled = 0;

	(void)state;
	begin();
	signal(SIGUSR1, handler);
	start(producer, NR_PRODUCERS, interrupted_main);
	while (nr_taken + handled < NR_PRODUCERS * NR_EACH + NR_SIGNALLED) {
		if (sent < NR_SIGNALLED && sent == flag_get(&nr_handled)) {
			/* Signals go to an enqueuer and to the dequeuer in turn. */
			pthread_kill(sent % 2 ? producer[sent / 2 % NR_PRODUCERS] : pthread_self(), SIGUSR1);
			sent++;
		}
		node = wfcq_dequeue_blocking(&shared.head, &shared.tail);
		if (!node)
			sched_yield();
		else if (wfcq_entry(node, struct item, node)->from == NR_PRODUCERS)
			handled++;
		else
			taken(&seen, node, true);
	}
	join(producer, NR_PRODUCERS);
	assert_int_equal(nr_wrong, 0);
	assert_int_equal(handled, NR_SIGNALLED);
	assert_true(queue_empty(&shared));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(one_takes), TEST(two_splice), TEST(nodes_go_round), TEST(handlers_enqueue),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
