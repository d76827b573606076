/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * KTAP lines in the kernel's log, for modules on kernels that have no KUnit.
 * The module leaves pr_fmt() as it is: lines of KTAP have no prefix.
 */
#ifndef QUIESCE_KTAP_H
#define QUIESCE_KTAP_H

#include <linux/atomic.h>
#include <linux/printk.h>
#include <linux/types.h>

static atomic_t ktap_cases = ATOMIC_INIT(0);

static inline void ktap_start(unsigned int plan)
{
	atomic_set(&ktap_cases, 0);
	pr_info("KTAP version 1\n");
	pr_info("1..%u\n", plan);
}

static inline bool ktap_case(bool good, const char *name)
{
	pr_info("%s %d %s\n", good ? "ok" : "not ok", atomic_inc_return(&ktap_cases), name);
	return good;
}

static inline void ktap_skip(const char *name, const char *why)
{
	pr_info("ok %d %s # SKIP %s\n", atomic_inc_return(&ktap_cases), name, why);
}

#define KTAP_OK(cond, name) ktap_case(cond, name)

#endif /* QUIESCE_KTAP_H */
