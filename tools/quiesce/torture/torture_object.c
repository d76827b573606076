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
#define HAMMER 32

enum style { STYLE_PROTECT, STYLE_ATTEMPT, STYLE_CHECKED, STYLE_EVERYTHING };

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

static void let_go(struct hold *h, struct tally *t)
{
	torture_end_element(h, t);
	torture.op->object->clear(&h->guard);
	torture_count(t->n[TALLY_READS]);
}

/* False: there was nothing to protect. */
bool torture_object_begin(struct hold *h, uint64_t *random, bool at_once)
{
	const struct op_object *object = torture.op->object;
	uint64_t r = random_next(random) >> 9;
	void **where = (void **)&torture.current[r % NR_POINTERS];

	(void)at_once;
	*h = (struct hold){ .completed = quiesce_load_relaxed(&torture.completed), .end = let_go };
	switch (random_style(r / NR_POINTERS)) {
	case STYLE_ATTEMPT: h->object = object->attempt(where, &h->guard); break;
	case STYLE_CHECKED: h->object = acquire_checked(where, &h->guard); break;
	case STYLE_EVERYTHING: h->object = acquire_everything(where, &h->guard); break;
	default: h->object = object->protect(where, &h->guard);
	}
	if (!h->object) {
		object->clear(&h->guard); /* a guard of everything, or an empty one */
		return false;
	}
	h->serial = quiesce_load_relaxed(&((struct element *)h->object)->serial);
	return true;
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

		if (random_next(random) >> 17 & 15 || !torture_post(&held[i], t, *random >> 21))
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
		nr += torture_object_begin(&held[nr], random, false);
	for (int i = 0; i < nr; i++)
		torture_check_element(&held[i], t);
	torture_delay(random);
	let_go_of_all(held, nr, t, random);
	if (r >> 20 & 1 && torture_fetch(&held[0], r >> 21))
		let_go(&held[0], t);
}
