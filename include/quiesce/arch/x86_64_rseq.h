/* SPDX-License-Identifier: MIT */
/* quiesce/arch/x86_64_rseq.h - the definitions of rseq.h for x86-64. */
#ifndef QUIESCE_ARCH_X86_64_RSEQ_H
#define QUIESCE_ARCH_X86_64_RSEQ_H

#include <quiesce/arch/pin.h>

#include <stdbool.h>

/* The torture build replaces these: it stays inside the sequence for a while, and can leave it
 * without protection. */
#ifndef QUIESCE_RSEQ_STAY
#define QUIESCE_RSEQ_STAY
#define QUIESCE_RSEQ_GUARD
#define QUIESCE_RSEQ_INPUTS
#define QUIESCE_RSEQ_CLOBBERS
#define QUIESCE_COUNT(word) "inc{q} " word "\n"
#define QUIESCE_COUNT_CLOBBERS
#endif

/* A sequence is the code from 1 to 2.  If the thread is preempted, moved or interrupted by a signal there, the kernel sends it to 4,
 * which begins anew.
 * The kernel demands that a signature precedes 4.  It is the operand of a test whose result is not used: so 4 is in the
 * middle of the function, with the same frame as the sequence, and a debugger, profiler or sanitizer that gets the thread there finds its
 * callers.  In a section of its own 4 would be outside of every function, and every backtrace would end with it.
 * {A|B} is A, or B with -masm=intel, in which clang takes 0b and 1b for numbers. */
#define QUIESCE_RSEQ_ENTER(scratch, intel_scratch)                                      \
	".pushsection __rseq_cs, \"aw?\"\n"                                             \
	".balign 32\n"                                                                  \
	"3: .long 0, 0\n"                                                               \
	".quad 1f, 2f - 1f, 4f\n"                                                       \
	".popsection\n"                                                                 \
	"test{l $0x53053053, %%eax| eax, 0x53053053}\n"                                 \
	"4: lea{q 3b(%%rip), " scratch "| " intel_scratch ", [rip+3b]}\n"               \
	"mov{q " scratch ", %%fs:8(%[area])| fs:[%[area]+8], " intel_scratch "}\n"

/* An assembler that adds an instruction behind each load (-mlfence-after-load) would add one behind
 * the increment that commits, and a thread that is interrupted there would count twice.  5 is just
 * before a load of the sequence, and 6, just behind it, is at most 6 bytes farther. */
#define QUIESCE_RSEQ_UNCHANGED                                                                   \
	"6: .if 6b - 5b > 6\n"                                                                   \
	".error \"quiesce: sequences cannot be assembled with instructions behind loads\"\n"      \
	".endif\n"

/* The store before 2 is the last instruction, and the claim.  Ordinary loads and stores are
 * acquire and release on x86.  Not "asm goto": the statement has an output, and with
 * instrumentation some compilers then lose labels.  So the flags of the last comparison say which way it
 * came to 2; a store does not change them. */
#define QUIESCE__CLAIM_RSEQ(slot, missed, value, cached_slot, intel_slot, cached_id, intel_id, ...)                       \
	__asm__ __volatile__(                                                                                            \
		QUIESCE_RSEQ_ENTER("%[claimed]", "%[claimed]")                                                           \
		"1:\n" QUIESCE_RSEQ_GUARD                                                                                \
		"mov{l %%fs:(%[id]), %k[claimed]| %k[claimed], fs:[%[id]]}\n"                                            \
		"cmp{q " cached_id ", %[claimed]| %[claimed], " intel_id "}\n"                                           \
		"jne 2f\n"                                                                                               \
		"mov{q " cached_slot ", %[claimed]| %[claimed], " intel_slot "}\n" /* loaded inside the sequence, so that both fit */ \
		"cmp{q $0, (%[claimed])| QWORD PTR [%[claimed]], 0}\n"                                                   \
		"jne 2f\n" QUIESCE_RSEQ_STAY                                                                             \
		"mov{q %[held], (%[claimed])| [%[claimed]], %[held]}\n"                                                  \
		"2:\n"                                                                                                   \
		: [claimed] "=&r"(slot), "=@ccne"(missed)                                                                 \
		: [held] "r"(value), [area] "r"(quiesce_shazptr_v1.rseq),                                                \
		  [id] "r"(quiesce_shazptr_v1.id), __VA_ARGS__ QUIESCE_RSEQ_INPUTS                                       \
		: "memory" QUIESCE_RSEQ_CLOBBERS)

/* A slot that was claimed is not NULL, so that callers need not test it again. */
QUIESCE_FAST uintptr_t *quiesce__claimed(uintptr_t *slot, bool missed)
{
	if (quiesce_unlikely(missed)) {
		quiesce__pin(); /* here, as it would lose the flags */
		return NULL;
	}
	if (!slot)
		__builtin_unreachable();
	return slot;
}

QUIESCE_FAST uintptr_t *quiesce__claim_rseq(const struct quiesce__cached_slot *cached, uintptr_t value)
{
	uintptr_t *slot;
	bool missed;

	QUIESCE__CLAIM_RSEQ(slot, missed, value, "%[cached_slot]", "%[cached_slot]", "%[cached_id]", "%[cached_id]",
			    [cached_slot] "m"(cached->slot), [cached_id] "m"(cached->id));
#if QUIESCE_TSAN
	/* ThreadSanitizer does not see that the assembly acquires the previous owner's clear. */
	if (!missed)
		/* SH2: acquire, pairs with SH2 in quiesce__shazptr_release() */
		(void)quiesce_load_acquire(SH2, slot);
#endif
	return quiesce__claimed(slot, missed);
}

#if QUIESCE_OWN_BY_SEGMENT
QUIESCE_FAST uintptr_t *quiesce__claim_rseq_own(struct quiesce__own_block self, uintptr_t value)
{
	uintptr_t *slot;
	bool missed;

	QUIESCE__CLAIM_RSEQ(slot, missed, value, "%%fs:%c[slot_at](%[self])", "fs:[%[self]+%c[slot_at]]", "%%fs:%c[id_at](%[self])",
			    "fs:[%[self]+%c[id_at]]", [self] "r"(self.at),
			    [slot_at] "i"(offsetof(struct quiesce_tls_v1, shazptr_cached.slot)),
			    [id_at] "i"(offsetof(struct quiesce_tls_v1, shazptr_cached.id)));
	return quiesce__claimed(slot, missed);
}
#endif

/* The operand of a count.  It has no index register, because some CPUs forward the store of one count
 * to the next count of the same word in half of the time without. */
#define QUIESCE_COUNT_WORD(offset) "{" #offset "(%%rax)|QWORD PTR [rax+" #offset "]}"

/* 24 is the offset of the concurrency id.  Subtracting 0 does not borrow; subtracting a negated
 * address does. */
#define QUIESCE_COUNT_RSEQ(word)                                                               \
	__asm__ __volatile__ goto(                                                             \
		QUIESCE_RSEQ_ENTER("%%rax", "rax")                                             \
		"1:\n" QUIESCE_RSEQ_GUARD                                                      \
		"5: mov{l %%fs:24(%[area]), %%eax| eax, fs:[%[area]+24]}\n"                    \
		QUIESCE_RSEQ_UNCHANGED                                                         \
		"shl{q %[shift], %%rax| rax, %[shift]}\n"                                      \
		"sub{q %[open], %%rax| rax, %[open]}\n"                                        \
		"jnc %l[call]\n" QUIESCE_COUNT(word)                                           \
		"2:\n"                                                                         \
		:                                                                              \
		: [area] "r"((int64_t)__rseq_offset), [open] "m"(*open),                       \
		  [shift] "i"(QUIESCE_PERCPU_SHIFT) QUIESCE_RSEQ_INPUTS                        \
		: "memory", "cc", "rax" QUIESCE_RSEQ_CLOBBERS QUIESCE_COUNT_CLOBBERS           \
		: call);                                                                       \
	return true;                                                                           \
call:                                                                                          \
	quiesce__pin();                                                                        \
	return false

/* For detail/sheaf.h.  The carry flag says whether an object was taken or put.  An @open that is 0 clears it, as above; so
 * does a sheaf without an object, or without room; and no later instruction changes it. */
#define QUIESCE_SHEAF_OF_ID                                                                    \
	"1:\n" QUIESCE_RSEQ_GUARD                                                              \
	"mov{l %%fs:24(%[area]), %k[at]| %k[at], fs:[%[area]+24]}\n"                           \
	"shl{q %[shift], %[at]| %[at], %[shift]}\n"                                            \
	"sub{q %[open], %[at]| %[at], %[open]}\n"                                              \
	"jnc 2f\n"                                                                             \
	"mov{q (%[at]), %[nr]| %[nr], QWORD PTR [%[at]]}\n"

#define QUIESCE_SHEAF_POP(open, ret_object, ret_done)                                                                     \
	uintptr_t at_, nr_;                                                                                               \
	__asm__ __volatile__(QUIESCE_RSEQ_ENTER("%[at]", "%[at]") QUIESCE_SHEAF_OF_ID                                     \
			     "sub{q $1, %[nr]| %[nr], 1}\n"                                                               \
			     "cmc\n"                                                                                      \
			     "jnc 2f\n"                                                                                   \
			     "mov{q 16(%[at], %[nr], 8), %[object]| %[object], QWORD PTR [%[at]+%[nr]*8+16]}\n"           \
			     QUIESCE_RSEQ_STAY                                                                            \
			     "mov{q %[nr], (%[at])| QWORD PTR [%[at]], %[nr]}\n"                                          \
			     "2:\n"                                                                                       \
			     : [at] "=&r"(at_), [nr] "=&r"(nr_), [object] "=&r"(ret_object), "=@ccc"(ret_done)            \
			     : [area] "r"((int64_t)__rseq_offset), [open] "m"(*(open)),                                   \
			       [shift] "i"(QUIESCE_PERCPU_SHIFT) QUIESCE_RSEQ_INPUTS                                      \
			     : "memory" QUIESCE_RSEQ_CLOBBERS)

#define QUIESCE_SHEAF_PUSH(open, limit_at, pushed, ret_done)                                                              \
	uintptr_t at_, nr_;                                                                                               \
	__asm__ __volatile__(QUIESCE_RSEQ_ENTER("%[at]", "%[at]") QUIESCE_SHEAF_OF_ID                                     \
			     "cmp{q %[limit], %[nr]| %[nr], %[limit]}\n"                                                  \
			     "jnc 2f\n"                                                                                   \
			     "mov{q %[object], 16(%[at], %[nr], 8)| QWORD PTR [%[at]+%[nr]*8+16], %[object]}\n"           \
			     QUIESCE_RSEQ_STAY                                                                            \
			     "lea{q 1(%[nr]), %[nr]| %[nr], [%[nr]+1]}\n"                                                 \
			     "mov{q %[nr], (%[at])| QWORD PTR [%[at]], %[nr]}\n"                                          \
			     "2:\n"                                                                                       \
			     : [at] "=&r"(at_), [nr] "=&r"(nr_), "=@ccc"(ret_done)                                        \
			     : [area] "r"((int64_t)__rseq_offset), [open] "m"(*(open)), [limit] "m"(*(limit_at)),         \
			       [object] "r"(pushed), [shift] "i"(QUIESCE_PERCPU_SHIFT) QUIESCE_RSEQ_INPUTS                \
			     : "memory" QUIESCE_RSEQ_CLOBBERS)

#endif
