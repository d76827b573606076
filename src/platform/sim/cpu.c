/* SPDX-License-Identifier: MIT */
/* cpu.c - simulated CPUs: who runs where, concurrency ids, restartable sequences.
 *
 * With config.nr_cpus set, only a thread that sits on a CPU takes steps.  To
 * put a thread on a CPU may throw another off (preemption) and may choose a new
 * CPU (migration); both are full fences and abort a critical section, and what
 * the last thread of a CPU knew, the next one knows.  The concurrency id is the
 * lowest that no running thread has.
 */
#include "machine.h"
#include "platform/platform.h"

#include <errno.h>
#include <string.h>

void sim__cpu_reset(void)
{
	for (int i = 0; i < SIM_MAX_THREADS; i++) {
		M->cpus[i].running = -1;
		memset(M->cpus[i].left.clock, 0, sizeof M->cpus[i].left.clock);
	}
}

void sim__cpu_remove(struct thread *t)
{
	struct cpu *cpu;

	if (t->cpu < 0)
		return;
	cpu = &M->cpus[t->cpu];
	/* Not the compiler's held store: it is later in the program. */
	sim__buffer_drain(t);
	view_fence(t);
	view_copy(&cpu->left, &t->cur);
	cpu->running = -1;
	t->cpu = t->cid = -1;
	t->rseq_aborted = true;
}

static int lowest_cid(void)
{
	uint32_t used = 0;

	for (int i = 0; i < M->config.nr_cpus; i++)
		if (M->cpus[i].running >= 0)
			used |= 1u << M->threads[M->cpus[i].running].cid;
	return __builtin_ctz(~used);
}

static int choose_cpu(void)
{
	int first = sim__draw() % M->config.nr_cpus;

	for (int i = 0; i < M->config.nr_cpus; i++)
		if (M->cpus[(first + i) % M->config.nr_cpus].running < 0)
			return (first + i) % M->config.nr_cpus;
	return first;
}

void sim__cpu_place(struct thread *t)
{
	struct cpu *cpu;
	int number;

	if (t->cpu >= 0 && sim__draw() % 64 != 0)
		return;
	sim__cpu_remove(t);
	number = choose_cpu();
	cpu = &M->cpus[number];
	if (cpu->running >= 0)
		sim__cpu_remove(&M->threads[cpu->running]);
	t->cid = lowest_cid();
	t->cpu = number;
	cpu->running = t - M->threads;
	view_join(&t->cur, &cpu->left);
}

int platform_nr_possible_cpus(void)
{
	return M->config.nr_cpus ? M->config.nr_cpus : SIM_MAX_THREADS;
}

enum platform_rseq_kind platform_rseq_kind(void)
{
	return M->config.rseq_kind;
}

int platform_rseq_slot(void)
{
	struct thread *t = sim__current();

	sim__point();
	if (!t || M->config.rseq_kind == PLATFORM_RSEQ_NONE)
		return -1;
	if (!M->config.nr_cpus)
		return M->cur;
	return M->config.rseq_kind == PLATFORM_RSEQ_MM_CID ? t->cid : t->cpu;
}

static bool aborted(const struct thread *t)
{
	return t->rseq_aborted && !M->config.rseq_never_aborts;
}

/* The critical section: every step may find itself aborted, up to the store that commits. */
static int critical_section(struct thread *t, int slot, uint64_t *word, uint64_t expected, uint64_t value)
{
	static const struct sim_site site = { "platform_rseq_cmpstore", "", 0 };
	uint64_t found;

	t->rseq_aborted = false;
	if (platform_rseq_slot() != slot || aborted(t))
		return -EAGAIN;
	found = sim__load(word, 8, SIM_ACQUIRE, &site);
	if (aborted(t))
		return -EAGAIN;
	if (found != expected)
		return 1;
	sim__point();
	if (aborted(t))
		return -EAGAIN;
	sim__commit_now(t, word, value, &site);
	return 0;
}

int platform_rseq_cmpstore(int slot, uint64_t *word, uint64_t expected, uint64_t value)
{
	struct thread *t = sim__current();

	if (!t || M->config.rseq_kind == PLATFORM_RSEQ_NONE)
		return -ENOSYS;
	return critical_section(t, slot, word, expected, value);
}
