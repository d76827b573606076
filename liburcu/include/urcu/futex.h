/* SPDX-License-Identifier: MIT */
/* urcu/futex.h - wait for a word to change, and wake the waiters.
 *
 * futex_async() and futex_noasync() are the system call futex: operations, arguments, return value and errno are
 * those of the call, and processes may share the word.  On a system without it FUTEX_WAIT polls the word every few
 * milliseconds: then timeouts are refused (EINVAL), and a wait ends only when the word has changed.
 * Context: signal handlers may call both, also for the same word.
 */
#ifndef QUIESCE_URCU_FUTEX_H
#define QUIESCE_URCU_FUTEX_H

#include <quiesce-urcu/name.h>
#include <urcu/arch.h>
#include <urcu/assert.h>
#include <urcu/compiler.h>
#include <urcu/config.h>
#include <urcu/syscall-compat.h>

#include <errno.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

QUIESCE_URCU_BEGIN

/* The C library hides it from programs in strict ISO C. */
struct timespec;
#ifndef __cplusplus
long syscall(long number, ...);
#endif

/* Both are these functions where the system has no futex. */
int compat_futex_noasync(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2, int32_t val3)
	QUIESCE_URCU_NAME(urcu_compat_futex_noasync);
int compat_futex_async(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2, int32_t val3)
	QUIESCE_URCU_NAME(urcu_compat_futex_async);

#if defined(SYS_futex)
#define CONFIG_RCU_HAVE_FUTEX 1

static inline int futex(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2, int32_t val3)
{
	return (int)syscall(SYS_futex, uaddr, op, val, timeout, uaddr2, val3);
}

static inline int futex_async(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2, int32_t val3)
{
	int result = futex(uaddr, op, val, timeout, uaddr2, val3);

	return caa_unlikely(result < 0 && errno == ENOSYS) ? compat_futex_async(uaddr, op, val, timeout, uaddr2, val3) : result;
}
#else
static inline int futex_async(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2, int32_t val3)
{
	return compat_futex_async(uaddr, op, val, timeout, uaddr2, val3);
}
#endif

static inline int futex_noasync(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2, int32_t val3)
{
	return futex_async(uaddr, op, val, timeout, uaddr2, val3);
}

QUIESCE_URCU_END

#endif
