/* SPDX-License-Identifier: MIT */
/* quiesce/detail/srcu.h - the inline code of SRCU's sections; private, for srcu.h, which is the manual.
 *
 * The ledger of its labels is at the head of src/srcu/srcu.c.
 */
#ifndef QUIESCE_DETAIL_SRCU_H
#define QUIESCE_DETAIL_SRCU_H

#include <quiesce/detail/percpu.h>
#include <quiesce/rcu.h>

QUIESCE_BEGIN_DECLS

/* A domain.  Readers load its first line only; that changes only with grace periods.  Each index has
 * words of its own to enter and to leave, which lead to the counter itself: an increment by an
 * address with an index register waits for the store of the previous one on some CPUs. */
struct srcu_struct {
	uint64_t idx;                 /* 0 or 1: where new sections count; changes with grace periods */
	uint64_t enter[2];            /* nonzero: readers enter the index inline; see percpu.h */
	uint64_t leave[2];            /* nonzero: readers leave the index inline; 0 for a request, too */
	uint64_t requests[2];         /* to readers that leave an index */
	struct quiesce_percpu percpu; /* counts entered and left, of both indexes */
	const char *name;             /* name in reports */
	uint64_t pad[7];              /* padding: the private part has cache lines of its own */
	struct quiesce__srcu_space {
		uint64_t words[53];
	} __attribute__((__may_alias__)) space; /* private; all zero at first */
};

#if defined(__cplusplus)
#define QUIESCE_SRCU_INIT(name) { 0, { 0, 0 }, { 0, 0 }, { 0, 0 }, { NULL }, #name, { 0 }, { { 0 } } }
#else
#define QUIESCE_SRCU_INIT(text) { .name = #text }
#endif

QUIESCE_API int quiesce_init_srcu_struct(uint32_t layout, struct srcu_struct *ssp, const char *name);
QUIESCE_API void quiesce_cleanup_srcu_struct(struct srcu_struct *ssp);
QUIESCE_API void quiesce_srcu_after_fork_child(struct srcu_struct *ssp);
QUIESCE_API void quiesce_synchronize_srcu(struct srcu_struct *ssp);
QUIESCE_API void quiesce_synchronize_srcu_expedited(struct srcu_struct *ssp);
QUIESCE_API struct rcu_gp_seq quiesce_get_state_synchronize_srcu(struct srcu_struct *ssp);
QUIESCE_API struct rcu_gp_seq quiesce_start_poll_synchronize_srcu(struct srcu_struct *ssp);
QUIESCE_API int quiesce_poll_state_synchronize_srcu(struct srcu_struct *ssp, struct rcu_gp_seq seq);
QUIESCE_API unsigned long quiesce_srcu_batches_completed(struct srcu_struct *ssp);
QUIESCE_API void quiesce_call_srcu(struct srcu_struct *ssp, struct rcu_head *head, void (*func)(struct rcu_head *head),
				   size_t bytes);
QUIESCE_API void quiesce__call_srcu_debug(struct srcu_struct *ssp, struct rcu_head *head, void (*func)(struct rcu_head *head),
					  size_t bytes);
QUIESCE_API void quiesce_srcu_barrier(struct srcu_struct *ssp);
#ifdef QUIESCE_DEBUG
#define QUIESCE__CALL_SRCU quiesce__call_srcu_debug
#else
#define QUIESCE__CALL_SRCU quiesce_call_srcu
#endif

/* Slow paths: without restartable sequences, or without counters; with full fences always. */
QUIESCE_API int quiesce__srcu_lock_slow(uint32_t layout, struct srcu_struct *ssp, uint64_t idx);
QUIESCE_API void quiesce__srcu_unlock_slow(struct srcu_struct *ssp, uint64_t idx);
QUIESCE_API int quiesce__srcu_lock_debug(struct srcu_struct *ssp);
QUIESCE_API void quiesce__srcu_unlock_debug(struct srcu_struct *ssp, int idx);
QUIESCE_API void quiesce__srcu_up_debug(struct srcu_struct *ssp, int idx);
QUIESCE_API int quiesce__srcu_held_debug(const struct srcu_struct *ssp);

QUIESCE_FAST int quiesce__srcu_read_lock(struct srcu_struct *ssp)
{
	/* Relaxed: an old index only delays an updater. */
	uint64_t idx = quiesce_load_relaxed(&ssp->idx);

	/* The slow path has a full fence. */
	/* PC1: acquire, pairs with PC1 in open_domain() */
	if (quiesce_unlikely(!quiesce_count_acquire(PC1, &ssp->enter[idx], 0)))
		return quiesce__srcu_lock_slow(QUIESCE_LAYOUT, ssp, idx);
	/* If the section misses what was unlinked before the heavy fence, the sum after that
	 * includes this count; if the sum misses the count, the section sees what was unlinked. */
	/* SR1: pairs with SR1 in begin() */
	quiesce_fence_light(SR1);
	return (int)idx;
}

/* The domain is not accessed after the section has been counted as left: it may be gone. */
QUIESCE_FAST void quiesce__srcu_read_unlock(struct srcu_struct *ssp, int index)
{
	uint64_t idx = (unsigned int)index;

	/* PC2: release, pairs with PC2 in sum() */
	if (quiesce_unlikely(!quiesce_count_release(PC2, &ssp->leave[idx], 0)))
		quiesce__srcu_unlock_slow(ssp, idx);
}

QUIESCE_END_DECLS

#endif
