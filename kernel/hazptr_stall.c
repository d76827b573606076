// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Hazard pointers: the times of stall reports, and the counters in debugfs. */
#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/seq_file.h>

#include <linux/hazptr.h>

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

void stall_blame(struct stall *stall, const struct hazptr_owner *owner)
{
	stall->owner = *owner;
}

static int stats_show(struct seq_file *file, void *unused)
{
	struct hazptr_stats stats;

	hazptr_get_stats(&stats);
	seq_printf(file, "calls %llu\nrun %llu\nscans %llu\nslots %llu\n",
		   stats.calls, stats.run, stats.scans, stats.slots);
	seq_printf(file, "kept %llu\nwaiting %llu\ncontexts %llu\n",
		   stats.kept, stats.waiting, stats.contexts);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static struct dentry *debugfs;

void __init hazptr_show_stats(void)
{
	debugfs = debugfs_create_dir("hazptr", NULL);
	debugfs_create_file("stats", 0444, debugfs, NULL, &stats_fops);
}

void hazptr_hide_stats(void)
{
	debugfs_remove(debugfs);
}
