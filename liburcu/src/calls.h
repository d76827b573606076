/* SPDX-License-Identifier: MIT */
/* calls.h - the functions of one flavour; included with F(name), the name of each function, and FLAVOR, the flavour.
 * No guard. */

void F(call_rcu)(struct rcu_head *head, void (*func)(struct rcu_head *head)) { flavor_call_rcu(FLAVOR, head, func); }
struct call_rcu_data *F(create_call_rcu_data)(unsigned long flags, int cpu) { return flavor_create(FLAVOR, flags, cpu); }
void F(call_rcu_data_free)(struct call_rcu_data *crdp) { flavor_free(FLAVOR, crdp); }
struct call_rcu_data *F(get_call_rcu_data)(void) { return flavor_chosen(FLAVOR); }
struct call_rcu_data *F(get_default_call_rcu_data)(void) { return flavor_default(FLAVOR); }
struct call_rcu_data *F(get_cpu_call_rcu_data)(int cpu) { return flavor_of_cpu(FLAVOR, cpu); }
struct call_rcu_data *F(get_thread_call_rcu_data)(void) { return flavor_of_thread(FLAVOR); }
pthread_t F(get_call_rcu_thread)(struct call_rcu_data *crdp) { return flavor_thread_of(crdp); }
void F(set_thread_call_rcu_data)(struct call_rcu_data *crdp) { flavor_set_of_thread(FLAVOR, crdp); }
int F(set_cpu_call_rcu_data)(int cpu, struct call_rcu_data *crdp) { return flavor_set_of_cpu(FLAVOR, cpu, crdp); }
int F(create_all_cpu_call_rcu_data)(unsigned long flags) { return flavor_create_all(FLAVOR, flags); }
void F(free_all_cpu_call_rcu_data)(void) { flavor_free_all(FLAVOR); }
void F(call_rcu_before_fork)(void) { flavor_before_fork(FLAVOR); }
void F(call_rcu_after_fork_parent)(void) { flavor_after_fork_parent(FLAVOR); }
void F(call_rcu_after_fork_child)(void) { flavor_after_fork_child(FLAVOR); }
void F(barrier)(void) { flavor_barrier(FLAVOR); }
void F(defer_rcu)(void (*func)(void *arg), void *arg) { flavor_defer(FLAVOR, func, arg); }
int F(defer_register_thread)(void) { return flavor_defer_register(FLAVOR); }
void F(defer_unregister_thread)(void) { flavor_defer_unregister(FLAVOR); }
void F(defer_exit)(void) {} /* the thread is never ended */
void F(defer_barrier)(void) { flavor_defer_barrier(FLAVOR, false); }
void F(defer_barrier_thread)(void) { flavor_defer_barrier(FLAVOR, true); }
void F(register_rculfhash_atfork)(struct urcu_atfork *atfork) { flavor_register_atfork(FLAVOR, atfork); }

void F(unregister_rculfhash_atfork)(struct urcu_atfork *atfork)
{
	(void)atfork;
	flavor_unregister_atfork(FLAVOR);
}
