/* SPDX-License-Identifier: MIT */
/* urcu/syscall-compat.h - the numbers of system calls, where the system has some. */
#ifndef QUIESCE_URCU_SYSCALL_COMPAT_H
#define QUIESCE_URCU_SYSCALL_COMPAT_H

#if __has_include(<sys/syscall.h>)
#include <sys/syscall.h>
#endif

#endif
