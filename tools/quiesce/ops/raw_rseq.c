/* SPDX-License-Identifier: MIT */
/* raw_rseq.c - floors under restartable sequences, x86-64: a pair of per-CPU counters, a hazard slot.
 *
 * raw, whole file: the restartable section has to be assembly, it is the thing measured.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/rseq.h>
#include <unistd.h>

#include "loop.h"
#include "table.h"

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif
#define CPU_ID 4  /* where in the rseq area */
#define MM_CID 24 /* the same, since kernel 6.3 */

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

/* ---- a hazard slot of the concurrency id, one for each; of the thread where that is taken ---- */

static uintptr_t *slots;
static ptrdiff_t id_at; /* of the id, from the thread pointer */
static uint64_t wake __attribute__((aligned(64)));
static __thread uintptr_t own __attribute__((tls_model("initial-exec"), aligned(64)));
static __thread uint64_t woken __attribute__((tls_model("initial-exec")));

static bool has_mm_cid(void)
{
	return getauxval(AT_RSEQ_FEATURE_SIZE) >= MM_CID + sizeof(uint32_t);
}

static int raw_rseq_slot_init(enum op_fence fence)
{
	size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF);

	(void)fence;
	if (__rseq_size == 0)
		return -ENOSYS;
	id_at = __rseq_offset + (has_mm_cid() ? MM_CID : CPU_ID);
	slots = aligned_alloc(128, cpus * PER_CPU * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < cpus * PER_CPU; i++)
		slots[i] = 0;
	return 0;
}

/* Find the slot of this id empty and fill it, in one step; NULL: taken. */
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
			 "movl %%fs:(%[id]), %k[slot]\n\t"
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
			 : [area] "r"(__rseq_offset), [id] "r"(id_at), [slots] "r"(slots), [value] "r"(value)
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

static void slot_lock(void)
{
	protect(&op_target.ptr, &held);
}

static void slot_unlock(void)
{
	clear(held);
}

static const char *slot_kind(void)
{
	uintptr_t *slot;
	bool mine;

	protect(&op_target.ptr, &slot);
	mine = slot == &own;
	clear(slot);
	return mine ? "thread" : has_mm_cid() ? "mm_cid" : "cpu_id";
}

OP_READ_OPS(raw_rseq_slot, slot_lock, slot_unlock);

const struct op op_raw_rseq_slot = {
	.name = "raw_rseq_slot",
	.what = "floor: a hazard pointer in the slot of this concurrency id, claimed under rseq",
	.read = &raw_rseq_slot_read,
	.init = raw_rseq_slot_init,
	.slot_kind = slot_kind,
};
