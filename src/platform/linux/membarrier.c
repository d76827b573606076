/* SPDX-License-Identifier: MIT */
/* membarrier.c - the heavy half of the asymmetric fence.
 *
 * Some sandboxes answer yes to every system call.  A real kernel refuses an unknown
 * command, and refuses the expedited command before registration; one that does
 * neither is not believed.  (A membarrier that passes this and still does nothing
 * cannot be told apart quickly; `quiesce doctor` tries, QUIESCE_FENCE=full helps.)
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
#define CMD_PRIVATE_EXPEDITED_RSEQ (1 << 7) /* since Linux 5.10, and headers may be older */
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
	/* Now, because later, with many threads, it takes long; whether it worked is asked when it is needed. */
	membarrier(CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0);
	return err ? err : membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
}

/* Kernels for very many CPUs allocate for the command, and may be out of memory just now. */
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

/* -EPERM: the process is not registered.  It was, unless this is the first use of @cmd: then it has been restored from a checkpoint by
 * a program that does not know of registrations, and forgotten, too, may be what else the kernel was told. */
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

int platform_membarrier_restart(void)
{
	return registered(CMD_PRIVATE_EXPEDITED_RSEQ, CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ);
}
