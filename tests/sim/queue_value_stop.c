/* SPDX-License-Identifier: MIT */
/* queue_value_stop.c - value_queue: sleepers that stop for good when they have been woken, and those that wait behind them. */
#include "queue/value_queue.h"
#include "queue_world.h"

#include <quiesce/ds/value_queue.h>
#include <quiesce/rcu.h>

static struct value_queue queue;

static void begin(size_t capacity)
{
	sim_assert(value_queue_init(&queue, sizeof(uint64_t), capacity) == 0);
}

/* Of two sleepers one stops for good, perhaps when it has been woken: the other one has the second element, or the second free cell. */
static void takes_and_stops(void *unused)
{
	uint64_t id;

	(void)unused;
	rcu_read_lock(); /* the first section initialises the library, which has locks */
	rcu_read_unlock();
	sim_stop_within(40);
	if (value_queue_pop(&queue, &id) == 0)
		platform_yield();
}

static void takes_the_other(void *unused)
{
	uint64_t id;

	(void)unused;
	sim_assert(value_queue_pop(&queue, &id) == 0);
	sim_saw();
}

static void puts_two(void *unused)
{
	uint64_t id[2] = { 1, 2 };

	(void)unused;
	if (sim_random(2)) {
		sim_assert(value_queue_push_many(&queue, id, 2) == 2);
	} else {
		sim_assert(value_queue_push_try(&queue, &id[0]) == 0);
		sim_assert(value_queue_push_try(&queue, &id[1]) == 0);
	}
}

static void setup_stopped_taker(void)
{
	begin(sim_random(2) ? 4 : 0);
	sim_spawn(takes_and_stops, NULL, "stops");
	sim_spawn(takes_the_other, NULL, "taker");
	sim_spawn(puts_two, NULL, "producer");
}

static void puts_and_stops(void *unused)
{
	uint64_t id = 3;

	(void)unused;
	sim_stop_within(40);
	if (value_queue_push(&queue, &id) == 0)
		platform_yield();
}

static void puts_the_other(void *unused)
{
	uint64_t id = 4;

	(void)unused;
	sim_assert(value_queue_push(&queue, &id) == 0);
	sim_saw();
}

static void takes_two(void *unused)
{
	uint64_t id[2];

	(void)unused;
	if (sim_random(2)) {
		sim_assert(value_queue_pop_many(&queue, id, 2) == 2);
	} else {
		sim_assert(value_queue_pop_try(&queue, &id[0]) == 0);
		sim_assert(value_queue_pop_try(&queue, &id[1]) == 0);
	}
}

static void setup_stopped_pusher(void)
{
	uint64_t id = 1;

	begin(2);
	sim_assert(value_queue_push_try(&queue, &id) == 0 && value_queue_push_try(&queue, &id) == 0);
	sim_spawn(puts_and_stops, NULL, "stops");
	sim_spawn(puts_the_other, NULL, "producer");
	sim_spawn(takes_two, NULL, "taker");
}

/* Of two sleepers one stops for good, perhaps when it has been woken, and has no cell.  There is space for one, so no further claim
 * can wake the other. */
static void sleeps_and_stops(void *for_space)
{
	rcu_read_lock(); /* as in takes_and_stops() */
	rcu_read_unlock();
	sim_stop_within(30);
	if (for_space)
		quiesce__vq_sleep_full(&queue, UINT64_MAX);
	else
		quiesce__vq_sleep_empty(&queue, UINT64_MAX);
}

static void puts_two_apart(void *unused)
{
	uint64_t id[2] = { 1, 2 };

	(void)unused;
	sim_assert(value_queue_push(&queue, &id[0]) == 0);
	sim_assert(value_queue_push(&queue, &id[1]) == 0);
}

static void setup_behind_taker(void)
{
	begin(1);
	sim_spawn(sleeps_and_stops, NULL, "stops");
	sim_spawn(takes_the_other, NULL, "taker");
	sim_spawn(puts_two_apart, NULL, "producer");
}

static void takes_two_apart(void *unused)
{
	uint64_t id[2];

	(void)unused;
	sim_assert(value_queue_pop(&queue, &id[0]) == 0);
	sim_assert(value_queue_pop(&queue, &id[1]) == 0);
}

static void setup_behind_pusher(void)
{
	uint64_t id = 1;

	begin(1);
	sim_assert(value_queue_push_try(&queue, &id) == 0);
	sim_spawn(sleeps_and_stops, &queue, "stops");
	sim_spawn(puts_the_other, NULL, "producer");
	sim_spawn(takes_two_apart, NULL, "taker");
}

const struct sim_scenario value_queue_stop_scenarios[] = {
	{ "vq_stopped_taker", "of two sleeping takers one stops", setup_stopped_taker, NULL, "the other one" },
	{ "vq_stopped_pusher", "of two sleeping pushers one stops", setup_stopped_pusher, NULL, "the other one" },
	{ "vq_behind_taker", "the same of takers, and the producer sleeps", setup_behind_taker, NULL, "the other one" },
	{ "vq_behind_pusher", "the same of pushers, and the taker sleeps", setup_behind_pusher, NULL, "the other one" },
	{ NULL, NULL, NULL, NULL, NULL },
};
