/* SPDX-License-Identifier: MIT */
/* urcu/urcu-poll.h - the cookie of start_poll_synchronize_rcu(): the grace period that poll_state_synchronize_rcu()
 * checks. */
#ifndef URCU_URCU_POLL_H
#define URCU_URCU_POLL_H

struct urcu_gp_poll_state {
	unsigned long grace_period_id;
};

#endif
