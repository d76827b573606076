/* SPDX-License-Identifier: MIT */
/* domain.h - the common part of the flavours here that are RCUs of their own; included at the end of each.  No guard. */

#include "../src/polls.h"

static struct flavor flavor;
#define FLAVOR (&flavor)
#include "../src/calls.h"

/* The table, and its symbol, which has the size that it has in liburcu 0.13: a program that was built for 0.13 has
 * room for a copy of that size only, and the loader warns of a larger one.  Programs that were built for 0.14 or
 * later have no copy, and find the two new members there. */
extern void *const urcu_flavor_table[16];
void *const urcu_flavor_table[16] __attribute__((used)) = {
	F(read_lock), F(read_unlock), F(read_ongoing), F_QUIESCENT_STATE, F(call_rcu), F(synchronize_rcu), F(defer_rcu), F_THREAD_OFFLINE,
	F_THREAD_ONLINE, F(register_thread), F(unregister_thread), F(barrier), F(register_rculfhash_atfork),
	F(unregister_rculfhash_atfork), F(start_poll_synchronize_rcu), F(poll_state_synchronize_rcu),
};
#define FLAVOR_SYMBOL "urcu_" FLAVOR_NAME "_flavor"
/* raw: a symbol, no code */
__asm__(".globl " FLAVOR_SYMBOL "\n.set " FLAVOR_SYMBOL ", urcu_flavor_table\n"
	".type " FLAVOR_SYMBOL ", @object\n.size " FLAVOR_SYMBOL ", 112\n");

static struct flavor flavor = {
	.read_lock = F(read_lock),
	.read_unlock = F(read_unlock),
	.register_thread = F(register_thread),
	.unregister_thread = F(unregister_thread),
	.offline = F_THREAD_OFFLINE,
	.online = F_THREAD_ONLINE,
	.ongoing = F(read_ongoing),
	.synchronize = F(synchronize_rcu),
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.forker = PTHREAD_MUTEX_INITIALIZER,
};

struct flavor *const flavors[NR_FLAVORS] = { &flavor };
