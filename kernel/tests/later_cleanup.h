/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Lock guards as those of kernels 6.17 to 7.1: the end of a scope does nothing
 * if the pointer has the value of an error, or is NULL.  A header that defines
 * guards, and is included after this one, has to work with them as well as with
 * those of the kernel that it is built for.
 */
#ifndef QUIESCE_LATER_CLEANUP_H
#define QUIESCE_LATER_CLEANUP_H

#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#include <linux/cleanup.h>
#include <linux/err.h>
/* These define guards of their own: they come first. */
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>

#undef __DEFINE_UNLOCK_GUARD
#define __DEFINE_UNLOCK_GUARD(_name, _type, _unlock, ...)				\
typedef struct {									\
	typeof(_type *) lock;								\
	__VA_ARGS__;									\
} class_##_name##_t;									\
											\
static inline void class_##_name##_destructor(typeof(class_##_name##_t *) _T)		\
{											\
	if (!IS_ERR_OR_NULL(_T->lock)) {						\
		_unlock;								\
	}										\
}											\
											\
static inline void *class_##_name##_lock_ptr(typeof(class_##_name##_t *) _T)		\
{											\
	return IS_ERR(_T->lock) ? NULL : (void *)(unsigned long)_T->lock;		\
}
#endif

#endif /* QUIESCE_LATER_CLEANUP_H */
