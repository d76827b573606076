/* SPDX-License-Identifier: MIT */
/* domain.h - what every flavour here has that is an RCU of its own; included at the end of each.  No guard. */

#include "../src/polls.h"

static struct flavor flavor;
#define FLAVOR (&flavor)
#include "../src/calls.h"

/* As in liburcu 0.13: programs that have a copy of it have room for no more; later ones do not miss what follows. */
QUIESCE_DATA extern void *const F(flavor)[14];
void *const F(flavor)[14] = {
	F(read_lock), F(read_unlock), F(read_ongoing), F_QUIESCENT_STATE, F(call_rcu), F(synchronize_rcu), F(defer_rcu), F_THREAD_OFFLINE,
	F_THREAD_ONLINE, F(register_thread), F(unregister_thread), F(barrier), F(register_rculfhash_atfork),
	F(unregister_rculfhash_atfork),
};

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
};

struct flavor *const flavors[NR_FLAVORS] = { &flavor };
