/* SPDX-License-Identifier: MIT */
/* raw_rseq.c - floor: a pair of per-CPU counters under restartable sequences, x86-64.
 *
 * raw, whole file: the restartable section has to be assembly, it is the thing measured.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/rseq.h>
#include <unistd.h>

#include "loop.h"
#include "table.h"

#define PER_CPU 16 /* words: two lines, against the prefetcher of pairs */

static uint64_t *entered, *left;

static int raw_rseq_init(enum op_fence fence)
{
	size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF);

	(void)fence;
	if (__rseq_size == 0)
		return -ENOSYS;
	entered = aligned_alloc(128, cpus * PER_CPU * sizeof(*entered));
	left = aligned_alloc(128, cpus * PER_CPU * sizeof(*left));
	if (!entered || !left)
		return -ENOMEM;
	for (size_t i = 0; i < cpus * PER_CPU; i++)
		entered[i] = left[i] = 0;
	return 0;
}

/* Add one to this CPU's counter unless interrupted between asking where we are and doing it. */
static inline __attribute__((always_inline)) void count(uint64_t *counters)
{
again:
	__asm__ goto(".pushsection __rseq_cs, \"aw\"\n\t"
		     ".balign 32\n"
		     "3:\n\t"
		     ".long 0, 0\n\t"
		     ".quad 1f, 2f - 1f, 4f\n\t"
		     ".popsection\n\t"
		     "leaq 3b(%%rip), %%rax\n\t"
		     "movq %%rax, %%fs:8(%[area])\n"
		     "1:\n\t"
		     "movl %%fs:4(%[area]), %%eax\n\t"
		     "shlq $7, %%rax\n\t"
		     "incq (%[counters], %%rax)\n"
		     "2:\n\t"
		     ".pushsection __rseq_failure, \"ax\"\n\t"
		     ".byte 0x0f, 0xb9, 0x3d\n\t"
		     ".long 0x53053053\n"
		     "4:\n\t"
		     "jmp %l[again]\n\t"
		     ".popsection"
		     :
		     : [area] "r"(__rseq_offset), [counters] "r"(counters)
		     : "memory", "cc", "rax"
		     : again);
}

OP_READ(raw_rseq_counter, count(entered), OP_LOAD, count(left));

const struct op op_raw_rseq_counter = {
	.name = "raw_rseq_counter",
	.what = "floor: count in and out on this CPU under rseq",
	.read = &raw_rseq_counter_read,
	.init = raw_rseq_init,
};
