/* SPDX-License-Identifier: MIT */
/* perturb.c - delays of the torture build: a few pauses, many pauses, a yield, or a short sleep. */
#include "perturb.h"

#include <sched.h>
#include <stdint.h>
#include <time.h>

unsigned int quiesce_perturb_rate;

/* Each thread has its own random numbers, without constructor or destructor; 0: not seeded yet. */
static __thread uint64_t state;
static uint64_t seeds;

static uint32_t draw(void)
{
	if (!state)
		state = (__atomic_add_fetch(&seeds, 1, __ATOMIC_RELAXED) * 0x9e3779b97f4a7c15ull) | 1;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 32;
}

static void pauses(uint32_t n)
{
	while (n--) {
#if defined(__x86_64__)
		__builtin_ia32_pause();
#else
		__asm__ __volatile__("" ::: "memory");
#endif
	}
}

void quiesce__perturb_now(void)
{
	uint32_t r = draw();

	if ((r & 0xffff) >= __atomic_load_n(&quiesce_perturb_rate, __ATOMIC_RELAXED))
		return;
	r >>= 16;
	switch (r & 7) {
	case 0:
		sched_yield();
		break;
	case 1:
		nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
		break;
	case 2:
	case 3:
		pauses(draw() & 16383);
		break;
	default:
		pauses(draw() & 255);
	}
}

int quiesce__perturb_stay(void)
{
	if (!__atomic_load_n(&quiesce_perturb_rate, __ATOMIC_RELAXED))
		return 1;
	return draw() % 64 ? 1 + (int)(draw() & 63) : 1 + (int)(draw() & 16383);
}
