/* SPDX-License-Identifier: MIT */
/* fence.h - the asymmetric fence: light on the reader, heavy on the updater.
 *
 * Guarantee.  Of a light fence in one thread and a heavy fence in another, one
 * comes first: either all that precedes the light fence is visible to all that
 * follows the heavy one, or the reverse.  In light mode the light fence is a
 * compiler barrier and the heavy one a membarrier; in full mode both are full
 * fences, and then every "light" site must go through quiesce_fence_mode() or
 * a slow path that fences (for RCU: quiesce__rcu_lock_slow()).
 */
#ifndef QUIESCE_FENCE_H
#define QUIESCE_FENCE_H

#include "platform/platform.h"

#ifndef quiesce_weakened
#define quiesce_weakened(label, kind) 0
#endif

/* Fixed at the first use, and read by every fence: alone on its line, so that no counter beside it is in the way. */
struct quiesce__fixed {
	uint32_t light; /* 1 in light mode */
} __attribute__((aligned(64)));
extern struct quiesce__fixed quiesce__fixed;

void quiesce__membarrier(void); /* counts, and dies if the kernel takes its promise back and there is no other way */

#define quiesce_fence_heavy(label)                                      \
	do {                                                            \
		if (quiesce_weakened(label, HEAVY))                     \
			break;                                          \
		if (quiesce_likely(quiesce_load_relaxed(&quiesce__fixed.light))) \
			quiesce__membarrier();                          \
		else                                                    \
			quiesce_fence_full(label);                      \
	} while (0)

/* The same where many threads may come at once. */
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

/* And every restartable sequence that another thread is in begins anew: whoever looks at something in a
 * sequence, and then stores, has stored before the fence, or looks after it.  Light mode only; many may come at once. */
#define quiesce_fence_restart(label)                                    \
	do {                                                            \
		if (!quiesce_weakened(label, HEAVY))                    \
			quiesce__heavy_restart();                       \
	} while (0)

/* The light side where it is not inlined into programs. */
#define quiesce_fence_mode(label)                                       \
	do {                                                            \
		if (quiesce_likely(quiesce_load_relaxed(&quiesce__fixed.light))) \
			quiesce_fence_light(label);                     \
		else                                                    \
			quiesce_fence_full(label);                      \
	} while (0)

#endif
