/* SPDX-License-Identifier: MIT */
/* tls.c - the initial value of the library's per-thread state. */
#include "core.h"

#include <quiesce/detail/claim.h>

#define NEW_THREAD                                                     \
	{                                                              \
		.rcu_word = QUIESCE_RCU_UNREG,                         \
		.shazptr_cached = { &quiesce__no_slot, UINT64_MAX },   \
	}

uintptr_t quiesce__no_slot = QUIESCE_SLOT_TAG;

#if !defined(QUIESCE_SIM) && !defined(QUIESCE_SCALE)
__thread struct quiesce_tls_v1 quiesce_tls_v1 QUIESCE__TLS_MODEL = NEW_THREAD;
#endif

/* Used by programs on CPUs where inline code cannot reach the block otherwise.  The simulator has
 * quiesce_sim_self() instead. */
#if !defined(QUIESCE_SIM)
struct quiesce_tls_v1 *quiesce__own_call(void)
{
	return quiesce__self();
}
#endif

void quiesce__tls_init(struct quiesce_tls_v1 *tls)
{
	*tls = (struct quiesce_tls_v1)NEW_THREAD;
}
