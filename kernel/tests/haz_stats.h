/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Shared by haz_refscale.ko and haz_rcuscale.ko: percentiles, lists of names, threads on CPUs. */
#ifndef QUIESCE_HAZ_STATS_H
#define QUIESCE_HAZ_STATS_H

#include <linux/kthread.h>
#include <linux/sort.h>
#include <linux/string.h>
#include <linux/types.h>

static inline int haz_compare(const void *left, const void *right)
{
	u64 a = *(const u64 *)left, b = *(const u64 *)right;

	return a < b ? -1 : a > b;
}

static inline void haz_sort(u64 *values, size_t nr)
{
	sort(values, nr, sizeof(*values), haz_compare, NULL);
}

/* @nr sorted values, at least one; the rank is that of upstream's scripts. */
static inline u64 haz_percentile(const u64 *values, size_t nr, unsigned int percent)
{
	size_t rank = nr * percent / 100;

	return values[rank ? rank - 1 : 0];
}

static inline u64 haz_median(const u64 *values, size_t nr)
{
	return nr % 2 ? values[nr / 2] : (values[nr / 2 - 1] + values[nr / 2]) / 2;
}

/* Starts a thread on a CPU; returns it or an error. */
static inline struct task_struct *haz_thread(int (*fn)(void *), void *arg, unsigned int cpu,
					     const char *name)
{
	struct task_struct *task = kthread_create(fn, arg, "%s/%u", name, cpu);

	if (!IS_ERR(task)) {
		kthread_bind(task, cpu);
		wake_up_process(task);
	}
	return task;
}

#endif /* QUIESCE_HAZ_STATS_H */
