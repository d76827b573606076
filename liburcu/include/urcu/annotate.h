/* SPDX-License-Identifier: MIT */
/* urcu/annotate.h - annotations for ThreadSanitizer, which does not understand fences: the order that a fence and
 * relaxed accesses make together.
 *
 * A group is a fence and the accesses beside it: loads before a fence that makes them acquire, stores after one that
 * makes them release.  An annotation at a wrong place in its group ends the program, with a message.
 * Without ThreadSanitizer the macros expand to nothing.
 */
#ifndef QUIESCE_URCU_ANNOTATE_H
#define QUIESCE_URCU_ANNOTATE_H

#include <urcu/compiler.h>

#include <stdio.h>
#include <stdlib.h>

enum cmm_annotate { CMM_ANNOTATE_VOID, CMM_ANNOTATE_LOAD, CMM_ANNOTATE_STORE, CMM_ANNOTATE_MB };

typedef enum cmm_annotate cmm_annotate_t __attribute__((__unused__));

/* Begins a group. */
#define cmm_annotate_define(name) cmm_annotate_t name = CMM_ANNOTATE_VOID

#ifdef CMM_SANITIZE_THREAD

QUIESCE_BEGIN_DECLS

void __tsan_acquire(void *mem);
void __tsan_release(void *mem);

static inline void quiesce_urcu__annotate(cmm_annotate_t *group, int fits, cmm_annotate_t next, const char *what, const char *function)
{
	if (!fits) {
		fprintf(stderr, "%s(): %s does not fit its group of annotations\n", function, what);
		abort();
	}
	*group = next;
}

static inline cmm_annotate_t cmm_annotate_dereference(cmm_annotate_t *group) { return *group; }

QUIESCE_END_DECLS

#define quiesce_urcu__annotate_mem(mem) QUIESCE_AS_POINTER(void *, QUIESCE_AS_POINTER(uintptr_t, mem))
#define cmm_annotate_mem_acquire(mem) __tsan_acquire(quiesce_urcu__annotate_mem(mem))
#define cmm_annotate_mem_release(mem) __tsan_release(quiesce_urcu__annotate_mem(mem))

/* The fence of the group, after its loads or before its stores. */
#define cmm_annotate_group_mb_acquire(group)                                                                           \
	quiesce_urcu__annotate((group), *(group) == CMM_ANNOTATE_VOID || *(group) == CMM_ANNOTATE_LOAD, CMM_ANNOTATE_MB, \
			       "the barrier behind loads", __func__)
#define cmm_annotate_group_mb_release(group)                                                                           \
	quiesce_urcu__annotate((group), *(group) == CMM_ANNOTATE_VOID, CMM_ANNOTATE_MB, "the barrier before stores", __func__)

/* A load before the fence, or a store after it. */
#define cmm_annotate_group_mem_acquire(group, mem)                                                                     \
	(cmm_annotate_mem_acquire(mem),                                                                                \
	 quiesce_urcu__annotate((group), *(group) != CMM_ANNOTATE_MB,                                                  \
				*(group) == CMM_ANNOTATE_VOID ? CMM_ANNOTATE_LOAD : *(group), "a load", __func__))
#define cmm_annotate_group_mem_release(group, mem)                                                                     \
	(cmm_annotate_mem_release(mem),                                                                                \
	 quiesce_urcu__annotate((group), *(group) == CMM_ANNOTATE_MB, CMM_ANNOTATE_MB, "a store", __func__))

#else

#define cmm_annotate_mem_acquire(mem) QUIESCE_CAST(void, (mem))
#define cmm_annotate_mem_release(mem) QUIESCE_CAST(void, (mem))
#define cmm_annotate_group_mb_acquire(group) QUIESCE_CAST(void, (group))
#define cmm_annotate_group_mb_release(group) QUIESCE_CAST(void, (group))
#define cmm_annotate_group_mem_acquire(group, mem) (QUIESCE_CAST(void, (group)), QUIESCE_CAST(void, (mem)))
#define cmm_annotate_group_mem_release(group, mem) (QUIESCE_CAST(void, (group)), QUIESCE_CAST(void, (mem)))

#endif

#endif
