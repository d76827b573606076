/* SPDX-License-Identifier: MIT */
/* world.h - what the threads of several worlds do, and the simulated computers of primitives with counters per CPU. */
#ifndef QUIESCE_TESTS_SIM_WORLD_H
#define QUIESCE_TESTS_SIM_WORLD_H

#include "driver.h"
#include "platform/platform.h"

/* Give up the CPU, fewer times than @most. */
static inline void world_stay(uint32_t most)
{
	for (uint32_t k = sim_random(most); k; k--)
		platform_yield();
}

/* Sleep until *@word is @value; an acquire. */
static inline void world_await(uint32_t *word, uint32_t value)
{
	uint32_t found;

	while ((found = quiesce_load_acquire(RU3, word)) != value)
		platform_futex_wait(word, found, PLATFORM_FOREVER);
}

/* Set *@word by a release, and wake its waiters. */
static inline void world_set(uint32_t *word, uint32_t value)
{
	quiesce_store_release(RU3, word, value);
	platform_futex_wake(word, INT32_MAX);
}

static inline void world_add(uint32_t *word)
{
	quiesce_fetch_add(RU3, word, 1u);
	platform_futex_wake(word, INT32_MAX);
}

/* The simulated computer has one of these sets of features; ANY chooses one at random. */
enum world_mode { LIGHT, FULL, NO_RESTART, NO_RSEQ, CPU_ID, FEW_SETS, HOLES, NR_MODES, ANY = NR_MODES };

static inline int world_every_third_is_far(int id)
{
	return id % 3 == 1 ? id + SIM_MAX_THREADS : id;
}

/* The computer has 2 CPUs, or one for each thread. */
static inline void world_configure(enum world_mode mode)
{
	struct sim_config *config = sim_config();

	if (mode == ANY)
		mode = sim_random(2) ? LIGHT : sim_random(NR_MODES);
	config->nr_cpus = sim_random(4) ? 2 : 0;
	config->rseq_kind = PLATFORM_RSEQ_MM_CID;
	switch (mode) {
	case FULL: config->membarrier = SIM_MEMBARRIER_ABSENT; break;
	case NO_RESTART: config->membarrier = SIM_MEMBARRIER_NO_RESTART; break;
	case NO_RSEQ: config->rseq_kind = PLATFORM_RSEQ_NONE; break;
	case CPU_ID: config->rseq_kind = PLATFORM_RSEQ_CPU_ID; break;
	case FEW_SETS: config->rseq_kind = PLATFORM_RSEQ_CPU_ID; config->possible_cpus = 1; break;
	case HOLES: config->rseq_kind = PLATFORM_RSEQ_CPU_ID; config->id_hook = world_every_third_is_far; break;
	default: break;
	}
}

#endif
