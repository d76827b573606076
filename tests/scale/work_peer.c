/* SPDX-License-Identifier: MIT */
/* work_peer.c - the read sides of others, as models of the accesses that their published sources make; for scale only. */
#include "workload.h"

#include <quiesce/atomic.h>

static struct { uint64_t gp; uint64_t futex __attribute__((aligned(128))); } urcu __attribute__((aligned(128))) = { 1, 0 };
static uint64_t published[16] __attribute__((aligned(128)));
static uint64_t count __attribute__((aligned(128)));

/* Each reader of liburcu has lines of its own. */
static uint64_t *word_of(const struct actor *a)
{
	return (uint64_t *)(uintptr_t)&a->object[0];
}

/* The flavour memb of liburcu stores on each side, and loads the futex of the grace period. */
static void memb_op(struct actor *a)
{
	uint64_t *word = word_of(a);

	quiesce_store_relaxed(word, quiesce_load_relaxed(&urcu.gp)); /* Relaxed: a model. */
	a->random += published[0];
	quiesce_store_relaxed(word, quiesce_load_relaxed(word) - 1); /* Relaxed: a model. */
	a->random += quiesce_load_relaxed(&urcu.futex); /* Relaxed: a model. */
}

/* The flavour mb of liburcu has a full fence before and after the section, and one before the load of the futex. */
static void mb_op(struct actor *a)
{
	uint64_t *word = word_of(a);

	quiesce_store_relaxed(word, quiesce_load_relaxed(&urcu.gp)); /* Relaxed: a model. */
	quiesce_fence_full(MODEL);
	a->random += published[0];
	quiesce_fence_full(MODEL);
	quiesce_store_relaxed(word, quiesce_load_relaxed(word) - 1); /* Relaxed: a model. */
	quiesce_fence_full(MODEL);
	a->random += quiesce_load_relaxed(&urcu.futex); /* Relaxed: a model. */
}

/* A count that all share. */
static void count_op(struct actor *a)
{
	quiesce_fetch_add_relaxed(&count, (uint64_t)1); /* Relaxed: a model. */
	a->random += published[0];
	quiesce_fetch_add_relaxed(&count, (uint64_t)-1); /* Relaxed: a model. */
}

/* A reader of glibc's pthread_rwlock_t loads the word of the writer, adds itself to a word of the same line, and subtracts itself by
 * compare-and-exchange. */
static struct { uint32_t readers, writers, phase, wake, pad[2], writer; int32_t shared; } rwlock __attribute__((aligned(128)));

static void rwlock_op(struct actor *a)
{
	uint32_t readers;

	a->random += quiesce_load_relaxed(&rwlock.writer); /* Relaxed: a model. */
	quiesce_fetch_add_relaxed(&rwlock.readers, 8u); /* Relaxed: a model. */
	a->random += published[0];
	a->random += quiesce_load_relaxed(&rwlock.writer); /* Relaxed: a model. */
	readers = quiesce_load_relaxed(&rwlock.readers); /* Relaxed: a model. */
	while (!quiesce_cmpxchg_relaxed(&rwlock.readers, &readers, readers - 8)) /* Relaxed: a model. */
		;
}

#define PEER(what, f) { .group = "peer", .name = what, .op = f, .warm = 10, .ops = 100 }
const struct workload scale_peers[] = {
	PEER("liburcu_memb", memb_op), PEER("liburcu_mb", mb_op), PEER("shared_count", count_op),
	PEER("pthread_rwlock", rwlock_op), { 0 }
};
