/* SPDX-License-Identifier: MIT */
/* idr_xarray.c - features of an xarray beyond those of an idr, on the simulated machine: walks in both directions and over marks while
 * the tree grows and shrinks, marks that publish data, exchanges; and numbers of an ida. */
#include "idr_world.h"

#include <quiesce/ds/ida.h>
#include <quiesce/ds/xarray.h>

#include <errno.h>

#define LOW 1ul
#define HIGH 70ul
#define HIGHER 5000ul
#define NR_PLACES 6
#define NR_THINGS 64
#define MARK XA_MARK_1

struct thing {
	struct rcu_head rcu;
	int object;
	unsigned long index;
	struct thing *before; /* the thing that an exchange replaced */
};

/* An index that the scenario uses, and the conditions that hold from before the readers begin until they have ended. */
struct place {
	unsigned long index;
	bool stays, stays_marked, never_marked;
};

static struct xarray array;
static struct ida numbers;
static struct place places[NR_PLACES];
static struct thing things[NR_THINGS];
static int nr_places, nr_things;

static struct thing *thing_new(unsigned long index)
{
	struct thing *thing = &things[nr_things];

	if (nr_things == NR_THINGS) {
		sim_fail("scenario: more than %d things", NR_THINGS);
		return NULL;
	}
	thing->object = nr_things++;
	thing->index = index;
	sim_obj_init(thing->object);
	sim_data_write(thing->object, 100 + index);
	return thing;
}

static void thing_free(struct rcu_head *head)
{
	sim_obj_free(((struct thing *)head)->object);
}

static void put(unsigned long index)
{
	void *old = &array;

	sim_assert(xa_store(&array, index, thing_new(index), &old) == 0);
	if (old)
		call_rcu(&((struct thing *)old)->rcu, thing_free);
}

static void take(unsigned long index)
{
	struct thing *old = xa_erase(&array, index);

	sim_assert(old && old->index == index);
	call_rcu(&old->rcu, thing_free);
}

static void begin(void)
{
	world_begin();
	xa_init(&array);
	ida_init(&numbers);
}

static void place(struct place p)
{
	places[nr_places++] = p;
	if (!p.stays && !p.stays_marked)
		return;
	put(p.index);
	if (p.stays_marked)
		xa_set_mark(&array, p.index, MARK);
}

static void finish(void)
{
	xa_destroy(&array);
	ida_destroy(&numbers);
	sim_assert(xa_empty(&array) && ida_is_empty(&numbers));
}

/* ---- readers ---- */

static const struct place *place_of(unsigned long index)
{
	for (int i = 0; i < nr_places; i++)
		if (places[i].index == index)
			return &places[i];
	sim_fail("index %lu is visited, but no updater stored anything there", index);
	return &places[0];
}

static void check_thing(const struct thing *thing, unsigned long index)
{
	sim_obj_read(thing->object);
	if (thing->index != index || sim_data_read(thing->object) != 100 + index)
		sim_fail("the entry of %lu found at %lu", thing->index, index);
}

static void visit(bool *visited, const struct thing *thing, unsigned long index, bool marked)
{
	const struct place *p = place_of(index);

	check_thing(thing, index);
	if (visited[p - places])
		sim_fail("index %lu is visited twice", index);
	if (marked && p->never_marked)
		sim_fail("index %lu is visited for a mark that it never had", index);
	visited[p - places] = true;
	if (!p->stays && !p->stays_marked)
		sim_saw();
}

static void must_be_complete(const bool *visited, unsigned long from, unsigned long to, bool marked)
{
	for (int i = 0; i < nr_places; i++) {
		const struct place *p = &places[i];

		if (!visited[i] && p->index >= from && p->index <= to && (p->stays_marked || (p->stays && !marked)))
			sim_fail("index %lu was there all the time and is not visited", p->index);
	}
}

static void walk_up(void)
{
	bool visited[NR_PLACES] = { false };
	unsigned long index, last = 0;
	struct thing *thing;

	xa_for_each(&array, index, thing) {
		sim_assert(index > last);
		last = index;
		visit(visited, thing, index, false);
	}
	must_be_complete(visited, 0, ULONG_MAX, false);
}

static void walk_down(unsigned long from, unsigned long to)
{
	bool visited[NR_PLACES] = { false };
	unsigned long index, last = from + (from < ULONG_MAX);
	struct thing *thing;

	xa_for_each_range_reverse(&array, index, thing, to, from) {
		sim_assert(index < last && index >= to);
		last = index;
		visit(visited, thing, index, false);
	}
	must_be_complete(visited, to, from, false);
}

static void walk_marked(void)
{
	bool visited[NR_PLACES] = { false };
	unsigned long index;
	struct thing *thing;

	xa_for_each_marked(&array, index, thing, MARK)
		visit(visited, thing, index, true);
	must_be_complete(visited, 0, ULONG_MAX, true);
}

static void gather(xa_mark_t filter)
{
	bool visited[NR_PLACES] = { false };
	void *found[NR_PLACES];
	unsigned int nr = xa_extract(&array, found, 0, ULONG_MAX, NR_PLACES, filter);

	for (unsigned int i = 0; i < nr; i++)
		visit(visited, found[i], ((struct thing *)found[i])->index, filter == MARK);
	must_be_complete(visited, 0, ULONG_MAX, filter == MARK);
}

static void ask_marks(void)
{
	for (int i = 0; i < nr_places; i++) {
		bool is = xa_get_mark(&array, places[i].index, MARK);

		if (is ? places[i].never_marked : places[i].stays_marked)
			sim_fail("index %lu %s the mark", places[i].index, is ? "has" : "has not");
	}
}

static void reader(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		rcu_read_lock();
		switch (sim_random(6)) {
		case 0: walk_up(); break;
		case 1: walk_down(ULONG_MAX, 0); break;
		case 2: walk_down(HIGH + 1, LOW); break;
		case 3: walk_marked(); break;
		case 4: gather(sim_random(2) ? XA_PRESENT : MARK); break;
		default: ask_marks();
		}
		rcu_read_unlock();
	}
}

static void start(void (*owner)(void *unused))
{
	sim_spawn(owner, NULL, "owner");
	spawn_each(driver_readers, reader, "reader");
}

/* ---- the tree changes under walks ---- */

static void bounce(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		put(HIGH);
		put(HIGHER);
		take(HIGH);
		take(HIGHER);
	}
}

static void setup_bounce(void)
{
	begin();
	place((struct place){ LOW, .stays = true, .stays_marked = true });
	place((struct place){ LOW + 1, .stays = true, .never_marked = true });
	place((struct place){ HIGH, .never_marked = true });
	place((struct place){ HIGHER, .never_marked = true });
	start(bounce);
}

/* Leaf nodes are added and removed between two that stay. */
static void branch(void *unused)
{
	(void)unused;
	put(HIGH);
	put(HIGH + 1);
	xa_set_mark(&array, HIGH, MARK);
	take(HIGH);
	put(HIGH);
	take(HIGH + 1);
	take(HIGH);
}

static void setup_branch(void)
{
	begin();
	place((struct place){ LOW, .stays = true, .never_marked = true });
	place((struct place){ .index = HIGH });
	place((struct place){ HIGH + 1, .never_marked = true });
	place((struct place){ HIGH + 64, .stays = true, .stays_marked = true });
	start(branch);
}

/* Marks are set and cleared beside one that stays, in its leaf and in another. */
static void toggle(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		xa_set_mark(&array, HIGH, MARK);
		xa_set_mark(&array, LOW + 1, MARK);
		xa_clear_mark(&array, HIGH, MARK);
		put(LOW + 1); /* keeps the leaf */
		sim_assert(xa_get_mark(&array, LOW + 1, MARK));
		xa_clear_mark(&array, LOW + 1, MARK);
	}
}

static void setup_toggle(void)
{
	begin();
	place((struct place){ LOW, .stays = true, .stays_marked = true });
	place((struct place){ LOW + 1, .stays = true });
	place((struct place){ LOW + 2, .stays = true, .never_marked = true });
	place((struct place){ HIGH, .stays = true });
	start(toggle);
}

/* ---- a mark publishes data ---- */

static struct thing *news;

static void marker(void *unused)
{
	(void)unused;
	news = thing_new(7);
	xa_set_mark(&array, HIGH, MARK);
}

static void seeker(void *unused)
{
	unsigned long index = 0;

	(void)unused;
	rcu_read_lock();
	if (xa_get_mark(&array, HIGH, MARK)) {
		check_thing(news, 7);
		sim_saw();
		if (!xa_find(&array, &index, ULONG_MAX, MARK)) /* the mark stays set */
			sim_fail("a mark that was seen is not found");
	} else if (xa_find(&array, &index, ULONG_MAX, MARK)) {
		check_thing(news, 7);
		sim_saw();
	}
	rcu_read_unlock();
}

static void setup_mark_publishes(void)
{
	begin();
	place((struct place){ LOW, .stays = true });
	place((struct place){ HIGH, .stays = true });
	sim_spawn(marker, NULL, "marker");
	spawn_each(driver_readers, seeker, "seeker");
}

/* ---- several updaters ---- */

#define NR_EXCHANGES 2

/* Each entry knows which one it replaced: no exchange is lost. */
static void exchanger(void *unused)
{
	struct thing *mine;
	void *there;

	(void)unused;
	for (int i = 0; i < NR_EXCHANGES; i++) {
		mine = thing_new(HIGH);
		do {
			rcu_read_lock();
			mine->before = xa_load(&array, HIGH);
			rcu_read_unlock();
		} while (xa_cmpxchg(&array, HIGH, mine->before, mine, &there) == -EBUSY);
		sim_assert(there == mine->before);
	}
}

static void setup_exchange(void)
{
	begin();
	put(LOW);
	spawn_each(3, exchanger, "exchanger");
}

static void finish_exchange(void)
{
	int nr = 0;

	for (const struct thing *thing = xa_load(&array, HIGH); thing; thing = thing->before)
		nr++;
	sim_assert(nr == 3 * NR_EXCHANGES);
	finish();
}

/* Each update takes effect either before or after the destruction. */
static void destroyer(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++)
		xa_destroy(&array);
}

static void storer(void *unused)
{
	static const unsigned long at[] = { LOW, HIGH, HIGHER };

	(void)unused;
	for (int i = 0; i < 4; i++) {
		unsigned long index = at[sim_random(3)];

		if (sim_random(4))
			sim_assert(xa_store(&array, index, xa_mk_value(index), NULL) == 0);
		else
			xa_erase(&array, index);
	}
}

static void setup_destroyed(void)
{
	begin();
	spawn_each(2, storer, "storer");
	sim_spawn(destroyer, NULL, "destroyer");
}

static void finish_destroyed(void)
{
	unsigned long index, nr = 0;
	void *entry;

	xa_for_each(&array, index, entry)
		nr += xa_to_value(entry) == index;
	sim_assert(nr == xa_count(&array));
	sim_assert(world_nr_nodes - world_nr_nodes_freed == (int)array.tree.nr_nodes);
	finish();
}

/* A store at a reserved index needs no memory. */
static void careful(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		world_failures = sim_random(3);
		if (xa_reserve(&array, HIGHER) == 0) {
			world_failures = 100;
			put(HIGHER);
			take(HIGHER);
		}
	}
	world_failures = 0;
}

static void setup_reserve(void)
{
	begin();
	world_may_fail = true;
	place((struct place){ LOW, .stays = true, .stays_marked = true });
	place((struct place){ HIGHER, .never_marked = true });
	start(careful);
}

/* ---- numbers ---- */

#define NR_GREEDY 3
static bool taken[130 + NR_GREEDY];

static void greedy(void *unused)
{
	static const unsigned int from[] = { 0, 63, 64, 129 };

	(void)unused;
	for (int i = 0; i < 4; i++) {
		unsigned int start_at = from[sim_random(4)];
		int id = ida_alloc_min(&numbers, start_at);

		sim_assert(id >= (int)start_at && id < (int)start_at + NR_GREEDY);
		if (taken[id])
			sim_fail("number %d given out twice", id);
		taken[id] = true;
		sim_point("has it");
		sim_assert(ida_exists(&numbers, (unsigned int)id));
		taken[id] = false;
		ida_free(&numbers, (unsigned int)id);
	}
}

static void setup_numbers(void)
{
	begin();
	spawn_each(NR_GREEDY, greedy, "greedy");
}

static void finish_numbers(void)
{
	sim_assert(ida_is_empty(&numbers) && world_nr_nodes == world_nr_nodes_freed);
	finish();
}

#define COMES_AND_GOES "an index that comes or goes is visited"

const struct sim_scenario xarray_scenarios[] = {
	{ "xa_bounce", "walks while the tree becomes higher and lower", setup_bounce, finish, COMES_AND_GOES },
	{ "xa_branch", "walks while leaves come and go", setup_branch, finish, COMES_AND_GOES },
	{ "xa_toggle", "walks while marks come and go", setup_toggle, finish, NULL },
	{ "xa_mark_publishes", "a mark publishes earlier writes", setup_mark_publishes, finish, "the mark is found" },
	{ "xa_exchange", "exchanges of one entry by several", setup_exchange, finish_exchange, NULL },
	{ "xa_destroyed", "destroyed beside an updater that stores", setup_destroyed, finish_destroyed, NULL },
	{ "xa_reserve", "what is reserved needs no memory", setup_reserve, finish, COMES_AND_GOES },
	{ "xa_numbers", "several threads that take numbers and give them back", setup_numbers, finish_numbers, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};
