/* SPDX-License-Identifier: MIT */
/* queue_lfqueue.c - lfqueue: threads at any place inside a call, a queue that becomes empty, reused nodes. */
#include "queue_world.h"

#include "runtime/core.h"

#include <quiesce/ds/lfqueue.h>

#define AN_END ((uintptr_t)2) /* an end of the queue with the first number */

struct item {
	struct rcu_head rcu;
	int id, lives;
	struct lfq_node node;
};

static struct lfq_queue queue;
static struct item item[1 + NR_PRODUCERS * NR_EACH];
static int nr_items, nr_put, nr_lives, nr_finished;

static void begin(int producers)
{
	lfq_init(&queue);
	nr_items = producers * NR_EACH;
	nr_lives = nr_items;
}

static bool all_taken(void)
{
	return world_nr_taken() == nr_lives;
}

static void put(int id)
{
	item[id].id = id;
	rcu_read_lock();
	lfq_enqueue(&queue, &item[id].node);
	rcu_read_unlock();
	quiesce_fetch_add(RU3, &nr_put, 1); /* full: a thread that loads the number has seen that many enqueues */
}

static struct item *take(void)
{
	struct lfq_node *node;

	rcu_read_lock();
	node = lfq_dequeue(&queue);
	rcu_read_unlock();
	return node ? lfq_entry(node, struct item, node) : NULL;
}

/* A node after its grace period is overwritten by an end, the value that misleads a late reader most. */
static void item_free(struct rcu_head *rcu)
{
	struct item *it = (struct item *)rcu;

	quiesce_store_relaxed(&it->node.next, AN_END);
}

/* Take an item; true if there was one. */
static bool take_one(int by)
{
	struct item *it = take();

	if (!it)
		return false;
	world_taken(it->id, by);
	call_rcu(&it->rcu, item_free);
	return true;
}

static void producer(void *number)
{
	for (int i = 0; i < NR_EACH; i++) {
		world_fill(ITEM_ID((int)(uintptr_t)number, i));
		put(ITEM_ID((int)(uintptr_t)number, i));
	}
}

static void taker(void *number)
{
	while (!all_taken())
		if (!take_one((int)(uintptr_t)number))
			platform_yield();
}

/* Check that no thread has written to a node after its grace period. */
static void finish(void)
{
	sim_assert(all_taken() && lfq_empty(&queue) && lfq_destroy(&queue) == 0);
	for (int id = 1; id <= nr_items; id++)
		sim_assert(!sim_obj_is_free(id) || quiesce_load_relaxed(&item[id].node.next) == AN_END || !item[id].lives);
}

static void setup_pairs(void)
{
	begin(2);
	sim_spawn(producer, (void *)0, "producer");
	sim_spawn(producer, (void *)1, "producer");
	sim_spawn(taker, (void *)0, "taker");
	sim_spawn(taker, (void *)1, "taker");
}

/* A single taker knows how many items must be there. */
static void only_taker(void *unused)
{
	int there;

	(void)unused;
	while (!all_taken()) {
		there = quiesce_load_acquire(RU3, &nr_put) - world_nr_taken();
		sim_assert(there <= 0 || !lfq_empty(&queue));
		if (take_one(0))
			continue;
		sim_assert(there <= 0);
		platform_yield();
	}
	rcu_barrier();
}

static void setup_one(void)
{
	begin(3);
	for (int i = 0; i < 3; i++)
		sim_spawn(producer, (void *)(uintptr_t)i, "producer");
	sim_spawn(only_taker, NULL, "taker");
}

/* Each thread puts one item in and takes one, so there is one for each.  The queue becomes empty all the time. */
static void put_and_take(void *number)
{
	for (int i = 0; i < NR_EACH; i++) {
		world_fill(ITEM_ID((int)(uintptr_t)number, i));
		put(ITEM_ID((int)(uintptr_t)number, i));
		if (!take_one(ANY_ORDER))
			sim_fail("empty, and there was one for each");
	}
}

static void setup_last(void)
{
	begin(3);
	for (int i = 0; i < 3; i++)
		sim_spawn(put_and_take, (void *)(uintptr_t)i, "both");
}

static void setup_two(void)
{
	begin(2);
	for (int i = 0; i < 2; i++)
		sim_spawn(put_and_take, (void *)(uintptr_t)i, "both");
}

/* ---- nodes that come back ---- */

static void put_again(struct rcu_head *rcu)
{
	struct item *it = (struct item *)rcu;

	world_fill(it->id);
	put(it->id);
}

static void takes_lives(void *unused)
{
	struct item *it;

	(void)unused;
	while (!all_taken()) {
		it = take();
		if (!it) {
			platform_yield();
			continue;
		}
		world_taken(it->id, ANY_ORDER);
		if (--it->lives)
			call_rcu(&it->rcu, put_again);
	}
}

static void setup_reuse(void)
{
	begin(1);
	for (int id = 1; id <= nr_items; id++)
		item[id].lives = 3;
	nr_lives = 3 * nr_items;
	sim_spawn(producer, (void *)0, "producer");
	spawn_each(2, takes_lives, "taker");
}

static void finish_reuse(void)
{
	sim_assert(all_taken() && lfq_empty(&queue));
}

/* The thread waits for a grace period and then puts the node in again, so that reuse comes soon after. */
static void waits_and_puts(void *number)
{
	int id = ITEM_ID((int)(uintptr_t)number, 0);
	struct item *it;

	for (int i = 0; i < 3; i++) {
		world_fill(id);
		put(id);
		it = take();
		if (!it) {
			sim_fail("empty, and there was one for each");
			return;
		}
		id = it->id;
		world_taken(id, ANY_ORDER);
		synchronize_rcu();
	}
}

static void setup_waits(void)
{
	begin(3);
	nr_lives = 9;
	for (int i = 0; i < 3; i++)
		sim_spawn(waits_and_puts, (void *)(uintptr_t)i, "both");
}

/* One node is inside; one thread takes and frees it, and two others enqueue a node each, which they must not link behind the free one. */
static void takes_and_frees(void *unused)
{
	struct item *it = take();

	(void)unused;
	sim_assert(it != NULL);
	synchronize_rcu();
	item_free(&it->rcu);
}

static void puts_one(void *number)
{
	put((int)(uintptr_t)number);
}

static void start_with_one(bool tail_is_there)
{
	begin(2);
	item[1].id = 1;
	quiesce_store_relaxed(&item[1].node.next, AN_END);
	quiesce_store_relaxed(&queue.head, (uintptr_t)&item[1].node);
	if (tail_is_there)
		quiesce_store_relaxed(&queue.tail, (uintptr_t)&item[1].node);
	sim_spawn(puts_one, (void *)2, "puts");
	sim_spawn(puts_one, (void *)3, "puts");
	sim_spawn(takes_and_frees, NULL, "frees");
}

static void setup_left(void) { start_with_one(true); }
static void setup_number(void) { start_with_one(false); }

static void finish_freed(void)
{
	int nr = 0;

	while (quiesce_lfq_dequeue(&queue))
		nr++;
	sim_assert(nr + (quiesce_load_relaxed(&item[1].node.next) == AN_END) == 3);
}

/* ---- stopped, interrupted, forked ---- */

/* Calls of a stopped thread may or may not have taken effect, and the other threads complete theirs. */
static void goes_on(void *number)
{
	int first = (int)(uintptr_t)number;

	for (int i = 0; i < NR_EACH; i++) {
		put(ITEM_ID(first, i));
		if (!take())
			sim_fail("empty, and there was one for each");
	}
	quiesce_fetch_add_relaxed(&nr_finished, 1);
}

static void finish_stop(void)
{
	sim_assert(nr_finished >= 2);
}

static void stops_without_objects(void *number)
{
	rcu_read_lock(); /* the first section initialises the library, which has locks */
	rcu_read_unlock();
	sim_stop_within(80);
	goes_on(number);
}

static void setup_stop(void)
{
	begin(3);
	sim_spawn(stops_without_objects, (void *)0, "stops");
	sim_spawn(goes_on, (void *)1, "goes on");
	sim_spawn(goes_on, (void *)2, "goes on");
}

static int from_handler[SIM_MAX_THREADS];

static void handler(void)
{
	int i = from_handler[sim_self()];

	if (i == NR_EACH)
		return;
	from_handler[sim_self()]++;
	put(ITEM_ID(2 + sim_self(), i));
	if (!take())
		sim_fail("empty, and there was one for each");
}

static void interrupted(void *number)
{
	sim_set_signal(handler, NR_EACH);
	goes_on(number);
	sim_set_signal(NULL, 0);
}

static void finish_signals(void)
{
	sim_assert(nr_finished == 2 && lfq_empty(&queue));
}

static void setup_signals(void)
{
	begin(4);
	sim_spawn(interrupted, (void *)0, "both");
	sim_spawn(interrupted, (void *)1, "both");
}

static void forks(void *unused)
{
	struct item *it;
	int nr = 0;

	(void)unused;
	rcu_read_lock(); /* the first section initialises the library, which has locks */
	rcu_read_unlock();
	for (uint32_t k = sim_random(60); k; k--)
		platform_yield();
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	put(ITEM_ID(2, 0));
	while ((it = take()))
		nr += it->id == ITEM_ID(2, 0);
	sim_assert(nr == 1 && lfq_empty(&queue));
	put(ITEM_ID(2, 1));
	sim_assert(take() == &item[ITEM_ID(2, 1)] && !take());
	sim_saw();
}

static void setup_fork(void)
{
	begin(3);
	sim_spawn(goes_on, (void *)0, "both");
	sim_spawn(goes_on, (void *)1, "both");
	sim_spawn(forks, NULL, "forks");
}

const struct sim_scenario lfq_scenarios[] = {
	{ "lfq_pairs", "two put in, two take", setup_pairs, finish, NULL },
	{ "lfq_one", "three producers, and a taker that knows the contents", setup_one, finish, NULL },
	{ "lfq_last", "three put one in and take one: the last one, often", setup_last, finish, NULL },
	{ "lfq_two", "two do", setup_two, finish, NULL },
	{ "lfq_reuse", "nodes are put in again by callbacks", setup_reuse, finish_reuse, NULL },
	{ "lfq_waits", "nodes are put in again after waits", setup_waits, finish_reuse, NULL },
	{ "lfq_left", "one takes a node and frees it, the tail was there", setup_left, finish_freed, NULL },
	{ "lfq_number", "the same, the tail had not come there", setup_number, finish_freed, NULL },
	{ "lfq_stop", "a thread stops for good", setup_stop, finish_stop, NULL },
	{ "lfq_signals", "handlers put in and take, whatever they interrupt", setup_signals, finish_signals, NULL },
	{ "lfq_fork", "a child of fork(), while others are in the midst of it", setup_fork, NULL, "a child" },
	{ NULL, NULL, NULL, NULL, NULL },
};
