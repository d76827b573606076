/* SPDX-License-Identifier: MIT */
/* futex.c - sleeping, yielding, time. */
#include "platform/platform.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

static int wait_on(int op, uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	struct timespec timeout = { .tv_sec = (time_t)(timeout_ns / NS_PER_S), .tv_nsec = (long)(timeout_ns % NS_PER_S) };
	int saved = errno;
	long ret = syscall(SYS_futex, word, op, value, timeout_ns == PLATFORM_FOREVER ? NULL : &timeout, NULL, 0);
	int err = ret < 0 ? errno : 0;

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

/* Emulators may have it, and confuse the order of bytes. */
static bool pi_works(void)
{
	static uint32_t answer; /* 1 no, 2 yes */
	uint32_t known = quiesce_load_relaxed(&answer); /* Relaxed: all who ask get the same answer. */

	if (quiesce_unlikely(!known)) {
		uint32_t word = platform_tid();

		known = syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0 && word == 0 ? 2 : 1;
		quiesce_store_relaxed(&answer, known); /* Relaxed: as above. */
	}
	return known == 2;
}

int platform_lock_pi(uint32_t *word)
{
	struct timespec pause = { .tv_sec = 0, .tv_nsec = 1000000 };
	int saved = errno, err = ENOSYS;

	if (pi_works())
		while ((err = syscall(SYS_futex, word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0) < 0 ? errno : 0))
			if (err != EAGAIN && err != EINTR) /* its holder is gone: there is no end, as with any lock */
				syscall(SYS_nanosleep, &pause, NULL);
	errno = saved;
	return -err;
}

int platform_unlock_pi(uint32_t *word)
{
	int saved = errno, err = ENOSYS;

	if (pi_works())
		err = syscall(SYS_futex, word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) < 0 ? errno : 0;
	errno = saved;
	return -err;
}

void platform_yield(void)
{
	sched_yield();
}

uint64_t platform_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}
