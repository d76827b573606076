/* SPDX-License-Identifier: MIT */
/* torture_object_write.c - writers that wait for the readers of one element, and writers that wait for keys.
 *
 * Where elements can be retired a writer does that in turn with waiting.  Batches are large and the elements few, so
 * other objects that no reader uses are retired with an element, until its callback has run.
 */
#include <stdlib.h>

#include "torture.h"

#define CHAFF 6000 /* most objects retired to get one element back; more than a batch */
#define TOGETHER 8
#define KEPT 4 /* elements that a writer keeps for a while after its wait for them: a reader that meets one has found an error */

struct torture_key torture_key[NR_KEYS] __attribute__((aligned(64)));

static struct writer {
	struct element *kept[KEPT];
	uint32_t next;
	uint64_t random;
	struct op_head *chaff[TOGETHER]; /* retired together with the next element; allocated before that is unlinked */
} writers[NR_POINTERS];

enum way { WAY_WAIT, WAY_CALL, WAY_BARRIER, WAY_TOGETHER };

static void timed_wait(void *address)
{
	uint64_t begin = now_ns(), took;

	torture.op->object->wait(address);
	took = now_ns() - begin;
	/* Relaxed, and a longer one may be lost: the figure is for people. */
	if (took > quiesce_load_relaxed(&torture.longest_ns))
		quiesce_store_relaxed(&torture.longest_ns, took);
}

/* Waits for the readers of @old, seldom for all guards. */
static void wait_for_readers(struct writer *w, struct element *old)
{
	void *everything = torture.op->object->everything;

	timed_wait(everything && (random_next(&w->random) >> 7) % 16 == 0 ? everything : old);
	torture_count_together(torture.completed);
	quiesce_store_relaxed(&old->age, 2);
}

/* Keeps @e, or NULL, and frees the element that was kept longest. */
static void keep(struct writer *w, struct element *e)
{
	struct element **place = &w->kept[w->next++ % KEPT];

	for (int i = 0; i < KEPT; i++)
		if (w->kept[i])
			quiesce_store_relaxed(&w->kept[i]->age, quiesce_load_relaxed(&w->kept[i]->age) + 1);
	if (*place)
		pool_put(*place);
	*place = e;
}

static struct element *replace(uint32_t index, struct element *fresh)
{
	/* raw: a user's publication: release, with load_pointer() and the library's own loads. */
	return __atomic_exchange_n(&torture.current[index], fresh, __ATOMIC_ACQ_REL);
}

/* ---- retiring ---- */

static void free_chaff(struct op_head *head)
{
	free(head);
}

static struct op_head *make_chaff(void)
{
	struct op_head *head = malloc(sizeof(*head));

	if (!head)
		abort();
	head->fn = free_chaff;
	return head;
}

/* No reader uses the element of @head any more; one that does has found an error, and sees the poison. */
static void retired(struct op_head *head)
{
	struct element *e = (struct element *)head;

	torture_count_together(torture.callbacks);
	torture_count_together(torture.completed);
	quiesce_store_relaxed(&e->age, 2);
	pool_put(e);
}

/* The callback runs some time later, sooner with chaff, which fills a batch. */
static void call(struct writer *w, struct element *old)
{
	uint64_t serial = quiesce_load_relaxed(&old->serial);

	torture.op->retire->call(&old->head);
	if (random_next(&w->random) >> 9 & 3)
		for (int i = 0; i < CHAFF && quiesce_load_relaxed(&old->age) == 1 && quiesce_load_relaxed(&old->serial) == serial; i++)
			torture.op->retire->call(make_chaff());
}

/* Little time may pass between the unlinking and the scan. */
static void call_together(struct writer *w, struct element *old)
{
	struct op_head *head[1 + TOGETHER] = { &old->head };
	int nr = 1;

	for (uint64_t more = (random_next(&w->random) >> 9) % TOGETHER; more; more--, nr++) {
		head[nr] = w->chaff[more];
		w->chaff[more] = NULL;
	}
	torture.op->retire->together(head, nr);
}

static void refill(struct writer *w)
{
	for (int i = 0; i < TOGETHER && torture.op->retire; i++)
		if (!w->chaff[i])
			w->chaff[i] = make_chaff();
}

/* After the wait the callback has run once, for this use of the element. */
static void retire_and_wait(struct writer *w, struct element *old, enum way way)
{
	uint64_t serial = quiesce_load_relaxed(&old->serial);

	if (way == WAY_TOGETHER) {
		call_together(w, old);
	} else {
		torture.op->retire->call(&old->head);
		torture.op->retire->barrier();
	}
	if (quiesce_load_relaxed(&old->age) < 2 && quiesce_load_relaxed(&old->serial) == serial)
		torture_count_together(torture.barrier_errors);
	torture_count_together(torture.retired_waits);
}

static enum way random_way(uint64_t *random)
{
	uint64_t r = random_next(random) >> 11;

	if (!torture.op->retire || r % 2)
		return WAY_WAIT;
	/* A barrier also reclaims the objects of other threads, so it is rare:
	 * otherwise the other ways would reclaim few. */
	return r / 2 % 16 == 0 ? WAY_BARRIER : r / 2 % 4 == 1 ? WAY_TOGETHER : WAY_CALL;
}

/* @old is an element that readers can no longer find. */
static void dispose(struct writer *w, struct element *old)
{
	enum way way = random_way(&w->random);

	old->head.fn = retired;
	switch (way) {
	case WAY_WAIT:
		wait_for_readers(w, old);
		keep(w, old);
		return;
	case WAY_CALL: call(w, old); break;
	default: retire_and_wait(w, old, way);
	}
}

static void update(uint32_t index, uint64_t *random)
{
	struct writer *w = &writers[index];
	bool gap = (random_next(random) >> 5) % 8 == 0; /* now and then the pointer is NULL for a while */
	struct element *fresh = pool_get(), *old;

	if (!fresh) {
		keep(w, NULL);
		return;
	}
	refill(w);
	torture_spin(*random >> 40 & 63);
	old = replace(index, gap ? NULL : fresh);
	torture_count_together(torture.version);
	torture_count(torture.progress[index]);
	quiesce_store_relaxed(&old->age, 1);
	dispose(w, old);
	if (gap)
		replace(index, fresh);
}

void torture_object_writer(uint32_t index)
{
	struct writer *w = &writers[index];

	w->random = 2463534242u + index;
	torture_update_loop(index, &w->random, update);
	for (int i = 0; i < KEPT; i++)
		keep(w, NULL);
	for (int i = 0; i < TOGETHER; i++)
		free(w->chaff[i]);
}

/* ---- keys ---- */

static void read_holders(uint64_t *ret)
{
	for (int i = 0; i < torture.nr_readers; i++)
		/* raw: acquire: a reader announces a key after it has set its guard. */
		ret[i] = __atomic_load_n(&torture.tally[i].holding, __ATOMIC_ACQUIRE);
}

/* The number of readers that had announced the key before the wait and still have the same announcement. */
static uint64_t still_hold(const uint64_t *before, bool everything, uint64_t key)
{
	uint64_t n = 0;

	for (int i = 0; i < torture.nr_readers; i++)
		n += before[i] & 1 && (everything || (before[i] >> 1 & (NR_KEYS - 1)) == key) &&
		     quiesce_load_relaxed(&torture.tally[i].holding) == before[i];
	return n;
}

void torture_object_fake_writer(uint32_t index)
{
	uint64_t *before = calloc((size_t)torture.nr_readers, sizeof(*before));
	uint64_t random = (index + 1) * 0x9e3779b97f4a7c15u;
	void *everything = torture.op->object->everything;

	if (!before)
		abort();
	while (!torture_stopped()) {
		uint64_t r = random_next(&random) >> 15, key = r & (NR_KEYS - 1);
		bool all = everything && (r >> 8) % 16 == 0;
		uint64_t wrong;

		torture_stutter();
		read_holders(before);
		timed_wait(all ? everything : &torture_key[key]);
		wrong = still_hold(before, all, key);
		if (wrong)
			(void)quiesce_fetch_add_relaxed(&torture.key_errors, wrong);
		torture_count_together(torture.fake_waits);
		torture_count(torture.progress[NR_POINTERS + index]);
		if (r >> 20 & 1 || quiesce_load_relaxed(&torture.regime.pinned))
			sleep_ns(random_next(&random) % 300000);
	}
	free(before);
}
