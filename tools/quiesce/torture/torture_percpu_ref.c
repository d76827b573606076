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
#define MAILBOXES 8
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
static uint64_t dead, late, wrongly_released, unconfirmed, refused, revived, begun, switched;

/* ---- users ---- */

static struct mailbox {
	uint32_t state;
	struct object *o;
} __attribute__((aligned(64))) mailbox[MAILBOXES];
enum { MAIL_NONE, MAIL_BUSY, MAIL_HERE };

static bool mail_turn(struct mailbox *m, uint32_t from)
{
	/* raw: the mailboxes' own hand-over; acquire, with the release in mail_end(). */
	return __atomic_compare_exchange_n(&m->state, &from, MAIL_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void mail_end(struct mailbox *m, uint32_t state)
{
	/* raw: release, with the acquire in mail_begin(). */
	__atomic_store_n(&m->state, state, __ATOMIC_RELEASE);
}

static bool post(struct object *o, uint64_t r)
{
	struct mailbox *m = &mailbox[r % MAILBOXES];

	if (!mail_turn(m, MAIL_NONE))
		return false;
	m->o = o;
	mail_end(m, MAIL_HERE);
	return true;
}

static struct object *fetch(uint64_t r)
{
	struct mailbox *m = &mailbox[r % MAILBOXES];
	struct object *o;

	if (quiesce_load_relaxed(&m->state) != MAIL_HERE || !mail_turn(m, MAIL_HERE))
		return NULL;
	o = m->o;
	mail_end(m, MAIL_NONE);
	return o;
}

static void check_alive(const struct object *o)
{
	if (quiesce_load_relaxed(&o->canary) != ALIVE)
		torture_count_together(dead);
}

static void let_go(struct object *o, struct tally *t)
{
	check_alive(o);
	ops->put(&o->ref, 1);
	torture_count(t->reads);
}

/* Counts an error if a live reference was got after the kill was confirmed, without a revival since. */
static bool try_get(struct object *o, bool live)
{
	/* raw: acquire, with the release in confirm(). */
	uint64_t confirmed = __atomic_load_n(&o->confirmed, __ATOMIC_ACQUIRE);

	if (!ops->tryget(&o->ref, live))
		return false;
	if (live && confirmed && quiesce_load_relaxed(&o->life) == confirmed)
		torture_count_together(late);
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
		torture_count_together(refused);
	return o;
}

static struct object *get(uint64_t r)
{
	return get_by(try_get, r);
}

/* Gets more references; the caller has one. */
static void get_more(struct object *o, uint64_t *random, uint64_t r)
{
	unsigned long nr = 1 + r % 3;

	ops->get(&o->ref, nr);
	torture_delay(random);
	check_alive(o);
	ops->put(&o->ref, nr);
}

static void section(struct tally *t, uint64_t *random)
{
	uint64_t r = random_next(random) >> 7;
	struct object *o = get(r);

	if (o) {
		quiesce_store_relaxed(&t->holding, (uint64_t)(o - object) + 1);
		check_alive(o);
		torture_delay(random);
		if (r >> 20 & 1)
			get_more(o, random, r >> 21);
		check_alive(o);
		quiesce_store_relaxed(&t->holding, 0);
		if (r >> 30 & 31 || !post(o, r >> 36))
			let_go(o, t);
		else
			torture_count(t->handed_over);
	}
	o = fetch(r >> 44);
	if (o)
		let_go(o, t);
}

static void once(struct tally *t, uint64_t *random, uint64_t spins)
{
	struct object *o = get(random_next(random) >> 9);

	if (!o)
		return;
	torture_spin(spins);
	let_go(o, t);
}

static void leave(struct tally *t, uint64_t *random)
{
	struct object *o = get(random_next(random) >> 9);

	if (o && post(o, *random >> 13))
		torture_count(t->handed_over);
	else if (o)
		let_go(o, t);
}

static void postman(void)
{
	struct tally *t = &torture.tally[torture.nr_readers + 1];
	uint64_t random = 77310957;
	bool last;

	do {
		/* raw: acquire, with the release in torture_leave(). */
		last = __atomic_load_n(&torture.users, __ATOMIC_ACQUIRE) == 1; /* the caller itself is the last one */
		for (uint64_t i = 0; i < MAILBOXES; i++) {
			struct object *o = fetch(i);

			if (o)
				let_go(o, t);
		}
		sleep_ns(random_next(&random) % 300000);
	} while (!last);
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
		torture_count_together(unconfirmed);
}

/* The object was killed: its last user releases it some time; then there are no references. */
static void wait_for_release(struct object *o)
{
	o->expected++;
	/* raw: acquire, with the release in release(). */
	while (__atomic_load_n(&o->released, __ATOMIC_ACQUIRE) < o->expected)
		sleep_ns(30000);
	if (!percpu_ref_is_zero(&o->ref))
		torture_count_together(wrongly_released);
	for (int i = 0; i < torture.nr_readers; i++)
		if (quiesce_load_relaxed(&torture.tally[i].holding) == (uint64_t)(o - object) + 1)
			torture_count_together(wrongly_released);
}

static void check_released(const struct object *o)
{
	if (quiesce_load_relaxed(&o->released) != o->expected)
		torture_count_together(wrongly_released);
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
	torture_count_together(revived);
}

static void kill_and_revive(struct object *o)
{
	kill(o);
	wait_for_release(o);
	new_life(o);
	percpu_ref_reinit(&o->ref);
	torture_count_together(revived);
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
	torture_count_together(begun);
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

static void switcher(void)
{
	uint64_t random = 3266489917;

	while (!torture_stopped()) {
		struct object *o = get_by(really_get, random_next(&random) >> 9);

		torture_stutter();
		if (o) {
			percpu_ref_switch_to_atomic_sync(&o->ref);
			torture_delay(&random);
			percpu_ref_switch_to_percpu(&o->ref);
			check_alive(o);
			torture_ref_ops.put(&o->ref, 1);
			torture_count(switched);
		}
		torture_count(torture.progress[SWITCHER]);
		sleep_ns(random % 400000);
	}
}

/* ---- the kind ---- */

/* Called before there are threads: the first use registers with the kernel, which is slow if many threads run. */
static void set_up_with(const struct torture_ref_ops *which)
{
	ops = which;
	for (int i = 0; i < OBJECTS; i++)
		begin(&object[i], 0);
}

static void set_up(void)
{
	set_up_with(&torture_ref_ops);
}

static void set_up_busted(void)
{
	set_up_with(&torture_busted_ref_ops);
}

static uint64_t errors(void)
{
	return quiesce_load_relaxed(&dead) + quiesce_load_relaxed(&late) + quiesce_load_relaxed(&wrongly_released) +
	       quiesce_load_relaxed(&unconfirmed);
}

#define U(x) ((unsigned long long)quiesce_load_relaxed(&(x)))

static void report(void)
{
	job_print("refused %llu, revived %llu, begun %llu, modes changed %llu", U(refused), U(revived), U(begun), U(switched));
	if (errors())
		job_print("!!! dead in use %llu, live after the kill was confirmed %llu, released wrongly %llu, not confirmed %llu",
			  U(dead), U(late), U(wrongly_released), U(unconfirmed));
}

static const char *idle(void)
{
	if (!quiesce_load_relaxed(&refused) || !quiesce_load_relaxed(&revived) || quiesce_load_relaxed(&begun) <= OBJECTS)
		return "no caller was refused, nothing revived or nothing begun anew";
	return quiesce_load_relaxed(&switched) ? NULL : "no mode was changed";
}

static const struct torture_role roles[] = {
	{ NULL, owner, 0 }, { NULL, owner, 1 }, { switcher, NULL, 0 }, { postman, NULL, 0 },
	{ torture_exits, NULL, 0 }, { torture_signals, NULL, 0 },
};

#define KIND(first)                                                                                   \
	{                                                                                             \
		.set_up = (first), .section = section, .once = once, .leave = leave, .roles = roles,  \
		.nr_roles = sizeof(roles) / sizeof(roles[0]),                                         \
		.writers = (1u << OBJECTS) - 1 + (1u << SWITCHER), .errors = errors, .report = report, \
		.idle = idle,                                                                         \
	}
const struct torture_kind torture_ref = KIND(set_up), torture_busted_ref = KIND(set_up_busted);
