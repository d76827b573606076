/* SPDX-License-Identifier: MIT */
/* oracle.c - check that objects are alive when they are accessed, and that every access is ordered before the
 * free.
 *
 * A free takes effect at once, past all buffers.  The order is judged by vector clocks, independent of the
 * schedule, so a run fails even where the machine happened to keep an order that the program did not require.
 */
#include "machine.h"

static struct object *object(int id)
{
	if (id < 0 || id >= SIM_MAX_OBJECTS)
		sim_fail("machine: object %d", id);
	if (id >= M->nr_objects)
		M->nr_objects = id + 1;
	return &M->objects[id];
}

void sim_obj_init(int id)
{
	struct object *o = object(id);
	struct thread *t = sim__current();

	sim__point();
	*o = (struct object){ .exists = true, .init_thread = M->cur };
	if (t)
		o->init_clock = ++t->cur.clock[M->cur];
}

static void check_alive(const struct object *o, int id, const char *what)
{
	if (!o->exists)
		sim_fail("%s of object %d, which never existed", what, id);
	if (o->freed)
		sim_fail("%s of object %d after it was freed", what, id);
}

static void check_initialised(const struct object *o, int id, const struct thread *t, const char *what)
{
	if (o->init_thread >= 0 && o->init_clock > t->cur.clock[o->init_thread])
		sim_fail("race: object %d %s, and its initialisation by %s is not ordered before", id, what,
			 M->threads[o->init_thread].name);
}

void sim_obj_read(int id)
{
	struct object *o = object(id);
	struct thread *t = sim__current();

	sim__point();
	if (M->opt.trace)
		sim__trace_text("T%d reads object %d", M->cur, id);
	check_alive(o, id, "read");
	if (!t)
		return;
	check_initialised(o, id, t, "read");
	o->read_clock[M->cur] = ++t->cur.clock[M->cur];
}

void sim_obj_free(int id)
{
	struct object *o = object(id);
	struct thread *t = sim__current();

	sim__point();
	if (M->opt.trace)
		sim__trace_text("T%d frees object %d", M->cur, id);
	check_alive(o, id, "free");
	o->freed = true;
	if (t)
		check_initialised(o, id, t, "freed");
	for (int i = 0; t && i < M->nr_threads; i++)
		if (o->read_clock[i] > t->cur.clock[i])
			sim_fail("race: object %d freed, and a read of it by %s is not ordered before", id,
				 M->threads[i].name);
}

bool sim_obj_is_free(int id)
{
	return object(id)->freed;
}

void sim_data_write(int id, uint64_t value)
{
	quiesce_store_relaxed(&object(id)->data, value);
}

uint64_t sim_data_read(int id)
{
	return quiesce_load_relaxed(&object(id)->data);
}
