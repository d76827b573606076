/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Planted bugs, in builds with QUIESCE_MUTANTS=1 only: the tests must notice
 * each of them.  The parameter mutant=NAME of shazptr.ko and hazptr.ko plants one.
 */
#ifndef QUIESCE_KERNEL_MUTANTS_H
#define QUIESCE_KERNEL_MUTANTS_H

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#define SHAZPTR_MUTANTS(X)								\
	X(no_reader_fence)	/* the guard has no barrier */				\
	X(no_updater_fence)	/* synchronize_shazptr() has no barrier */		\
	X(no_wait)		/* synchronize_shazptr() returns at once */		\
	X(lost_ptr)		/* the scan looks up address 0, not the waiter's */	\
	X(no_wildcard)		/* no wait is for the wildcard */			\
	X(inner_clear)		/* a nested guard empties the slot */			\
	X(lost_group)		/* the scan skips half of the CPUs */			\
	X(lost_upgrade)		/* the scan takes a nested guard's wildcard for a new guard */	\
	X(lost_mark)		/* the scan takes a marked slot for a new guard */

#define HAZPTR_MUTANTS(X)								\
	X(no_reader_fence)	/* protecting has no barrier */				\
	X(no_scan_fence)	/* the scan has no barrier */				\
	X(no_recheck)		/* the pointer is not loaded again */			\
	X(no_scan)		/* callbacks run at once */				\
	X(skip_slot)		/* the last slot of each context is not scanned */	\
	X(stale)		/* a slot is seen with the value of the scan before */	\
	X(early_barrier)	/* hazptr_barrier() does not wait for the last callback */

#define __MUTANT_SHAZPTR(name) SHAZPTR_MUTANT_##name,
#define __MUTANT_HAZPTR(name) HAZPTR_MUTANT_##name,
enum { SHAZPTR_MUTANTS(__MUTANT_SHAZPTR) };
enum { HAZPTR_MUTANTS(__MUTANT_HAZPTR) };

extern unsigned long shazptr_planted, hazptr_planted;

#define SHAZPTR_MUTANT(name) (READ_ONCE(shazptr_planted) & BIT(SHAZPTR_MUTANT_##name))
#define HAZPTR_MUTANT(name) (READ_ONCE(hazptr_planted) & BIT(HAZPTR_MUTANT_##name))

/*
 * Defines the parameter mutant= of a module whose mutants are LIST and whose
 * variable is PLANTED.
 */
#define __MUTANT_NAME(name) #name,
#define DEFINE_MUTANTS(LIST, PLANTED)							\
unsigned long PLANTED;									\
EXPORT_SYMBOL_GPL(PLANTED);								\
static int PLANTED##_set(const char *value, const struct kernel_param *kp)		\
{											\
	static const char *const names[] = { LIST(__MUTANT_NAME) };			\
	int i = sysfs_match_string(names, value);					\
											\
	if (i < 0)									\
		return i;								\
	WRITE_ONCE(PLANTED, BIT(i));							\
	return 0;									\
}											\
static const struct kernel_param_ops PLANTED##_ops = { .set = PLANTED##_set };		\
module_param_cb(mutant, &PLANTED##_ops, NULL, 0200)

#endif /* QUIESCE_KERNEL_MUTANTS_H */
