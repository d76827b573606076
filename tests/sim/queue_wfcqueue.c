/* SPDX-License-Identifier: MIT */
/* queue_wfcqueue.c - wfcqueue: enqueuers at any place between their two steps, and one taker. */
#include "queue_world.h"

#include <quiesce/ds/wfcqueue.h>

struct item {
	int id;
	struct wfcq_node node;
};

struct queue {
	struct wfcq_head head;
	struct wfcq_tail tail;
};

static struct queue main_queue, other_queue, private_queue[2];
static struct item item[1 + NR_PRODUCERS * NR_EACH];
static int nr_found_empty, nr_last, nr_producers, nr_ended, nr_put;

#define POISON ((struct wfcq_node *)0x51)

static void begin(int producers)
{
	struct queue *all[] = { &main_queue, &other_queue, &private_queue[0], &private_queue[1] };

	for (int i = 0; i < 4; i++)
		wfcq_init(&all[i]->head, &all[i]->tail);
	nr_producers = producers;
}

static bool enqueue(struct queue *q, int id)
{
	item[id].id = id;
	quiesce_store_relaxed(&item[id].node.next, POISON);
	return wfcq_enqueue(&q->head, &q->tail, &item[id].node);
}

/* No thread may write to the node any more: finish() checks that. */
static int take(struct wfcq_node *node, int by)
{
	struct item *it = wfcq_entry(node, struct item, node);

	world_taken(it->id, by);
	quiesce_store_relaxed(&node->next, POISON);
	return it->id;
}

static bool all_taken(void)
{
	return world_nr_taken() == nr_producers * NR_EACH;
}

static void finish(void)
{
	sim_assert(all_taken());
	for (int id = 1; id <= nr_producers * NR_EACH; id++)
		sim_assert(quiesce_load_relaxed(&item[id].node.next) == POISON);
	sim_assert(wfcq_empty(&main_queue.head, &main_queue.tail) && wfcq_empty(&other_queue.head, &other_queue.tail));
	sim_assert(!wfcq_dequeue_nonblocking(&main_queue.head, &main_queue.tail));
	sim_assert(nr_found_empty == nr_last);
}

static void produce_into(struct queue *q, int producer, int nr)
{
	for (int i = 0; i < nr; i++) {
		world_fill(ITEM_ID(producer, i));
		if (!enqueue(q, ITEM_ID(producer, i)))
			quiesce_fetch_add_relaxed(&nr_found_empty, 1);
		quiesce_fetch_add(RU3, &nr_put, 1); /* full: a thread that loads the number has seen that many enqueues */
	}
	quiesce_fetch_add(RU3, &nr_ended, 1); /* full: a thread that loads the number has seen the enqueues */
}

static void producer(void *number)
{
	produce_into(&main_queue, (int)(uintptr_t)number, NR_EACH);
}

static void start_producers(void)
{
	for (int i = 0; i < nr_producers; i++)
		sim_spawn(producer, (void *)(uintptr_t)i, "producer");
}

/* ---- one taker ---- */

/* Take an item; true if there was one. */
static bool take_one(struct queue *q, int by, bool may_wait)
{
	int state = 7;
	struct wfcq_node *node = may_wait ? wfcq_dequeue_with_state_blocking(&q->head, &q->tail, &state) :
					    wfcq_dequeue_with_state_nonblocking(&q->head, &q->tail, &state);

	if (!node || node == WFCQ_WOULDBLOCK) {
		sim_assert(state == 0 && !(may_wait && node));
		if (node)
			sim_saw();
		return false;
	}
	nr_last += state == WFCQ_STATE_LAST;
	take(node, by);
	return true;
}

/* No item is overlooked, not even behind a missing link. */
static void takes_without_waiting(void *unused)
{
	int put;

	(void)unused;
	while (!all_taken()) {
		put = quiesce_load_acquire(RU3, &nr_put);
		sim_assert(put <= world_nr_taken() || !wfcq_empty(&main_queue.head, &main_queue.tail));
		if (!wfcq_first_nonblocking(&main_queue.head, &main_queue.tail))
			sim_assert(put <= world_nr_taken());
		if (!take_one(&main_queue, 0, false))
			platform_yield();
	}
}

static void setup_dequeue(void)
{
	begin(2);
	start_producers();
	sim_spawn(takes_without_waiting, NULL, "taker");
}

static void takes_and_waits(void *unused)
{
	(void)unused;
	while (!all_taken())
		if (!take_one(&main_queue, 0, true))
			platform_yield();
}

static void setup_wait(void)
{
	begin(3);
	start_producers();
	sim_spawn(takes_and_waits, NULL, "taker");
}

/* The taker sleeps until an enqueuer that found the queue empty rings the bell. */
static uint32_t bell; /* word of a semaphore, which orders */

static void rings(void *number)
{
	for (int i = 0; i < NR_EACH; i++) {
		int id = ITEM_ID((int)(uintptr_t)number, i);

		world_fill(id);
		if (enqueue(&main_queue, id))
			continue;
		quiesce_fetch_add_relaxed(&nr_found_empty, 1);
		quiesce_fetch_add(RU3, &bell, 1);
		platform_futex_wake(&bell, 1);
	}
}

static void takes_when_asked(void *unused)
{
	uint32_t heard = 0;

	(void)unused;
	while (!all_taken()) {
		while (quiesce_load_acquire(RU3, &bell) == heard)
			platform_futex_wait(&bell, heard, PLATFORM_FOREVER);
		heard++;
		while (take_one(&main_queue, 0, true))
			;
	}
}

static void setup_bell(void)
{
	begin(2);
	for (int i = 0; i < nr_producers; i++)
		sim_spawn(rings, (void *)(uintptr_t)i, "producer");
	sim_spawn(takes_when_asked, NULL, "taker");
}

/* In the other protocol an enqueuer checks, after its exchange, whether the taker sleeps. */
static uint32_t asleep;

static void wakes(void *number)
{
	for (int i = 0; i < NR_EACH; i++) {
		int id = ITEM_ID((int)(uintptr_t)number, i);

		world_fill(id);
		if (!enqueue(&main_queue, id))
			quiesce_fetch_add_relaxed(&nr_found_empty, 1);
		if (quiesce_load_relaxed(&asleep)) {
			quiesce_store_relaxed(&asleep, 0);
			platform_futex_wake(&asleep, 1);
		}
	}
}

static void takes_and_sleeps(void *unused)
{
	(void)unused;
	while (!all_taken()) {
		while (take_one(&main_queue, 0, true))
			;
		quiesce_store_relaxed(&asleep, 1);
		quiesce_fence_full(RU1); /* a fence of the user, between asleep and the check */
		if (!all_taken() && wfcq_empty(&main_queue.head, &main_queue.tail))
			platform_futex_wait(&asleep, 1, PLATFORM_FOREVER);
		quiesce_store_relaxed(&asleep, 0);
	}
}

static void setup_asleep(void)
{
	begin(2);
	for (int i = 0; i < nr_producers; i++)
		sim_spawn(wakes, (void *)(uintptr_t)i, "producer");
	sim_spawn(takes_and_sleeps, NULL, "taker");
}

/* An enqueuer that finds the queue empty sees the stores before the dequeue that emptied it. */
#define BEFORE 60

static void empties(void *unused)
{
	(void)unused;
	sim_obj_init(BEFORE);
	while (!take_one(&main_queue, 0, true))
		;
	takes_and_waits(NULL);
}

static void checks_if_empty(void *unused)
{
	(void)unused;
	for (int i = 1; i < NR_EACH; i++) {
		world_fill(ITEM_ID(0, i));
		if (enqueue(&main_queue, ITEM_ID(0, i)))
			continue;
		quiesce_fetch_add_relaxed(&nr_found_empty, 1);
		sim_obj_read(BEFORE);
		sim_saw();
	}
}

static void setup_emptied(void)
{
	begin(1);
	world_fill(ITEM_ID(0, 0));
	enqueue(&main_queue, ITEM_ID(0, 0));
	nr_found_empty = 1;
	sim_spawn(checks_if_empty, NULL, "producer");
	sim_spawn(empties, NULL, "taker");
}

/* A taken node is enqueued again at once. */
static void goes_round(void *unused)
{
	struct wfcq_node *node;

	(void)unused;
	for (int turn = 0; turn < 6;) {
		node = wfcq_dequeue_nonblocking(&main_queue.head, &main_queue.tail);
		if (!node || node == WFCQ_WOULDBLOCK) {
			platform_yield();
			continue;
		}
		sim_saw();
		turn++;
		wfcq_enqueue(&main_queue.head, &main_queue.tail, node);
	}
	nr_last = nr_found_empty = 0;
	while (!all_taken())
		if (!take_one(&main_queue, ANY_ORDER, true))
			platform_yield();
	nr_last = nr_found_empty;
}

static void one_each(void *number)
{
	for (int i = (int)(uintptr_t)number; i < NR_EACH; i += 2) {
		world_fill(ITEM_ID(0, i));
		enqueue(&main_queue, ITEM_ID(0, i));
	}
}

static void finish_round(void)
{
	sim_assert(all_taken() && wfcq_empty(&main_queue.head, &main_queue.tail));
}

/* ---- splices ---- */

static bool splice(struct queue *to, struct queue *from, bool may_wait)
{
	enum wfcq_ret ret = may_wait ? wfcq_splice_blocking(&to->head, &to->tail, &from->head, &from->tail) :
				       wfcq_splice_nonblocking(&to->head, &to->tail, &from->head, &from->tail);

	sim_assert(!(may_wait && ret == WFCQ_RET_WOULDBLOCK));
	if (ret == WFCQ_RET_WOULDBLOCK)
		sim_saw();
	return ret == WFCQ_RET_DEST_EMPTY || ret == WFCQ_RET_DEST_NON_EMPTY;
}

static void splices(void *number)
{
	int me = (int)(uintptr_t)number, state;
	struct queue *mine = &private_queue[me];
	struct wfcq_node *node;

	while (!all_taken()) {
		if (!splice(mine, &main_queue, sim_random(2))) {
			platform_yield();
			continue;
		}
		quiesce_fetch_add_relaxed(&nr_last, 1);
		while ((node = wfcq_dequeue_with_state_blocking(&mine->head, &mine->tail, &state)))
			take(node, me);
	}
}

static void setup_splice(void)
{
	begin(2);
	start_producers();
	sim_spawn(splices, (void *)0, "splicer");
}

static void setup_splices(void)
{
	begin(2);
	start_producers();
	sim_spawn(splices, (void *)0, "splicer");
	sim_spawn(splices, (void *)1, "splicer");
}

/* There are no further enqueues that would end a wait: the waiter has to see that nothing is left to splice. */
static void splices_once(void *number)
{
	int me = (int)(uintptr_t)number;
	struct queue *mine = &private_queue[me];
	struct wfcq_node *node;

	splice(mine, &main_queue, true);
	wfcq_for_each_blocking(&mine->head, &mine->tail, node)
		world_taken(wfcq_entry(node, struct item, node)->id, me);
}

static void finish_once(void)
{
	sim_assert(all_taken());
}

static void setup_spliced(void)
{
	begin(1);
	for (int i = 0; i < NR_EACH; i++) {
		world_fill(ITEM_ID(0, i));
		enqueue(&main_queue, ITEM_ID(0, i));
	}
	sim_spawn(splices_once, (void *)0, "splicer");
	sim_spawn(splices_once, (void *)1, "splicer");
}

/* Splice from one queue to the end of another, which has enqueuers of its own. */
static void moves(void *unused)
{
	(void)unused;
	while (!all_taken())
		if (splice(&main_queue, &other_queue, sim_random(2)))
			quiesce_fetch_add_relaxed(&nr_last, 1);
		else
			platform_yield();
}

static void other_producer(void *number)
{
	produce_into(&other_queue, (int)(uintptr_t)number, NR_EACH);
}

static void takes_from_both(void *unused)
{
	(void)unused;
	while (!all_taken())
		if (!take_one(&main_queue, 0, false))
			platform_yield();
}

static void setup_moves(void)
{
	begin(2);
	sim_spawn(producer, (void *)0, "producer");
	sim_spawn(other_producer, (void *)1, "other producer");
	sim_spawn(moves, NULL, "mover");
	sim_spawn(takes_from_both, NULL, "taker");
}

static void finish_moves(void)
{
	nr_last = nr_found_empty; /* a splice to an empty queue is not counted */
	finish();
}

/* ---- walks ---- */

static void walks(void *unused)
{
	struct wfcq_node *node;
	int seen = 0, again = 0, before = quiesce_load_acquire(RU3, &nr_ended);

	(void)unused;
	wfcq_for_each_blocking(&main_queue.head, &main_queue.tail, node) {
		sim_obj_read(wfcq_entry(node, struct item, node)->id);
		seen++;
	}
	wfcq_for_each_blocking(&main_queue.head, &main_queue.tail, node)
		again++;
	sim_assert(seen <= again && (before < nr_producers || seen == nr_producers * NR_EACH));
	if (seen && seen < nr_producers * NR_EACH)
		sim_saw();
	while (take_one(&main_queue, 0, true))
		seen--;
	sim_assert(seen <= 0);
	takes_and_waits(NULL);
}

static void setup_walk(void)
{
	begin(2);
	start_producers();
	sim_spawn(walks, NULL, "walker");
}

/* ---- signals, and threads that stop ---- */

static int from_handler[2];

static void handler(void)
{
	int producer = 2 + sim_self() % 2;

	if (from_handler[producer - 2] == NR_EACH)
		return;
	world_fill(ITEM_ID(producer, from_handler[producer - 2]));
	if (!enqueue(&main_queue, ITEM_ID(producer, from_handler[producer - 2]++)))
		quiesce_fetch_add_relaxed(&nr_found_empty, 1);
}

static void interrupted_producer(void *number)
{
	sim_set_signal(handler, NR_EACH);
	produce_into(&main_queue, (int)(uintptr_t)number, NR_EACH);
	sim_set_signal(NULL, 0);
	while (from_handler[sim_self() % 2] < NR_EACH)
		handler();
}

static void interrupted_taker(void *unused)
{
	sim_set_signal(handler, NR_EACH);
	while (world_nr_taken() < NR_EACH)
		if (!take_one(&main_queue, 0, true))
			platform_yield();
	sim_set_signal(NULL, 0);
	while (from_handler[sim_self() % 2] < NR_EACH)
		handler();
	takes_and_waits(unused);
}

static void finish_signals(void)
{
	nr_producers = 4;
	sim_assert(world_nr_taken() == 3 * NR_EACH);
	sim_assert(wfcq_empty(&main_queue.head, &main_queue.tail) && nr_found_empty == nr_last);
}

static void setup_signals(void)
{
	begin(3); /* a producer and two handlers */
	sim_spawn(interrupted_producer, (void *)0, "producer");
	sim_spawn(interrupted_taker, NULL, "taker");
}

/* An enqueuer never makes its second step: other enqueuers do not wait for it, nor does a taker that does not wait. */
static void stops(void *unused)
{
	(void)unused;
	sim_stop_within(12);
	produce_into(&main_queue, 0, NR_EACH);
}

static void takes_what_there_is(void *unused)
{
	(void)unused;
	while (quiesce_load_relaxed(&nr_ended) < 1) {
		take_one(&main_queue, 0, false);
		platform_yield();
	}
	for (int i = 0; i < 3 * NR_EACH; i++)
		take_one(&main_queue, 0, false);
}

static void setup_stop(void)
{
	begin(2);
	sim_spawn(stops, NULL, "stops");
	sim_spawn(producer, (void *)1, "producer");
	sim_spawn(takes_what_there_is, NULL, "taker");
}

#define BLOCKED "a link that is not written yet"

static void setup_round(void)
{
	begin(1);
	sim_spawn(one_each, (void *)0, "producer");
	sim_spawn(one_each, (void *)1, "producer");
	sim_spawn(goes_round, NULL, "taker");
}

const struct sim_scenario wfcq_scenarios[] = {
	{ "dequeue", "several enqueue, one takes and never waits", setup_dequeue, finish, BLOCKED },
	{ "wait", "the taker waits for links", setup_wait, finish, NULL },
	{ "bell", "the producer that finds the queue empty wakes the taker", setup_bell, finish, NULL },
	{ "asleep", "the producer checks whether the taker sleeps", setup_asleep, finish, NULL },
	{ "emptied", "the producer that finds the queue empty sees what precedes that", setup_emptied, finish, "a queue found empty" },
	{ "round", "what was taken goes in again", setup_round, finish_round, "a turn" },
	{ "splice", "one takes all at once", setup_splice, finish, BLOCKED },
	{ "splices", "two do", setup_splices, finish, BLOCKED },
	{ "spliced", "two do once, and one of them finds nothing", setup_spliced, finish_once, NULL },
	{ "moves", "from one queue to another one in use", setup_moves, finish_moves, BLOCKED },
	{ "walk", "walks beside enqueuers", setup_walk, finish, "a part of the queue" },
	{ "signals", "handlers enqueue, whatever they interrupt", setup_signals, finish_signals, NULL },
	{ "stop", "an enqueuer stops for good", setup_stop, NULL, BLOCKED },
	{ NULL, NULL, NULL, NULL, NULL },
};
