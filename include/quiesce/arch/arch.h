/* SPDX-License-Identifier: MIT */
/* quiesce/arch/arch.h - what depends on the CPU; private.  Only files of this directory ask which CPU it is.
 *
 *   QUIESCE_NOPLT              how a call avoids the PLT
 *   quiesce__after_rmw()       what makes a sequentially consistent read-modify-write a full fence
 *   quiesce__arch_fence_full() the full fence
 *   quiesce__arch_cpu_relax()  a pause inside a bounded spin
 *   quiesce__thread_at(offset) what is @offset bytes from the thread pointer, which is read by this very use of it
 *   quiesce__tls_offset(variable)  how far a thread-local variable of model initial-exec is from the thread pointer; where it
 *                              is not defined QUIESCE_FIBERS costs a call (detail/tls.h)
 *   QUIESCE_HAVE_SEGMENT       do operands in memory add the thread pointer by themselves?  Then quiesce__segment_load(), _u32()
 *                              and quiesce__segment_store() access a field of what is at such an offset
 *   QUIESCE_HAVE_RSEQ          are there restartable sequences (rseq.h)?
 *   QUIESCE_RSEQ_OFFSET        and has the C library a constant that says where the thread's area is?
 *
 * generic.h has all of them by the compiler's builtins; a CPU's own file replaces some.
 */
#ifndef QUIESCE_ARCH_H
#define QUIESCE_ARCH_H

#if defined(__x86_64__)
#include <quiesce/arch/x86_64.h>
#elif defined(__aarch64__)
#include <quiesce/arch/arm64.h>
#elif defined(__riscv)
#include <quiesce/arch/riscv64.h>
#elif defined(__s390x__)
#include <quiesce/arch/s390x.h>
#endif
#include <quiesce/arch/generic.h>

#endif
