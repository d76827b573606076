/* SPDX-License-Identifier: MIT */
/* quiesce/arch/pin.h - keeps objects with restartable sequences loaded; private, for the files of CPUs. */
#ifndef QUIESCE_ARCH_PIN_H
#define QUIESCE_ARCH_PIN_H

#if defined(QUIESCE_UNPINNED) /* the library itself, which has a constructor of its own */
QUIESCE_LOCAL void quiesce__pin(void) {}
#else
__attribute__((__unused__)) static inline void quiesce__keep_this_loaded(void)
{
	static const char here = 0;

	quiesce__keep_loaded(&here);
}

/* The kernel keeps a pointer to each thread's last sequence, and kills a process where the pointer
 * is no longer valid.  So a shared object that contains a sequence stays loaded, even after
 * dlclose(): this adds an entry to the constructors of the object, and to the caller no instruction
 * on x86-64, and two on its unlikely way on arm64.  Volatile, as a constant would have a section of another type.  Local: a variable of an
 * inline function would be that of another shared object. */
QUIESCE_LOCAL void quiesce__pin(void)
{
	static void (*volatile entry)(void) __attribute__((__section__(".init_array"))) = quiesce__keep_this_loaded;

	__asm__ __volatile__("" : : "m"(entry));
}
#endif

#endif
