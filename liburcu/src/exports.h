/* SPDX-License-Identifier: MIT */
/* exports.h - the functions of one flavour and their table; included with F(name) and FLAVOR as calls.h.  No guard. */
#include "calls.h"

static void read_lock(void) { F(read_lock)(); }
static void read_unlock(void) { F(read_unlock)(); }
static int read_ongoing(void) { return F(read_ongoing)(); }
static void quiescent_state(void) { F(quiescent_state)(); }
static void thread_offline(void) { F(thread_offline)(); }
static void thread_online(void) { F(thread_online)(); }

const struct rcu_flavor_struct F(flavor) = {
	.read_lock = read_lock,
	.read_unlock = read_unlock,
	.read_ongoing = read_ongoing,
	.read_quiescent_state = quiescent_state,
	.update_call_rcu = F(call_rcu),
	.update_synchronize_rcu = F(synchronize_rcu),
	.update_defer_rcu = F(defer_rcu),
	.thread_offline = thread_offline,
	.thread_online = thread_online,
	.register_thread = F(register_thread),
	.unregister_thread = F(unregister_thread),
	.barrier = F(barrier),
	.register_rculfhash_atfork = F(register_rculfhash_atfork),
	.unregister_rculfhash_atfork = F(unregister_rculfhash_atfork),
	.update_start_poll_synchronize_rcu = F(start_poll_synchronize_rcu),
	.update_poll_state_synchronize_rcu = F(poll_state_synchronize_rcu),
};
