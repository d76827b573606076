/* SPDX-License-Identifier: MIT */
/* process.c - memory, environment, fork. */
#define _GNU_SOURCE
#include "platform/platform.h"
#include "renew.h"

#include <quiesce/detail/tls.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int platform_thread_exit_init(void (*hook)(void));
void platform_exceptions_init(void (*hook)(void));

/* ---- fork ---- */

static struct platform_canary *canary;

static void canary_init(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	if (madvise(p, page, MADV_WIPEONFORK)) {
		munmap(p, page);
		return;
	}
	canary = p;
}

/* A program that restores the process need not restore what madvise() was called for. */
int platform_renew(void)
{
	int saved = errno;

	if (canary)
		madvise(canary, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK);
	errno = saved;
	platform_renew_numbers();
	return platform_renew_rseq();
}

struct platform_canary *platform_canary(void)
{
	return canary;
}

bool platform_is_first_thread(void)
{
	return syscall(SYS_gettid) == getpid();
}

int platform_init(const struct platform_hooks *hooks)
{
	int err = platform_thread_exit_init(hooks->thread_exit);

	platform_process_begin();
	platform_exceptions_init(hooks->exception);
	canary_init();
	return err ? err : -pthread_atfork(hooks->fork_prepare, hooks->fork_parent, hooks->fork_child);
}

/* ---- memory ---- */

static void *map(size_t bytes, int protection, int flags)
{
	int saved = errno;
	void *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	errno = saved;
	return p == MAP_FAILED ? NULL : p;
}

static void advise_huge(void *start, size_t bytes)
{
	int saved = errno;

	madvise(start, bytes, MADV_HUGEPAGE); /* A kernel without huge pages refuses, which does no harm. */
	errno = saved;
}

uint64_t platform_random(void)
{
	uint64_t number = 0;
	int saved = errno;

	/* Early after boot there is no randomness yet: an address and the time are used instead. */
	if (syscall(SYS_getrandom, &number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = platform_now_ns() * 0x9e3779b97f4a7c15u ^ (uintptr_t)&number;
	errno = saved;
	return number;
}

/* Where address space is limited, take at most a sixteenth: the program needs the rest. */
void *platform_reserve(size_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur / 16)
		return NULL;
	return map(bytes, PROT_NONE, MAP_NORESERVE);
}

int platform_commit(void *start, size_t bytes)
{
	int saved = errno, err = mprotect(start, bytes, PROT_READ | PROT_WRITE) ? -errno : 0;

	errno = saved;
	return err;
}

void platform_release(void *start, size_t bytes)
{
	munmap(start, bytes);
}

/* The kernel places new mappings beside existing ones.  Arenas begin farther from those than a process hardly
 * ever grows; and each below the previous one, as far apart as they may grow.  Nothing depends on that: where
 * an address is taken the kernel selects another, and an arena without space to grow does not grow. */
#if QUIESCE_TSAN
#define FAR ((uintptr_t)1 << 38) /* ThreadSanitizer refuses addresses beyond a terabyte */
#else
#define FAR ((uintptr_t)1 << 40)
#endif
#define ARENA_ALIGN ((uintptr_t)1 << 21)

static uintptr_t place_of_arena(size_t max)
{
	static uintptr_t lowest;
	uintptr_t at = quiesce_load_relaxed(&lowest); /* Relaxed: a hint. */
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *near;

	if (!at) {
		near = map(page, PROT_NONE, MAP_NORESERVE);
		if (!near)
			return 0;
		munmap(near, page);
		at = (uintptr_t)near;
		at -= FAR < at / 4 ? FAR : at / 4; /* some CPUs have less address space */
	}
	at = (at - max) & ~(ARENA_ALIGN - 1);
	quiesce_store_relaxed(&lowest, at); /* Relaxed: a hint. */
	return at;
}

static void *map_at(uintptr_t start, size_t bytes, int protection, int flags)
{
	void *p = mmap((void *)start, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void *platform_arena_reserve(size_t bytes, size_t max)
{
	int saved = errno;
	void *start = map_at(place_of_arena(max), bytes, PROT_NONE, MAP_NORESERVE);

	errno = saved;
	return start;
}

#if !defined(MAP_FIXED_NOREPLACE)
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Kernels before 4.17 do not know the flag, and take the address as a hint. */
int platform_arena_extend(void *start, size_t bytes)
{
	int saved = errno, err = 0;
	void *p = map_at((uintptr_t)start, bytes, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE);

	if (!p)
		err = -errno;
	else if (p != start)
		err = munmap(p, bytes) ? -errno : -EEXIST;
	errno = saved;
	return err;
}

/* Present if the program is built with LeakSanitizer: objects in a queue of the library are not leaks. */
void __lsan_register_root_region(const void *start, size_t bytes) __attribute__((weak));
void __lsan_unregister_root_region(const void *start, size_t bytes) __attribute__((weak));

void *platform_pages_get(size_t bytes)
{
	void *start = map(bytes, PROT_READ | PROT_WRITE, 0);

	if (start && __lsan_register_root_region)
		__lsan_register_root_region(start, bytes);
	return start;
}

void platform_pages_put(void *start, size_t bytes)
{
	if (__lsan_unregister_root_region)
		__lsan_unregister_root_region(start, bytes);
	munmap(start, bytes);
}

void platform_objects_begin(void *start, size_t bytes)
{
	if (__lsan_register_root_region)
		__lsan_register_root_region(start, bytes);
}

/* Locked memory, after mlockall(), stays. */
void platform_objects_end(void *start, size_t bytes)
{
	int saved = errno;

	if (__lsan_unregister_root_region)
		__lsan_unregister_root_region(start, bytes);
	madvise(start, bytes, MADV_DONTNEED);
	errno = saved;
}

/* Present if the program is built with AddressSanitizer. */
void __asan_poison_memory_region(const volatile void *start, size_t bytes) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *start, size_t bytes) __attribute__((weak));

bool platform_poisons(void)
{
	return __asan_poison_memory_region && __asan_unpoison_memory_region;
}

void platform_poison(const void *start, size_t bytes, bool on)
{
	if (platform_poisons())
		(on ? __asan_poison_memory_region : __asan_unpoison_memory_region)(start, bytes);
}

/* From this size on new pages cost less than zeroing memory; from the second on huge pages save a TLB miss
 * for each lookup. */
#define LINES_PAGES ((size_t)128 << 10)
#define LINES_HUGE ((size_t)4 << 20)

void *platform_lines_get(size_t bytes)
{
	void *start;

	if (bytes >= LINES_PAGES) {
		start = platform_pages_get(bytes);
		if (start && bytes >= LINES_HUGE)
			advise_huge(start, bytes);
		return start;
	}
	start = aligned_alloc(QUIESCE_CACHELINE, (bytes + QUIESCE_CACHELINE - 1) & ~((size_t)QUIESCE_CACHELINE - 1));
	return start ? memset(start, 0, bytes) : NULL;
}

void *platform_block_get(size_t bytes)
{
	return malloc(bytes);
}

void platform_block_put(void *start, size_t bytes)
{
	(void)bytes;
	free(start);
}

void platform_lines_put(void *start, size_t bytes)
{
	if (bytes >= LINES_PAGES)
		platform_pages_put(start, bytes);
	else
		free(start);
}

void platform_free(void *object)
{
	free(object);
}

/* ---- environment ---- */

const char *platform_getenv(const char *name)
{
	return getauxval(AT_SECURE) ? NULL : getenv(name);
}

void platform_write_stderr(const char *text, size_t length)
{
	int saved = errno;

	syscall(SYS_write, STDERR_FILENO, text, length); /* syscall() is not a cancellation point */
	errno = saved;
}

void platform_die(void)
{
	abort();
}
