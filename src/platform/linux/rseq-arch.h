/* SPDX-License-Identifier: MIT */
/* rseq-arch.h - restartable sequences in assembly, for the CPUs on which they have run. */
#ifndef QUIESCE_RSEQ_ARCH_H
#define QUIESCE_RSEQ_ARCH_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel's struct rseq, as far as it is used. */
struct rseq_area {
	uint32_t cpu_id_start;
	uint32_t cpu_id;
	uint64_t rseq_cs;
	uint32_t flags;
	uint32_t node_id;
	uint32_t mm_cid;
};

#if defined(__x86_64__)

extern __attribute__((weak)) const ptrdiff_t __rseq_offset;

/* If the id at @id_offset of the rseq area is @slot and *@word is @expected: store @value.
 * The kernel sends the thread to label 4 if it is preempted, migrated or signalled between
 * 1 and 2; the store at 2 commits.  0, 1 *@word differed, -EAGAIN. */
static inline int rseq_cmpstore(size_t id_offset, int slot, uint64_t *word, uint64_t expected, uint64_t value)
{
	__asm__ __volatile__ goto(
		".pushsection __rseq_cs, \"aw\"\n"
		".balign 32\n"
		"3: .long 0, 0\n"
		".quad 1f, 2f - 1f, 4f\n"
		".popsection\n"
		"leaq 3b(%%rip), %%rax\n"
		"movq %%rax, %%fs:8(%[area])\n"
		"1:\n"
		"cmpl %[slot], %%fs:(%[id])\n"
		"jne %l[moved]\n"
		"cmpq %[expected], (%[word])\n"
		"jne %l[differs]\n"
		"movq %[value], (%[word])\n"
		"2:\n"
		".pushsection __rseq_failure, \"ax\"\n"
		".byte 0x0f, 0xb9, 0x3d\n" /* the signature is an operand of ud1 */
		".long 0x53053053\n"
		"4: jmp %l[moved]\n"
		".popsection\n"
		:
		: [area] "r"(__rseq_offset), [id] "r"(__rseq_offset + (ptrdiff_t)id_offset), [slot] "r"(slot),
		  [word] "r"(word), [expected] "r"(expected), [value] "r"(value)
		: "rax", "memory", "cc"
		: moved, differs);
	return 0;
moved:
	return -EAGAIN;
differs:
	return 1;
}

#else

static inline int rseq_cmpstore(size_t id_offset, int slot, uint64_t *word, uint64_t expected, uint64_t value)
{
	(void)id_offset, (void)slot, (void)word, (void)expected, (void)value;
	return -ENOSYS;
}

#endif

#endif
