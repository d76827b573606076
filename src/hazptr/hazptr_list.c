/* SPDX-License-Identifier: MIT */
/* hazptr_list.c - retired objects in lists, linked by their heads, for the sweeper and for cohorts.
 *
 * HP3  object pushed to a list | list taken
 */
#include "hazptr_retired.h"
#include "shazptr/shazptr.h"

void quiesce__hazptr_push_chain(struct hazptr_head **list, struct hazptr_head *first, struct hazptr_head *last)
{
	struct hazptr_head *old = quiesce_load_relaxed(list); /* Relaxed: the exchange decides. */

	do
		last->next = old;
	/* HP3: full, pairs with HP3 in quiesce__hazptr_take() */
	while (!quiesce_cmpxchg(HP3, list, &old, first));
}

void quiesce__hazptr_push(struct hazptr_head **list, struct hazptr_head *head)
{
	quiesce__hazptr_push_chain(list, head, head);
}

void quiesce__hazptr_push_list(struct hazptr_head **list, struct hazptr_head *heads)
{
	struct hazptr_head *last = heads;

	if (!heads)
		return;
	while (last->next)
		last = last->next;
	quiesce__hazptr_push_chain(list, heads, last);
}

struct hazptr_head *quiesce__hazptr_take(struct hazptr_head **list)
{
	/* Relaxed: the exchange decides. */
	if (!quiesce_load_relaxed(list) || QUIESCE_MUTANT(hazptr_list_lost))
		return NULL;
	/* HP3: full, pairs with HP3 in quiesce__hazptr_push_chain() */
	return quiesce_xchg(HP3, list, NULL);
}

/* Move objects that @set contains from @from to @to. */
static void move_protected(struct hazptr_head **from, struct hazptr_head **to, const struct quiesce__hazptr_scan *set)
{
	struct hazptr_head *head;

	while ((head = *from)) {
		if (!quiesce__hazptr_scan_has(set, quiesce__head_address(head)) || QUIESCE_MUTANT(hazptr_no_scan)) {
			from = &head->next;
			continue;
		}
		*from = head->next;
		head->next = *to;
		*to = head;
	}
}

void quiesce__hazptr_partition(struct hazptr_head *list, struct quiesce__reclaim *ret_parts)
{
	struct quiesce__retired_queue *own = quiesce__self()->retired, *r = own;
	struct quiesce__hazptr_scan set;
	bool many;

	/* Inside a callback that runs in a visit of the owner, and waits for a cohort, the scan of that visit
	 * still uses the table. */
	if (own && own->consuming)
		r = NULL;
	*ret_parts = (struct quiesce__reclaim){ .ready = list };
	quiesce__hazptr_scan_begin(&set, r ? r->table : NULL, r ? r->table_used : 0);
	many = quiesce__hazptr_scan_incomplete(&set);
	do
		move_protected(&ret_parts->ready, &ret_parts->kept, &set);
	while (quiesce__hazptr_scan_next(&set));
	if (many && !own)
		r = quiesce__retired_new(quiesce__self());
	if (r)
		quiesce__retired_fit_table(r, &set, many);
}

uint64_t quiesce__hazptr_count_pushed(void)
{
	return quiesce_fetch_add_relaxed(&quiesce__sweep.pushed, (uint64_t)1) + 1; /* Relaxed: a statistic. */
}

uint64_t quiesce__hazptr_run_list(struct hazptr_head **ready, uint32_t nr)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__run *run = self->runs;
	struct hazptr_head *head;
	uint32_t nested = self->state & QUIESCE_TLS_IN_HAZPTR; /* set if a callback waits for a cohort */
	uint64_t ran = 0;

	self->state |= QUIESCE_TLS_IN_HAZPTR;
	while (ran < nr && (head = *ready)) {
		*ready = head->next;
		__builtin_prefetch(head->next);
		quiesce__hazptr_call(run, head);
		ran++;
		quiesce_fetch_add_relaxed(&quiesce__sweep.reclaimed, (uint64_t)1); /* Relaxed: a statistic. */
	}
	run->func = 0;
	self->state = (self->state & ~QUIESCE_TLS_IN_HAZPTR) | nested;
	return ran;
}

void quiesce__hazptr_list_ended(const struct quiesce__run *run)
{
	if (run->func)
		quiesce_fetch_add_relaxed(&quiesce__sweep.reclaimed, (uint64_t)1); /* Relaxed: a statistic. */
}

bool quiesce__hazptr_wait_for(const struct hazptr_head *kept, const char *call)
{
	/* Known in debug builds only; then it is reported, here or by the call, and there is no wait. */
	uintptr_t address = quiesce__head_address(kept);
	bool mine = quiesce__shazptr_held_by_me(address);
	const void *slot = quiesce__hazptr_held_by_me(address);

	if (quiesce_unlikely(slot != NULL)) {
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER,
				"hazptr_barrier(), or the wait for a cohort, with %p, which this thread protects in slot %p, "
				"would wait for itself: hazptr_clear() comes first",
				(void *)address, slot);
		return false;
	}
	if (!QUIESCE_MUTANT(hazptr_barrier_early))
		quiesce__shazptr_wait_for(address, call);
	return !mine;
}
