/* SPDX-License-Identifier: MIT */
/* urcu/flavor.h - a flavour as a table of functions, through which code that was built for no flavour uses one:
 * urcu/rculfhash.h. */
#ifndef URCU_FLAVOR_H
#define URCU_FLAVOR_H

#include <stdbool.h>
#include <urcu/urcu-poll.h>

struct rcu_head;

/* Functions that a hash table with a thread needs called around fork(). */
struct urcu_atfork {
	void (*before_fork)(void *priv);
	void (*after_fork_parent)(void *priv);
	void (*after_fork_child)(void *priv);
	void *priv;
};

/* The layout is that of liburcu, for which liburcu-cds was built. */
struct rcu_flavor_struct {
	void (*read_lock)(void);
	void (*read_unlock)(void);
	int (*read_ongoing)(void);
	void (*read_quiescent_state)(void);
	void (*update_call_rcu)(struct rcu_head *head, void (*func)(struct rcu_head *head));
	void (*update_synchronize_rcu)(void);
	void (*update_defer_rcu)(void (*func)(void *arg), void *arg);
	void (*thread_offline)(void);
	void (*thread_online)(void);
	void (*register_thread)(void);
	void (*unregister_thread)(void);
	void (*barrier)(void);
	void (*register_rculfhash_atfork)(struct urcu_atfork *atfork);
	void (*unregister_rculfhash_atfork)(struct urcu_atfork *atfork);
	struct urcu_gp_poll_state (*update_start_poll_synchronize_rcu)(void);
	bool (*update_poll_state_synchronize_rcu)(struct urcu_gp_poll_state state);
};

/* The table of the flavour that the short names mean. */
#define DEFINE_RCU_FLAVOR(x)                                                    \
	const struct rcu_flavor_struct x = {                                    \
		rcu_read_lock,                                                  \
		rcu_read_unlock,                                                \
		rcu_read_ongoing,                                               \
		rcu_quiescent_state,                                            \
		call_rcu,                                                       \
		synchronize_rcu,                                                \
		defer_rcu,                                                      \
		rcu_thread_offline,                                             \
		rcu_thread_online,                                              \
		rcu_register_thread,                                            \
		rcu_unregister_thread,                                          \
		rcu_barrier,                                                    \
		urcu_register_rculfhash_atfork,                                 \
		urcu_unregister_rculfhash_atfork,                               \
		start_poll_synchronize_rcu,                                     \
		poll_state_synchronize_rcu,                                     \
	}

#endif
