/* SPDX-License-Identifier: MIT */
/* torture_object_write.c - writers that wait for the readers of one element, and writers that wait for keys. */
#include <stdlib.h>

#include "torture.h"

#define KEPT 4 /* elements that a writer keeps a while after its wait for them: who meets one has been cheated */

struct torture_key torture_key[NR_KEYS] __attribute__((aligned(64)));

struct writer {
	struct element **current;
	struct element *kept[KEPT];
	uint32_t next;
	uint64_t random;
	uint64_t *progress;
};

static void timed_wait(void *address)
{
	uint64_t begin = now_ns(), took;

	torture.op->object->wait(address);
	took = now_ns() - begin;
	/* Relaxed, and a longer one may be lost: for people. */
	if (took > quiesce_load_relaxed(&torture.longest_ns))
		quiesce_store_relaxed(&torture.longest_ns, took);
}

/* Wait until nobody has @old, seldom until nobody has anything. */
static void wait_for_readers(struct writer *w, struct element *old)
{
	void *everything = torture.op->object->everything;

	timed_wait(everything && (random_next(&w->random) >> 7) % 16 == 0 ? everything : old);
	torture_count_together(torture.completed);
	quiesce_store_relaxed(&old->age, 2);
}

/* Keep @e, or NULL, and give back what was kept longest. */
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

static struct element *replace(struct writer *w, struct element *fresh)
{
	/* raw: what a user's publication is: release, with load_pointer() and the library's own loads. */
	return __atomic_exchange_n(w->current, fresh, __ATOMIC_ACQ_REL);
}

static void update(struct writer *w)
{
	bool gap = (random_next(&w->random) >> 5) % 8 == 0; /* now and then there is nothing for a while */
	struct element *fresh = pool_get(), *old;

	if (!fresh) {
		keep(w, NULL);
		return;
	}
	torture_spin(w->random >> 40 & 63);
	old = replace(w, gap ? NULL : fresh);
	torture_count_together(torture.version);
	torture_count(*w->progress);
	quiesce_store_relaxed(&old->age, 1);
	wait_for_readers(w, old);
	if (gap)
		replace(w, fresh);
	keep(w, old);
}

void torture_object_writer(uint32_t index)
{
	struct writer w = { .current = &torture.current[index], .random = 2463534242u + index,
			    .progress = &torture.progress[index] };
	uint32_t generation = 0;

	while (!torture_stopped()) {
		uint32_t now = quiesce_load_relaxed(&torture.regime.generation);
		bool pinned = quiesce_load_relaxed(&torture.regime.pinned);

		torture_stutter();
		if (now != generation)
			bind_cpu(pinned ? 0 : -1);
		generation = now;
		if (pinned && index) { /* leave the CPUs to reader and writer */
			sleep_ns(2000000);
			continue;
		}
		update(&w);
		if (quiesce_load_relaxed(&torture.regime.delays) && random_next(&w.random) % 16 == 0)
			sleep_ns(w.random % 500000);
	}
	for (int i = 0; i < KEPT; i++)
		keep(&w, NULL);
}

/* ---- keys ---- */

static void look_who_holds(uint64_t *ret)
{
	for (int i = 0; i < torture.nr_readers; i++)
		/* raw: acquire: who says so has set its guard before. */
		ret[i] = __atomic_load_n(&torture.tally[i].holding, __ATOMIC_ACQUIRE);
}

/* Who said before the wait that it holds the key, and says nothing else since? */
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
		look_who_holds(before);
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
