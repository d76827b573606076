/* SPDX-License-Identifier: MIT */
/* litmus.c - tries whether membarrier orders a sibling thread that has only a compiler fence.
 *
 * Both threads store to their word and then load the other's.  If both loads miss the other's store, both were
 * executed before the stores were visible.
 */
#include <linux/membarrier.h>
#include <string.h>

#include <quiesce/atomic.h>

#include "doctor.h"

#define ENOUGH 1000
#define FILL_WORDS (1u << 19)
#define FILL_STORES 16

struct lane {
	uint64_t word;
	uint64_t seen;
} __attribute__((aligned(128)));

static struct {
	struct lane lane[2];
	struct spin_barrier barrier;
	enum litmus_fence fence;
	uint64_t end_ns, late_ns; /* end of the trial with enough rounds, and without */
	uint32_t stop; /* set by lane 1 between two barriers, read by lane 0 after the second */
	struct litmus_result result;
} litmus;

static void pass(void)
{
	quiesce_fence_full(LITMUS);
	spin_barrier_wait(&litmus.barrier);
	quiesce_fence_full(LITMUS);
}

static void fence_between(int index)
{
	if (litmus.fence == LITMUS_FULL)
		quiesce_fence_full(LITMUS);
	else if (litmus.fence == LITMUS_LIGHT_HEAVY && index == 1)
		membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	else
		quiesce_fence_light(LITMUS);
}

/* The words hold the number of the round, so they need no reset between rounds. */
static void play(int index, uint64_t round)
{
	struct lane *mine = &litmus.lane[index], *other = &litmus.lane[!index];

	quiesce_store_relaxed(&mine->word, round);
	fence_between(index);
	quiesce_store_relaxed(&mine->seen, quiesce_load_relaxed(&other->word));
}

static void judge(uint64_t round)
{
	litmus.result.rounds = round;
	litmus.result.both_missed += quiesce_load_relaxed(&litmus.lane[0].seen) < round &&
				     quiesce_load_relaxed(&litmus.lane[1].seen) < round;
	if (interrupted() || (now_ns() > litmus.end_ns && (round >= ENOUGH || now_ns() > litmus.late_ns)))
		quiesce_store_relaxed(&litmus.stop, 1);
}

/* Stores that miss the cache keep the store under test in the store buffer for a while. */
static void fill_store_buffer(int index, uint64_t *random)
{
	static uint64_t region[2][FILL_WORDS];

	for (int i = 0; i < FILL_STORES; i++)
		quiesce_store_relaxed(&region[index][random_next(random) % FILL_WORDS], *random);
}

static void lane_body(struct member *m)
{
	uint64_t random = 0x9e3779b97f4a7c15u + (uint64_t)m->index;

	for (uint64_t round = 1;; round++) {
		pass();
		if (quiesce_load_relaxed(&litmus.stop))
			return;
		for (uint64_t n = random_next(&random) % 512; n; n--)
			quiesce_fence_light(LITMUS);
		fill_store_buffer(m->index, &random);
		play(m->index, round);
		pass();
		if (m->index == 1)
			judge(round);
	}
}

struct litmus_result litmus_run(enum litmus_fence fence, double seconds)
{
	struct team team = { .nr = 2, .pinned = true, .body = lane_body };

	memset(&litmus, 0, sizeof(litmus));
	litmus.fence = fence;
	litmus.end_ns = now_ns() + (uint64_t)(seconds * 1e9);
	litmus.late_ns = now_ns() + (uint64_t)(seconds * 5e9);
	spin_barrier_init(&litmus.barrier, 2);
	team_start(&team);
	team_join(&team);
	return litmus.result;
}
