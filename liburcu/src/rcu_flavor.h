/* SPDX-License-Identifier: MIT */
/* rcu_flavor.h - a flavour that is the library's own RCU; included with F(name), FLAVOR and FLAVOR_INDEX.  No guard. */

void F(register_thread)(void) {}
void F(unregister_thread)(void) {}
void F(init)(void) {}
void F(synchronize_rcu)(void) { quiesce_synchronize_rcu(); }

struct urcu_gp_poll_state F(start_poll_synchronize_rcu)(void)
{
	return (struct urcu_gp_poll_state){ quiesce_start_poll_synchronize_rcu().value };
}

bool F(poll_state_synchronize_rcu)(struct urcu_gp_poll_state state)
{
	return quiesce_poll_state_synchronize_rcu((struct rcu_gp_seq){ state.grace_period_id });
}

#include "exports.h"

struct flavor FLAVOR_STATE = {
	.index = FLAVOR_INDEX,
	.read_lock = read_lock,
	.read_unlock = read_unlock,
	.register_thread = F(register_thread),
	.unregister_thread = F(unregister_thread),
	.offline = thread_offline,
	.online = thread_online,
	.ongoing = read_ongoing,
	.synchronize = quiesce_synchronize_rcu,
	.native_barrier = quiesce_rcu_barrier,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.forker = PTHREAD_MUTEX_INITIALIZER,
};
