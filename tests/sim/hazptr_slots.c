/* SPDX-License-Identifier: MIT */
/* hazptr_slots.c - scenarios: readers protect, and scans find their slots; many slots, several rounds, reused addresses. */
#include "hazptr_world.h"

#include "hazptr/hazptr.h"

static void setup_basic(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(world_updater, (void *)0, "updater");
}

static void setup_full(void)
{
	setup_basic();
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
}

/* The updater publishes by a plain store, so only the fence before the scan orders it before the scan. */
static void storing_updater(void *index)
{
	for (int i = 0; i < 3; i++) {
		struct item *old = rcu_access_pointer(world_pointer[(intptr_t)index]), *item = world_new(NULL);

		rcu_assign_pointer(world_pointer[(intptr_t)index], item);
		world_retire(old, world_free_head);
	}
}

static void setup_assign(void)
{
	world_begin();
	sim_config()->nr_cpus = 0;
	world_readers(driver_readers + 1);
	sim_spawn(storing_updater, (void *)0, "updater");
}

static void setup_sharing(void)
{
	world_begin();
	world_readers(driver_readers);
	for (int i = 0; i < 3; i++)
		sim_spawn(world_updater, (void *)0, "updater");
}

/* ---- a slot kept for many protections, with and without a clear in between ---- */

static void keeper(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)unused;
	if (!slot && world_short_of_slots)
		return;
	sim_assert(slot);
	for (int i = 0; i < 4; i++) {
		world_protect(slot, i & 1);
		if (sim_random(2))
			hazptr_clear(slot);
	}
	hazptr_free(NULL, slot);
}

static void setup_keep(void)
{
	world_begin();
	spawn_each(driver_readers, keeper, "reader");
	sim_spawn(world_updater, (void *)0, "updater");
	sim_spawn(world_updater, (void *)1, "updater");
}

/* Two slots leapfrog: the older object stays protected until the next one is. */
static void leapfrog(void *unused)
{
	hazptr_t *slot[2] = { hazptr_alloc(NULL), hazptr_alloc(NULL) };
	struct item *item[2];

	(void)unused;
	item[1] = world_protect(slot[1], 1);
	for (int i = 0; i < 4; i++) {
		item[i & 1] = world_protect(slot[i & 1], i & 1);
		world_check(item[!(i & 1)]);
	}
	hazptr_free(NULL, slot[0]);
	world_check(item[1]);
	hazptr_free(NULL, slot[1]);
}

static void setup_leapfrog(void)
{
	setup_keep();
	sim_spawn(leapfrog, NULL, "leapfrog");
}

static void trier(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)unused;
	for (int i = 0; i < 4; i++) {
		struct item *item = hazptr_tryprotect(slot, &world_pointer[0]);

		if (item)
			world_check(item);
		else
			sim_assert(quiesce_load_relaxed(&slot->value) == 0);
	}
	hazptr_free(NULL, slot);
}

static void setup_try(void)
{
	world_begin();
	spawn_each(driver_readers, trier, "reader");
	sim_spawn(world_updater, (void *)0, "updater");
}

/* ---- by the address of a field; a pointer that is NULL now and then ---- */

static void field_reader(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct item *item = hazptr_protect(slot, &world_pointer[0], field);

		if (!item)
			sim_assert(quiesce_load_relaxed(&slot->value) == 0);
		else
			world_check(item);
	}
	hazptr_clear(slot);
	for (int i = 0; i < 2; i++) {
		struct item *item = hazptr_tryprotect(slot, &world_pointer[0], field);

		if (item)
			world_check(item);
	}
	hazptr_free(NULL, slot);
}

static void field_updater(void *unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++) {
		struct item *item = i & 1 ? world_new(NULL) : NULL, *old = rcu_xchg_pointer(&world_pointer[0], item);

		if (!old)
			continue;
		world_nr_retired++;
		world_last_words(old);
		call_hazptr(&old->field, world_free_field);
	}
}

static void setup_field(void)
{
	world_begin();
	spawn_each(driver_readers, field_reader, "reader");
	sim_spawn(field_updater, NULL, "updater");
}

/* ---- an address that is published again ---- */

static struct item *spare[3];
static uint32_t nr_spare;

static void recycle(struct hazptr_head *head)
{
	struct item *item = (struct item *)head;

	world_free(item);
	spare[nr_spare++] = item;
}

static void recycler(void *unused)
{
	(void)unused;
	for (int i = 0; i < 7; i++) {
		struct item *item = world_new(nr_spare ? spare[--nr_spare] : NULL);

		world_retire(rcu_xchg_pointer(&world_pointer[0], item), recycle);
	}
}

/* There is no worker, because items that it frees would not be in this thread's stock. */
static void setup_recycled(void)
{
	world_begin();
	sim_config()->thread_start_failures = -1;
	spawn_each(driver_readers, keeper, "reader");
	sim_spawn(recycler, NULL, "recycler");
}

/* There is no sweeper: objects left behind stay until a barrier. */
static void finish_recycled(void)
{
	sim_assert(world_nr_retired - world_nr_freed <= 3 + 2 * driver_readers);
}

/* ---- more protections than a set has room for ---- */

#define MANY 5

static void holds_many(void *unused)
{
	hazptr_t *slot[MANY];
	struct item *item[MANY];

	(void)unused;
	for (int i = 0; i < MANY; i++)
		slot[i] = hazptr_alloc(NULL);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MANY; i++)
			item[i] = world_protect(slot[i], i);
		for (int i = 0; i < MANY; i++)
			world_check(item[i]);
	}
	for (int i = 0; i < MANY; i++)
		hazptr_free(NULL, slot[i]);
}

static void updates_many(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2 * MANY; i++)
		world_update(i % MANY);
}

static void setup_many(void)
{
	world_begin();
	spawn_each(2, holds_many, "reader");
	sim_spawn(updates_many, NULL, "updater");
}

static void setup_many_sharing(void)
{
	setup_many();
	sim_spawn(updates_many, NULL, "updater");
}

static void batch_reader(void *unused)
{
	hazptr_t *slot[MANY];
	void **where[MANY], *found[MANY];

	(void)unused;
	for (int i = 0; i < MANY; i++)
		where[i] = (void **)&world_pointer[i % 3];
	sim_assert(hazptr_alloc_batch(NULL, slot, MANY));
	for (int round = 0; round < 2; round++) {
		hazptr_protect_batch(slot, where, found, MANY);
		for (int i = 0; i < MANY; i++)
			world_check(found[i]);
		if (!round)
			hazptr_clear_batch(slot, MANY);
	}
	hazptr_free_batch(NULL, slot, MANY);
}

static void setup_batch(void)
{
	world_begin();
	spawn_each(driver_readers, batch_reader, "reader");
	sim_spawn(world_updater, (void *)0, "updater");
	sim_spawn(world_updater, (void *)1, "updater");
}

/* ---- no line for most: slots of the pool, and the pool exhausted ---- */

static void takes_all(void *unused)
{
	hazptr_t *slot[2 * QUIESCE_LINE_SLOTS];
	struct item *item = NULL;
	int n = 0;

	(void)unused;
	while (n < 2 * (int)QUIESCE_LINE_SLOTS && (slot[n] = hazptr_alloc(NULL)))
		item = world_protect(slot[n++], 0);
	if (n < 2 * (int)QUIESCE_LINE_SLOTS)
		sim_saw();
	if (item)
		world_check(item);
	while (n--)
		hazptr_free(NULL, slot[n]);
}

/* A claimer that does not see yet that a line is shared takes another one, and there are few. */
static void setup_pool(void)
{
	world_begin();
	world_short_of_slots = true;
	sim_config()->arm_exit_failures = -1; /* no thread gets a line */
	world_readers(driver_readers);
	sim_spawn(keeper, NULL, "keeper");
	sim_spawn(world_updater, (void *)0, "updater");
}

static void setup_exhausted(void)
{
	world_begin();
	sim_config()->max_steps = 40000;
	spawn_each(3, takes_all, "greedy");
	sim_spawn(world_updater, (void *)0, "updater");
}

/* ---- guards of shazptr.h protect objects that are retired here ---- */

static void guard_reader(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct shazptr_guard guard = shazptr_protect(&world_pointer[0]);

		world_check(shazptr_ptr(guard));
		shazptr_clear(guard);
	}
}

static void wild_reader(void *unused)
{
	struct shazptr_guard guard = shazptr_acquire(SHAZPTR_WILDCARD);

	(void)unused;
	world_check(rcu_dereference(world_pointer[0]));
	shazptr_clear(guard);
}

static void setup_guards(void)
{
	world_begin();
	sim_spawn(guard_reader, NULL, "guard");
	world_readers(1);
	sim_spawn(world_updater, (void *)0, "updater");
}

static void setup_wildcard(void)
{
	setup_guards();
	spawn_each(2, wild_reader, "wild");
}

/* There are no slots for guards: they are only counted. */
static void setup_fallback(void)
{
	world_begin();
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
	quiesce_slots();
	quiesce__slots.lines.capacity = 0;
	spawn_each(2, guard_reader, "guard");
	sim_spawn(world_updater, (void *)0, "updater");
}

static void setup_full_fallback(void)
{
	world_begin();
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
	quiesce_slots();
	quiesce__slots.lines.capacity = 0;
	spawn_each(2, guard_reader, "guard");
	sim_spawn(world_updater, (void *)0, "updater");
}

#define SCENARIO(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = world_finish }
#define VARIANT(label, other, change, text) \
	{ .name = #label, .what = text, .setup = setup_##other, .but = change, .finish = world_finish }

const struct sim_scenario hazptr_slot_scenarios[] = {
	SCENARIO(basic, "readers and a retirer"),
	VARIANT(basic_cpu_each, basic, with_many_cpus, "... a CPU for every thread"),
	SCENARIO(full, "... without membarrier"),
	VARIANT(full_cpu_each, full, with_many_cpus, "... and a CPU for every thread"),
	SCENARIO(assign, "publication by a store"),
	VARIANT(full_assign, assign, without_membarrier, "... without membarrier"),
	SCENARIO(sharing, "three retirers of one pointer"),
	VARIANT(full_sharing, sharing, without_membarrier, "... without membarrier"),
	SCENARIO(keep, "one slot for many protections"),
	VARIANT(full_keep, keep, without_membarrier, "... without membarrier"),
	SCENARIO(leapfrog, "two slots by turns"),
	SCENARIO(try, "one attempt"),
	VARIANT(full_try, try, without_membarrier, "... without membarrier"),
	SCENARIO(field, "protection by field, of pointers that may be NULL"),
	{ .name = "recycled", .what = "an address is published again", .setup = setup_recycled, .finish = finish_recycled },
	{ .name = "full_recycled", .what = "... without membarrier", .setup = setup_recycled, .but = without_membarrier,
	  .finish = finish_recycled },
	SCENARIO(many, "more protections than a set has room for"),
	VARIANT(full_many, many, without_membarrier, "... without membarrier"),
	SCENARIO(many_sharing, "... two retirers"),
	SCENARIO(batch, "several slots at once"),
	VARIANT(full_batch, batch, without_membarrier, "... without membarrier"),
	SCENARIO(pool, "no thread has a line"),
	VARIANT(full_pool, pool, without_membarrier, "... without membarrier"),
	{ .name = "exhausted", .what = "no slot is left", .setup = setup_exhausted, .finish = world_finish,
	  .must_see = "a caller that got no slot" },
	SCENARIO(guards, "guards of shazptr.h"),
	VARIANT(full_guards, guards, without_membarrier, "... without membarrier"),
	SCENARIO(wildcard, "... of every address"),
	SCENARIO(fallback, "... without slots"),
	SCENARIO(full_fallback, "... and without membarrier"),
	{ .name = NULL },
};
