/* SPDX-License-Identifier: MIT */
/* traced.c - records the code that a test runs, for scripts/line_tests.py: linked into each object of a build with
 * -fsanitize-coverage=trace-pc.
 *
 * gcov's counters are lost where a process ends by _exit(), a signal or in a simulated run, which restores all variables.  So
 * here each basic block sets a byte of a mapped file that all processes of the test share:
 * $TRACE_DIRECTORY/NAME, where NAME is that of the object; the byte's place is the block's offset in the object, divided by four.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES (4ul << 20)

#define HIDDEN __attribute__((visibility("hidden")))

extern const char __ehdr_start[] HIDDEN;
HIDDEN void __sanitizer_cov_trace_pc(void);

static unsigned char *map;

/* Plain accesses: all write the same value. */
void __sanitizer_cov_trace_pc(void)
{
	uintptr_t at = ((uintptr_t)__builtin_return_address(0) - (uintptr_t)__ehdr_start) / 4;

	if (map && at < BYTES && !map[at])
		map[at] = 1;
}

/* By the system calls: a test may have a mmap() or an open() of its own. */
static __attribute__((constructor(101))) void begin(void)
{
	const char *directory = getenv("TRACE_DIRECTORY"), *name;
	char path[512];
	Dl_info info;
	long fd, start;

	if (!directory || !dladdr(__ehdr_start, &info))
		return;
	name = strrchr(info.dli_fname, '/');
	snprintf(path, sizeof path, "%s/%s", directory, name ? name + 1 : info.dli_fname);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (syscall(SYS_ftruncate, fd, BYTES) == 0) {
		start = syscall(SYS_mmap, 0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (start > 0 || start < -4095)
			map = (unsigned char *)start;
	}
	syscall(SYS_close, fd);
}
