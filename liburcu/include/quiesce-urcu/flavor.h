/* SPDX-License-Identifier: MIT */
/* quiesce-urcu/flavor.h - the calls that each flavour has, declared once; private. */
#ifndef QUIESCE_URCU_FLAVOR_H
#define QUIESCE_URCU_FLAVOR_H

#include <pthread.h>
#include <quiesce-urcu/name.h>
#include <stdbool.h>
#include <urcu/call-rcu.h>
#include <urcu/flavor.h>
#include <urcu/urcu-poll.h>

#define QUIESCE_URCU_CALL(type, name, args) type name args QUIESCE_URCU_NAME(name)

/* The calls of flavour @f; urcu/urcu-memb.h, urcu/call-rcu.h and urcu/defer.h describe them. */
#define QUIESCE_URCU_CALLS(f)                                                                                           \
	QUIESCE_URCU_CALL(void, urcu_##f##_register_thread, (void));                                                    \
	QUIESCE_URCU_CALL(void, urcu_##f##_unregister_thread, (void));                                                  \
	QUIESCE_URCU_CALL(void, urcu_##f##_init, (void));                                                               \
	QUIESCE_URCU_CALL(void, urcu_##f##_synchronize_rcu, (void));                                                    \
	QUIESCE_URCU_CALL(struct urcu_gp_poll_state, urcu_##f##_start_poll_synchronize_rcu, (void));                    \
	QUIESCE_URCU_CALL(bool, urcu_##f##_poll_state_synchronize_rcu, (struct urcu_gp_poll_state state));              \
	QUIESCE_URCU_CALL(void, urcu_##f##_call_rcu, (struct rcu_head * head, void (*func)(struct rcu_head *)));        \
	QUIESCE_URCU_CALL(struct call_rcu_data *, urcu_##f##_create_call_rcu_data, (unsigned long flags, int cpu));     \
	QUIESCE_URCU_CALL(void, urcu_##f##_call_rcu_data_free, (struct call_rcu_data *crdp));                           \
	QUIESCE_URCU_CALL(struct call_rcu_data *, urcu_##f##_get_default_call_rcu_data, (void));                        \
	QUIESCE_URCU_CALL(struct call_rcu_data *, urcu_##f##_get_cpu_call_rcu_data, (int cpu));                         \
	QUIESCE_URCU_CALL(struct call_rcu_data *, urcu_##f##_get_thread_call_rcu_data, (void));                         \
	QUIESCE_URCU_CALL(struct call_rcu_data *, urcu_##f##_get_call_rcu_data, (void));                                \
	QUIESCE_URCU_CALL(pthread_t, urcu_##f##_get_call_rcu_thread, (struct call_rcu_data * crdp));                    \
	QUIESCE_URCU_CALL(void, urcu_##f##_set_thread_call_rcu_data, (struct call_rcu_data * crdp));                    \
	QUIESCE_URCU_CALL(int, urcu_##f##_set_cpu_call_rcu_data, (int cpu, struct call_rcu_data *crdp));                \
	QUIESCE_URCU_CALL(int, urcu_##f##_create_all_cpu_call_rcu_data, (unsigned long flags));                         \
	QUIESCE_URCU_CALL(void, urcu_##f##_free_all_cpu_call_rcu_data, (void));                                         \
	QUIESCE_URCU_CALL(void, urcu_##f##_call_rcu_before_fork, (void));                                               \
	QUIESCE_URCU_CALL(void, urcu_##f##_call_rcu_after_fork_parent, (void));                                         \
	QUIESCE_URCU_CALL(void, urcu_##f##_call_rcu_after_fork_child, (void));                                          \
	QUIESCE_URCU_CALL(void, urcu_##f##_barrier, (void));                                                            \
	QUIESCE_URCU_CALL(void, urcu_##f##_defer_rcu, (void (*func)(void *), void *arg));                               \
	QUIESCE_URCU_CALL(int, urcu_##f##_defer_register_thread, (void));                                               \
	QUIESCE_URCU_CALL(void, urcu_##f##_defer_unregister_thread, (void));                                            \
	QUIESCE_URCU_CALL(void, urcu_##f##_defer_barrier, (void));                                                      \
	QUIESCE_URCU_CALL(void, urcu_##f##_defer_barrier_thread, (void));                                               \
	QUIESCE_URCU_CALL(void, urcu_##f##_defer_exit, (void));                                                         \
	QUIESCE_URCU_CALL(void, urcu_##f##_register_rculfhash_atfork, (struct urcu_atfork * atfork));                   \
	QUIESCE_URCU_CALL(void, urcu_##f##_unregister_rculfhash_atfork, (struct urcu_atfork * atfork));
#define QUIESCE_URCU_TABLE(f)                                                                                           \
	extern const struct rcu_flavor_struct urcu_##f##_flavor QUIESCE_URCU_NAME(urcu_##f##_flavor);                   \
	QUIESCE_FAST void urcu_##f##_exit(void) {}

#endif
