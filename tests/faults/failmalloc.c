/* SPDX-License-Identifier: MIT */
/* failmalloc.c - a preloaded library: allocation number FAIL_AT fails, counted from 0; with FAIL_MMAP=1 those by mmap() too.
 *
 * With FAIL_FROM_THERE=1 all later ones fail too.  At the end the number of
 * allocations is written to the file named by FAIL_REPORT.
 */
#include <quiesce/atomic.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void *memalign(size_t alignment, size_t size);

static uint64_t count, fail_at = UINT64_MAX;
static int for_ever, fail_mmap;

static int fails(void)
{
	uint64_t now = quiesce_fetch_add_relaxed(&count, (uint64_t)1); /* Relaxed: a count. */

	if (now != fail_at && !(for_ever && now > fail_at))
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return fails() ? NULL : __libc_realloc(p, size);
}

void *memalign(size_t alignment, size_t size)
{
	return fails() ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **ret_p, size_t alignment, size_t size)
{
	void *p = memalign(alignment, size);

	if (!p)
		return ENOMEM;
	*ret_p = p;
	return 0;
}

void *mmap(void *start, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (fail_mmap && fails())
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, start, bytes, protection, flags, fd, offset);
}

/* Counting starts here, because allocations of the loader do not belong to the program. */
__attribute__((constructor(101))) static void begin(void)
{
	const char *at = getenv("FAIL_AT"), *from = getenv("FAIL_FROM_THERE");

	count = 0;
	for_ever = from && *from == '1';
	fail_mmap = getenv("FAIL_MMAP") != NULL;
	fail_at = at ? strtoull(at, NULL, 10) : UINT64_MAX;
}

__attribute__((destructor(101))) static void end(void)
{
	const char *path = getenv("FAIL_REPORT");
	uint64_t total = count;
	FILE *file;

	fail_at = UINT64_MAX;
	file = path ? fopen(path, "w") : NULL;
	if (!file)
		return;
	fprintf(file, "%llu\n", (unsigned long long)total);
	fclose(file);
}
