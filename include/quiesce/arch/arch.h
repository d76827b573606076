/* SPDX-License-Identifier: MIT */
/* quiesce/arch/arch.h - what depends on the CPU; private.  Only this directory distinguishes CPUs.
 *
 *   QUIESCE_NOPLT              attribute of functions that are called without the PLT
 *   QUIESCE_ARCH_TAG           a string that differs where a file is compiled for newer CPUs
 *   quiesce__after_rmw()       makes a sequentially consistent read-modify-write a full fence
 *   quiesce__arch_fence_full() the full fence
 *   quiesce__arch_cpu_relax()  a pause inside a bounded spin
 *   quiesce__thread_at(offset) the address @offset bytes from the thread pointer, which every use reads
 *   quiesce__tls_offset(variable)  distance of a thread-local variable of model initial-exec from the
 *                              thread pointer; without it QUIESCE_FIBERS costs a call (detail/tls.h)
 *   QUIESCE_HAVE_SEGMENT       1: memory operands add the thread pointer by themselves; then
 *                              quiesce__segment_load(), _u32() and quiesce__segment_store() access
 *                              a field of the object at such an offset
 *   QUIESCE_HAVE_RSEQ          1: there are restartable sequences (rseq.h)
 *   QUIESCE_HAVE_SAVING_CALL   1: quiesce__saving_call() calls a function and keeps registers
 *   QUIESCE_RSEQ_OFFSET        1: the C library has a constant for the offset of the thread's rseq area
 *   QUIESCE_TLS_DYNAMIC        1: the C library loads no object later whose thread-local variables have
 *                              the model initial-exec (detail/tls.h)
 *
 * generic.h defines all of them by the compiler's builtins; a CPU's own file replaces some.
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
