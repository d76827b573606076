/* SPDX-License-Identifier: MIT */
/* membarrier.c - the heavy half of the asymmetric fence.
 *
 * Some sandboxes return success for every system call.  A real kernel refuses an unknown command, and refuses
 * the expedited command before registration; a kernel that does neither is not trusted.  (A membarrier that
 * passes this test and still does nothing cannot be detected quickly; `quiesce doctor` tries,
 * QUIESCE_FENCE=full helps.)
 */
#define _GNU_SOURCE
#include "platform/platform.h"
#include "renew.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ENOMEM_TRIES 10000
#define CMD_PRIVATE_EXPEDITED_RSEQ (1 << 7) /* since Linux 5.10; headers may be older */
#define CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ (1 << 8)
#define CMD_THAT_NO_KERNEL_HAS (1 << 30)

static int membarrier(int cmd, unsigned int flags)
{
	return syscall(SYS_membarrier, cmd, flags, 0) < 0 ? -errno : 0;
}

int platform_membarrier_init(void)
{
	long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	int err;

	if (known < 0)
		return -errno;
	if (!(known & MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		return -ENOSYS;
	if (membarrier(CMD_THAT_NO_KERNEL_HAS, 0) == 0 || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 1u << 31) == 0)
		return -EREMOTEIO;
	err = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0);
	/* Registered now, because with many threads it takes long later; a failure shows when the command is
	 * used. */
	membarrier(CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0);
	return err ? err : membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
}

/* Kernels for very many CPUs allocate memory for the command, which may fail for a while. */
static int membarrier_retry(int cmd)
{
	struct timespec pause = { .tv_sec = 0, .tv_nsec = 1000000 };
	int err = membarrier(cmd, 0);

	for (int i = 0; err == -ENOMEM && i < ENOMEM_TRIES; i++) {
		syscall(SYS_nanosleep, &pause, NULL);
		err = membarrier(cmd, 0);
	}
	return err;
}

/* -EPERM: the process is not registered.  It was registered, unless this is the first use of @cmd: so it was
 * restored from a checkpoint by a program that does not restore registrations, and the kernel may have lost
 * the others, too. */
static int registered(int cmd, int registration)
{
	int err = membarrier_retry(cmd);

	if (err == -EPERM) {
		err = membarrier(registration, 0);
		if (!err)
			err = platform_renew();
		if (!err)
			err = membarrier_retry(cmd);
	}
	return err == -EINVAL ? -ENOSYS : err;
}

int platform_membarrier(void)
{
	return registered(MEMBARRIER_CMD_PRIVATE_EXPEDITED, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

int platform_try_membarrier(void)
{
	return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
}

int platform_membarrier_restart(void)
{
	return registered(CMD_PRIVATE_EXPEDITED_RSEQ, CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ);
}
