/* SPDX-License-Identifier: MIT */
/* futex.c - sleep, yield, and read the time.
 *
 * I1. Time advances at least as fast as it is slept.  A program may see a clock that stands still, or is
 *     slow, because clock_gettime() was replaced; the kernel ends sleeps by its own clock.  So a sleep that
 *     lasted its whole time while the clock did not advances the library's time, and timeouts still expire.
 *     Where no thread sleeps nothing depends on time alone.
 * I2. Time does not go back.  The clock does where the process is restored from a checkpoint on a machine
 *     that was started later: by days, and timeouts would expire days late.  So the library's time continues
 *     from where it was.
 */
#include "platform/platform.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

#define NOTE_NS (64u * 1000000u) /* interval at which a time is recorded */
#define BACK_NS NS_PER_S         /* the clocks of CPUs differ by less */

/* Read often, written rarely. */
static struct {
	uint64_t latest; /* the newest time that was recorded */
	uint64_t ahead;  /* distance of the library's time from the clock */
} times __attribute__((aligned(QUIESCE_CACHELINE)));

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* I2: of the threads that notice it one adds the missing time. */
static QUIESCE_COLD uint64_t catch_up(uint64_t ahead, uint64_t missing)
{
	__atomic_compare_exchange_n(&times.ahead, &ahead, ahead + missing, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return clock_ns() + quiesce_load_relaxed(&times.ahead); /* Relaxed: a time orders nothing. */
}

uint64_t platform_now_ns(void)
{
	/* Relaxed: hints.  Both are read before the clock, so that a caller that is preempted in between does
	 * not see time go back. */
	uint64_t ahead = quiesce_load_relaxed(&times.ahead), latest = quiesce_load_relaxed(&times.latest);
	uint64_t now = clock_ns() + ahead;

	if (quiesce_likely(now - latest < NOTE_NS))
		return now;
	if (quiesce_unlikely(now < latest))
		return latest - now < BACK_NS ? now : catch_up(ahead, latest - now);
	quiesce_store_relaxed(&times.latest, now); /* Relaxed: a hint. */
	return now;
}

/* I1. Clocks that run may differ by some nanoseconds.  Two threads that notice it at once may both add the
 *     difference. */
static void has_slept(uint64_t since, uint64_t ns)
{
	uint64_t went = platform_now_ns() - since;

	if (quiesce_unlikely(went < ns / 2 && ns < PLATFORM_FOREVER))
		quiesce_fetch_add_relaxed(&times.ahead, ns - went); /* Relaxed: a hint. */
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

/* True if priority inheritance works.  Emulators may implement the call with the wrong byte order.  @tid: the caller's.  The kernel is not
 * asked for it here: a sandbox may forbid that call by the time a lock is contended for the first time. */
static bool pi_works(uint32_t tid)
{
	static uint32_t answer; /* 1 no, 2 yes */
	uint32_t known = quiesce_load_relaxed(&answer); /* Relaxed: every caller computes the same answer. */

	if (quiesce_unlikely(!known)) {
		uint32_t word = tid;

		known = syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0 && word == 0 ? 2 : 1;
		quiesce_store_relaxed(&answer, known); /* Relaxed: every caller computes the same answer. */
	}
	return known == 2;
}

int platform_lock_pi(uint32_t *word, uint32_t tid)
{
	struct timespec pause = { .tv_sec = 0, .tv_nsec = 1000000 };
	int saved = errno, err = ENOSYS;

	if (pi_works(tid))
		while ((err = syscall(SYS_futex, word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) < 0 ? errno : 0))
			if (err != EAGAIN && err != EINTR) /* the holder has ended: the wait never ends, as with any lock */
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
