/* SPDX-License-Identifier: MIT */
/* renew.h - repeat the registrations that the kernel has lost in a process restored from a checkpoint; for
 * this directory. */
#ifndef QUIESCE_PLATFORM_LINUX_RENEW_H
#define QUIESCE_PLATFORM_LINUX_RENEW_H

/* Repeat all registrations but those of membarrier.  -ESTALE: impossible, because threads have run
 * unprotected since. */
int platform_renew(void);
/* Note that thread ids may have changed. */
void platform_renew_numbers(void);
/* Check that the calling thread's restartable sequences are still registered; -ESTALE: they are not. */
int platform_renew_rseq(void);

#endif
