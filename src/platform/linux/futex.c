/* SPDX-License-Identifier: MIT */
/* futex.c - sleeping, yielding, time.
 *
 * I1. Time goes on at least as fast as it is slept.  A program may be shown a clock that stands still, or is slow, by what replaces
 *     clock_gettime(); the kernel ends sleeps by its own.  So a sleep that lasted as long as it was to, while the clock did not, sets
 *     the library's time on, and what is to end after a while does so.  Where nobody sleeps nothing is decided by time alone.
 * I2. Time does not go back.  The clock does where the process is restored from a checkpoint on a machine that was started later: by
 *     days, and what was to be done soon would be done then.  So the library's time goes on where it was.
 */
#include "platform/platform.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

#define NOTE_NS (64u * 1000000u) /* how often a time is noted */
#define BACK_NS NS_PER_S         /* clocks of CPUs differ by less */

/* Read all the time, written now and then. */
static struct {
	uint64_t latest; /* the newest time that was noted */
	uint64_t ahead;  /* so far is the library's time ahead of the clock */
} times __attribute__((aligned(QUIESCE_CACHELINE)));

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* I2.  Of the threads that notice it one adds what is missing. */
static QUIESCE_COLD uint64_t catch_up(uint64_t ahead, uint64_t missing)
{
	__atomic_compare_exchange_n(&times.ahead, &ahead, ahead + missing, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return clock_ns() + quiesce_load_relaxed(&times.ahead); /* Relaxed: a time orders nothing. */
}

uint64_t platform_now_ns(void)
{
	/* Relaxed: hints.  Both are read before the clock, so that a caller that is preempted in between finds none that went back. */
	uint64_t ahead = quiesce_load_relaxed(&times.ahead), latest = quiesce_load_relaxed(&times.latest);
	uint64_t now = clock_ns() + ahead;

	if (quiesce_likely(now - latest < NOTE_NS))
		return now;
	if (quiesce_unlikely(now < latest))
		return latest - now < BACK_NS ? now : catch_up(ahead, latest - now);
	quiesce_store_relaxed(&times.latest, now); /* Relaxed: as above. */
	return now;
}

/* I1.  Clocks that go may differ by some nanoseconds.  Two threads that see it at the same time may both add. */
static void has_slept(uint64_t since, uint64_t ns)
{
	uint64_t went = platform_now_ns() - since;

	if (quiesce_unlikely(went < ns / 2 && ns < PLATFORM_FOREVER))
		quiesce_fetch_add_relaxed(&times.ahead, ns - went); /* Relaxed: as above. */
}

static int wait_on(int op, uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	struct timespec timeout = { .tv_sec = (time_t)(timeout_ns / NS_PER_S), .tv_nsec = (long)(timeout_ns % NS_PER_S) };
	uint64_t since = timeout_ns == PLATFORM_FOREVER ? 0 : platform_now_ns();
	int saved = errno;
	long ret = syscall(SYS_futex, word, op, value, timeout_ns == PLATFORM_FOREVER ? NULL : &timeout, NULL, 0);
	int err = ret < 0 ? errno : 0;

	if (err == ETIMEDOUT)
		has_slept(since, timeout_ns);
	errno = saved;
	return err == ETIMEDOUT ? -ETIMEDOUT : 0;
}

int platform_futex_wait(uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	return wait_on(FUTEX_WAIT_PRIVATE, word, value, timeout_ns);
}

int platform_futex_wait_shared(uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	return wait_on(FUTEX_WAIT, word, value, timeout_ns);
}

uint32_t platform_futex_wake(uint32_t *word, uint32_t nr_threads)
{
	int saved = errno;
	long woken = syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, nr_threads, NULL, NULL, 0);

	errno = saved;
	return woken > 0 ? (uint32_t)woken : 0;
}

/* Emulators may have it, and confuse the order of bytes.  @tid: the caller's, of which the kernel is not asked again: a sandbox may forbid
 * that when a lock is contended for the first time. */
static bool pi_works(uint32_t tid)
{
	static uint32_t answer; /* 1 no, 2 yes */
	uint32_t known = quiesce_load_relaxed(&answer); /* Relaxed: all who ask get the same answer. */

	if (quiesce_unlikely(!known)) {
		uint32_t word = tid;

		known = syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0 && word == 0 ? 2 : 1;
		quiesce_store_relaxed(&answer, known); /* Relaxed: as above. */
	}
	return known == 2;
}

int platform_lock_pi(uint32_t *word, uint32_t tid)
{
	struct timespec pause = { .tv_sec = 0, .tv_nsec = 1000000 };
	int saved = errno, err = ENOSYS;

	if (pi_works(tid))
		while ((err = syscall(SYS_futex, word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) < 0 ? errno : 0))
			if (err != EAGAIN && err != EINTR) /* its holder is gone: there is no end, as with any lock */
				syscall(SYS_nanosleep, &pause, NULL);
	errno = saved;
	return -err;
}

int platform_unlock_pi(uint32_t *word)
{
	int saved = errno, err = ENOSYS;

	if (pi_works(quiesce_load_relaxed(word) & FUTEX_TID_MASK)) /* Relaxed: the caller's own number is in it. */
		err = syscall(SYS_futex, word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) < 0 ? errno : 0;
	errno = saved;
	return -err;
}

void platform_yield(void)
{
	sched_yield();
}
