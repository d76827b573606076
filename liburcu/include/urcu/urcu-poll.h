/* SPDX-License-Identifier: MIT */
/* urcu/urcu-poll.h - what start_poll_synchronize_rcu() returns: which grace period to ask poll_state_synchronize_rcu() for. */
#ifndef URCU_URCU_POLL_H
#define URCU_URCU_POLL_H

struct urcu_gp_poll_state {
	unsigned long grace_period_id;
};

#endif
