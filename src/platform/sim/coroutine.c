/* SPDX-License-Identifier: MIT */
/* coroutine.c - switch between simulated threads.
 *
 * On x86-64 a switch is six pushes and six pops; elsewhere ucontext does it, correctly and about twenty times
 * slower.
 */
#include "machine.h"

#if defined(__x86_64__)

void sim__switch(void **from, void *to);
__asm__(".text\n"
	".globl sim__switch\n"
	".hidden sim__switch\n"
	".type sim__switch, @function\n"
	"sim__switch:\n"
	"	pushq %rbp\n	pushq %rbx\n	pushq %r12\n	pushq %r13\n	pushq %r14\n	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbx\n	popq %rbp\n"
	"	ret\n"
	".size sim__switch, . - sim__switch\n");

void sim__context_make(struct thread *t)
{
	/* From the top: a null return address for the entry function, which puts the
	 * stack where the ABI wants it at entry; the entry function; six registers. */
	uint64_t *top = (uint64_t *)M->stacks[t - M->threads + 1];

	*--top = 0;
	*--top = (uint64_t)sim__thread_main;
	for (int i = 0; i < 6; i++)
		*--top = 0;
	t->context = top;
}

void sim__context_switch(void **from, void *to)
{
	sim__switch(from, to);
}

#else

#include <ucontext.h>

/* One context per thread, and one for main(), the last; *from and @to point into this array. */
static ucontext_t contexts[SIM_MAX_THREADS + 1] SIM_KEEP;

void sim__context_make(struct thread *t)
{
	ucontext_t *context = &contexts[t - M->threads];

	getcontext(context);
	context->uc_stack.ss_sp = M->stacks[t - M->threads];
	context->uc_stack.ss_size = SIM_STACK;
	context->uc_link = NULL;
	makecontext(context, sim__thread_main, 0);
	t->context = context;
}

void sim__context_switch(void **from, void *to)
{
	if (from == &M->main_context)
		*from = &contexts[SIM_MAX_THREADS];
	swapcontext(*from, to);
}

#endif
