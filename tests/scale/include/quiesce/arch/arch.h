/* SPDX-License-Identifier: MIT */
/* quiesce/arch/arch.h - the CPU of the modelled machine, in the place of the library's file of this name.
 *
 * As x86-64, except that the thread pointer is the machine's, and that sequences are in C (x86_64_rseq.h beside this file),
 * so that the compiler's hooks see their accesses.
 */
#ifndef QUIESCE_ARCH_H
#define QUIESCE_ARCH_H

void scale_fence(void);
void scale_relax(void);
char *scale_thread_pointer(void);

#define quiesce__after_rmw(result) (result)
#define quiesce__arch_fence_full() scale_fence()
#define quiesce__arch_cpu_relax() scale_relax()
#define quiesce__thread_at(offset) (scale_thread_pointer() + (offset))
#define QUIESCE_HAVE_RSEQ 1
#define QUIESCE_RSEQ_OFFSET 1
#define QUIESCE_TLS_DYNAMIC 0
#include <quiesce/arch/generic.h>

#endif
