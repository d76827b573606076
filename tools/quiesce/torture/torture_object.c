/* SPDX-License-Identifier: MIT */
/* torture_object.c - readers with guards of single objects: several at once, handed over, left behind.
 *
 * A thread that clears a guard checks it right before: its element must be as it was when the guard was set, and no
 * wait for it may have ended since.  Keys are addresses that are never freed; a reader that holds one announces that,
 * and a writer that waits for the key checks on return that every announcement made before its wait has been
 * withdrawn.
 */
#include "torture.h"

#define MAX_HOLDS 12 /* more than the slots of one line */
#define MAILBOXES 16
#define HAMMER 32

enum style { STYLE_PROTECT, STYLE_ATTEMPT, STYLE_CHECKED, STYLE_EVERYTHING };

struct hold {
	struct op_guard guard;
	struct element *element;
	uint64_t serial;
	uint64_t completed;
};

/* Guards on their way to another thread. */
static struct mailbox {
	uint32_t state;
	struct hold hold; /* owned by the thread that has set MAIL_BUSY */
} __attribute__((aligned(64))) mailbox[MAILBOXES];
enum { MAIL_NONE, MAIL_BUSY, MAIL_HERE };

/* ---- one guard ---- */

static void *load_pointer(void **where)
{
	/* raw: the check of a user: acquire, with the publishing exchange in replace(). */
	return __atomic_load_n(where, __ATOMIC_ACQUIRE);
}

/* As a user that knows an address by other means: protects it, then checks that the pointer still has it. */
static struct element *acquire_checked(void **where, struct op_guard *ret_guard)
{
	void *e;

	while ((e = load_pointer(where))) {
		torture.op->object->acquire(e, ret_guard);
		if (load_pointer(where) == e)
			break;
		torture.op->object->clear(ret_guard);
		*ret_guard = (struct op_guard){ 0 };
	}
	return e;
}

static struct element *acquire_everything(void **where, struct op_guard *ret_guard)
{
	torture.op->object->acquire(torture.op->object->everything, ret_guard);
	return load_pointer(where);
}

static enum style random_style(uint64_t r)
{
	if (r % 16 == 0 && torture.op->object->everything)
		return STYLE_EVERYTHING;
	return r % 16 < 4 ? STYLE_ATTEMPT : r % 16 < 7 ? STYLE_CHECKED : STYLE_PROTECT;
}

/* False: there was nothing to protect. */
static bool hold_one(struct hold *h, uint64_t *random)
{
	const struct op_object *object = torture.op->object;
	uint64_t r = random_next(random) >> 9;
	void **where = (void **)&torture.current[r % NR_POINTERS];

	*h = (struct hold){ .completed = quiesce_load_relaxed(&torture.completed) };
	switch (random_style(r / NR_POINTERS)) {
	case STYLE_ATTEMPT: h->element = object->attempt(where, &h->guard); break;
	case STYLE_CHECKED: h->element = acquire_checked(where, &h->guard); break;
	case STYLE_EVERYTHING: h->element = acquire_everything(where, &h->guard); break;
	default: h->element = object->protect(where, &h->guard);
	}
	if (!h->element) {
		object->clear(&h->guard); /* a guard of everything, or an empty one */
		return false;
	}
	h->serial = quiesce_load_relaxed(&h->element->serial);
	return true;
}

static void check_hold(const struct hold *h, struct tally *t)
{
	torture_check(h->element, t, h->serial);
}

static void let_go(struct hold *h, struct tally *t)
{
	check_hold(h, t);
	torture_count_ages(h->element, t, h->completed);
	torture.op->object->clear(&h->guard);
	torture_count(t->reads);
}

/* ---- mailboxes ---- */

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

static bool post(const struct hold *h, struct tally *t, uint64_t *random)
{
	struct mailbox *m = &mailbox[random_next(random) % MAILBOXES];

	if (!mail_turn(m, MAIL_NONE))
		return false;
	m->hold = *h;
	mail_end(m, MAIL_HERE);
	torture_count(t->handed_over);
	return true;
}

static bool fetch(struct mailbox *m, struct hold *ret)
{
	if (quiesce_load_relaxed(&m->state) != MAIL_HERE || !mail_turn(m, MAIL_HERE))
		return false;
	*ret = m->hold;
	mail_end(m, MAIL_NONE);
	return true;
}

static void empty_mailboxes(struct tally *t)
{
	struct hold h;

	for (int i = 0; i < MAILBOXES; i++)
		if (fetch(&mailbox[i], &h))
			let_go(&h, t);
}

void torture_postman(void)
{
	struct tally *t = &torture.tally[torture.nr_readers + 1];
	uint64_t random = 77310957;

	/* raw: acquire, with the release in torture_leave(). */
	while (__atomic_load_n(&torture.users, __ATOMIC_ACQUIRE) > 1) { /* the caller itself is the last one */
		empty_mailboxes(t);
		sleep_ns(random_next(&random) % 400000);
	}
	empty_mailboxes(t);
}

/* ---- sections ---- */

/* Announces that the thread holds a key, as long as it does.  Relaxed: the guard orders the stores for its waiters. */
static void hammer_key(struct tally *t, uint64_t *random)
{
	uint64_t key = random_next(random) >> 11 & (NR_KEYS - 1);
	struct op_guard guard;

	for (int i = 0; i < HAMMER; i++) {
		uint64_t stamp = (quiesce_load_relaxed(&t->holding) | 15) + 1;

		torture.op->object->acquire(&torture_key[key], &guard);
		quiesce_store_relaxed(&t->holding, stamp | key << 1 | 1);
		if (i == 0)
			torture_delay(random);
		quiesce_store_relaxed(&t->holding, stamp);
		torture.op->object->clear(&guard);
	}
}

/* Mostly one guard, or two or three that overlap; seldom more than a line has slots. */
static int random_number(uint64_t r)
{
	return r % 64 == 0 ? MAX_HOLDS : r % 4 ? 1 : 2 + (int)(r / 64 & 1);
}

/* Guards end in random order. */
static void let_go_of_all(struct hold *held, int nr, struct tally *t, uint64_t *random)
{
	while (nr) {
		int i = (int)((random_next(random) >> 13) % (uint64_t)nr);

		if (random_next(random) >> 17 & 15 || !post(&held[i], t, random))
			let_go(&held[i], t);
		held[i] = held[--nr];
		if (nr)
			torture_delay(random);
	}
}

void torture_object_section(struct tally *t, uint64_t *random)
{
	struct hold held[MAX_HOLDS];
	uint64_t r = random_next(random) >> 3;
	int nr = 0;

	if (r % 16 == 0) {
		hammer_key(t, random);
		return;
	}
	for (int want = random_number(r / 16); want > 0; want--)
		nr += hold_one(&held[nr], random);
	for (int i = 0; i < nr; i++)
		check_hold(&held[i], t);
	torture_delay(random);
	let_go_of_all(held, nr, t, random);
	if (r >> 20 & 1 && fetch(&mailbox[r >> 21 & (MAILBOXES - 1)], &held[0]))
		let_go(&held[0], t);
}

void torture_object_once(struct tally *t, uint64_t *random, uint64_t spins)
{
	struct hold h;

	if (!hold_one(&h, random))
		return;
	torture_spin(spins);
	let_go(&h, t);
}

void torture_object_leave(struct tally *t, uint64_t *random)
{
	struct hold h;

	if (hold_one(&h, random) && !post(&h, t, random))
		let_go(&h, t);
}
