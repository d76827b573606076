/* SPDX-License-Identifier: MIT */
/* names.c - the flavours under liburcu's own linker names, for callers without the headers: other languages, probes
 * of configure scripts.
 *
 * A library of its own, loaded only by programs that refer to such a name.  If the main library had these names, it
 * would also answer calls of libraries that were built for liburcu and not rebuilt, whose inlined readers write
 * liburcu's words: quiesce-urcu/name.h.
 */
/* The inline functions of the headers get other names here: clang takes two functions of one linker name for one,
 * which then calls itself. */
#define urcu_memb_read_lock inlined_urcu_memb_read_lock
#define urcu_memb_read_unlock inlined_urcu_memb_read_unlock
#define urcu_memb_read_ongoing inlined_urcu_memb_read_ongoing
#define urcu_memb_quiescent_state inlined_urcu_memb_quiescent_state
#define urcu_memb_thread_offline inlined_urcu_memb_thread_offline
#define urcu_memb_thread_online inlined_urcu_memb_thread_online
#define urcu_memb_exit inlined_urcu_memb_exit
#define urcu_mb_read_lock inlined_urcu_mb_read_lock
#define urcu_mb_read_unlock inlined_urcu_mb_read_unlock
#define urcu_mb_read_ongoing inlined_urcu_mb_read_ongoing
#define urcu_mb_quiescent_state inlined_urcu_mb_quiescent_state
#define urcu_mb_thread_offline inlined_urcu_mb_thread_offline
#define urcu_mb_thread_online inlined_urcu_mb_thread_online
#define urcu_mb_exit inlined_urcu_mb_exit
#define urcu_bp_read_lock inlined_urcu_bp_read_lock
#define urcu_bp_read_unlock inlined_urcu_bp_read_unlock
#define urcu_bp_read_ongoing inlined_urcu_bp_read_ongoing
#define urcu_bp_quiescent_state inlined_urcu_bp_quiescent_state
#define urcu_bp_thread_offline inlined_urcu_bp_thread_offline
#define urcu_bp_thread_online inlined_urcu_bp_thread_online
#define urcu_bp_exit inlined_urcu_bp_exit
#define urcu_qsbr_read_lock inlined_urcu_qsbr_read_lock
#define urcu_qsbr_read_unlock inlined_urcu_qsbr_read_unlock
#define urcu_qsbr_read_ongoing inlined_urcu_qsbr_read_ongoing
#define urcu_qsbr_quiescent_state inlined_urcu_qsbr_quiescent_state
#define urcu_qsbr_thread_offline inlined_urcu_qsbr_thread_offline
#define urcu_qsbr_thread_online inlined_urcu_qsbr_thread_online
#define urcu_qsbr_exit inlined_urcu_qsbr_exit
#define urcu_bp_before_fork inlined_urcu_bp_before_fork
#define urcu_bp_after_fork_parent inlined_urcu_bp_after_fork_parent
#define urcu_bp_after_fork_child inlined_urcu_bp_after_fork_child

#include <urcu/urcu-bp.h>
#include <urcu/urcu-mb.h>
#include <urcu/urcu-memb.h>
#include <urcu/urcu-qsbr.h>

/* Function @name with this linker name; the C name is that of the headers. */
#define EXPORT(type, name, params, args)                                                                                \
	extern type exported_##name params __asm__(#name) QUIESCE_DATA; /* raw: a name, no code */                     \
	type exported_##name params { return name args; }

#define THREAD(f)                                                                                                       \
	EXPORT(void, urcu_##f##_read_lock, (void), ())                                                                  \
	EXPORT(void, urcu_##f##_read_unlock, (void), ())                                                                \
	EXPORT(int, urcu_##f##_read_ongoing, (void), ())                                                                \
	EXPORT(void, urcu_##f##_quiescent_state, (void), ())                                                            \
	EXPORT(void, urcu_##f##_thread_offline, (void), ())                                                             \
	EXPORT(void, urcu_##f##_thread_online, (void), ())                                                              \
	EXPORT(void, urcu_##f##_register_thread, (void), ())                                                            \
	EXPORT(void, urcu_##f##_unregister_thread, (void), ())                                                          \
	EXPORT(void, urcu_##f##_init, (void), ())                                                                       \
	EXPORT(void, urcu_##f##_exit, (void), ())

#define UPDATE(f)                                                                                                       \
	EXPORT(void, urcu_##f##_synchronize_rcu, (void), ())                                                            \
	EXPORT(struct urcu_gp_poll_state, urcu_##f##_start_poll_synchronize_rcu, (void), ())                            \
	EXPORT(bool, urcu_##f##_poll_state_synchronize_rcu, (struct urcu_gp_poll_state state), (state))                 \
	EXPORT(void, urcu_##f##_call_rcu, (struct rcu_head * head, void (*func)(struct rcu_head *)), (head, func))      \
	EXPORT(void, urcu_##f##_barrier, (void), ())                                                                    \
	EXPORT(void, urcu_##f##_defer_rcu, (void (*func)(void *), void *arg), (func, arg))                              \
	EXPORT(int, urcu_##f##_defer_register_thread, (void), ())                                                       \
	EXPORT(void, urcu_##f##_defer_unregister_thread, (void), ())                                                    \
	EXPORT(void, urcu_##f##_defer_barrier, (void), ())                                                              \
	EXPORT(void, urcu_##f##_defer_barrier_thread, (void), ())                                                       \
	EXPORT(void, urcu_##f##_defer_exit, (void), ())                                                                 \
	EXPORT(void, urcu_##f##_call_rcu_before_fork, (void), ())                                                       \
	EXPORT(void, urcu_##f##_call_rcu_after_fork_parent, (void), ())                                                 \
	EXPORT(void, urcu_##f##_call_rcu_after_fork_child, (void), ())                                                  \
	EXPORT(void, urcu_##f##_register_rculfhash_atfork, (struct urcu_atfork * atfork), (atfork))                     \
	EXPORT(void, urcu_##f##_unregister_rculfhash_atfork, (struct urcu_atfork * atfork), (atfork))

#define QUEUES(f)                                                                                                       \
	EXPORT(struct call_rcu_data *, urcu_##f##_create_call_rcu_data, (unsigned long flags, int cpu), (flags, cpu))   \
	EXPORT(void, urcu_##f##_call_rcu_data_free, (struct call_rcu_data * crdp), (crdp))                              \
	EXPORT(struct call_rcu_data *, urcu_##f##_get_default_call_rcu_data, (void), ())                                \
	EXPORT(struct call_rcu_data *, urcu_##f##_get_cpu_call_rcu_data, (int cpu), (cpu))                              \
	EXPORT(struct call_rcu_data *, urcu_##f##_get_thread_call_rcu_data, (void), ())                                 \
	EXPORT(struct call_rcu_data *, urcu_##f##_get_call_rcu_data, (void), ())                                        \
	EXPORT(pthread_t, urcu_##f##_get_call_rcu_thread, (struct call_rcu_data * crdp), (crdp))                        \
	EXPORT(void, urcu_##f##_set_thread_call_rcu_data, (struct call_rcu_data * crdp), (crdp))                        \
	EXPORT(int, urcu_##f##_set_cpu_call_rcu_data, (int cpu, struct call_rcu_data *crdp), (cpu, crdp))               \
	EXPORT(int, urcu_##f##_create_all_cpu_call_rcu_data, (unsigned long flags), (flags))                            \
	EXPORT(void, urcu_##f##_free_all_cpu_call_rcu_data, (void), ())

/* A table with the addresses of the functions above. */
#define TABLE(f)                                                                                                        \
	extern const struct rcu_flavor_struct exported_urcu_##f##_flavor /* raw: as above */                            \
		__asm__("urcu_" #f "_flavor") QUIESCE_DATA;                                                             \
	const struct rcu_flavor_struct exported_urcu_##f##_flavor = {                                                   \
		.read_lock = exported_urcu_##f##_read_lock,                                                             \
		.read_unlock = exported_urcu_##f##_read_unlock,                                                         \
		.read_ongoing = exported_urcu_##f##_read_ongoing,                                                       \
		.read_quiescent_state = exported_urcu_##f##_quiescent_state,                                            \
		.update_call_rcu = exported_urcu_##f##_call_rcu,                                                        \
		.update_synchronize_rcu = exported_urcu_##f##_synchronize_rcu,                                          \
		.update_defer_rcu = exported_urcu_##f##_defer_rcu,                                                      \
		.thread_offline = exported_urcu_##f##_thread_offline,                                                   \
		.thread_online = exported_urcu_##f##_thread_online,                                                     \
		.register_thread = exported_urcu_##f##_register_thread,                                                 \
		.unregister_thread = exported_urcu_##f##_unregister_thread,                                             \
		.barrier = exported_urcu_##f##_barrier,                                                                 \
		.register_rculfhash_atfork = exported_urcu_##f##_register_rculfhash_atfork,                             \
		.unregister_rculfhash_atfork = exported_urcu_##f##_unregister_rculfhash_atfork,                         \
		.update_start_poll_synchronize_rcu = exported_urcu_##f##_start_poll_synchronize_rcu,                    \
		.update_poll_state_synchronize_rcu = exported_urcu_##f##_poll_state_synchronize_rcu,                    \
	};

#define FLAVOR(f) THREAD(f) UPDATE(f) QUEUES(f) TABLE(f)

FLAVOR(memb)
FLAVOR(mb)
FLAVOR(bp)
FLAVOR(qsbr)

EXPORT(void, urcu_bp_before_fork, (void), ())
EXPORT(void, urcu_bp_after_fork_parent, (void), ())
EXPORT(void, urcu_bp_after_fork_child, (void), ())

EXPORT(void *, rcu_dereference_sym, (void *p), (p))
EXPORT(void *, rcu_set_pointer_sym, (void **p, void *v), (p, v))
EXPORT(void *, rcu_xchg_pointer_sym, (void **p, void *v), (p, v))
EXPORT(void *, rcu_cmpxchg_pointer_sym, (void **p, void *old, void *fresh), (p, old, fresh))
