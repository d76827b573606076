/* SPDX-License-Identifier: MIT */
/* quiesce/detail/rcu_calls.h - the exported functions behind the calls of rcu.h, under names that
 * no program has, and the macros that choose between them. */
#ifndef QUIESCE_DETAIL_RCU_CALLS_H
#define QUIESCE_DETAIL_RCU_CALLS_H

#include <quiesce/base.h>
#include <quiesce/detail/entry.h>
#include <quiesce/detail/head.h>

QUIESCE_BEGIN_DECLS

/* A cookie: a point in the sequence of grace periods.  It is a structure, so that compilers
 * distinguish it from an integer. */
struct rcu_gp_seq {
	uint64_t value;
};

QUIESCE_API void quiesce_synchronize_rcu(void);
QUIESCE_API void quiesce_synchronize_rcu_expedited(void);
QUIESCE_API struct rcu_gp_seq quiesce_get_state_synchronize_rcu(void);
QUIESCE_API struct rcu_gp_seq quiesce_start_poll_synchronize_rcu(void);
QUIESCE_API int quiesce_poll_state_synchronize_rcu(struct rcu_gp_seq seq);
QUIESCE_API void quiesce_cond_synchronize_rcu(struct rcu_gp_seq seq);
QUIESCE_API void quiesce_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes);
QUIESCE_API void quiesce_kfree_rcu(void *object, size_t offset, size_t bytes);
QUIESCE_API void quiesce_kfree_rcu_mightsleep(void *object, size_t bytes);
QUIESCE_API void quiesce_rcu_barrier(void);
QUIESCE_API void quiesce_rcu_throttle(void);
QUIESCE_API void quiesce__call_rcu_debug(struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes);

/* The debug build records queued objects, and reports an object that is queued again before its
 * callback was called. */
#ifdef QUIESCE_DEBUG
#define QUIESCE__CALL_RCU quiesce__call_rcu_debug
#else
#define QUIESCE__CALL_RCU quiesce_call_rcu
#endif

/* A function "pointer" from 1 up to this value is 1 + the offset of the rcu_head in an object for
 * free(). */
#define QUIESCE_KFREE_OFFSET_MAX 4096
#define quiesce__kfree_at(head, offset) QUIESCE_AS_POINTER(void (*)(head *), 1 + (offset))
#define quiesce__kfree_func(ptr, field, head)                                                                     \
	__extension__({                                                                                           \
		QUIESCE__ALLOW_OFFSETS                                                                            \
		void (*quiesce__free_at)(head *) =                                                                \
			quiesce__kfree_at(head, quiesce__kfree_offset(quiesce__offset(__typeof__(*(ptr)), field, head))); \
		QUIESCE__CHECK_OFFSETS                                                                            \
		quiesce__free_at;                                                                                 \
	})
#define quiesce__kfree_offset(offset) ((offset) + 0 * sizeof(char[(offset) < QUIESCE_KFREE_OFFSET_MAX ? 1 : -1]))
/* In C++ the head may be a member of a base of the object's class: every compiler of these headers
 * gives its offset, and warns that the standard does not promise it.  A virtual base is refused. */
#if defined(__cplusplus)
#define QUIESCE__ALLOW_OFFSETS _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Winvalid-offsetof\"")
#define QUIESCE__CHECK_OFFSETS _Pragma("GCC diagnostic pop")
#else
#define QUIESCE__ALLOW_OFFSETS
#define QUIESCE__CHECK_OFFSETS
#endif

QUIESCE_END_DECLS

#endif
