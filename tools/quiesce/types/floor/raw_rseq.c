/* SPDX-License-Identifier: MIT */
/* raw_rseq.c - floors under restartable sequences, x86-64: a pair of per-CPU counters, a hazard slot.
 *
 * raw, whole file: the restartable section has to be assembly, it is the subject of the measurement.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/rseq.h>
#include <unistd.h>

#include "loop.h"
#include "registry.h"

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif
#define MM_CID 24 /* offset of mm_cid in the rseq area, since kernel 6.3 */
#define MAX_IDS 4096
#define PER_ID 16 /* words: two cache lines, because prefetchers load pairs of lines */

static int init(enum op_fence fence)
{
	(void)fence;
	if (__rseq_size == 0 || getauxval(AT_RSEQ_FEATURE_SIZE) < MM_CID + sizeof(uint32_t))
		return -ENOSYS;
	return sysconf(_SC_NPROCESSORS_CONF) > MAX_IDS ? -E2BIG : 0;
}

/* ---- a pair of counters of the concurrency id ---- */

static uint64_t counters[MAX_IDS][PER_ID] __attribute__((aligned(128)));
/* Minus the address of the counters; 0 forbids counting in them.  Subtracting 0 does not borrow, so that one
 * subtraction is the test and makes the address. */
static uint64_t open __attribute__((aligned(64)));

static int counter_init(enum op_fence fence)
{
	open = 0 - (uintptr_t)counters;
	return init(fence);
}

#define SEQUENCE(body)                                    \
	".pushsection __rseq_cs, \"aw\"\n"             \
	".balign 32\n"                                   \
	"3: .long 0, 0\n"                                \
	".quad 1f, 2f - 1f, 4f\n"                        \
	".popsection\n"                                  \
	"5: leaq 3b(%%rip), %%rax\n"                     \
	"movq %%rax, %%fs:8(%[area])\n"                  \
	"1: " body                                        \
	"2:\n"                                           \
	".pushsection __rseq_failure, \"ax\"\n"        \
	".byte 0x0f, 0xb9, 0x3d\n"                       \
	".long 0x53053053\n"                             \
	"4: jmp 5b\n"                                    \
	".popsection"

/* Adds one to word @which of this id, unless counting is forbidden.  The address has no index register, by which some
 * CPUs forward the store of one count to the next more slowly. */
#define COUNT(which)                                                                                       \
	({                                                                                                 \
		__label__ closed;                                                                          \
		__asm__ goto(SEQUENCE("movl %%fs:24(%[area]), %%eax\n"                                    \
				      "shlq $7, %%rax\n"                                                  \
				      "subq %[open], %%rax\n"                                             \
				      "jnc %l[closed]\n"                                                  \
				      "incq " which "(%%rax)\n")                                          \
			     :                                                                             \
			     : [area] "r"(__rseq_offset), [open] "m"(open)                                 \
			     : "memory", "cc", "rax"                                                       \
			     : closed);                                                                    \
		if (0) {                                                                                   \
closed:                                                                                                    \
			abort();                                                                           \
		}                                                                                          \
	})

OP_READ(raw_rseq_counter, COUNT("0"), OP_LOAD, COUNT("8"));

TYPE(raw_rseq_counter, .rank = 170, .groups = RUN_LOCK,
	.what = "floor: count in and out for this concurrency id under rseq, unless a word forbids it",
	.read = &raw_rseq_counter_read, .init = counter_init);

/* Adds one without the test whether counting is forbidden. */
#define BARE(which)                                                                              \
	__asm__ __volatile__(SEQUENCE("movl %%fs:24(%[area]), %%eax\n"                          \
				      "shlq $7, %%rax\n"                                        \
				      "addq %[counters], %%rax\n"                               \
				      "incq " which "(%%rax)\n")                                \
			     :                                                                   \
			     : [area] "r"(__rseq_offset), [counters] "r"(counters)               \
			     : "memory", "cc", "rax")

OP_READ(raw_rseq_bare, BARE("0"), OP_LOAD, BARE("8"));

TYPE(raw_rseq_bare, .rank = 180,
	.what = "floor: count in and out for this concurrency id under rseq, without the test for a writer",
	.read = &raw_rseq_bare_read, .init = init);

/* ---- a hazard slot for each concurrency id; the thread's own slot while that is taken ---- */

static uintptr_t slots[MAX_IDS][PER_ID] __attribute__((aligned(128)));
static uint64_t wake __attribute__((aligned(64)));
static __thread uintptr_t own __attribute__((tls_model("initial-exec"), aligned(64)));
static __thread uint64_t woken __attribute__((tls_model("initial-exec")));

/* Finds the slot of this id empty and fills it, in one sequence.  NULL: it is taken. */
static inline __attribute__((always_inline)) uintptr_t *claim(uintptr_t value)
{
	uintptr_t *slot;

	__asm__ volatile(".pushsection __rseq_cs, \"aw\"\n\t"
			 ".balign 32\n"
			 "3:\n\t"
			 ".long 0, 0\n\t"
			 ".quad 1f, 2f - 1f, 4f\n\t"
			 ".popsection\n"
			 "5:\n\t"
			 "leaq 3b(%%rip), %[slot]\n\t"
			 "movq %[slot], %%fs:8(%[area])\n"
			 "1:\n\t"
			 "movl %%fs:24(%[area]), %k[slot]\n\t"
			 "shlq $7, %[slot]\n\t"
			 "addq %[slots], %[slot]\n\t"
			 "cmpq $0, (%[slot])\n\t"
			 "jne 6f\n\t"
			 "movq %[value], (%[slot])\n"
			 "2:\n\t"
			 ".pushsection __rseq_failure, \"ax\"\n\t"
			 ".byte 0x0f, 0xb9, 0x3d\n\t"
			 ".long 0x53053053\n"
			 "4:\n\t"
			 "jmp 5b\n"
			 "6:\n\t"
			 "xorl %k[slot], %k[slot]\n\t"
			 "jmp 2b\n\t"
			 ".popsection"
			 : [slot] "=&r"(slot)
			 : [area] "r"(__rseq_offset), [slots] "r"(slots), [value] "r"(value)
			 : "memory", "cc");
	return slot;
}

static __attribute__((noinline, cold)) void clear_slow(uintptr_t *slot)
{
	woken++;
	__atomic_store_n(slot, 0, __ATOMIC_RELEASE);
}

static inline __attribute__((always_inline)) void clear(uintptr_t *slot)
{
	if (quiesce_unlikely(quiesce_load_relaxed(&wake)))
		clear_slow(slot);
	else
		__atomic_store_n(slot, 0, __ATOMIC_RELEASE);
}

static inline __attribute__((always_inline)) struct op_item *protect(struct op_item **where, uintptr_t **ret_slot)
{
	struct op_item *first = quiesce_load_relaxed(where), *again;
	uintptr_t *slot;

	for (;; first = again) {
		slot = claim((uintptr_t)first);
		if (quiesce_unlikely(!slot)) {
			slot = &own;
			quiesce_store_relaxed(slot, (uintptr_t)first);
		}
		quiesce_fence_light(RAW);
		again = quiesce_load_relaxed(where);
		if (quiesce_likely(again == first))
			break;
		clear(slot);
	}
	*ret_slot = slot;
	return again;
}

OP_SECTION(raw_rseq_slot, uintptr_t *slot, protect(&t->ptr, &slot), clear(slot))

static __thread uintptr_t *held __attribute__((tls_model("initial-exec")));

OP_FUNCTION(slot_lock, protect(&op_target.ptr, &held))
OP_FUNCTION(slot_unlock, clear(held))

static const char *slot_kind(void)
{
	uintptr_t *slot;
	bool mine;

	protect(&op_target.ptr, &slot);
	mine = slot == &own;
	clear(slot);
	return mine ? "thread" : "mm_cid";
}

OP_READ_OPS(raw_rseq_slot, slot_lock, slot_unlock);

TYPE(raw_rseq_slot, .rank = 190, .groups = RUN_READ,
	.what = "floor: a hazard pointer in the slot of this concurrency id, claimed under rseq",
	.read = &raw_rseq_slot_read, .init = init, .slot_kind = slot_kind);
