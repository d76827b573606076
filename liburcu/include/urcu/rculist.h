/* SPDX-License-Identifier: MIT */
/* urcu/rculist.h - urcu/list.h for readers that walk forward inside sections while one updater changes the list.
 *
 * A walk sees each entry that is in the list all the time, with the stores made to it before it was added.  A removed
 * entry still leads to the rest of the list until a grace period has passed; only then it may be freed or added
 * again.
 * Difference from liburcu: each store that readers follow is a release, also that of a removal.
 */
#ifndef QUIESCE_URCU_RCULIST_H
#define QUIESCE_URCU_RCULIST_H

#include <urcu-pointer.h>
#include <urcu/arch.h>
#include <urcu/list.h>
#include <urcu/uatomic.h>

QUIESCE_BEGIN_DECLS

static inline void quiesce_urcu__list_add_rcu(struct cds_list_head *fresh, struct cds_list_head *prev, struct cds_list_head *next)
{
	fresh->next = next;
	fresh->prev = prev;
	rcu_assign_pointer(prev->next, fresh);
	next->prev = fresh;
}

/* Adds it as the first entry. */
static inline void cds_list_add_rcu(struct cds_list_head *newp, struct cds_list_head *head)
{
	quiesce_urcu__list_add_rcu(newp, head, head->next);
}

/* Adds it as the last entry. */
static inline void cds_list_add_tail_rcu(struct cds_list_head *newp, struct cds_list_head *head)
{
	quiesce_urcu__list_add_rcu(newp, head->prev, head);
}

/* A walk sees the old entry or the new one. */
static inline void cds_list_replace_rcu(struct cds_list_head *old, struct cds_list_head *_new)
{
	quiesce_urcu__list_add_rcu(_new, old->prev, old->next);
}

static inline void cds_list_del_rcu(struct cds_list_head *elem)
{
	elem->next->prev = elem->prev;
	rcu_assign_pointer(elem->prev->next, elem->next);
}

QUIESCE_END_DECLS

#define cds_list_for_each_rcu(pos, head)                                                                               \
	for (pos = rcu_dereference((head)->next); (pos) != (head); pos = rcu_dereference((pos)->next))

#define cds_list_for_each_entry_rcu(pos, head, member)                                                                 \
	for (pos = quiesce_urcu__list_at(pos, rcu_dereference((head)->next), member); &(pos)->member != (head);        \
	     pos = quiesce_urcu__list_at(pos, rcu_dereference((pos)->member.next), member))

#endif
