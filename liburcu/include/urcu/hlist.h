/* SPDX-License-Identifier: MIT */
/* urcu/hlist.h - lists whose head is one pointer, for tables.  For lists with concurrent readers see urcu/rcuhlist.h.
 *
 * Loops whose names end in _2 have an entry as their only cursor, as in Linux; it is NULL after the last entry.
 * Context: the caller serialises changes of a list.
 */
#ifndef QUIESCE_URCU_HLIST_H
#define QUIESCE_URCU_HLIST_H

#include <urcu/compiler.h>

#include <stddef.h>

struct cds_hlist_head {
	struct cds_hlist_node *next;
};

struct cds_hlist_node {
	struct cds_hlist_node *next, *prev; /* @prev of the first node is the head, of which only @next is accessed */
};

/* An empty list: as a variable, as an initialiser, at run time. */
#define CDS_HLIST_HEAD(name) struct cds_hlist_head name = CDS_HLIST_HEAD_INIT(name)
#define CDS_HLIST_HEAD_INIT(name) { QUIESCE_NULL(struct cds_hlist_node) }

QUIESCE_BEGIN_DECLS

static inline void CDS_INIT_HLIST_HEAD(struct cds_hlist_head *ptr) { ptr->next = NULL; }

/* The value of @prev in the first node. */
static inline struct cds_hlist_node *quiesce_urcu__hlist_front(struct cds_hlist_head *head)
{
	return caa_container_of(&head->next, struct cds_hlist_node, next);
}

static inline void cds_hlist_add_head(struct cds_hlist_node *newp, struct cds_hlist_head *head)
{
	newp->next = head->next;
	newp->prev = quiesce_urcu__hlist_front(head);
	if (head->next)
		head->next->prev = newp;
	head->next = newp;
}

static inline void cds_hlist_del(struct cds_hlist_node *elem)
{
	elem->prev->next = elem->next;
	if (elem->next)
		elem->next->prev = elem->prev;
}

QUIESCE_END_DECLS

/* The entry whose @member is at @ptr; NULL if @ptr is NULL. */
#define cds_hlist_entry(ptr, type, member) caa_container_of(ptr, type, member)
#define cds_hlist_entry_safe(ptr, type, member) caa_container_of_check_null(ptr, type, member)

/* ---- loops; those with "safe" in their names allow the body to remove the cursor: @p is the next node ---- */

#define cds_hlist_for_each(pos, head) for (pos = (head)->next; (pos) != NULL; pos = (pos)->next)
#define cds_hlist_for_each_safe(pos, p, head)                                                                          \
	for (pos = (head)->next; (pos) != NULL && (p = (pos)->next, 1); pos = (p))

#define cds_hlist_for_each_entry(entry, pos, head, member)                                                             \
	for (pos = (head)->next, entry = quiesce_urcu__hlist_behind(entry, pos, member); (pos) != NULL;                    \
	     pos = (pos)->next, entry = quiesce_urcu__hlist_behind(entry, pos, member))
#define cds_hlist_for_each_entry_safe(entry, pos, p, head, member)                                                     \
	for (pos = (head)->next, entry = quiesce_urcu__hlist_behind(entry, pos, member);                                   \
	     (pos) != NULL && (p = (pos)->next, 1); pos = (p), entry = quiesce_urcu__hlist_behind(entry, pos, member))

#define cds_hlist_for_each_entry_2(entry, head, member)                                                                \
	for (entry = quiesce_urcu__hlist_at(entry, (head)->next, member); (entry) != NULL;                             \
	     entry = quiesce_urcu__hlist_at(entry, (entry)->member.next, member))
#define cds_hlist_for_each_entry_safe_2(entry, e, head, member)                                                        \
	for (entry = quiesce_urcu__hlist_at(entry, (head)->next, member);                                              \
	     (entry) != NULL && (e = quiesce_urcu__hlist_at(entry, (entry)->member.next, member), 1); entry = (e))

/* The entry at @pos; at the end of the list a value that is not used. */
#define quiesce_urcu__hlist_behind(entry, pos, member)                                                                 \
	QUIESCE_CAST(__typeof__(*(entry)) *, quiesce__entry_at((pos), quiesce__offset(__typeof__(*(entry)), member, struct cds_hlist_node)))
#define quiesce_urcu__hlist_at(entry, ptr, member) cds_hlist_entry_safe(ptr, __typeof__(*(entry)), member)

#endif
