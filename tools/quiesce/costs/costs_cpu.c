/* SPDX-License-Identifier: MIT */
/* costs_cpu.c - operations within one CPU: instructions, atomics, locks, fences, clocks.
 *
 * raw, whole file: the code that compiler and CPU make of single operations is the subject of the measurement.
 */
#include <pthread.h>
#include <time.h>

#include <quiesce/atomic.h>

#include "costs.h"

/* Two words in cache lines of their own, which no other thread accesses. */
static struct {
	uint64_t word __attribute__((aligned(128)));
	uint64_t other __attribute__((aligned(128)));
} local;

/* ---- additions ---- */

/* Both operands are registers: some CPUs eliminate the addition of a constant when they decode it. */
#if defined(__x86_64__)
#define ADD(to, from) "add " from ", " to "\n\t"
#elif defined(__aarch64__)
#define ADD(to, from) "add " to ", " to ", " from "\n\t"
#endif

#define ADDITIONS 64

#ifdef ADD
static void cycle_batch(uint64_t turns)
{
	uint64_t x = turns, y = 3;

	while (turns--)
		__asm__ __volatile__(".rept 64\n\t" ADD("%0", "%1") ".endr" : "+r"(x) : "r"(y) : "cc");
}

static void instruction_batch(uint64_t turns)
{
	uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, y = turns;

	while (turns--)
		__asm__ __volatile__(".rept 8\n\t" ADD("%0", "%8") ADD("%1", "%8") ADD("%2", "%8") ADD("%3", "%8")
				     ADD("%4", "%8") ADD("%5", "%8") ADD("%6", "%8") ADD("%7", "%8") ".endr"
				     : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h)
				     : "r"(y) : "cc");
}
#else
/* Hides the sum from the compiler, which would combine the additions. */
#define PLUS(x, y) ({ (x) += (y); __asm__ __volatile__("" : "+r"(x)); })
#define EIGHT(...) __VA_ARGS__; __VA_ARGS__; __VA_ARGS__; __VA_ARGS__; __VA_ARGS__; __VA_ARGS__; __VA_ARGS__; __VA_ARGS__

static void cycle_batch(uint64_t turns)
{
	uint64_t x = turns, y = turns;

	while (turns--)
		for (int i = 0; i < 8; i++) {
			EIGHT(PLUS(x, y));
		}
}

static void instruction_batch(uint64_t turns)
{
	uint64_t a = 0, b = 0, c = 0, d = 0, y = turns;

	while (turns--)
		for (int i = 0; i < 2; i++) {
			EIGHT(PLUS(a, y); PLUS(b, y); PLUS(c, y); PLUS(d, y));
		}
}
#endif

COST(cycle, "cycle", "an addition that waits for the last one", ADDITIONS, .article = 1.4);
COST(instruction, "instruction", "an addition among others that do not wait", ADDITIONS, .article = 0.7);

/* ---- atomics and locks, of lines in the own cache ---- */

COST_LOOP(atomic_inc, "atomic_inc", "atomic increment of a word in L1", quiesce_fetch_add_relaxed(&local.word, 1), .article = 58.2);

static inline void increment(void)
{
	uint64_t old = quiesce_load_relaxed(&local.word);

	while (!__atomic_compare_exchange_n(&local.word, &old, old + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}
COST_LOOP(cmpxchg_inc, "cmpxchg_inc", "increment of a word in L1 by load and compare-and-exchange", increment(), .article = 107.3);

static pthread_spinlock_t spin; /* the child is the only user */

static void spin_lock_batch(uint64_t turns)
{
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	while (turns--) {
		pthread_spin_lock(&spin);
		pthread_spin_unlock(&spin);
	}
}
COST(spin_lock, "spin_lock", "pthread_spin_lock() and _unlock(), a free lock in L1", 1, .article = 163.7);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
COST_LOOP(mutex, "mutex", "pthread_mutex_lock() and _unlock(), a free lock in L1",
	  (pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex)));

/* ---- fences: a store, the fence, a load of another word ---- */

#define FENCED(symbol, label, text, store, fence, order)                    \
	static void symbol##_batch(uint64_t turns)                          \
	{                                                                   \
		uint64_t sum = 0;                                           \
									    \
		while (turns--) {                                           \
			store(&local.word, turns);                          \
			fence;                                              \
			sum += __atomic_load_n(&local.other, order);        \
		}                                                           \
		quiesce_store_relaxed(&local.word, sum);                    \
	}                                                                   \
	COST(symbol, label, text, 1)

#define RELEASE(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define XCHG(p, v) ((void)__atomic_exchange_n(p, v, __ATOMIC_SEQ_CST))

FENCED(fence_light, "fence_light", "store, our light fence, load", quiesce_store_relaxed, quiesce_fence_light(COST), __ATOMIC_RELAXED);
FENCED(fence_acq_rel, "fence_acq_rel", "store-release, load-acquire", RELEASE, (void)0, __ATOMIC_ACQUIRE);
FENCED(fence_full, "fence_full", "store, our full fence, load", quiesce_store_relaxed, quiesce_fence_full(COST), __ATOMIC_RELAXED);
#if defined(__x86_64__)
FENCED(fence_mfence, "fence_mfence", "store, mfence, load", quiesce_store_relaxed, __builtin_ia32_mfence(), __ATOMIC_RELAXED);
#endif
FENCED(fence_xchg, "fence_xchg", "store by exchange, load", XCHG, (void)0, __ATOMIC_RELAXED);
FENCED(fence_seq_cst, "fence_seq_cst", "store, the compiler's full fence, load", quiesce_store_relaxed,
       __atomic_thread_fence(__ATOMIC_SEQ_CST), __ATOMIC_RELAXED);

/* ---- clocks ---- */

static struct timespec now;
COST_LOOP(clock, "clock_gettime", "clock_gettime(CLOCK_MONOTONIC)", clock_gettime(CLOCK_MONOTONIC, &now));

#if defined(__x86_64__)
static void tsc_batch(uint64_t turns)
{
	uint64_t sum = 0;

	while (turns--)
		sum += __builtin_ia32_rdtsc();
	quiesce_store_relaxed(&local.word, sum);
}
COST(tsc, "rdtsc", "read the time stamp counter, unordered", 1);
#endif
