/* SPDX-License-Identifier: MIT */
/* renew.h - what the kernel was told of the process, and has forgotten: it was restored from a checkpoint; for this directory. */
#ifndef QUIESCE_PLATFORM_LINUX_RENEW_H
#define QUIESCE_PLATFORM_LINUX_RENEW_H

/* Tell it again, but for membarrier's registrations.  -ESTALE: that cannot be done, because threads have run unprotected since. */
int platform_renew(void);
/* Of the numbers of threads. */
void platform_renew_numbers(void);
/* Of the restartable sequences of the calling thread. */
int platform_renew_rseq(void);

#endif
