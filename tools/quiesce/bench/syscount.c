/* SPDX-License-Identifier: MIT */
/* syscount.c - count the peers' system calls without help from the peers.
 *
 * Shared libraries call syscall() through the dynamic linker, which finds the program's definition first.  Only rare
 * calls come this way: no fast path of a C library uses syscall().
 */
#include "syscount.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <quiesce/atomic.h>

static struct syscount count;

typedef long (*syscall_fn)(long nr, ...);

static syscall_fn real_syscall(void)
{
	static syscall_fn real;
	syscall_fn found = quiesce_load_relaxed(&real);

	if (!found) {
		found = (syscall_fn)dlsym(RTLD_NEXT, "syscall");
		if (!found)
			abort();
		quiesce_store_relaxed(&real, found); /* Relaxed: a function of a library that was loaded long ago */
	}
	return found;
}

static void count_call(long nr, long first, long second)
{
	if (nr == SYS_membarrier && first == MEMBARRIER_CMD_PRIVATE_EXPEDITED)
		(void)quiesce_fetch_add_relaxed(&count.membarriers, (uint64_t)1);
	else if (nr == SYS_futex && (second & FUTEX_CMD_MASK) == FUTEX_WAKE)
		(void)quiesce_fetch_add_relaxed(&count.futex_wakes, (uint64_t)1);
}

/* Replaces the C library's function, counts, and calls it. */
long syscall(long nr, ...)
{
	long a[6];
	va_list args;

	va_start(args, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	count_call(nr, a[0], a[1]);
	return real_syscall()(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void syscount_read(struct syscount *ret)
{
	ret->membarriers = quiesce_load_relaxed(&count.membarriers);
	ret->futex_wakes = quiesce_load_relaxed(&count.futex_wakes);
}
