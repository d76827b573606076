/* SPDX-License-Identifier: MIT */
/* quiesce/arch/rseq.h - restartable sequences; private, for detail/claim.h and detail/percpu.h.
 *
 *   quiesce__claim_rseq()   the slot of @cached if the thread has its id and the slot was empty: now it holds @value
 *   quiesce__claim_rseq_own()  the same of the thread's own, where that is reached by a segment
 *   QUIESCE_COUNT_RSEQ()    the body of a function that adds one to a word, where QUIESCE_HAVE_RSEQ
 */
#ifndef QUIESCE_ARCH_RSEQ_H
#define QUIESCE_ARCH_RSEQ_H

#include <quiesce/detail/tls.h>

QUIESCE_BEGIN_DECLS
/* For constructors: the shared object that contains this address stays loaded from now on, whatever dlclose() is told. */
QUIESCE_API void quiesce__keep_loaded(const void *inside);
QUIESCE_END_DECLS

#if defined(QUIESCE_SIM) /* which has its own */
#elif defined(__x86_64__)
#include <quiesce/arch/x86_64_rseq.h>
#else
QUIESCE_FAST uintptr_t *quiesce__claim_rseq(const struct quiesce__cached_slot *cached, uintptr_t value)
{
	(void)cached, (void)value;
	return NULL;
}
#endif

#endif
