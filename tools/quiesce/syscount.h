/* SPDX-License-Identifier: MIT */
/* syscount.h - how often this process called membarrier and woke a futex through syscall(). */
#ifndef QUIESCE_TOOL_SYSCOUNT_H
#define QUIESCE_TOOL_SYSCOUNT_H

#include <stdint.h>

struct syscount {
	uint64_t membarriers;
	uint64_t futex_wakes;
};
void syscount_read(struct syscount *ret);

#endif
