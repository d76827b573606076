/* SPDX-License-Identifier: MIT */
/* load.c - reader threads that run until they are stopped. */
#include <stdlib.h>

#include <quiesce/atomic.h>

#include "alive.h"
#include "hogs.h"
#include "load.h"
#include "team.h"

#define OTHERS 1024u /* objects that no updater waits for; a power of two */
#define LONG_NS 1000000

struct load {
	const struct op *op;
	bool sleeping; /* true: the readers are all asleep outside sections */
	uint32_t stop;
	uint32_t running;
	uint64_t sum;
	struct sleepers sleepers;
	struct hogs hogs;
	struct team team;
};

/* Readers use these objects beside that of op_target: types that fetch a pointer, and types that are given an address. */
static struct op_item item[OTHERS];
static struct op_target other[OTHERS];
static void *address[OTHERS];

static void make_others(void)
{
	for (uint32_t i = 0; i < OTHERS; i++)
		address[i] = other[i].ptr = &item[i];
}

/* Relaxed: the readers share nothing with the thread that starts and stops them. */
static void announce(struct load *l)
{
	(void)quiesce_fetch_add_relaxed(&l->running, (uint32_t)1);
}

uint64_t load_sections(const struct op *op)
{
	return op->read->loop[0](&op_target, LOAD_SECTIONS);
}

static void back_to_back(struct member *m)
{
	struct load *l = m->team->arg;
	uint64_t sum = 0;

	op_thread_enter(l->op);
	announce(l);
	while (!quiesce_load_relaxed(&l->stop))
		sum += load_sections(l->op);
	(void)quiesce_fetch_add_relaxed(&l->sum, sum);
	op_thread_exit(l->op);
}

/* Each reader begins at a different object. */
static void over_others(struct member *m)
{
	struct load *l = m->team->arg;
	const struct op_object *object = l->op->object;
	uint32_t at = (uint32_t)m->index * 37;
	uint64_t sum = 0;

	op_thread_enter(l->op);
	announce(l);
	while (!quiesce_load_relaxed(&l->stop)) {
		if (object)
			sum += object->loop(address, OTHERS - 1, OTHERS);
		else
			for (uint32_t i = 0; i < LOAD_SECTIONS; i++)
				sum += l->op->read->loop[0](&other[at++ % OTHERS], 1);
	}
	(void)quiesce_fetch_add_relaxed(&l->sum, sum);
	op_thread_exit(l->op);
}

static void over_own(struct member *m)
{
	struct load *l = m->team->arg;
	uint32_t own = (uint32_t)m->index % OTHERS;
	uint64_t sum = 0;

	op_thread_enter(l->op);
	announce(l);
	while (!quiesce_load_relaxed(&l->stop))
		sum += l->op->read->loop[0](&other[own], LOAD_SECTIONS);
	(void)quiesce_fetch_add_relaxed(&l->sum, sum);
	op_thread_exit(l->op);
}

void load_lock(const struct op *op)
{
	if (op->object)
		op->object->lock(op_target.ptr);
	else
		op->read->lock();
}

void load_unlock(const struct op *op)
{
	if (op->object)
		op->object->unlock();
	else
		op->read->unlock();
}

static void long_sections(struct member *m)
{
	struct load *l = m->team->arg;

	op_thread_enter(l->op);
	announce(l);
	while (!quiesce_load_relaxed(&l->stop)) {
		load_lock(l->op);
		sleep_ns(LONG_NS);
		load_unlock(l->op);
	}
	op_thread_exit(l->op);
}

struct load *load_start(const struct op *op, enum load_kind kind, int readers, bool pinned, int hogs)
{
	static void (*const bodies[])(struct member *) = {
		[LOAD_SAME] = back_to_back, [LOAD_OTHERS] = over_others, [LOAD_OWN] = over_own, [LOAD_LONG] = long_sections,
	};
	struct load *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	make_others();
	l->op = op;
	l->sleeping = kind == LOAD_ASLEEP;
	if (hogs)
		hogs_start(&l->hogs, hogs);
	if (l->sleeping) {
		sleepers_start(&l->sleepers, op, readers);
		return l;
	}
	l->team = (struct team){ .nr = readers, .pinned = pinned, .first_cpu = 1, .arg = l, .body = bodies[kind] };
	team_start(&l->team);
	while (quiesce_load_relaxed(&l->running) < (uint32_t)readers)
		sleep_ns(100000);
	return l;
}

void load_stop(struct load *l)
{
	quiesce_store_relaxed(&l->stop, 1);
	if (l->sleeping)
		sleepers_stop(&l->sleepers);
	else
		team_join(&l->team);
	hogs_stop(&l->hogs);
	free(l);
}
