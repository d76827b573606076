// SPDX-License-Identifier: MIT
/* futex.c - urcu/futex.h where the system has no futex: waiters poll the word, so no wake-up is needed. */
#include <urcu/futex.h>
#include <urcu/uatomic.h>

#include <poll.h>

#define LOOK_EVERY_MS 10

static int refuse(void)
{
	errno = EINVAL;
	return -1;
}

int compat_futex_async(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2, int32_t val3)
{
	if (timeout || uaddr2 || val3 || (op != FUTEX_WAIT && op != FUTEX_WAKE))
		return refuse();
	cmm_smp_mb(); /* full barrier, as in the system call */
	while (op == FUTEX_WAIT && uatomic_load(uaddr, CMM_ACQUIRE) == val) {
		if (poll(NULL, 0, LOOK_EVERY_MS) < 0)
			return -1; /* errno is EINTR */
	}
	return 0;
}

int compat_futex_noasync(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2, int32_t val3)
{
	return compat_futex_async(uaddr, op, val, timeout, uaddr2, val3);
}
