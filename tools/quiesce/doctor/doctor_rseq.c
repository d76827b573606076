/* SPDX-License-Identifier: MIT */
/* doctor_rseq.c - tries whether the kernel really restarts an interrupted sequence.
 *
 * Two threads on one CPU claim one slot: each finds it empty, waits a while and fills it; then it holds the slot for
 * as long and checks that the claim is still its own.  Most of the time a thread is inside the sequence or holds the
 * slot, so most preemptions cost one of them its claim, unless the kernel restarts the sequence.
 *
 * raw, whole file: the sequence has to be assembly, it is the subject of the trial.
 */
#include "doctor.h"

#ifdef HAVE_RSEQ
#include <sched.h>
#include <sys/rseq.h>

#include <quiesce/atomic.h>

#define RACE_NS 150000000u
#define LATE_NS 1000000000u /* limit of the trial on a busy machine */
#define ENOUGH 4            /* claims lost, or sequences restarted, that are evidence */
#define STAY 2000 /* turns of an empty loop inside the sequence */
#define CLAIMS_PER_CHECK 64

struct race {
	uint64_t slot __attribute__((aligned(128)));
	uint32_t bare; /* 1: the sequence is unprotected */
	uint64_t end_ns, late_ns; /* end of the trial with enough events, and without */
	uint32_t events;
	struct rseq_result result; /* sums over the threads that have ended */
};

/* The body of claim(), which goes on if it has claimed the slot, and otherwise leaves by a label. */
#if defined(__aarch64__)
#define CLAIM                                                                                           \
	__asm__ goto(".pushsection __rseq_cs, \"aw\"\n\t"                                              \
		     ".balign 32\n"                                                                     \
		     "3:\n\t"                                                                           \
		     ".long 0, 0\n\t"                                                                   \
		     ".quad 1f, 2f - 1f, 4f\n\t"                                                        \
		     ".popsection\n\t"                                                                  \
		     "adrp x16, 3b\n\t"                                                                 \
		     "add x16, x16, :lo12:3b\n\t"                                                       \
		     "str x16, [%[area], #8]\n\t"                                                       \
		     "1:\n\t"                                                                           \
		     "cbz %w[bare], 8f\n\t"                                                             \
		     "str xzr, [%[area], #8]\n"                                                         \
		     "8:\n\t"                                                                           \
		     "ldr x16, [%[slot]]\n\t"                                                           \
		     "cbnz x16, 6f\n\t"                                                                 \
		     "mov w17, %[stay]\n"                                                               \
		     "5:\n\t"                                                                           \
		     "subs w17, w17, #1\n\t"                                                            \
		     "b.gt 5b\n\t"                                                                      \
		     "str %[value], [%[slot]]\n"                                                        \
		     "2:\n\t"                                                                           \
		     "b 7f\n"                                                                           \
		     "6:\n\t"                                                                           \
		     "b %l[taken]\n\t"                                                                  \
		     ".inst 0xd428bc00\n"                                                               \
		     "4:\n\t"                                                                           \
		     "b %l[aborted]\n"                                                                  \
		     "7:"                                                                               \
		     :                                                                                  \
		     : [area] "r"((char *)__builtin_thread_pointer() + __rseq_offset), [slot] "r"(&race->slot), [value] "r"(value), \
		       [bare] "r"(race->bare), [stay] "i"(STAY)                                         \
		     : "memory", "cc", "x16", "x17"                                                     \
		     : taken, aborted)
#else
#define CLAIM                                                                                           \
	__asm__ goto(".pushsection __rseq_cs, \"aw\"\n\t"                                               \
		     ".balign 32\n"                                                                     \
		     "3:\n\t"                                                                           \
		     ".long 0, 0\n\t"                                                                   \
		     ".quad 1f, 2f - 1f, 4f\n\t"                                                        \
		     ".popsection\n\t"                                                                  \
		     "leaq 3b(%%rip), %%rax\n\t"                                                        \
		     "movq %%rax, %%fs:8(%[area])\n\t"                                                  \
		     "1:\n\t"                                                                           \
		     "testl %[bare], %[bare]\n\t"                                                       \
		     "jz 7f\n\t"                                                                        \
		     "movq $0, %%fs:8(%[area])\n"                                                       \
		     "7:\n\t"                                                                           \
		     "cmpq $0, (%[slot])\n\t"                                                           \
		     "jne %l[taken]\n\t"                                                                \
		     "movl %[stay], %%ecx\n"                                                            \
		     "5:\n\t"                                                                           \
		     "decl %%ecx\n\t"                                                                   \
		     "jg 5b\n\t"                                                                        \
		     "movq %[value], (%[slot])\n"                                                       \
		     "2:\n\t"                                                                           \
		     ".pushsection __rseq_failure, \"ax\"\n\t"                                          \
		     ".byte 0x0f, 0xb9, 0x3d\n\t"                                                       \
		     ".long 0x53053053\n"                                                               \
		     "4:\n\t"                                                                           \
		     "jmp %l[aborted]\n\t"                                                              \
		     ".popsection"                                                                      \
		     :                                                                                  \
		     : [area] "r"(__rseq_offset), [slot] "r"(&race->slot), [value] "r"(value), [bare] "r"(race->bare), \
		       [stay] "i"(STAY)                                                                 \
		     : "memory", "cc", "rax", "rcx"                                                     \
		     : taken, aborted)
#endif

/* Returns true if the slot was empty and is now the caller's. */
static __attribute__((noinline)) bool claim(struct race *race, uint64_t value, struct rseq_result *r)
{
again:
	CLAIM;
	return true;
aborted:
	r->aborted++;
	goto again;
taken:
	return false;
}

static void hold(void)
{
	for (int i = 0; i < STAY; i++)
		quiesce_fence_light(RAW); /* keeps the compiler from removing the loop */
}

static bool goes_on(const struct race *race)
{
	uint64_t now = now_ns();

	return !interrupted() && (now < race->end_ns || (now < race->late_ns && quiesce_load_relaxed(&race->events) < ENOUGH));
}

static void racer(struct member *m)
{
	struct race *race = m->team->arg;
	struct rseq_result mine = { 0 };
	uint64_t me = (uint64_t)m->index + 1;

	bind_cpu(0);
	while (goes_on(race)) {
		uint64_t before = mine.lost + mine.aborted;

		for (int i = 0; i < CLAIMS_PER_CHECK; i++) {
			if (!claim(race, me, &mine)) {
				sched_yield();
				continue;
			}
			hold();
			mine.claims++;
			if (quiesce_load_relaxed(&race->slot) == me)
				quiesce_store_relaxed(&race->slot, 0);
			else
				mine.lost++;
		}
		(void)quiesce_fetch_add_relaxed(&race->events, (uint32_t)(mine.lost + mine.aborted - before));
	}
	(void)quiesce_fetch_add_relaxed(&race->result.claims, mine.claims);
	(void)quiesce_fetch_add_relaxed(&race->result.lost, mine.lost);
	(void)quiesce_fetch_add_relaxed(&race->result.aborted, mine.aborted);
}

bool rseq_race(bool bare, struct rseq_result *ret)
{
	struct race race = { .bare = bare, .end_ns = now_ns() + RACE_NS, .late_ns = now_ns() + LATE_NS };
	struct team team = { .nr = 2, .body = racer, .arg = &race };

	if (__rseq_size == 0)
		return false;
	team_start(&team);
	team_join(&team);
	*ret = race.result;
	return true;
}
#else
bool rseq_race(bool bare, struct rseq_result *ret)
{
	(void)bare, (void)ret;
	return false;
}
#endif
