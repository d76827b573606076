// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Hazard pointers: the times of stall reports. */
#include <linux/jiffies.h>
#include <linux/moduleparam.h>

#include "hazptr_scan.h"

static uint stall_timeout = 21;
module_param(stall_timeout, uint, 0644);
MODULE_PARM_DESC(stall_timeout,
		 "Report an object that is protected for so many seconds, and twice as many again; 0: never");

void stall_start(struct stall *stall)
{
	stall->start = jiffies;
	stall->after = READ_ONCE(stall_timeout) * HZ;
}

bool stall_report_due(struct stall *stall)
{
	if (!stall->after || time_before(jiffies, stall->start + stall->after))
		return false;
	stall->after *= 2;
	return true;
}

void stall_blame(struct stall *stall, const struct hazptr_context *ctx, int cpu)
{
	stall->ctx = ctx;
	stall->cpu = cpu;
}
