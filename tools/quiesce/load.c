/* SPDX-License-Identifier: MIT */
/* load.c - reader threads that go on until they are told to stop. */
#include <stdlib.h>

#include <quiesce/atomic.h>

#include "alive.h"
#include "hogs.h"
#include "rcuscale.h"
#include "team.h"

#define SECTIONS 256 /* between two looks at the stop flag */
#define LONG_NS 1000000

struct load {
	const struct op *op;
	bool sleeping; /* the readers are all asleep outside sections */
	uint32_t stop;
	uint32_t running;
	uint64_t sum;
	struct sleepers sleepers;
	struct hogs hogs;
	struct team team;
};

/* Relaxed: the readers share nothing with whoever starts and stops them. */
static void announce(struct load *l)
{
	(void)quiesce_fetch_add_relaxed(&l->running, (uint32_t)1);
}

static void back_to_back(struct member *m)
{
	struct load *l = m->team->arg;
	uint64_t sum = 0;

	op_thread_enter(l->op);
	announce(l);
	while (!quiesce_load_relaxed(&l->stop))
		sum += l->op->read->loop[0](&op_target, SECTIONS);
	(void)quiesce_fetch_add_relaxed(&l->sum, sum);
	op_thread_exit(l->op);
}

static void long_sections(struct member *m)
{
	struct load *l = m->team->arg;

	op_thread_enter(l->op);
	announce(l);
	while (!quiesce_load_relaxed(&l->stop)) {
		l->op->read->lock();
		sleep_ns(LONG_NS);
		l->op->read->unlock();
	}
	op_thread_exit(l->op);
}

struct load *load_start(const struct op *op, enum scenario scenario, int readers, bool pinned)
{
	struct load *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	l->op = op;
	l->sleeping = scenario == SCENARIO_IDLE || scenario == SCENARIO_ALIVE;
	if (scenario == SCENARIO_HOGS)
		hogs_start(&l->hogs, HOGS);
	if (l->sleeping) {
		sleepers_start(&l->sleepers, op, readers);
		return l;
	}
	l->team = (struct team){ .nr = readers, .pinned = pinned, .first_cpu = 1, .arg = l,
				 .body = scenario == SCENARIO_LONG ? long_sections : back_to_back };
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
