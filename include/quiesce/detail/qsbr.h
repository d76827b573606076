/* SPDX-License-Identifier: MIT */
/* quiesce/detail/qsbr.h - a second, separate RCU whose readers report when they are quiescent; for
 * liburcu's flavour of that name.
 *
 * A registered thread is online or offline.  Online it is in one long section, except for an
 * instant in each quiescent_state(); offline it is in none.  So a lock and an unlock cost nothing.
 * An updater waits until each thread that is online has reported a quiescent state, or gone
 * offline; so a thread that blocks while it is online delays all updaters.
 *
 * Proof: docs/design/qsbr.md; tests/litmus/QS*.litmus; docs/ordering.md.
 */
#ifndef QUIESCE_DETAIL_QSBR_H
#define QUIESCE_DETAIL_QSBR_H

#include <quiesce/detail/tls.h>

QUIESCE_BEGIN_DECLS

/* The word that readers load, on a cache line that changes only with grace periods. */
struct quiesce_qsbr_v1 {
	uint64_t gp; /* odd; each grace period adds 2 */
	uint64_t reserved[7];
};

#if defined(QUIESCE_SIM)
extern struct quiesce_qsbr_v1 quiesce_qsbr_v1;
#else
extern QUIESCE_DATA struct quiesce_qsbr_v1 quiesce_qsbr_v1;
#endif

/* Register the calling thread if it is not registered, and go online; returns 0 or -errno.  The
 * end of the thread unregisters it. */
QUIESCE_API int quiesce_qsbr_register(uint32_t layout);
QUIESCE_API void quiesce_qsbr_unregister(void);
/* Wait until every thread that is online has been quiescent; the caller is offline meanwhile.
 * Full fences before and after. */
QUIESCE_API void quiesce_qsbr_synchronize(void);
/* Return a cookie for a grace period that begins now; does not sleep. */
QUIESCE_API uint64_t quiesce_qsbr_start_poll(void);
/* Return whether the grace period of @cookie is over; scans the threads if necessary, and does not
 * sleep.  A full fence if it is over. */
QUIESCE_API int quiesce_qsbr_poll(uint64_t cookie);

QUIESCE_API void quiesce__qsbr_quiescent_slow(void);
QUIESCE_API void quiesce__qsbr_wake(void);

/* Return whether the calling thread is online. */
QUIESCE_FAST int quiesce__qsbr_ongoing(void)
{
	return quiesce_own_load_relaxed(quiesce__own(), qsbr_word) != 0; /* Relaxed: the thread's own word. */
}

/* Report that the thread reads no protected object at this instant.  Cost: two loads and a test;
 * once in each grace period a full fence. */
QUIESCE_FAST void quiesce__qsbr_quiescent_state(void)
{
	/* Relaxed: a thread that finds a new number fences after it; the word is the thread's own. */
	if (quiesce_unlikely(quiesce_load_relaxed(&quiesce_qsbr_v1.gp) != quiesce_own_load_relaxed(quiesce__own(), qsbr_word)))
		quiesce__qsbr_quiescent_slow();
}

/* Report that the thread reads no protected object until it is online again.  Cost: a full
 * fence. */
QUIESCE_FAST void quiesce__qsbr_offline(void)
{
	struct quiesce__own_block self = quiesce__own();

	/* QS2: release, pairs with QS2 in quiesce__qsbr_blocks() */
	quiesce_own_store_release(QS2, self, qsbr_word, 0);
	/* QS4: full, pairs with QS4 in request_wake_up() */
	quiesce_fence_full(QS4);
	if (quiesce_unlikely(quiesce_own_load_relaxed(self, qsbr_waiting))) /* Relaxed: QS4. */
		quiesce__qsbr_wake();
}

/* Go online: the thread may read from now on.  Cost: a full fence; none where it is online
 * already, and then the call is no quiescent state. */
QUIESCE_FAST void quiesce__qsbr_online(void)
{
	struct quiesce__own_block self = quiesce__own();

	if (quiesce_unlikely(quiesce_own_load_relaxed(self, qsbr_word))) /* Relaxed: the thread's own word. */
		return;
	/* Relaxed: an old number only makes an updater wait for this thread needlessly. */
	quiesce_own_store_relaxed(self, qsbr_word,
				  quiesce_load_relaxed(&quiesce_qsbr_v1.gp) & -quiesce_own_load_u32(self, qsbr_registered));
	/* If a load after the fence misses an unlinking, the updater sees this word, and waits. */
	/* QS1: full, pairs with QS1 in raise_number() */
	quiesce_fence_full(QS1);
}

QUIESCE_END_DECLS

#endif
