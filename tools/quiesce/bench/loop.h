/* SPDX-License-Identifier: MIT */
/* loop.h - the one loop that refscale times, instantiated with each primitive inlined.
 *
 * An indirect call costs more than the fast path, so the loop is a template.  Below two nanoseconds the position of
 * the loop in the cache lines changes results by up to a factor of two: each primitive has the same loop at
 * OP_LAYOUTS positions, and a result is the median over them with its range.
 */
#ifndef QUIESCE_TOOL_LOOP_H
#define QUIESCE_TOOL_LOOP_H

#include <quiesce/atomic.h>

#include "op.h"

/* The build forbids the compiler to align loops by itself (-falign-loops=1). */
/* raw: not a fence, an assembler directive that moves the loop. */
#define OP_PLACE(pad) __asm__ __volatile__(".p2align 6\n\t.skip " #pad ", 0x90")

#ifdef __clang__
#define OP_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define OP_ROLLED
#endif

#define OP_LOOP_OF(name, layout, pad, begin, section, end)                                              \
	static __attribute__((noinline)) uint64_t name##_loop##layout(struct op_target *t, uint64_t n)  \
	{                                                                                               \
		uint64_t sum = 0;                                                                       \
		begin;                                                                                  \
		OP_PLACE(pad);                                                                          \
		OP_ROLLED                                                                               \
		for (uint64_t i = 0; i < n; i++)                                                        \
			sum += section;                                                                 \
		end;                                                                                    \
		return sum;                                                                             \
	}

#define OP_LOOP(name, layout, pad) OP_LOOP_OF(name, layout, pad, (void)0, name##_section(t), (void)0)
/* A loop with a variable that is kept for the whole loop. */
#define OP_LOOP_KEPT(name, layout, pad)                                                                 \
	OP_LOOP_OF(name, layout, pad, name##_kept kept = name##_begin(), name##_section(t, kept), name##_end(kept))

#if defined(__x86_64__)
#define OP_PADS(loop, name) loop(name, 0, 1) loop(name, 1, 14) loop(name, 2, 31) loop(name, 3, 48)
#else
#undef OP_PLACE
#define OP_PLACE(pad) __asm__ __volatile__(".p2align 6\n\t" pad) /* raw: not a fence, an assembler directive that moves the loop. */
#define OP_PADS(loop, name) loop(name, 0, "") loop(name, 1, "nop") loop(name, 2, "nop; nop; nop") \
	loop(name, 3, "nop; nop; nop; nop; nop; nop; nop")
#endif

/* Defines the section and its loops.  LOAD is the expression that fetches
 * t->ptr; LOCK may declare variables that UNLOCK needs. */
#define OP_SECTION(name, LOCK, LOAD, UNLOCK)                                                            \
	static inline __attribute__((always_inline)) uint64_t name##_section(struct op_target *t)       \
	{                                                                                               \
		uint64_t value;                                                                         \
		LOCK;                                                                                   \
		value = (LOAD)->field;                                                                  \
		UNLOCK;                                                                                 \
		return value;                                                                           \
	}                                                                                               \
	OP_PADS(OP_LOOP, name)

/* OP_SECTION_KEPT() adds a variable @kept of type name_kept, which lives from name_begin() before the loop to name_end() after it. */
#define OP_SECTION_KEPT(name, LOAD, UNLOCK)                                                             \
	static inline __attribute__((always_inline)) uint64_t name##_section(struct op_target *t, name##_kept kept) \
	{                                                                                               \
		uint64_t value = (LOAD)->field;                                                         \
                                                                                                        \
		UNLOCK;                                                                                 \
		return value;                                                                           \
	}                                                                                               \
	OP_PADS(OP_LOOP_KEPT, name)

/* Defines what OP_SECTION_KEPT() needs for a @kept that is the value of a variable. */
#define OP_KEPT(name, TYPE, VALUE)                                                                      \
	typedef TYPE name##_kept;                                                                       \
	static TYPE name##_begin(void)                                                                  \
	{                                                                                               \
		return VALUE;                                                                           \
	}                                                                                               \
	static void name##_end(TYPE kept)                                                               \
	{                                                                                               \
		(void)kept;                                                                             \
	}

/* Defines name_read from the loops and the functions that enter and leave a section. */
#define OP_READ_OPS(name, LOCK_FN, UNLOCK_FN)                                                           \
	static const struct op_read name##_read = {                                                     \
		.loop = { name##_loop0, name##_loop1, name##_loop2, name##_loop3 },                     \
		.lock = LOCK_FN,                                                                        \
		.unlock = UNLOCK_FN,                                                                    \
	}

/* Both in one, for types whose LOCK and UNLOCK share no variable. */
#define OP_READ(name, LOCK, LOAD, UNLOCK)                                                               \
	OP_SECTION(name, LOCK, LOAD, UNLOCK)                                                            \
	static void name##_section_lock(void)                                                           \
	{                                                                                               \
		LOCK;                                                                                   \
	}                                                                                               \
	static void name##_section_unlock(void)                                                         \
	{                                                                                               \
		UNLOCK;                                                                                 \
	}                                                                                               \
	OP_READ_OPS(name, name##_section_lock, name##_section_unlock)

/* For primitives that need no special load. */
#define OP_LOAD quiesce_load_relaxed(&t->ptr)

#endif
