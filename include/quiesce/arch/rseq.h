/* SPDX-License-Identifier: MIT */
/* quiesce/arch/rseq.h - restartable sequences; private, for detail/claim.h and detail/percpu.h.
 *
 *   quiesce__claim_rseq()      if the thread has the id of @cached and its slot is empty: put @value in
 *                              the slot, and return the slot
 *   quiesce__claim_rseq_own()  quiesce__claim_rseq() of the thread's own block, by segment
 *   QUIESCE_COUNT_RSEQ()       the body of a function that adds one to a word, if QUIESCE_HAVE_RSEQ: an
 *                              acquire of "open"
 *   QUIESCE_COUNT_RELEASE_RSEQ()  the body of one whose count is a release
 *   QUIESCE_SEQUENCES_INLINE   1: inline code may use these
 */
#ifndef QUIESCE_ARCH_RSEQ_H
#define QUIESCE_ARCH_RSEQ_H

#include <quiesce/detail/tls.h>

QUIESCE_BEGIN_DECLS
/* For constructors: keep the shared object that contains @inside loaded, even after dlclose(). */
QUIESCE_API void quiesce__keep_loaded(const void *inside);
QUIESCE_END_DECLS

/* 0: code that is compiled for a debugger enters no sequence inline, but calls the library.  Where a debugger steps through a sequence
 * each step restarts it, so that its end is never reached; over a call it steps at once. */
#define QUIESCE_SEQUENCES_INLINE 1
#if (defined(QUIESCE_DEBUG) || !defined(__OPTIMIZE__)) && !defined(QUIESCE_SIM)
#undef QUIESCE_SEQUENCES_INLINE
#define QUIESCE_SEQUENCES_INLINE 0
#endif

#if defined(QUIESCE_SIM) /* the simulator has its own */
#elif defined(__x86_64__)
#include <quiesce/arch/x86_64_rseq.h>
#elif defined(__aarch64__)
#include <quiesce/arch/arm64_rseq.h>
#else
QUIESCE_FAST uintptr_t *quiesce__claim_rseq(const struct quiesce__cached_slot *cached, uintptr_t value)
{
	(void)cached, (void)value;
	return NULL;
}
#endif

#ifndef QUIESCE_COUNT_RELEASE_RSEQ /* a count is both on this CPU */
#define QUIESCE_COUNT_RELEASE_RSEQ(word) QUIESCE_COUNT_RSEQ(word)
#endif

#endif
