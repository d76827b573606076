/* SPDX-License-Identifier: MIT */
/* torture_percpu_ref.c - references: released once, when there is none left, and live only until the kill is confirmed.
 *
 * Users find an object under RCU, try to get a reference, check that the object is alive as long as they have it,
 * hand it over, and put it.  Owners kill the object, wait until it is released, and revive it or end it and begin it
 * anew; now and then they take the kill back.  Another thread changes its mode meanwhile.
 */
#include <quiesce/rcu.h>

#include "types/quiesce/torture_ops.h"

#include "torture.h"

#define OBJECTS 2
#define SWITCHER 2 /* index among the writers that make progress */
#define ALIVE 0x616c697665ull

static struct object {
	struct percpu_ref ref;
	uint64_t canary;    /* ALIVE until the release */
	uint64_t life;      /* a new number before each revival */
	uint64_t confirmed; /* the life whose kill has been confirmed */
	uint64_t released;  /* number of releases */
	uint64_t expected;  /* number of releases expected; written by the owner */
} __attribute__((aligned(128))) object[OBJECTS];

static struct object *current[OBJECTS];
static const struct torture_ref_ops *ops;

enum { REFUSED, REVIVED, BEGUN, SWITCHED, DEAD, LATE, RELEASED, UNCONFIRMED };
static struct torture_figure figure[] = {
	[REFUSED] = { .what = "refused", .idle = "no caller was refused" },
	[REVIVED] = { .what = "revived", .idle = "nothing was revived" },
	[BEGUN] = { .what = "begun", .idle = "nothing was begun anew", .few = OBJECTS },
	[SWITCHED] = { .what = "modes changed", .idle = "no mode was changed" },
	[DEAD] = { .what = "dead in use", .error = true },
	[LATE] = { .what = "live after the kill was confirmed", .error = true },
	[RELEASED] = { .what = "released wrongly", .error = true },
	[UNCONFIRMED] = { .what = "not confirmed", .error = true },
	{ .what = NULL },
};

/* ---- users ---- */

static void check_alive(const struct object *o)
{
	if (quiesce_load_relaxed(&o->canary) != ALIVE)
		torture_count_together(figure[DEAD].n);
}

static void let_go(struct hold *h, struct tally *t)
{
	struct object *o = h->object;

	check_alive(o);
	ops->put(&o->ref, 1);
	torture_count(t->n[TALLY_READS]);
}

/* Counts an error if a live reference was got after the kill was confirmed, without a revival since. */
static bool try_get(struct object *o, bool live)
{
	/* raw: acquire, with the release in confirm(). */
	uint64_t confirmed = __atomic_load_n(&o->confirmed, __ATOMIC_ACQUIRE);

	if (!ops->tryget(&o->ref, live))
		return false;
	if (live && confirmed && quiesce_load_relaxed(&o->life) == confirmed)
		torture_count_together(figure[LATE].n);
	return true;
}

static struct object *get_by(bool (*try)(struct object *o, bool live), uint64_t r)
{
	struct object *o;

	rcu_read_lock();
	o = rcu_dereference(current[r % OBJECTS]);
	if (o && !try(o, r / OBJECTS % 4))
		o = NULL;
	rcu_read_unlock();
	if (!o)
		torture_count_together(figure[REFUSED].n);
	return o;
}

static bool hold(struct hold *h, uint64_t *random, bool at_once)
{
	struct object *o = get_by(try_get, random_next(random) >> 9);

	(void)at_once;
	*h = (struct hold){ .object = o, .key = o ? (uint64_t)(o - object) : 0, .end = let_go };
	return o;
}

/* Gets more references now and then. */
static void use(struct hold *h, uint64_t *random)
{
	struct object *o = h->object;
	uint64_t r = random_next(random) >> 7;
	unsigned long nr = 1 + r / 2 % 3;

	check_alive(o);
	torture_delay(random);
	if (r % 2) {
		ops->get(&o->ref, nr);
		torture_delay(random);
		check_alive(o);
		ops->put(&o->ref, nr);
	}
	check_alive(o);
}

/* ---- owners ---- */

static struct object *object_of(struct percpu_ref *ref)
{
	return (struct object *)(void *)((char *)ref - offsetof(struct object, ref));
}

static void release(struct percpu_ref *ref)
{
	struct object *o = object_of(ref);

	quiesce_store_relaxed(&o->canary, 0);
	/* raw: release, with the acquire in wait_for_release(). */
	(void)__atomic_fetch_add(&o->released, 1, __ATOMIC_ACQ_REL);
}

static void confirm(struct percpu_ref *ref)
{
	struct object *o = object_of(ref);

	/* raw: release, with the acquire in try_get(). */
	__atomic_store_n(&o->confirmed, quiesce_load_relaxed(&o->life), __ATOMIC_RELEASE);
}

static void kill(struct object *o)
{
	percpu_ref_kill_and_confirm(&o->ref, confirm);
	if (quiesce_load_relaxed(&o->confirmed) != quiesce_load_relaxed(&o->life))
		torture_count_together(figure[UNCONFIRMED].n);
}

/* The object was killed: its last user releases it some time; then there are no references. */
static void wait_for_release(struct object *o)
{
	o->expected++;
	/* raw: acquire, with the release in release(). */
	while (__atomic_load_n(&o->released, __ATOMIC_ACQUIRE) < o->expected)
		sleep_ns(30000);
	if (!percpu_ref_is_zero(&o->ref))
		torture_count_together(figure[RELEASED].n);
	for (int i = 0; i < torture.nr_readers; i++)
		if (quiesce_load_relaxed(&torture.tally[i].holding) == (uint64_t)(o - object) + 1)
			torture_count_together(figure[RELEASED].n);
}

static void check_released(const struct object *o)
{
	if (quiesce_load_relaxed(&o->released) != o->expected)
		torture_count_together(figure[RELEASED].n);
}

static void new_life(struct object *o)
{
	quiesce_store_relaxed(&o->canary, ALIVE);
	quiesce_store_relaxed(&o->life, quiesce_load_relaxed(&o->life) + 1);
	torture_count_together(torture.version);
}

static void kill_and_take_back(struct object *o, uint64_t *random)
{
	percpu_ref_get(&o->ref);
	kill(o);
	torture_delay(random);
	check_released(o);
	new_life(o);
	percpu_ref_resurrect(&o->ref);
	percpu_ref_put(&o->ref);
	torture_count_together(figure[REVIVED].n);
}

static void kill_and_revive(struct object *o)
{
	kill(o);
	wait_for_release(o);
	new_life(o);
	percpu_ref_reinit(&o->ref);
	torture_count_together(figure[REVIVED].n);
}

/* Begins an object per CPU, atomic, or dead. */
static void begin(struct object *o, uint64_t r)
{
	new_life(o);
	switch (r % 3) {
	case 0:
		percpu_ref_init(&o->ref, release, PERCPU_REF_ALLOW_REINIT);
		break;
	case 1:
		percpu_ref_init(&o->ref, release, PERCPU_REF_INIT_ATOMIC);
		percpu_ref_switch_to_percpu(&o->ref);
		break;
	default:
		percpu_ref_init(&o->ref, release, PERCPU_REF_INIT_DEAD);
		percpu_ref_reinit(&o->ref);
	}
	rcu_assign_pointer(current[o - object], o);
	torture_count_together(figure[BEGUN].n);
}

static void end(struct object *o)
{
	rcu_assign_pointer(current[o - object], NULL);
	kill(o);
	wait_for_release(o);
	synchronize_rcu(); /* for readers that have loaded the pointer and not yet tried to get a reference */
	check_released(o);
	percpu_ref_exit(&o->ref);
}

static void owner(uint32_t index)
{
	struct object *o = &object[index];
	uint64_t random = 2463534242u + index;

	while (!torture_stopped()) {
		uint64_t r = random_next(&random) >> 7;

		torture_stutter();
		if (r % 4 == 0) {
			end(o);
			begin(o, r / 4);
		} else if (r % 4 == 1) {
			kill_and_take_back(o, &random);
		} else {
			kill_and_revive(o);
		}
		torture_count(torture.progress[index]);
		check_released(o);
		sleep_ns(random_next(&random) >> 7 & 1 ? 0 : random % 1000000);
	}
	end(o);
}

/* Counts in the broken variant, too: a caller that changes the mode needs a reference. */
static bool really_get(struct object *o, bool live)
{
	return torture_ref_ops.tryget(&o->ref, live);
}

static void switcher(uint32_t index)
{
	uint64_t random = 3266489917 + index;

	while (!torture_stopped()) {
		struct object *o = get_by(really_get, random_next(&random) >> 9);

		torture_stutter();
		if (o) {
			percpu_ref_switch_to_atomic_sync(&o->ref);
			torture_delay(&random);
			percpu_ref_switch_to_percpu(&o->ref);
			check_alive(o);
			torture_ref_ops.put(&o->ref, 1);
			torture_count(figure[SWITCHED].n);
		}
		torture_count(torture.progress[SWITCHER]);
		sleep_ns(random % 400000);
	}
}

/* ---- the kind ---- */

/* Called before there are threads: the first use registers with the kernel, which is slow if many threads run. */
static void set_up(void)
{
	ops = torture.kind->calls;
	for (int i = 0; i < OBJECTS; i++)
		begin(&object[i], 0);
}

static const struct torture_role roles[] = {
	{ owner, OBJECTS }, { switcher, 1 }, { torture_collector, 1 }, { torture_exits, 1 }, { torture_signals, 1 }, { NULL, 0 },
};

#define KIND(functions)													\
	{														\
		.set_up = set_up, .calls = &(functions), .section = torture_hold_section, .begin = hold, .use = use,	\
		.leaves = true, .roles = roles, .figures = figure,							\
		.writers = (1u << OBJECTS) - 1 + (1u << SWITCHER),							\
	}
const struct torture_kind torture_ref = KIND(torture_ref_ops), torture_busted_ref = KIND(torture_busted_ref_ops);
