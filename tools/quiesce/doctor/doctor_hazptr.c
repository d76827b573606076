/* SPDX-License-Identifier: MIT */
/* doctor_hazptr.c - trials of slots that readers own, and of the reclamation of retired objects. */
#include <stdlib.h>

#include <quiesce/control.h>
#include <quiesce/hazptr.h>

#include "doctor.h"

#define THREADS 16
#define OBJECTS 10000
#define LEFT 100 /* fewer objects than a batch has */
#define LIMIT_MS 5000

struct object {
	struct hazptr_head hazptr;
};

static struct quiesce_stats stats(void)
{
	struct quiesce_stats now;

	quiesce_get_stats(&now, sizeof(now));
	return now;
}

/* ---- slots ---- */

struct survey {
	struct spin_barrier barrier;
	uint32_t lines_of_threads, lines_of_contexts; /* written by the first thread */
};

static void surveyed(struct member *m)
{
	struct survey *s = m->team->arg;
	hazptr_t *slot = hazptr_alloc(NULL);
	struct hazptr_context ctx = { NULL };

	spin_barrier_wait(&s->barrier);
	if (m->index == 0)
		s->lines_of_threads = stats().slots_lines;
	spin_barrier_wait(&s->barrier);
	(void)init_hazptr_context(&ctx); /* without memory for the context there are fewer lines, which the finding shows */
	spin_barrier_wait(&s->barrier);
	if (m->index == 0)
		s->lines_of_contexts = stats().slots_lines - s->lines_of_threads;
	spin_barrier_wait(&s->barrier);
	cleanup_hazptr_context(&ctx);
	hazptr_free(NULL, slot);
}

static void survey_slots(struct findings *f)
{
	uint32_t before = stats().slots_lines;
	struct survey s = { 0 };
	struct team team = { .nr = THREADS, .body = surveyed, .arg = &s };
	const char *topic = "slots that readers own";

	spin_barrier_init(&s.barrier, THREADS);
	if (!try_team(f, topic, &team))
		return;
	finding(f, topic, "an updater or reclaimer scans each line in use, those of simple hazard pointers too",
		"%u lines for %d threads, %u for a context each, beside %u before", s.lines_of_threads - before, THREADS,
		s.lines_of_contexts, before);
}

static void find_protections(struct findings *f)
{
	finding(f, "protections", NULL, "%s", quiesce_fence() == QUIESCE_FENCE_FULL ?
		"full fences: a call with a locked instruction each" : "a store each, no fence");
}

/* ---- retired objects ---- */

static void retire(int nr)
{
	while (nr--) {
		struct object *o = malloc(sizeof(*o));

		if (!o)
			return;
		kfree_hazptr(o, hazptr);
	}
}

static void retires(struct member *m)
{
	(void)m;
	retire(LEFT);
}

static uint64_t garbage(void)
{
	struct quiesce_stats now = stats();

	return now.hazptr_retired - now.hazptr_reclaimed;
}

/* A thread that ends leaves a few objects behind, which only the worker can reclaim. */
static void try_worker(struct findings *f)
{
	struct team team = { .nr = 1, .body = retires };
	const char *topic = "left behind by a thread";
	struct object *held, *where;
	hazptr_t *slot;
	int ms = 0;

	if (!find_threads(f, topic, 1))
		return;
	slot = hazptr_alloc(NULL);
	held = where = malloc(sizeof(*held));
	if (!slot || !held)
		return;
	hazptr_protect(slot, &where, hazptr);
	kfree_hazptr(held, hazptr); /* the slot protects it, so it must not be reclaimed yet */
	team_start(&team);
	team_join(&team);
	while (garbage() > 1 && ms++ < LIMIT_MS && !interrupted())
		sleep_ns(1000000);
	finding(f, topic, NULL, "%d objects: %s, worker %s, one that is protected stays: %s", LEFT,
		ms < LIMIT_MS ? "reclaimed" : "NOT RECLAIMED", stats().worker_running ? "runs" : "does not run",
		garbage() == 1 ? "yes" : "NO");
	hazptr_free(NULL, slot);
	hazptr_barrier();
}

void doctor_hazptr(struct findings *f)
{
	struct quiesce_stats before = stats(), after;
	uint64_t waiting;

	survey_slots(f);
	find_protections(f);
	retire(OBJECTS);
	waiting = garbage();
	hazptr_barrier();
	after = stats();
	finding(f, "retired objects", "at most HAZPTR_BATCH_MAX for each thread, and those that are protected",
		"%d: at the end %llu were waiting, %llu scans of the slots, %llu left after the barrier", OBJECTS,
		(unsigned long long)waiting, (unsigned long long)(after.hazptr_scans - before.hazptr_scans),
		(unsigned long long)garbage());
	try_worker(f);
}
