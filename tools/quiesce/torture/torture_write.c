/* SPDX-License-Identifier: MIT */
/* torture_write.c - the writer, which replaces the element again and again, and writers without data. */
#include <sched.h>

#include "torture.h"

/* Removed elements are aged by the writer itself, after each of its grace periods. */
static struct element *removed;

enum way { WAY_SYNC, WAY_EXPEDITED, WAY_CALL, WAY_POLL, WAY_COND, NR_WAYS };

/* One more grace period has ended since @e was removed; true while the element is to be kept. */
static bool grow_older(struct element *e)
{
	uint32_t age = quiesce_load_relaxed(&e->age) + 1;

	quiesce_store_relaxed(&e->age, age);
	if (age < PIPE_LENGTH)
		return true;
	pool_put(e);
	return false;
}

static void age_removed(void)
{
	struct element **link = &removed;

	torture_count(torture.completed);
	while (*link) {
		struct element *e = *link, *next = e->next;

		if (grow_older(e))
			link = &e->next;
		else
			*link = next;
	}
}

static void callback(struct op_head *head)
{
	struct element *e = (struct element *)head;

	(void)quiesce_fetch_add_relaxed(&torture.callbacks, (uint64_t)1);
	if (grow_older(e))
		torture.op->retire->call(head);
}

/* Has a limit: a mutant may lose the grace period, and the conductor has to notice that. */
static void poll_until_done(uint64_t cookie)
{
	while (!torture.op->polled->poll(cookie) && !torture_stopped())
		sched_yield();
}

static void wait_in_way(enum way way, uint64_t *random)
{
	const struct op *op = torture.op;
	uint64_t cookie;

	switch (way) {
	case WAY_POLL:
		cookie = op->polled->start();
		torture_spin(random_next(random) % 500);
		poll_until_done(cookie);
		break;
	case WAY_COND:
		cookie = op->polled->get();
		torture_spin(random_next(random) % 500);
		op->polled->cond(cookie);
		break;
	case WAY_EXPEDITED:
		op->wait->expedited();
		break;
	default:
		op->wait->wait();
	}
}

static enum way random_way(uint64_t *random)
{
	uint64_t r = random_next(random) >> 7;

	/* Plain waits are the fastest ones: most of the races are there. */
	return r % 2 ? WAY_SYNC : (enum way)(r / 2 % NR_WAYS);
}

static void update(uint32_t index, uint64_t *random)
{
	struct element *fresh = pool_get(), *old = torture.current[0];
	enum way way = random_way(random);

	(void)index;
	if (!fresh) {
		torture.op->wait->wait(); /* callbacks hold the rest of the elements */
		age_removed();
		return;
	}
	torture_spin(random_next(random) % 64);
	torture.op->pointer->publish((void **)&torture.current[0], fresh);
	torture_count(torture.version);
	torture_count(torture.progress[0]);
	quiesce_store_relaxed(&old->age, 1);
	if (way == WAY_CALL) {
		old->head.fn = callback;
		torture.op->retire->call(&old->head);
		return;
	}
	old->next = removed;
	removed = old;
	wait_in_way(way, random);
	if (way != WAY_POLL || !torture_stopped()) /* at the end of the run a poll ends early */
		age_removed();
}

void torture_update_loop(uint32_t index, uint64_t *random, void (*one)(uint32_t index, uint64_t *random))
{
	uint32_t generation = 0;

	while (!torture_stopped()) {
		uint32_t now = quiesce_load_relaxed(&torture.regime.generation);
		bool pinned = quiesce_load_relaxed(&torture.regime.pinned);

		torture_stutter();
		if (now != generation)
			bind_cpu(pinned ? 0 : -1);
		generation = now;
		if (pinned && index) { /* leaves the CPUs to the readers and the first writer */
			sleep_ns(2000000);
			continue;
		}
		one(index, random);
		if (quiesce_load_relaxed(&torture.regime.delays) && random_next(random) % 16 == 0)
			sleep_ns(*random % 500000);
	}
}

void torture_writer(uint32_t index)
{
	uint64_t random = 2463534242u;

	torture_update_loop(index, &random, update);
	while (removed) {
		torture.op->wait->wait();
		age_removed();
	}
}

/* Grace periods without data: they share, overtake and expedite those of the writer. */
void torture_fake_writer(uint32_t index)
{
	uint64_t random = (index + 1) * 0x9e3779b97f4a7c15u;

	while (!torture_stopped()) {
		enum way way = random_way(&random);

		torture_stutter();
		if (quiesce_load_relaxed(&torture.regime.pinned)) { /* leaves the CPUs to the reader and the writer */
			sleep_ns(2000000);
			continue;
		}
		if (way == WAY_CALL)
			torture.op->retire->barrier();
		else
			wait_in_way(way, &random);
		torture_count_together(torture.fake_waits);
		torture_count(torture.progress[NR_POINTERS + index]);
		sleep_ns(random_next(&random) % 300000);
	}
}
