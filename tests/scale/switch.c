/* SPDX-License-Identifier: MIT */
/* switch.c - continue one thread of the modelled machine in the place of another.
 *
 * raw, whole file: a switch of stacks.
 */
#include "machine.h"

__asm__(".text\n"
	".globl scale__switch\n"
	".hidden scale__switch\n"
	".type scale__switch, @function\n"
	"scale__switch:\n"
	"	pushq %rbp\n	pushq %rbx\n	pushq %r12\n	pushq %r13\n	pushq %r14\n	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbx\n	popq %rbp\n"
	"	ret\n"
	".size scale__switch, . - scale__switch\n");
