/* SPDX-License-Identifier: MIT */
/* syscount.h - the number of membarriers and futex wake-ups that this process made through syscall(). */
#ifndef QUIESCE_TOOL_SYSCOUNT_H
#define QUIESCE_TOOL_SYSCOUNT_H

#include <stdint.h>

struct syscount {
	uint64_t membarriers;
	uint64_t futex_wakes;
};
void syscount_read(struct syscount *ret);

#endif
