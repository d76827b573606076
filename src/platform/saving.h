/* SPDX-License-Identifier: MIT */
/* saving.h - thunks of quiesce__saving_call(), by which inline code calls a function and keeps its registers.
 *
 * PLATFORM_SAVING_CALL(thunk, function) defines @thunk, which calls @function(a, b).  On CPUs without such calls it is there, as the
 * list of exported symbols is the same for all, and has no caller.
 */
#ifndef QUIESCE_SRC_PLATFORM_SAVING_H
#define QUIESCE_SRC_PLATFORM_SAVING_H

#include <quiesce/base.h>

#if defined(__x86_64__) && defined(__LP64__)

/* A build without unwind tables has no directives for them. */
#if defined(__GCC_HAVE_DWARF2_CFI_ASM)
#define CFI(text) ".cfi_" text "\n"
#else
#define CFI(text) ""
#endif

/* Saves general register @name at its place in an array that the decoder indexes by register numbers. */
#define SAVE(name)                      \
	"pushq %" name "\n"             \
	CFI("adjust_cfa_offset 8")      \
	CFI("rel_offset %" name ", 0")
#define RESTORE(name)                   \
	"popq %" name "\n"              \
	CFI("adjust_cfa_offset -8")     \
	CFI("restore %" name)

/* The caller's stack pointer is the canonical frame address, because no return address was pushed: that is r11.  128 bytes below it
 * are the caller's red zone.  rsp, which has no argument, is saved as a filler.
 * The decoder gets the array and the address behind a cmpxchg of two registers: REX, 0x0f, 0xb1, ModRM. */
#define PLATFORM_SAVING_CALL(thunk, function)                                                                                   \
	static __attribute__((__used__, __noinline__)) void thunk##_decode(const uintptr_t *saved, const uint8_t *behind)       \
	{                                                                                                                       \
		uint32_t rex = behind[-4], modrm = behind[-1];                                                                  \
                                                                                                                                \
		function(QUIESCE_AS_POINTER(void *, saved[(rex & 1) << 3 | (modrm & 7)]),                                       \
			 saved[(rex & 4) << 1 | (modrm >> 3 & 7)]);                                                             \
	}                                                                                                                       \
	__attribute__((__naked__, __noinline__, __no_instrument_function__)) void thunk(void)                                   \
	{                                                                                                                       \
		__asm__(CFI("def_cfa %%rsp, 0")                                                                                 \
			CFI("register %%rip, %%r11")                                                                            \
			"leaq -128(%%rsp), %%rsp\n"                                                                             \
			CFI("adjust_cfa_offset 128") SAVE("%r15") SAVE("%r14") SAVE("%r13") SAVE("%r12") SAVE("%r11")           \
			CFI("rel_offset %%rip, 0") SAVE("%r10") SAVE("%r9") SAVE("%r8") SAVE("%rdi") SAVE("%rsi")               \
			SAVE("%rbp") "pushq %%rsp\n"                                                                            \
			CFI("adjust_cfa_offset 8") SAVE("%rbx") SAVE("%rdx") SAVE("%rcx") SAVE("%rax")                          \
			"movq %%rsp, %%rdi\n"                                                                                   \
			"movq %%r11, %%rsi\n"                                                                                   \
			"movq %%rsp, %%rbp\n"                                                                                   \
			CFI("def_cfa_register %%rbp")                                                                           \
			"andq $-16, %%rsp\n"                                                                                    \
			"call %P0\n"                                                                                            \
			"movq %%rbp, %%rsp\n"                                                                                   \
			CFI("def_cfa_register %%rsp") RESTORE("%rax") RESTORE("%rcx") RESTORE("%rdx") RESTORE("%rbx")           \
			"leaq 8(%%rsp), %%rsp\n"                                                                                \
			CFI("adjust_cfa_offset -8") RESTORE("%rbp") RESTORE("%rsi") RESTORE("%rdi") RESTORE("%r8")              \
			RESTORE("%r9") RESTORE("%r10") RESTORE("%r11")                                                          \
			CFI("register %%rip, %%r11") RESTORE("%r12") RESTORE("%r13") RESTORE("%r14") RESTORE("%r15")            \
			"leaq 128(%%rsp), %%rsp\n"                                                                              \
			CFI("adjust_cfa_offset -128")                                                                           \
			"notrack jmp *%%r11\n"                                                                                  \
			:                                                                                                       \
			: "i"(thunk##_decode));                                                                                 \
	}

#else

#define PLATFORM_SAVING_CALL(thunk, function)   \
	void thunk(void)                        \
	{                                       \
		__builtin_trap();               \
	}

#endif

#endif
