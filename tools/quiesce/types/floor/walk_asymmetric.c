/* SPDX-License-Identifier: MIT */
/* walk_asymmetric.c - hazard pointers by hand with asymmetric fences: a store for each protection, a membarrier for
 * each scan.
 * raw, whole file: not a part of the library, but of the comparison. */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static void membarrier_all(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

#define WALK_SCHEME asymmetric
#define WALK_WHAT "hazard pointers by hand, a store for each protection, a membarrier for each scan"
#define WALK_RANK 410
#define plain_set(slot, address)                                       \
	do {                                                           \
		__atomic_store_n((slot), (address), __ATOMIC_RELEASE); \
		__asm__ __volatile__("" ::: "memory");                 \
	} while (0)
#define plain_fence() membarrier_all()
#include "types/walk_plain.h"

static int walk_init(enum op_fence fence)
{
	(void)fence;
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ? -errno : 0;
}

#include "types/walk_types.h"
