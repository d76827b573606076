/* SPDX-License-Identifier: MIT */
/* qsbr.c - the flavour qsbr. */
#include <urcu/urcu-qsbr.h>

#include "flavor.h"

#define F(name) urcu_qsbr_##name
#define FLAVOR (&flavor_qsbr)

void F(register_thread)(void)
{
	int err = quiesce_qsbr_register(QUIESCE_LAYOUT);

	if (err)
		urcu_die("urcu_qsbr_register_thread", -err);
}

void F(unregister_thread)(void) { quiesce_qsbr_unregister(); }
void F(init)(void) {}
void F(synchronize_rcu)(void) { quiesce_qsbr_synchronize(); }

struct urcu_gp_poll_state F(start_poll_synchronize_rcu)(void)
{
	return (struct urcu_gp_poll_state){ quiesce_qsbr_start_poll() };
}

bool F(poll_state_synchronize_rcu)(struct urcu_gp_poll_state state) { return quiesce_qsbr_poll(state.grace_period_id); }

#include "exports.h"

struct flavor flavor_qsbr = {
	.index = FLAVOR_QSBR,
	.read_lock = read_lock,
	.read_unlock = read_unlock,
	.register_thread = F(register_thread),
	.unregister_thread = F(unregister_thread),
	.offline = thread_offline,
	.online = thread_online,
	.ongoing = read_ongoing,
	.synchronize = quiesce_qsbr_synchronize,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.forker = PTHREAD_MUTEX_INITIALIZER,
};

struct flavor *const flavors[NR_FLAVORS] = {
	[FLAVOR_MEMB] = &flavor_memb,
	[FLAVOR_MB] = &flavor_mb,
	[FLAVOR_BP] = &flavor_bp,
	[FLAVOR_QSBR] = &flavor_qsbr,
};
