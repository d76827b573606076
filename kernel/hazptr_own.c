// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * hazptr.ko for a kernel that has hazard pointers of its own: an empty module,
 * so that DKMS finds what it wants to install, and scripts that load it go on.
 * Modules get the kernel's own linux/hazptr.h, which comes before ours.
 */
#include <linux/module.h>

MODULE_DESCRIPTION("Empty: this kernel has hazard pointers of its own");
MODULE_AUTHOR("The quiesce authors");
MODULE_LICENSE("Dual MIT/GPL");
