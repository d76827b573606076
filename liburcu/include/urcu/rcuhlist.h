/* SPDX-License-Identifier: MIT */
/* urcu/rcuhlist.h - urcu/hlist.h for readers that walk inside sections while one updater changes the list; see
 * urcu/rculist.h. */
#ifndef QUIESCE_URCU_RCUHLIST_H
#define QUIESCE_URCU_RCUHLIST_H

#include <urcu-pointer.h>
#include <urcu/arch.h>
#include <urcu/hlist.h>
#include <urcu/uatomic.h>

QUIESCE_BEGIN_DECLS

static inline void cds_hlist_add_head_rcu(struct cds_hlist_node *newp, struct cds_hlist_head *head)
{
	newp->next = head->next;
	newp->prev = quiesce_urcu__hlist_front(head);
	if (head->next)
		head->next->prev = newp;
	rcu_assign_pointer(head->next, newp);
}

static inline void cds_hlist_del_rcu(struct cds_hlist_node *elem)
{
	if (elem->next)
		elem->next->prev = elem->prev;
	rcu_assign_pointer(elem->prev->next, elem->next);
}

QUIESCE_END_DECLS

#define cds_hlist_for_each_rcu(pos, head)                                                                              \
	for (pos = rcu_dereference((head)->next); (pos) != NULL; pos = rcu_dereference((pos)->next))

#define cds_hlist_for_each_entry_rcu(entry, pos, head, member)                                                         \
	for (pos = rcu_dereference((head)->next), entry = quiesce_urcu__hlist_behind(entry, pos, member); (pos) != NULL;   \
	     pos = rcu_dereference((pos)->next), entry = quiesce_urcu__hlist_behind(entry, pos, member))

#define cds_hlist_for_each_entry_rcu_2(entry, head, member)                                                            \
	for (entry = quiesce_urcu__hlist_at(entry, rcu_dereference((head)->next), member); (entry) != NULL;            \
	     entry = quiesce_urcu__hlist_at(entry, rcu_dereference((entry)->member.next), member))

#endif
