/* SPDX-License-Identifier: MIT */
/* side.c - a side of mixed processes, by the flavour and the library that it is compiled for: of the host and of its plug-in. */
#include FLAVOR

#include "side.h"

#include <sched.h>
#include <stdlib.h>

enum { YIELD_EACH = 8 }; /* reads between two yields, so that the updater runs in between on a busy machine, too */

struct object {
	struct rcu_head rcu;
	unsigned int serial; /* 0: reclaimed; another one: memory that is used again */
};

static int nr_live;
static unsigned int nr_made;

static void check(int ok)
{
	if (!ok)
		abort();
}

static void reclaim(struct rcu_head *head)
{
	struct object *o = caa_container_of(head, struct object, rcu);

	check(o->serial != 0);
	CMM_STORE_SHARED(o->serial, 0);
	free(o);
	uatomic_dec(&nr_live);
}

static void begin(void)
{
	rcu_register_thread();
}

static void end(void)
{
	rcu_unregister_thread();
}

#ifdef QSBR
static void quiet(void)
{
	rcu_quiescent_state();
}

static void leave(void)
{
	rcu_thread_offline();
}

static void come_back(void)
{
	rcu_thread_online();
}
#else
static void nothing(void)
{
}
#define quiet nothing
#define leave nothing
#define come_back nothing
#endif

static void read_cell(struct cell *cell, const struct side *other, struct cell *nested)
{
	static __thread unsigned int nr_reads;
	struct object *o;
	unsigned int serial;

	rcu_read_lock();
	o = rcu_dereference(cell->object);
	serial = o ? CMM_LOAD_SHARED(o->serial) : 0;
	check(!o || serial);
	if (nested)
		other->read(nested, NULL, NULL);
	if (nr_reads++ % YIELD_EACH == 0)
		sched_yield();
	for (int i = 0; o && i < 100; i++)
		check(CMM_LOAD_SHARED(o->serial) == serial);
	rcu_read_unlock();
}

static void replace(struct cell *cell, int by_callback)
{
	struct object *o = malloc(sizeof *o), *old;

	if (!o)
		abort();
	o->serial = uatomic_add_return(&nr_made, 1);
	uatomic_inc(&nr_live);
	old = rcu_xchg_pointer((struct object **)&cell->object, o);
	if (!old)
		return;
	if (by_callback) {
		call_rcu(&old->rcu, reclaim);
		return;
	}
	synchronize_rcu();
	reclaim(&old->rcu);
}

static void barrier(void)
{
	rcu_barrier();
}

static int live(void)
{
	return uatomic_read(&nr_live);
}

const struct side SIDE = { begin, end, quiet, leave, come_back, read_cell, replace, barrier, live };
