/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Private to shazptr.c: limits and parameters. */
#ifndef QUIESCE_SHAZPTR_LOCAL_H
#define QUIESCE_SHAZPTR_LOCAL_H

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/time64.h>

#define PAUSE_MIN_NS (20 * NSEC_PER_USEC)
#define PAUSE_MAX_NS (10 * NSEC_PER_MSEC)
/* A waiter helps if there was no scan for this long. */
#define HELP_JIFFIES max(HZ / 10, 1)

static int skip_synchronize_self_scan;
module_param(skip_synchronize_self_scan, int, 0644);
MODULE_PARM_DESC(skip_synchronize_self_scan,
		 "Leave the first scan to the scan thread, which spares callers a walk over all CPUs");

static uint stall_timeout = 21;
module_param(stall_timeout, uint, 0644);
MODULE_PARM_DESC(stall_timeout, "Report a wait after so many seconds, and after twice as many again; 0: never");

#ifdef QUIESCE_DEBUG
static bool early;
module_param(early, bool, 0444);
MODULE_PARM_DESC(early, "For tests: never start the scan thread, as before the module is initialised");
#else
#define early false
#endif

#endif /* QUIESCE_SHAZPTR_LOCAL_H */
