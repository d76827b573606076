/* SPDX-License-Identifier: MIT */
/* It has what the C library's startup files have for arm64, with the landing pads (bti) that those of some systems lack.
 *
 * Linked with -nostartfiles into programs and shared objects whose pages are to be guarded (scripts/ci/cross.sh).  A shared object has no
 * main(), and uses none of this but __dso_handle, which is its own. */
	.text
	.hidden _start
	.globl _start
	.type _start, %function
	.weak main
_start:
	hint #34 /* bti c */
	mov x29, #0
	mov x30, #0
	mov x5, x0 /* the end of the loader */
	ldr x1, [sp] /* argc */
	add x2, sp, #8 /* argv */
	mov x6, sp
	adrp x0, :got:main
	ldr x0, [x0, :got_lo12:main]
	mov x3, #0
	mov x4, #0
	bl __libc_start_main
	bl abort
	.size _start, . - _start

	.data
	.balign 8
	.hidden __dso_handle
	.globl __dso_handle
__dso_handle:
	.quad 0

	.section .note.GNU-stack, "", %progbits

	/* The landing pads, and no signed return address, of this file. */
	.section .note.gnu.property, "a"
	.balign 8
	.long 4, 16, 5
	.asciz "GNU"
	.long 0xc0000000, 4, 3, 0
