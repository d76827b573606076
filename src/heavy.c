/* SPDX-License-Identifier: MIT */
/* heavy.c - heavy fences of many callers at once.
 *
 * A membarrier costs 0.3 us while no other thread of the process runs, and thirty
 * times that, of which the others lose half, while one does.  So callers take turns and
 * sleep meanwhile: then they do not interrupt each other.  Who finds that a membarrier
 * began and ended while it slept needs none of its own.  Where readers run anyway, a turn
 * is long, and taking turns only makes callers wait: then, for a while, everybody calls
 * membarrier by itself.
 *
 * The word of turns: number of the newest turn << 2 | 0 free, 1 taken, 2 taken and somebody sleeps,
 * 3 free for somebody who has slept: else who is running would take every turn.
 * All of its changes are read-modify-writes, so each turn is ordered after everything that
 * arrived, in that word, before it began.
 *
 * HF1  caller's stores, then its arrival; turn taken, then the membarrier; that over, then the turn
 *      ended | turns read, then what follows the fence
 */
#include "core.h"

#define PHASE_NS 1000000u  /* how long turns are tried before their cost is judged */
#define ALONE_NS 20000000u /* how long everybody goes alone after that */
#if defined(QUIESCE_SIM)
#define STREAK 2u
#else
#define STREAK 256u        /* then the next turn is for somebody who sleeps */
#endif
#define RESERVED_NS 1000000u /* who comes late takes it after that, if nobody has */
#define JUDGED 256u        /* turns after somebody had to wait */
#define DEAR_NS 3000u      /* a membarrier that interrupts nobody takes less */

#define FREE 0u
#define TAKEN 1u
#define CROWDED 2u
#define RESERVED 3u

static struct {
	uint32_t turns;
	uint32_t alone;     /* no turns until @phase_end */
	uint32_t streak;    /* turns since one was reserved; written in turn */
	uint32_t company;   /* turns to be judged, because somebody had to wait */
	uint64_t phase_end;
	uint64_t cheapest;  /* of this phase; written in turn */
} heavy __attribute__((aligned(QUIESCE_CACHELINE)));

static uint32_t state_of(uint32_t word)
{
	return word & 3;
}

/* The newest turn that is over. */
static uint32_t ended(uint32_t word)
{
	return state_of(word) == FREE || state_of(word) == RESERVED ? word >> 2 : (word >> 2) - 1;
}

static bool not_before(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 2) >= 0;
}

/* The turn that a word reserves is nobody's in particular after all; or, woken for a turn, we need none. */
static void leave_turn(uint32_t word)
{
	if (state_of(word) == RESERVED)
		/* HF1: full, pairs with HF1 in end_turn() */
		quiesce_cmpxchg(HF1, &heavy.turns, &word, word & ~3u);
	platform_futex_wake(&heavy.turns, 1);
}

static void end_turn(void)
{
	uint32_t word = quiesce_load_relaxed(&heavy.turns); /* Relaxed: its number is ours. */
	uint32_t next = word & ~3u;

	if (++heavy.streak >= STREAK && state_of(word) == CROWDED) {
		heavy.streak = 0;
		next |= RESERVED;
	}
	/* HF1: full, pairs with HF1 in try_turn() */
	if (state_of(quiesce_xchg(HF1, &heavy.turns, next)) == CROWDED && !platform_futex_wake(&heavy.turns, 1))
		leave_turn(next); /* nobody slept */
}

/* In turn: after a phase in which even the cheapest membarrier interrupted somebody, go alone. */
static void judge(uint64_t begin, uint64_t end)
{
	uint64_t cost = end - begin;

	/* Relaxed throughout: a policy. */
	if (cost < quiesce_load_relaxed(&heavy.cheapest))
		quiesce_store_relaxed(&heavy.cheapest, cost);
	if (end < quiesce_load_relaxed(&heavy.phase_end))
		return;
	if (quiesce_load_relaxed(&heavy.cheapest) > DEAR_NS && quiesce_load_relaxed(&heavy.phase_end)) {
		quiesce_store_relaxed(&heavy.alone, 1);
		end += ALONE_NS - PHASE_NS;
	}
	quiesce_store_relaxed(&heavy.phase_end, end + PHASE_NS);
	quiesce_store_relaxed(&heavy.cheapest, UINT64_MAX);
}

static bool goes_alone(void)
{
	/* Relaxed throughout: a policy. */
	if (quiesce_likely(!quiesce_load_relaxed(&heavy.alone)))
		return false;
	if (platform_now_ns() < quiesce_load_relaxed(&heavy.phase_end))
		return true;
	quiesce_store_relaxed(&heavy.cheapest, UINT64_MAX);
	quiesce_store_relaxed(&heavy.phase_end, platform_now_ns() + PHASE_NS);
	quiesce_store_relaxed(&heavy.alone, 0);
	return false;
}

static bool try_turn(uint32_t word, uint32_t state)
{
	/* HF1: full, pairs with HF1 in end_turn() */
	return quiesce_cmpxchg(HF1, &heavy.turns, &word, (word & ~3u) + 4 + state);
}

/* Sleep until the turn is ours, true; or until a whole turn is over that began after our arrival. */
static QUIESCE_COLD bool wait_for_turn(void)
{
	bool arrived = false;
	uint32_t needed = 0;

	for (;;) {
		/* HF1: acquire, pairs with HF1 in end_turn() */
		uint32_t word = quiesce_load_acquire(HF1, &heavy.turns), state = state_of(word), crowded = (word & ~3u) | CROWDED;

		if (arrived && not_before(ended(word), needed)) {
			leave_turn(word);
			return false;
		}
		if (state == FREE || (state == RESERVED && arrived)) {
			if (try_turn(word, CROWDED))
				return true;
			continue;
		}
		if (state == RESERVED)
			crowded = word; /* arrive, and leave it to those who sleep */
		/* HF1: full, pairs with HF1 in try_turn() */
		if (!quiesce_cmpxchg(HF1, &heavy.turns, &word, crowded))
			continue;
		if (!arrived)
			needed = (word >> 2) + !QUIESCE_MUTANT(heavy_shares_running);
		arrived = true;
		quiesce_store_relaxed(&heavy.company, JUDGED); /* Relaxed: a policy. */
		platform_futex_wait(&heavy.turns, crowded, state == RESERVED ? RESERVED_NS : PLATFORM_FOREVER);
	}
}

/* In turn. */
static void membarrier_and_judge(void)
{
	/* Relaxed: a policy. */
	uint32_t company = quiesce_load_relaxed(&heavy.company);
	uint64_t begin;

	if (quiesce_likely(!company)) {
		quiesce__membarrier();
		return;
	}
	quiesce_store_relaxed(&heavy.company, company - 1); /* Relaxed: as above. */
	begin = platform_now_ns();
	quiesce__membarrier();
	judge(begin, platform_now_ns());
}

void quiesce__heavy_shared(void)
{
	uint32_t word;

	if (goes_alone()) {
		quiesce__membarrier();
		return;
	}
	/* Relaxed: try_turn() decides. */
	word = quiesce_load_relaxed(&heavy.turns);
	if (quiesce_unlikely(state_of(word) != FREE || !try_turn(word, TAKEN)) && !wait_for_turn())
		return;
	membarrier_and_judge();
	end_turn();
}

void quiesce__heavy_fork_child(void)
{
	heavy.turns &= ~3u;
	heavy.alone = 0;
}
