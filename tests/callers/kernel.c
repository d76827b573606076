/* SPDX-License-Identifier: MIT */
/* kernel.c - this program's pthread_create(), mmap(), syscall() and so on: the library, which is linked statically, calls these. */
#include "kernel.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <sys/mman.h>

#define OLD_NUMBERS 0x1000000 /* what numbers were greater by before the restore */
#define EXPEDITED_RSEQ (1 << 7)
#define REGISTER_EXPEDITED_RSEQ (1 << 8)

/* Return the C library's function; by memcpy(), because ISO C has no conversion of void * to a function pointer. */
#define real(name) (real_##name ? (void)0 : find_real(#name, &real_##name))

static void find_real(const char *name, void *ret)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		abort();
	memcpy(ret, &found, sizeof found);
}

/* ---- failures ---- */

const char *const fail_names[NR_FAILS] = { "pthread_create", "mmap",       "mprotect",  "madvise",
					   "futex (EINTR)",  "futex (wake)", "membarrier" };

static int counts[NR_FAILS], wanted[NR_FAILS];
static bool from_start_read;

/* Initialise before the first call of the process, whichever that is. */
static void read_from_start(void)
{
	const char *text = from_start_read ? NULL : getenv("CALLERS_FAIL");
	int what, n;

	from_start_read = true;
	if (text && sscanf(text, "%d:%d", &what, &n) == 2)
		wanted[what] = n;
}

void kernel_fails(int what, int n)
{
	from_start_read = true;
	memset(wanted, 0, sizeof wanted);
	memset(counts, 0, sizeof counts);
	quiesce_store_relaxed(&wanted[what], n); /* Relaxed: other threads of the cell may be a call late. */
}

int kernel_count(int what)
{
	return flag_get(&counts[what]);
}

void kernel_fails_from_start(int what, int n)
{
	char text[40];

	snprintf(text, sizeof text, "%d:%d", what, n);
	setenv("CALLERS_FAIL", text, 1);
}

static bool fails(int what)
{
	read_from_start();
	/* Relaxed: a count. */
	return quiesce_fetch_add_relaxed(&counts[what], 1) + 1 == flag_get(&wanted[what]);
}

static long error(int err)
{
	errno = err;
	return -1;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	static int (*real_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	real(pthread_create);
	return fails(FAIL_THREAD) ? EAGAIN : real_pthread_create(thread, attr, fn, arg);
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
	static void *(*real_mmap)(void *, size_t, int, int, int, off_t);

	real(mmap);
	if (!fails(FAIL_MMAP))
		return real_mmap(at, length, protection, flags, fd, offset);
	errno = ENOMEM;
	return MAP_FAILED;
}

int mprotect(void *at, size_t length, int protection)
{
	static int (*real_mprotect)(void *, size_t, int);

	real(mprotect);
	return fails(FAIL_MPROTECT) ? (int)error(ENOMEM) : real_mprotect(at, length, protection);
}

int madvise(void *at, size_t length, int advice)
{
	static int (*real_madvise)(void *, size_t, int);

	real(madvise);
	return fails(FAIL_MADVISE) ? (int)error(EINVAL) : real_madvise(at, length, advice);
}

/* ---- a restore ---- */

static int lies, restored, registered;
static long (*real_syscall)(long nr, ...);

void kernel_before_restore(int what)
{
	quiesce_store_relaxed(&lies, what); /* Relaxed: before there are threads. */
}

void kernel_restore(void)
{
	flag_set(&restored);
}

/* Return by how much thread ids are greater than the kernel's; 0 since the restore. */
static pid_t offset(void)
{
	return flag_get(&lies) & RENUMBERS && !flag_get(&restored) ? OLD_NUMBERS : 0;
}

static pid_t of_kernel(long number)
{
	return (pid_t)(number >= OLD_NUMBERS ? number - OLD_NUMBERS : number);
}

pid_t getpid(void)
{
	real(syscall);
	return (pid_t)real_syscall(SYS_getpid) + offset();
}

/* The old machine had one CPU. */
long sysconf(int name)
{
	static long (*real_sysconf)(int name);

	real(sysconf);
	if (name == _SC_NPROCESSORS_CONF && flag_get(&lies) & MORE_CPUS && !flag_get(&restored))
		return 1;
	return real_sysconf(name);
}

/* True if @cmd needs a registration that was not made since the restore. */
static bool is_forgotten(int cmd)
{
	int registration = cmd == EXPEDITED_RSEQ ? REGISTER_EXPEDITED_RSEQ : MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;

	if (!(flag_get(&lies) & FORGETS_MEMBARRIER) || !flag_get(&restored) || cmd == MEMBARRIER_CMD_QUERY)
		return false;
	if (cmd == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED || cmd == REGISTER_EXPEDITED_RSEQ) {
		quiesce_store_relaxed(&registered, flag_get(&registered) | cmd); /* Relaxed: a thread that misses one registers it. */
		return false;
	}
	return !(flag_get(&registered) & registration);
}

static long call_membarrier(const long *a)
{
	if (fails(FAIL_MEMBARRIER) || is_forgotten((int)a[0]))
		return error(EPERM);
	return real_syscall(SYS_membarrier, a[0], a[1], a[2]);
}

/* A thread id that the kernel does not know. */
static bool unlocked_pi(uint32_t *word, int op)
{
	if ((op & FUTEX_CMD_MASK) != FUTEX_UNLOCK_PI || !(flag_get(&lies) & RENUMBERS))
		return false;
	/* Relaxed: the lock is ours. */
	if ((quiesce_load_relaxed(word) & FUTEX_TID_MASK) != (uint32_t)real_syscall(SYS_gettid) + OLD_NUMBERS)
		return false;
	quiesce_store_relaxed(word, 0); /* Relaxed: no thread sleeps for it: the word only tests whether the kernel has such futexes. */
	return true;
}

static long call_futex(const long *a)
{
	bool waits = (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT || (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;

	if (waits && fails(FAIL_FUTEX_EINTR))
		return error(EINTR);
	if (waits && fails(FAIL_FUTEX_WAKE))
		return 0;
	if (unlocked_pi((uint32_t *)a[0], (int)a[1]))
		return 0;
	return real_syscall(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static long call_tgkill(const long *a)
{
	if (a[0] - offset() != real_syscall(SYS_getpid))
		return error(ESRCH);
	return real_syscall(SYS_tgkill, a[0] - offset(), a[1] - offset(), a[2]);
}

long syscall(long nr, ...)
{
	va_list args;
	long a[6];

	va_start(args, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	real(syscall);
	switch (nr) {
	case SYS_membarrier:
		return call_membarrier(a);
	case SYS_futex:
		return call_futex(a);
	case SYS_gettid:
		return real_syscall(SYS_gettid) + offset();
	case SYS_tgkill:
		return call_tgkill(a);
	case SYS_sched_getaffinity:
	case SYS_sched_setaffinity:
		a[0] = of_kernel(a[0]);
		break;
	}
	return real_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
