/* SPDX-License-Identifier: MIT */
/* queue_value_queue.c - value_queue: full and empty rings, their change, sleepers, the end. */
#include "queue_world.h"

#include <quiesce/ds/value_queue.h>
#include <quiesce/rcu.h>

#include <errno.h>
#include <string.h>

/* The queue holds numbers of items, in words or in larger values. */
struct wide {
	uint64_t id, check, more;
};

static struct value_queue queue;
static int nr_expected, nr_put, nr_failed;
static uint32_t nr_ended;
static bool wide;

static void begin(size_t capacity, bool wide_values)
{
	wide = wide_values;
	sim_assert(value_queue_init(&queue, wide ? sizeof(struct wide) : sizeof(uint64_t), capacity) == 0);
}

static int put_within(int id, uint64_t ns)
{
	struct wide value = { (uint64_t)id, ~(uint64_t)id, 0 };
	int err = value_queue_push_timeout(&queue, &value, ns);

	if (!err)
		quiesce_fetch_add(RU3, &nr_put, 1); /* full: a thread that loads the number has seen that many pushes */
	return err;
}

static int take_within(uint64_t ns, int *ret_id)
{
	struct wide value = { 0, 0, 0 };
	int err = value_queue_pop_timeout(&queue, &value, ns);

	if (!err)
		sim_assert(!wide || value.check == ~value.id);
	*ret_id = (int)value.id;
	return err;
}

static bool take_one(int by, uint64_t ns)
{
	int id, err = take_within(ns, &id);

	if (!err)
		world_taken(id, by);
	return !err;
}

static void filled_put(int producer, int nr)
{
	world_fill(ITEM_ID(producer, nr));
	sim_assert(put_within(ITEM_ID(producer, nr), PLATFORM_FOREVER) == 0);
}

static void put_all(int producer)
{
	for (int i = 0; i < NR_EACH; i++)
		filled_put(producer, i);
}

/* The last producer closes the queue, and takers end when it is empty. */
static void producer(void *number)
{
	put_all((int)(uintptr_t)number);
	if (quiesce_fetch_add(RU3, &nr_ended, 1u) == 1)
		value_queue_close(&queue);
}

static void taker(void *number)
{
	while (take_one((int)(uintptr_t)number, PLATFORM_FOREVER))
		;
	sim_assert(value_queue_is_closed(&queue));
}

static void start_pairs(size_t capacity, bool wide_values)
{
	begin(capacity, wide_values);
	nr_expected = 2 * NR_EACH;
	sim_spawn(producer, (void *)0, "producer");
	sim_spawn(producer, (void *)1, "producer");
	sim_spawn(taker, (void *)0, "taker");
	sim_spawn(taker, (void *)1, "taker");
}

static void setup_one(void) { start_pairs(1, false); }
static void setup_pairs(void) { start_pairs(2, true); }
static void setup_grow(void) { start_pairs(0, false); }

static void finish(void)
{
	int id;

	sim_assert(world_nr_taken() == nr_expected && take_within(0, &id) != 0 && value_queue_count(&queue) == 0);
	value_queue_destroy(&queue, NULL, NULL);
}

/* ---- empty and full are true ---- */

/* Each thread puts one in and takes one, so there is one for each, and space. */
static void put_and_take(void *number)
{
	int id, err;

	for (int i = 0; i < NR_EACH; i++) {
		world_fill(ITEM_ID((int)(uintptr_t)number, i));
		while ((err = put_within(ITEM_ID((int)(uintptr_t)number, i), 0)) == -EBUSY)
			platform_yield();
		if (err)
			sim_fail("error %d, and there was space", err);
		while ((err = take_within(0, &id)) == -EBUSY) {
			sim_saw();
			platform_yield();
		}
		if (err)
			sim_fail("error %d, and there was one for each", err);
		else
			world_taken(id, ANY_ORDER);
	}
}

static void setup_each(size_t capacity)
{
	begin(capacity, false);
	nr_expected = 3 * NR_EACH;
	for (int i = 0; i < 3; i++)
		sim_spawn(put_and_take, (void *)(uintptr_t)i, "both");
}

static void setup_space(void) { setup_each(4); }
static void setup_rings(void) { setup_each(0); }

/* A pusher closes the full ring, and has not gone on to the next; the taker does, and the ring is freed, while further pushers come. */
static void takes_and_frees(void *unused)
{
	(void)unused;
	while (world_nr_taken() < nr_expected)
		if (take_one(ANY_ORDER, 0))
			rcu_barrier();
		else
			platform_yield();
}

static void puts_one(void *number)
{
	filled_put((int)(uintptr_t)number, 0);
}

static void setup_left(void)
{
	begin(0, false);
	nr_expected = 3;
	for (int i = 0; i < 3; i++)
		sim_spawn(puts_one, (void *)(uintptr_t)i, "producer");
	sim_spawn(takes_and_frees, NULL, "taker");
}

/* ---- values in place ---- */

/* Producers fill in, and takers read, between the two halves of a push and a pop: only the cells' numbers order them. */
static void puts_in_place(void *number)
{
	struct quiesce__vq_claim claim;

	for (int i = 0; i < NR_EACH; i++) {
		uint64_t id = ITEM_ID((int)(uintptr_t)number, i);

		sim_assert(quiesce__vq_push_begin(&queue, PLATFORM_FOREVER, &claim) == 0);
		world_fill((int)id);
		memcpy(claim.cell, &id, sizeof id);
		quiesce__vq_push_end(&queue, &claim);
	}
}

static void takes_in_place(void *number)
{
	struct quiesce__vq_claim claim;
	uint64_t id;

	for (int i = 0; i < NR_EACH; i++) {
		sim_assert(quiesce__vq_pop_begin(&queue, PLATFORM_FOREVER, &claim) == 0);
		memcpy(&id, claim.cell, sizeof id);
		world_taken((int)id, (int)(uintptr_t)number);
		quiesce__vq_pop_end(&queue, &claim);
	}
}

static void setup_place(void)
{
	begin(2, false);
	nr_expected = 2 * NR_EACH;
	for (int i = 0; i < 2; i++) {
		sim_spawn(puts_in_place, (void *)(uintptr_t)i, "producer");
		sim_spawn(takes_in_place, (void *)(uintptr_t)i, "taker");
	}
}

/* ---- sleepers ---- */

/* Each taker takes one, and as many are put in: none may sleep for ever. */
static void takes_one(void *unused)
{
	(void)unused;
	sim_assert(take_one(ANY_ORDER, PLATFORM_FOREVER));
}

static void puts_three(void *unused)
{
	(void)unused;
	put_all(0);
}

static void start_sleepers(size_t capacity)
{
	begin(capacity, false);
	nr_expected = 3;
	spawn_each(3, takes_one, "taker");
}

static void setup_sleep(void)
{
	start_sleepers(4);
	sim_spawn(puts_three, NULL, "producer");
}

static void setup_asleep(void)
{
	start_sleepers(0);
	for (int i = 0; i < 3; i++)
		sim_spawn(puts_one, (void *)(uintptr_t)i, "producer");
}

/* One taker has a timeout: if it is woken and ends, the others are woken after it. */
static void takes_in_time(void *unused)
{
	int id, err = take_within(1 + sim_random(sim_random(2) ? 100000 : 300), &id);

	(void)unused;
	sim_assert(err == 0 || err == -ETIMEDOUT);
	if (!err)
		world_taken(id, ANY_ORDER);
	else
		sim_saw();
}

static void setup_timeout(void)
{
	begin(4, false);
	sim_spawn(takes_in_time, NULL, "taker with a timeout");
	spawn_each(2, takes_one, "taker");
	sim_spawn(puts_three, NULL, "producer");
}

/* An element that the woken taker cannot take before its time has ended, because it is being copied, is for another. */
static void setup_timeout_busy(void)
{
	begin(4, false);
	sim_spawn(takes_in_time, NULL, "taker with a timeout");
	spawn_each(2, takes_one, "taker");
	for (int i = 0; i < 3; i++)
		sim_spawn(puts_one, (void *)(uintptr_t)i, "producer");
}

static void finish_timeout(void)
{
	sim_assert(world_nr_taken() + (int)value_queue_count(&queue) == 3);
}

/* Pushers to a full queue. */
static void takes_all(void *unused)
{
	(void)unused;
	while (world_nr_taken() < nr_expected)
		if (!take_one(ANY_ORDER, 0))
			platform_yield();
}

static void setup_full(void)
{
	begin(sim_random(2) ? 1 : 2, false);
	nr_expected = 4;
	for (int i = 0; i < 4; i++)
		sim_spawn(puts_one, (void *)(uintptr_t)i, "producer");
	sim_spawn(takes_all, NULL, "taker");
}

/* Takers empty a full queue at once, and all pushers go on. */
static void takes_many(void *unused)
{
	uint64_t ids[4];
	long got;

	(void)unused;
	while (world_nr_taken() < nr_expected) {
		got = value_queue_pop_many(&queue, ids, 4);
		for (long i = 0; i < got; i++)
			world_taken((int)ids[i], ANY_ORDER);
		if (got > 1)
			sim_saw();
		if (got <= 0)
			platform_yield();
	}
}

static void setup_many(void)
{
	begin(2, false);
	nr_expected = 4;
	for (int i = 0; i < 4; i++)
		sim_spawn(puts_one, (void *)(uintptr_t)i, "producer");
	sim_spawn(takes_many, NULL, "taker");
}

/* The last of two producers closes the queue. */
static void puts_many(void *number)
{
	uint64_t ids[NR_EACH], ns = sim_random(2) ? PLATFORM_FOREVER : 0;
	int done = 0;
	long got;

	for (int i = 0; i < NR_EACH; i++) {
		ids[i] = ITEM_ID((uintptr_t)number, i);
		world_fill((int)ids[i]);
	}
	while (done < NR_EACH) {
		got = value_queue_push_many_timeout(&queue, ids + done, (size_t)(NR_EACH - done), ns);
		sim_assert(got == NR_EACH || !ns);
		if (got > 1)
			sim_saw();
		if (got > 0)
			done += (int)got;
		else
			platform_yield();
	}
	if (quiesce_fetch_add(RU3, &nr_ended, 1u) == 1)
		value_queue_close(&queue);
}

static void setup_bulk(void)
{
	start_sleepers(sim_random(2) ? 2 : 0);
	sim_spawn(puts_many, NULL, "producer");
}

/* Takers wait until the queue is closed. */
static void takes_many_waiting(void *number)
{
	uint64_t ids[2];
	long got;

	while ((got = value_queue_pop_many_timeout(&queue, ids, 2, PLATFORM_FOREVER)) > 0) {
		for (long i = 0; i < got; i++)
			world_taken((int)ids[i], (int)(uintptr_t)number);
		if (got > 1)
			sim_saw();
	}
	sim_assert(got == -EPIPE);
}

static void setup_many_wait(void)
{
	begin(sim_random(3), false);
	nr_expected = 2 * NR_EACH;
	for (int i = 0; i < 2; i++) {
		sim_spawn(puts_many, (void *)(uintptr_t)i, "producer");
		sim_spawn(takes_many_waiting, (void *)(uintptr_t)i, "taker");
	}
}

/* ---- the end ---- */

static void may_fail(void *number)
{
	int id = ITEM_ID((int)(uintptr_t)number, 0), err;

	world_fill(id);
	err = put_within(id, PLATFORM_FOREVER);
	sim_assert(err == 0 || err == -EPIPE);
	if (err) {
		sim_saw();
		quiesce_fetch_add_relaxed(&nr_failed, 1);
	}
}

static void closes(void *unused)
{
	(void)unused;
	platform_yield();
	value_queue_close(&queue);
	sim_assert(value_queue_is_closed(&queue) && put_within(1, 0) == -EPIPE);
}

static void start_close(size_t capacity)
{
	begin(capacity, false);
	for (int i = 0; i < 3; i++)
		sim_spawn(may_fail, (void *)(uintptr_t)i, "producer");
	sim_spawn(closes, NULL, "closes");
}

static void setup_close(void)
{
	start_close(0);
	sim_spawn(taker, (void *)0, "taker");
	sim_spawn(taker, (void *)1, "taker");
}

/* There is no taker: pushers sleep. */
static void setup_close_full(void)
{
	start_close(1);
}

static void finish_close(void)
{
	int id, nr = 0;

	while (take_within(0, &id) == 0)
		nr++;
	sim_assert(world_nr_taken() + nr + nr_failed == 3 && take_within(0, &id) == -EPIPE);
}

/* ---- memory, and threads that stop ---- */

static void has_no_memory(void *unused)
{
	int err = 0, i = 0;

	(void)unused;
	sim_config()->block_failures = 2;
	world_fill(ITEM_ID(0, 0));
	while (i < NR_EACH) {
		err = put_within(ITEM_ID(0, i), PLATFORM_FOREVER);
		sim_assert(err == 0 || err == -ENOMEM);
		if (err) {
			sim_saw();
			platform_yield();
		} else if (++i < NR_EACH) {
			world_fill(ITEM_ID(0, i));
		}
	}
}

static void setup_memory(void)
{
	start_sleepers(0);
	sim_spawn(has_no_memory, NULL, "producer");
}

/* A pusher that stops in its push delays no other push, and no wait for an element before its own. */
static void stops(void *unused)
{
	(void)unused;
	rcu_read_lock(); /* the first section initialises the library, which has locks */
	rcu_read_unlock();
	sim_stop_within(60);
	for (int i = 0; i < NR_EACH; i++)
		put_within(ITEM_ID(0, i), 0);
}

static void goes_on(void *unused)
{
	int id;

	(void)unused;
	for (int i = 0; i < NR_EACH; i++)
		sim_assert(put_within(ITEM_ID(1, i), PLATFORM_FOREVER) == 0);
	for (int i = 0; i < NR_EACH; i++)
		if (take_within(0, &id) == -EBUSY)
			sim_saw();
}

static void setup_stop(void)
{
	begin(0, false);
	sim_spawn(stops, NULL, "stops");
	sim_spawn(goes_on, NULL, "goes on");
}

const struct sim_scenario value_queue_scenarios[] = {
	{ "vq_one", "two put in, two take, space for one", setup_one, finish, NULL },
	{ "vq_pairs", "the same, space for two wide values", setup_pairs, finish, NULL },
	{ "vq_grow", "the same, unbounded", setup_grow, finish, NULL },
	{ "vq_space", "three put one in and take one: there is one for each", setup_space, finish, "a claimed cell" },
	{ "vq_rings", "the same, unbounded", setup_rings, finish, "a claimed cell" },
	{ "vq_left", "the ring that pushers find is freed", setup_left, finish, NULL },
	{ "vq_place", "two fill values in, two read them in place", setup_place, finish, NULL },
	{ "vq_sleep", "three takers of one each, a producer of three", setup_sleep, finish, NULL },
	{ "vq_asleep", "the same, three producers, unbounded", setup_asleep, finish, NULL },
	{ "vq_timeout", "a taker has a timeout", setup_timeout, finish_timeout, "a timeout" },
	{ "vq_timeout_busy", "a taker has a timeout, and elements are being copied", setup_timeout_busy, finish_timeout, "a timeout" },
	{ "vq_full", "pushers to a full queue", setup_full, finish, NULL },
	{ "vq_many", "the taker takes several at once", setup_many, finish, "more than one" },
	{ "vq_bulk", "the producer puts several in at once", setup_bulk, finish, "more than one" },
	{ "vq_many_wait", "two put several in, two wait for several", setup_many_wait, finish, "more than one" },
	{ "vq_close", "a thread closes an unbounded queue", setup_close, finish_close, "a push that failed" },
	{ "vq_close_full", "a thread closes a full queue", setup_close_full, finish_close, "a push that failed" },
	{ "vq_memory", "there is no memory for a larger ring", setup_memory, finish, "-ENOMEM" },
	{ "vq_stop", "a pusher stops for good", setup_stop, NULL, "a claimed cell" },
	{ NULL, NULL, NULL, NULL, NULL },
};
