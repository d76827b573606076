/* SPDX-License-Identifier: MIT */
/* tls.c - what the library keeps in each thread, as a thread begins. */
#include "core.h"

#include <quiesce/detail/claim.h>

#define NEW_THREAD                                                     \
	{                                                              \
		.rcu_word = QUIESCE_RCU_UNREG,                         \
		.shazptr_cached = { &quiesce__no_slot, UINT64_MAX },   \
	}

uintptr_t quiesce__no_slot = QUIESCE_SLOT_TAG;

#if !defined(QUIESCE_SIM)
__thread struct quiesce_tls_v1 quiesce_tls_v1 __attribute__((tls_model("initial-exec"))) = NEW_THREAD;
#endif

/* Of programs on CPUs where what is inlined has no other way to it.  The simulator's is quiesce_sim_self(). */
#if !defined(QUIESCE_SIM)
struct quiesce_tls_v1 *quiesce__own_call(void)
{
	return &quiesce_tls_v1;
}
#endif

void quiesce__tls_init(struct quiesce_tls_v1 *tls)
{
	*tls = (struct quiesce_tls_v1)NEW_THREAD;
}
