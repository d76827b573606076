/* SPDX-License-Identifier: MIT */
/* urcu/list.h - circular lists in both directions.  For lists with concurrent readers see urcu/rculist.h.
 *
 *	struct route { int to; struct cds_list_head node; };
 *	static CDS_LIST_HEAD(routes);
 *
 *	cds_list_add(&fresh->node, &routes);
 *	cds_list_for_each_entry(route, &routes, node)
 *		use(route->to);
 *
 * A head and the node in an entry are of one type.  Context: the caller serialises changes of a list.
 */
#ifndef QUIESCE_URCU_LIST_H
#define QUIESCE_URCU_LIST_H

#include <urcu/compiler.h>

struct cds_list_head {
	struct cds_list_head *next, *prev;
};

/* An empty list: as a variable, as an initialiser, at run time. */
#define CDS_LIST_HEAD(name) struct cds_list_head name = CDS_LIST_HEAD_INIT(name)
#define CDS_LIST_HEAD_INIT(name) { &(name), &(name) }
#define CDS_INIT_LIST_HEAD(ptr) quiesce_urcu__list_init(ptr)

QUIESCE_BEGIN_DECLS

static inline void quiesce_urcu__list_init(struct cds_list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline void quiesce_urcu__list_add(struct cds_list_head *fresh, struct cds_list_head *prev, struct cds_list_head *next)
{
	fresh->next = next;
	fresh->prev = prev;
	prev->next = fresh;
	next->prev = fresh;
}

static inline int cds_list_empty(const struct cds_list_head *head) { return head->next == head; }

/* Adds it as the first entry. */
static inline void cds_list_add(struct cds_list_head *newp, struct cds_list_head *head)
{
	quiesce_urcu__list_add(newp, head, head->next);
}

/* Adds it as the last entry. */
static inline void cds_list_add_tail(struct cds_list_head *newp, struct cds_list_head *head)
{
	quiesce_urcu__list_add(newp, head->prev, head);
}

/* Removes everything between these two. */
static inline void __cds_list_del(struct cds_list_head *prev, struct cds_list_head *next)
{
	prev->next = next;
	next->prev = prev;
}

static inline void cds_list_del(struct cds_list_head *elem) { __cds_list_del(elem->prev, elem->next); }

/* Removes it and makes it an empty list. */
static inline void cds_list_del_init(struct cds_list_head *elem)
{
	cds_list_del(elem);
	quiesce_urcu__list_init(elem);
}

/* Moves it from its list to the front of another one. */
static inline void cds_list_move(struct cds_list_head *elem, struct cds_list_head *head)
{
	cds_list_del(elem);
	cds_list_add(elem, head);
}

/* Puts @_new into the place of @old; @old still points into the list. */
static inline void cds_list_replace(const struct cds_list_head *old, struct cds_list_head *_new)
{
	quiesce_urcu__list_add(_new, old->prev, old->next);
}

/* As cds_list_replace(), and makes @old an empty list.  An empty head is replaced by an empty one. */
static inline void cds_list_replace_init(struct cds_list_head *old, struct cds_list_head *_new)
{
	if (cds_list_empty(old)) {
		quiesce_urcu__list_init(_new);
		return;
	}
	cds_list_replace(old, _new);
	quiesce_urcu__list_init(old);
}

/* Moves all entries of @add to the front of @head; the head @add keeps its old values. */
static inline void cds_list_splice(struct cds_list_head *add, struct cds_list_head *head)
{
	struct cds_list_head *first = add->next, *last = add->prev, *behind = head->next;

	if (cds_list_empty(add))
		return;
	__cds_list_del(head, first);
	__cds_list_del(last, behind);
}

QUIESCE_END_DECLS

/* ---- entries ---- */

/* The entry whose @member is at @ptr; the first entry of a list, which must not be empty. */
#define cds_list_entry(ptr, type, member) caa_container_of(ptr, type, member)
#define cds_list_first_entry(ptr, type, member) cds_list_entry((ptr)->next, type, member)

/* ---- loops; those with "safe" in their names allow the body to remove the cursor: @p is the next node ---- */

#define cds_list_for_each(pos, head) for (pos = (head)->next; (pos) != (head); pos = (pos)->next)
#define cds_list_for_each_prev(pos, head) for (pos = (head)->prev; (pos) != (head); pos = (pos)->prev)
#define cds_list_for_each_safe(pos, p, head) quiesce_urcu__each_node(pos, p, head, next)
#define cds_list_for_each_prev_safe(pos, p, head) quiesce_urcu__each_node(pos, p, head, prev)
#define quiesce_urcu__each_node(pos, p, head, step)                                                                    \
	for (pos = (head)->step, p = (pos)->step; (pos) != (head); pos = (p), p = (pos)->step)

#define cds_list_for_each_entry(pos, head, member) quiesce_urcu__each_entry(pos, head, member, next)
#define cds_list_for_each_entry_reverse(pos, head, member) quiesce_urcu__each_entry(pos, head, member, prev)
#define quiesce_urcu__each_entry(pos, head, member, step)                                                              \
	for (pos = quiesce_urcu__list_at(pos, (head)->step, member); &(pos)->member != (head);                         \
	     pos = quiesce_urcu__list_at(pos, (pos)->member.step, member))

#define cds_list_for_each_entry_safe(pos, p, head, member)                                                             \
	for (pos = quiesce_urcu__list_at(pos, (head)->next, member), p = quiesce_urcu__list_at(pos, (pos)->member.next, member); \
	     &(pos)->member != (head); pos = (p), p = quiesce_urcu__list_at(pos, (pos)->member.next, member))

/* Begins at @pos, an entry of the list. */
#define cds_list_for_each_entry_safe_from(pos, p, head, member)                                                        \
	for (p = quiesce_urcu__list_at(pos, (pos)->member.next, member); &(pos)->member != (head);                     \
	     pos = (p), p = quiesce_urcu__list_at(pos, (pos)->member.next, member))

#define quiesce_urcu__list_at(pos, ptr, member) cds_list_entry(ptr, __typeof__(*(pos)), member)

#endif
