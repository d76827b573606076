/* SPDX-License-Identifier: MIT */
/* sheaf.c - move several objects into or out of a sheaf in a restartable sequence, by a call.
 *
 * The objects are copied inside the sequence, and the store of their number, which is the last instruction, makes them
 * part of the sheaf or of the row.  If it restarts, the copies are made again: in the sheaf they are beyond its number.
 */
#include "platform/sheaf.h"

#if QUIESCE_HAVE_RSEQ && !QUIESCE_TSAN && defined(__x86_64__)

/* Fields of the row by its address: without optimisation each operand in memory would take a register of its own. */
#define FIELD(name) "%c[" #name "](%[row])"
#define INPUTS                                                                                                      \
	[area] "r"(quiesce__sequences.area), [id] "r"(quiesce__sequences.id), [limit] "m"(quiesce__sequences.limit), \
	[row] "r"(row), [closed] "i"(offsetof(struct quiesce__sheaf_row, closed)),                                   \
	[base] "i"(offsetof(struct quiesce__sheaf_row, base)), [most] "i"(offsetof(struct quiesce__sheaf_row, limit)), \
	[objects] "i"(offsetof(struct quiesce__sheaf_row, object)), [want] "i"(offsetof(struct quiesce__sheaf_row, nr)), \
	[shift] "i"(QUIESCE_PERCPU_SHIFT) QUIESCE_RSEQ_INPUTS

/* Move objects between the row and the sheaf of this thread's id, @at, which has @nr.  @bounds sets their number, @count, which
 * is not 0, and where they go, @to, and come from; @load loads the next one, and @change changes @nr by those that are @done. */
#define MOVE(bounds, load, change)                                                                                          \
	uint64_t done, nr, count;                                                                                           \
	uintptr_t at, from, to, object;                                                                                     \
                                                                                                                            \
	if (!quiesce__sequences.area)                                                                                       \
		return 0;                                                                                                   \
	__asm__ __volatile__(QUIESCE_RSEQ_ENTER("%[at]", "%[at]")                                                           \
			     "1:\n" QUIESCE_RSEQ_GUARD                                                                      \
			     "xorl %k[done], %k[done]\n"                                                                    \
			     "movq " FIELD(closed) ", %[at]\n"                                                              \
			     "cmpq $0, (%[at])\n"                                                                           \
			     "jne 2f\n"                                                                                     \
			     "movl %%fs:(%[id]), %k[at]\n"                                                                  \
			     "shlq %[shift], %[at]\n"                                                                       \
			     "cmpq %[limit], %[at]\n"                                                                       \
			     "jae 2f\n"                                                                                     \
			     "addq " FIELD(base) ", %[at]\n"                                                                \
			     "movq (%[at]), %[nr]\n" bounds                                                                 \
			     "8:\n" load                                                                                    \
			     "movq %[object], (%[to], %[done], 8)\n"                                                        \
			     "incq %[done]\n"                                                                               \
			     "cmpq %[count], %[done]\n"                                                                     \
			     "jb 8b\n" change QUIESCE_RSEQ_STAY                                                             \
			     "movq %[nr], (%[at])\n"                                                                        \
			     "2:\n"                                                                                         \
			     : [at] "=&r"(at), [nr] "=&r"(nr), [done] "=&r"(done), [count] "=&r"(count), [from] "=&r"(from), \
			       [to] "=&r"(to), [object] "=&r"(object)                                                       \
			     : INPUTS                                                                                       \
			     : "memory", "cc" QUIESCE_RSEQ_CLOBBERS);                                                       \
	return done

uint64_t quiesce__sheaf_take(const struct quiesce__sheaf_row *row)
{
	MOVE("testq %[nr], %[nr]\n"
	     "je 2f\n"
	     "movq " FIELD(want) ", %[count]\n"
	     "cmpq %[nr], %[count]\n"
	     "cmovaq %[nr], %[count]\n"
	     "leaq 8(%[at], %[nr], 8), %[from]\n"
	     "movq " FIELD(objects) ", %[to]\n",
	     "movq (%[from]), %[object]\n"
	     "subq $8, %[from]\n",
	     "subq %[done], %[nr]\n");
}

uint64_t quiesce__sheaf_add(const struct quiesce__sheaf_row *row)
{
	MOVE("movq " FIELD(most) ", %[count]\n"
	     "subq %[nr], %[count]\n"
	     "jbe 2f\n"
	     "cmpq " FIELD(want) ", %[count]\n"
	     "cmovaq " FIELD(want) ", %[count]\n"
	     "leaq 16(%[at], %[nr], 8), %[to]\n"
	     "movq " FIELD(objects) ", %[from]\n",
	     "movq (%[from], %[done], 8), %[object]\n",
	     "addq %[done], %[nr]\n");
}

#elif QUIESCE_HAVE_RSEQ && !QUIESCE_TSAN && defined(__aarch64__)

#define FIELD(name) "[%[row], %[" #name "]]"

/* MOVE() of arm64 has the words of x86-64's.  The word "closed" and the number of objects are loaded by acquires, and the number is stored
 * by a release. */
#define MOVE(bounds, load, change)                                                                                          \
	uint64_t done, nr, count;                                                                                           \
	uintptr_t at, from, to, object;                                                                                     \
	char *thread = quiesce__thread_at(0);                                                                               \
                                                                                                                            \
	if (!quiesce__sequences.area)                                                                                       \
		return 0;                                                                                                   \
	__asm__ __volatile__(QUIESCE_RSEQ_ENTER("%[at]")                                                                    \
			     "1:\n" QUIESCE_RSEQ_GUARD                                                                      \
			     "mov %[done], #0\n"                                                                            \
			     "ldr %[at], " FIELD(closed) "\n"                                                               \
			     QUIESCE_LOAD_ACQUIRE "%[at], [%[at]]\n"                                                        \
			     "cbnz %[at], 2f\n"                                                                             \
			     "ldr %w[at], [%[thread], %[id]]\n"                                                             \
			     "lsl %[at], %[at], %[shift]\n"                                                                 \
			     "cmp %[at], %[limit]\n"                                                                        \
			     "b.hs 2f\n"                                                                                    \
			     "ldr %[from], " FIELD(base) "\n"                                                               \
			     "add %[at], %[at], %[from]\n"                                                                  \
			     QUIESCE_LOAD_ACQUIRE "%[nr], [%[at]]\n" bounds                                                 \
			     "8:\n" load                                                                                    \
			     "str %[object], [%[to], %[done], lsl #3]\n"                                                    \
			     "add %[done], %[done], #1\n"                                                                   \
			     "cmp %[done], %[count]\n"                                                                      \
			     "b.lo 8b\n" change QUIESCE_RSEQ_STAY                                                           \
			     "stlr %[nr], [%[at]]\n"                                                                        \
			     "2:\n"                                                                                         \
			     : [at] "=&r"(at), [nr] "=&r"(nr), [done] "=&r"(done), [count] "=&r"(count), [from] "=&r"(from), \
			       [to] "=&r"(to), [object] "=&r"(object)                                                       \
			     : [area] "r"(thread + quiesce__sequences.area), [thread] "r"(thread), [id] "r"(quiesce__sequences.id), \
			       [limit] "r"(quiesce__sequences.limit), [row] "r"(row),                                       \
			       [closed] "i"(offsetof(struct quiesce__sheaf_row, closed)),                                   \
			       [base] "i"(offsetof(struct quiesce__sheaf_row, base)),                                       \
			       [most] "i"(offsetof(struct quiesce__sheaf_row, limit)),                                      \
			       [objects] "i"(offsetof(struct quiesce__sheaf_row, object)),                                  \
			       [want] "i"(offsetof(struct quiesce__sheaf_row, nr)), [shift] "i"(QUIESCE_PERCPU_SHIFT)       \
			       QUIESCE_RSEQ_INPUTS                                                                          \
			     : "memory", "cc" QUIESCE_RSEQ_CLOBBERS);                                                       \
	return done

uint64_t quiesce__sheaf_take(const struct quiesce__sheaf_row *row)
{
	MOVE("cbz %[nr], 2f\n"
	     "ldr %[count], " FIELD(want) "\n"
	     "cmp %[count], %[nr]\n"
	     "csel %[count], %[nr], %[count], hi\n"
	     "add %[from], %[at], %[nr], lsl #3\n"
	     "add %[from], %[from], #8\n"
	     "ldr %[to], " FIELD(objects) "\n",
	     "ldr %[object], [%[from]], #-8\n",
	     "sub %[nr], %[nr], %[done]\n");
}

uint64_t quiesce__sheaf_add(const struct quiesce__sheaf_row *row)
{
	MOVE("ldr %[count], " FIELD(most) "\n"
	     "subs %[count], %[count], %[nr]\n"
	     "b.ls 2f\n"
	     "ldr %[object], " FIELD(want) "\n"
	     "cmp %[count], %[object]\n"
	     "csel %[count], %[object], %[count], hi\n"
	     "add %[to], %[at], %[nr], lsl #3\n"
	     "add %[to], %[to], #16\n"
	     "ldr %[from], " FIELD(objects) "\n",
	     "ldr %[object], [%[from], %[done], lsl #3]\n",
	     "add %[nr], %[nr], %[done]\n");
}

#else

uint64_t quiesce__sheaf_take(const struct quiesce__sheaf_row *row)
{
	(void)row;
	return 0;
}

uint64_t quiesce__sheaf_add(const struct quiesce__sheaf_row *row)
{
	(void)row;
	return 0;
}

#endif
