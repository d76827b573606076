/* SPDX-License-Identifier: MIT */
/* fence.h - the asymmetric fence: light on the reader, heavy on the updater.
 *
 * Guarantee.  Of a light fence in one thread and a heavy fence in another, one
 * comes first: either every access before the light fence is visible to every
 * access after the heavy fence, or the reverse.  In light mode the light fence is
 * a compiler barrier and the heavy one a membarrier; in full mode both are full
 * fences, and every "light" site must go through quiesce_fence_mode() or a slow
 * path that fences (for RCU: quiesce__rcu_lock_slow()).
 */
#ifndef QUIESCE_FENCE_H
#define QUIESCE_FENCE_H

#include "platform/platform.h"

#ifndef quiesce_weakened
#define quiesce_weakened(label, kind) 0
#endif

/* Fixed at the first use, and read by every fence: alone on its cache line, so that no counter shares that
 * line. */
struct quiesce__fixed {
	uint32_t light; /* 1 in light mode */
} __attribute__((aligned(64)));
extern struct quiesce__fixed quiesce__fixed;

void quiesce__membarrier(void); /* counts the call; ends the process if the kernel revokes membarrier and no other fence works */

#define quiesce_fence_heavy(label)                                      \
	do {                                                            \
		if (quiesce_weakened(label, HEAVY))                     \
			break;                                          \
		if (quiesce_likely(quiesce_load_relaxed(&quiesce__fixed.light))) \
			quiesce__membarrier();                          \
		else                                                    \
			quiesce_fence_full(label);                      \
	} while (0)

/* The heavy fence for a caller that must not wait, in a thread that may be refused membarrier: 0, or -errno, and then
 * nothing is fenced. */
int quiesce__try_membarrier(void);
#define quiesce_fence_heavy_try(label)                                  \
	__extension__({                                                 \
		int quiesce__err = 0;                                   \
		if (quiesce_weakened(label, HEAVY))                     \
			;                                               \
		else if (quiesce_likely(quiesce_load_relaxed(&quiesce__fixed.light))) \
			quiesce__err = quiesce__try_membarrier();       \
		else                                                    \
			quiesce_fence_full(label);                      \
		quiesce__err;                                           \
	})

/* The heavy fence for callers of which many may arrive at once: concurrent callers share a membarrier. */
void quiesce__heavy_shared(void);
void quiesce__heavy_restart(void);
void quiesce__heavy_init(void);
void quiesce__heavy_fork_child(void);
#define quiesce_fence_heavy_shared(label)                               \
	do {                                                            \
		if (quiesce_weakened(label, HEAVY))                     \
			break;                                          \
		if (quiesce_likely(quiesce_load_relaxed(&quiesce__fixed.light))) \
			quiesce__heavy_shared();                        \
		else                                                    \
			quiesce_fence_full(label);                      \
	} while (0)

/* A heavy fence that also restarts every restartable sequence that another thread is in: a sequence that
 * checks a word and then stores has either stored before the fence, or checks again after it.  Light mode
 * only; concurrent callers share. */
#define quiesce_fence_restart(label)                                    \
	do {                                                            \
		if (!quiesce_weakened(label, HEAVY))                    \
			quiesce__heavy_restart();                       \
	} while (0)

/* The light fence for code inside the library, which checks the mode at run time. */
#define quiesce_fence_mode(label)                                       \
	do {                                                            \
		if (quiesce_likely(quiesce_load_relaxed(&quiesce__fixed.light))) \
			quiesce_fence_light(label);                     \
		else                                                    \
			quiesce_fence_full(label);                      \
	} while (0)

#endif
