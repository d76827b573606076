/* SPDX-License-Identifier: MIT */
/* memory.c - the memory models.
 *
 * sc     every access takes effect at once.
 * tso    stores wait in a FIFO per thread (buffer.c); loads see the thread's own stores.
 * pso    stores are ordered per address only; a release store waits for all earlier ones.
 * weak   views, as in operational forms of C11: a location keeps its last stores; a load may return any
 *        store that its thread is not yet ordered after; acquire adds the knowledge of the release store;
 *        fences share one global view.  A read-modify-write operation reads the newest store and is, as
 *        atomic.h promises, a full fence (rmw_acqrel: only acquire and release).
 *
 * Real memory always holds the newest store that has left the buffers, or the running thread's own buffered
 * value, so that its plain loads see the right value (buffer.c).  When memory holds another value, the
 * program has stored plainly (initialised, zeroed): the location's history then begins again with that value.
 * Clocks are kept in all models, so that an order that was only luck is detected.
 */
#include "machine.h"

#include <string.h>

void sim__memory_put(const struct location *l, uint64_t value)
{
	memcpy((void *)l->address, &value, l->size); /* little endian, see location_new() */
}

uint64_t sim__memory_get(const struct location *l)
{
	const void *p = (const void *)l->address;

	switch (l->size) {
	case 1: return *(const uint8_t *)p;
	case 2: return *(const uint16_t *)p;
	case 4: return *(const uint32_t *)p;
	default: return *(const uint64_t *)p;
	}
}

static void memory_put(void *p, unsigned size, uint64_t value)
{
	memcpy(p, &value, size);
}

static struct message *newest(struct location *l)
{
	return &l->history[l->stamp % SIM_HISTORY];
}

static struct view *view_of(struct location *l, int16_t stamp)
{
	return &M->message_views[l - M->locations][stamp % SIM_HISTORY];
}

static void stamp_next(struct location *l)
{
	if (++l->stamp > M->highest_stamp)
		M->highest_stamp = l->stamp;
}

static void history_restart(struct location *l)
{
	stamp_next(l);
	l->count = 1;
	*newest(l) = (struct message){ .value = sim__memory_get(l), .owner = -1 };
}

static struct location *location_new(uintptr_t address, unsigned size, unsigned slot)
{
	struct location *l = &M->locations[M->nr_locations];

	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the simulator runs on little-endian hosts");
	if (M->nr_locations == SIM_LOCATIONS - 8)
		sim_fail("machine: more than %d locations", SIM_LOCATIONS - 8);
	M->table[slot] = M->nr_locations++;
	M->table_epoch[slot] = M->epoch;
	l->address = address;
	l->size = size;
	/* Stamps continue from earlier runs, so that stamps that views still have from those runs are older
	 * than all stamps of this run. */
	history_restart(l);
	return l;
}

/* No thread may follow a pointer into the thread-local block of a thread that has ended. */
static void check_alive(uintptr_t address)
{
	uintptr_t offset = address - (uintptr_t)M->threads;
	int i = offset / sizeof(struct thread);

	if (offset < sizeof M->threads && i != M->cur && M->threads[i].state == THREAD_DONE && !M->threads[i].killed)
		sim_fail("access to the thread-local memory of %s(%d), which has ended", M->threads[i].name, i);
}

/* True if a function of the running thread that has returned had a variable there, and a variable of another
 * size has replaced it. */
static bool is_another_variable(const struct location *l)
{
	const struct thread *t = sim__current();

	return t && l->address - (uintptr_t)M->stacks[t - M->threads] < SIM_STACK;
}

static void location_resize(struct location *l, unsigned size)
{
	if (!is_another_variable(l)) {
		sim_fail("machine: %p accessed with %u and %u bytes", (const void *)l->address, l->size, size);
		return;
	}
	l->size = size;
	history_restart(l);
}

struct location *sim__location(const void *p, unsigned size)
{
	uintptr_t address = (uintptr_t)p;
	unsigned slot = address * 0x9e3779b97f4a7c15ull >> 52;
	struct location *l;

	check_alive(address);
	for (;; slot = (slot + 1) % SIM_TABLE) {
		if (M->table_epoch[slot] != M->epoch)
			return location_new(address, size, slot);
		l = &M->locations[M->table[slot]];
		if (l->address == address)
			break;
	}
	if (l->size != size)
		location_resize(l, size);
	if (sim__expected(l) != sim__memory_get(l))
		history_restart(l);
	return l;
}

uint64_t sim__committed(struct location *l)
{
	return newest(l)->value;
}

/* The value of memory at @l while the present thread runs, unless the program has stored plainly. */
uint64_t sim__expected(struct location *l)
{
	struct thread *t = sim__current();
	uint64_t value;

	return t && t->nr_buffered && sim__buffer_find(t, l, &value) ? value : newest(l)->value;
}

void sim_forget(const void *start, size_t bytes)
{
	for (struct location *l = M->locations; l < M->locations + M->nr_locations; l++)
		if (l->address - (uintptr_t)start < bytes)
			history_restart(l);
}

/* ---- the newest store of a location ---- */

/* Attach knowledge to the newest store: @carried, or only @clock for a store from a store buffer. */
static void attach(struct location *l, const uint32_t *clock, const struct view *carried)
{
	struct view *view = view_of(l, l->stamp);

	if (carried)
		view_copy(view, carried);
	else
		memcpy(view->clock, clock, sizeof view->clock);
	view->stamp[l - M->locations] = l->stamp;
	newest(l)->has_view = true;
}

/* A store of the same thread, and a read-modify-write of any thread, continue the release sequence of the
 * previous store: a load that acquires the later store also acquires the earlier one.  In C++20 plain stores
 * do not continue it (strict_relseq). */
static void continue_sequence(struct location *l, int thread, bool release, bool rmw)
{
	struct message *new = newest(l), *old = &l->history[(l->stamp - 1) % SIM_HISTORY];
	struct view *view = view_of(l, l->stamp);

	new->owner = release || old->owner < 0 ? thread : rmw ? old->owner : thread;
	if (l->count < 2 || !old->has_view)
		return;
	if (!rmw && (M->opt.strict_relseq || old->owner != thread))
		return;
	if (new->has_view) {
		view_join(view, view_of(l, l->stamp - 1));
		return;
	}
	view_copy(view, view_of(l, l->stamp - 1));
	view->stamp[l - M->locations] = l->stamp;
	new->has_view = true;
}

static void append(struct location *l, uint64_t value)
{
	stamp_next(l);
	if (l->count < SIM_HISTORY)
		l->count++;
	newest(l)->value = value;
	newest(l)->has_view = false;
	memory_put((void *)l->address, l->size, sim__expected(l));
}

void sim__commit_buffered(struct thread *t, const struct buffered *b)
{
	struct location *l = b->location;

	append(l, b->value);
	if (b->has_view)
		attach(l, b->clock, NULL);
	continue_sequence(l, t - M->threads, b->release, false);
}

static void commit(struct location *l, struct thread *t, uint64_t value, enum sim_order order, bool rmw)
{
	append(l, value);
	t->cur.stamp[l - M->locations] = l->stamp;
	if (order >= SIM_RELEASE)
		attach(l, NULL, &t->cur);
	else if (t->rel_any)
		attach(l, NULL, &t->rel);
	continue_sequence(l, t - M->threads, order >= SIM_RELEASE, rmw);
}

/* ---- loads ---- */

/* The stamp of the store that a load of @t returns. */
static int16_t pick(const struct location *l, const struct thread *t)
{
	int16_t oldest = l->stamp - l->count + 1;
	int16_t seen = t->cur.stamp[l - M->locations];

	if (M->opt.model != SIM_WEAK || l->count == 1 || sim__draw() % 8 >= M->stale)
		return l->stamp;
	if (seen > oldest)
		oldest = seen;
	return l->stamp - sim__draw() % (l->stamp - oldest + 1);
}

static uint64_t observe(struct location *l, struct thread *t, int16_t stamp, bool acquire)
{
	const struct message *message = &l->history[stamp % SIM_HISTORY];

	t->cur.stamp[l - M->locations] = stamp;
	if (message->has_view) {
		view_join(&t->acq, view_of(l, stamp));
		t->acq_any = true;
		if (acquire)
			view_join(&t->cur, view_of(l, stamp));
	}
	return message->value;
}

/* ---- stores that the compiler moves down, below later loads ---- */

static bool may_hold(void)
{
	return M->opt.compiler || (quiesce_mutant >= 0 && quiesce_mutant < QUIESCE_G_first &&
				   quiesce_mutant % QUIESCE_NR_KINDS == QUIESCE_KIND_LIGHT);
}

static void store_now(struct thread *t, struct location *l, uint64_t value, enum sim_order order)
{
	if (M->buffered)
		sim__buffer_store(t, l, value, order);
	else
		commit(l, t, value, order, false);
}

void sim__held_release(struct thread *t)
{
	struct location *l = t->held.location;

	t->held.location = NULL;
	if (l)
		store_now(t, l, t->held.value, t->held.release ? SIM_RELEASE : SIM_RELAXED);
}

static bool hold(struct thread *t, struct location *l, uint64_t value, enum sim_order order)
{
	if (!may_hold())
		return false;
	t->held.location = l;
	t->held.value = value;
	t->held.release = order != SIM_RELAXED;
	t->held_free = sim__draw() % 2;
	return true;
}

/* Before a load: decide whether the held store moves past it. */
static void held_before_load(struct thread *t)
{
	if (t->held.location && (!t->held_free || sim__draw() % 4 == 0))
		sim__held_release(t);
}

/* ---- the operations ---- */

static void enter(struct thread *t)
{
	if (t->held.location)
		sim__held_release(t);
	sim__point();
}

static uint64_t raw_get(const void *p, unsigned size)
{
	struct location l = { .address = (uintptr_t)p, .size = size };

	return sim__memory_get(&l);
}

uint64_t sim__load(const void *p, unsigned size, enum sim_order order, const struct sim_site *site)
{
	struct thread *t = sim__current();
	struct location *l;
	uint64_t value;

	if (!t)
		return raw_get(p, size);
	held_before_load(t);
	sim__point();
	l = sim__location(p, size);
	if (t->held.location == l)
		value = t->held.value;
	else if (!t->nr_buffered || !sim__buffer_find(t, l, &value))
		value = observe(l, t, pick(l, t), order != SIM_RELAXED);
	sim__trace("load", p, value, order, site);
	return value;
}

void sim__store(void *p, unsigned size, uint64_t value, enum sim_order order, const struct sim_site *site)
{
	struct thread *t = sim__current();
	struct location *l;

	if (!t) {
		memory_put(p, size, value);
		return;
	}
	enter(t);
	l = sim__location(p, size);
	if (size < 8)
		value &= (1ull << size * 8) - 1;
	sim__trace("store", p, value, order, site);
	if (!hold(t, l, value, order))
		store_now(t, l, value, order);
}

void sim__commit_now(struct thread *t, uint64_t *word, uint64_t value, enum sim_order order, const struct sim_site *site)
{
	struct location *l = sim__location(word, sizeof *word);

	sim__held_release(t);
	store_now(t, l, value, order);
	sim__trace("store", word, value, order, site);
}

/* Begin a read-modify-write: flush the stores that must have left the buffer. */
static struct location *rmw_begin(struct thread *t, const void *p, unsigned size, enum sim_order order)
{
	struct location *l;

	enter(t);
	l = sim__location(p, size);
	if (M->opt.model == SIM_PSO && order == SIM_RELAXED)
		sim__buffer_flush_location(t, l);
	else
		sim__buffer_drain(t);
	if (!M->opt.rmw_acqrel && order == SIM_FULL)
		view_fence(t);
	return l;
}

static uint64_t rmw(void *p, unsigned size, uint64_t value, bool add, enum sim_order order, const char *op,
		    const struct sim_site *site)
{
	struct thread *t = sim__current();
	uint64_t old = raw_get(p, size);
	struct location *l;

	if (!t) {
		memory_put(p, size, add ? old + value : value);
		return old;
	}
	l = rmw_begin(t, p, size, order);
	old = observe(l, t, l->stamp, order != SIM_RELAXED);
	value = add ? old + value : value;
	if (size < 8)
		value &= (1ull << size * 8) - 1;
	commit(l, t, value, order, true);
	if (!M->opt.rmw_acqrel && order == SIM_FULL)
		view_fence(t);
	sim__trace(op, p, value, order, site);
	return old;
}

uint64_t sim__xchg(void *p, unsigned size, uint64_t value, enum sim_order order, const struct sim_site *site)
{
	return rmw(p, size, value, false, order, "xchg", site);
}

uint64_t sim__fetch_add(void *p, unsigned size, uint64_t add, enum sim_order order, const struct sim_site *site)
{
	return rmw(p, size, add, true, order, "add", site);
}

/* A compare-and-exchange that fails may, in the weak model, have read an old value: it is then a relaxed
 * load. */
static bool cmpxchg(struct thread *t, struct location *l, uint64_t *expected, uint64_t value, enum sim_order order)
{
	int16_t stamp = pick(l, t);

	if (l->history[stamp % SIM_HISTORY].value == *expected)
		stamp = l->stamp;
	if (l->history[stamp % SIM_HISTORY].value != *expected) {
		*expected = observe(l, t, stamp, false);
		return false;
	}
	observe(l, t, stamp, order != SIM_RELAXED);
	commit(l, t, value, order, true);
	if (!M->opt.rmw_acqrel && order == SIM_FULL)
		view_fence(t);
	return true;
}

bool sim__cmpxchg(void *p, unsigned size, void *expected, uint64_t value, enum sim_order order,
		  const struct sim_site *site)
{
	struct thread *t = sim__current();
	uint64_t wanted = raw_get(expected, size), found = wanted;
	bool done;

	if (!t) {
		found = raw_get(p, size);
		done = found == wanted;
		if (done)
			memory_put(p, size, value);
	} else {
		struct location *l = rmw_begin(t, p, size, order);

		if (size < 8)
			value &= (1ull << size * 8) - 1;
		done = cmpxchg(t, l, &found, value, order);
		sim__trace(done ? "cmpxchg" : "cmpxchg-fails", p, done ? value : found, order, site);
	}
	if (!done)
		memory_put(expected, size, found);
	return done;
}

void sim__fence(struct thread *t)
{
	sim__held_release(t);
	sim__buffer_drain(t);
	view_fence(t);
}

uint64_t sim__read_newest(struct thread *t, const void *p, unsigned size)
{
	struct location *l = sim__location(p, size);

	return observe(l, t, l->stamp, false);
}

void sim__fence_full(bool weakened, const struct sim_site *site)
{
	struct thread *t = sim__current();

	if (!t)
		return;
	enter(t);
	if (!weakened)
		sim__fence(t);
	sim__trace(weakened ? "fence-dropped" : "fence", NULL, 0, SIM_FULL, site);
}

/* A compiler fence: no step of the machine, but no held store moves past it. */
void sim__fence_light(bool weakened, const struct sim_site *site)
{
	struct thread *t = sim__current();

	(void)site;
	if (!t || !t->held.location)
		return;
	if (!weakened)
		sim__held_release(t);
}
