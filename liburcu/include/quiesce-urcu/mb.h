/* SPDX-License-Identifier: MIT */
/* quiesce-urcu/mb.h - readers of the flavour mb; private. */
#ifndef QUIESCE_URCU_MB_H
#define QUIESCE_URCU_MB_H

#include <quiesce-urcu/name.h>
#include <quiesce-urcu/words.h>
#include <quiesce/detail/tls.h>

QUIESCE_URCU_BEGIN

struct quiesce_urcu_mb_gp {
	uint64_t ctr;
	uint32_t futex;
} __attribute__((__aligned__(2 * QUIESCE_CACHELINE)));

/* Small, because a plug-in may load the library late, when little of the static thread-local space is left.  On one
 * line: other threads write the record only when threads register and unregister, and a scan of the word takes the
 * line anyway. */
struct quiesce_urcu_mb_reader {
	uint64_t ctr;
	struct quiesce_urcu_record record;
	bool registered;
};

extern QUIESCE_DATA struct quiesce_urcu_mb_gp quiesce_urcu_mb_gp;
extern QUIESCE_DATA __thread struct quiesce_urcu_mb_reader quiesce_urcu_mb_reader QUIESCE__TLS_MODEL;
void quiesce_urcu_mb_wake(void) QUIESCE_DATA;
struct quiesce_urcu_mb_reader *quiesce_urcu_mb_own_call(void) QUIESCE_DATA;

QUIESCE_URCU_END

/* The word of the calling thread at this moment: detail/tls.h.  Its cost is small beside a full fence. */
#define QUIESCE_URCU_MB_WORD() \
	(&QUIESCE__OWN_ADDRESS(struct quiesce_urcu_mb_reader, quiesce_urcu_mb_reader, quiesce_urcu_mb_own_call)->ctr)

#define QUIESCE_URCU_MB_READERS(f)                                                                                      \
	QUIESCE_FAST void urcu_##f##_read_lock(void)                                                                    \
	{                                                                                                               \
		quiesce__urcu_lock(QUIESCE_URCU_MB_WORD(), &quiesce_urcu_mb_gp.ctr, false);                             \
	}                                                                                                               \
	QUIESCE_FAST void urcu_##f##_read_unlock(void)                                                                  \
	{                                                                                                               \
		/* Relaxed: UW4. */                                                                                     \
		if (quiesce__urcu_unlock(QUIESCE_URCU_MB_WORD(), false) &&                                              \
		    quiesce_unlikely(quiesce_load_relaxed(&quiesce_urcu_mb_gp.futex) == UINT32_MAX))                    \
			quiesce_urcu_mb_wake();                                                                         \
	}                                                                                                               \
	QUIESCE_FAST int urcu_##f##_read_ongoing(void)                                                                  \
	{                                                                                                               \
		return (*QUIESCE_URCU_MB_WORD() & QUIESCE_URCU_NESTING) != 0;                                           \
	}                                                                                                               \
	QUIESCE_FAST void _urcu_##f##_read_lock(void) { urcu_##f##_read_lock(); }                                       \
	QUIESCE_FAST void _urcu_##f##_read_unlock(void) { urcu_##f##_read_unlock(); }                                   \
	QUIESCE_FAST int _urcu_##f##_read_ongoing(void) { return urcu_##f##_read_ongoing(); }                           \
	QUIESCE_FAST void urcu_##f##_quiescent_state(void) {}                                                           \
	QUIESCE_FAST void urcu_##f##_thread_offline(void) {}                                                            \
	QUIESCE_FAST void urcu_##f##_thread_online(void) {}

#endif
