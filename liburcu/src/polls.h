/* SPDX-License-Identifier: MIT */
/* polls.h - cookies of a flavour that is an RCU of its own; included with F(name), F_BEFORE_UPDATE, and its domain.  No guard. */

struct urcu_gp_poll_state F(start_poll_synchronize_rcu)(void)
{
	struct urcu_gp_poll_state state = { quiesce_urcu_cookie(&domain) };

	F_BEFORE_UPDATE();
	(void)quiesce_urcu_poll(&domain, state.grace_period_id);
	return state;
}

bool F(poll_state_synchronize_rcu)(struct urcu_gp_poll_state state)
{
	F_BEFORE_UPDATE();
	return quiesce_urcu_poll(&domain, state.grace_period_id);
}
