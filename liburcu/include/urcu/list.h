/* SPDX-License-Identifier: MIT */
/* urcu/list.h - circular lists in both directions.  urcu/rculist.h has what readers may walk meanwhile.
 *
 *	struct route { int to; struct cds_list_head node; };
 *	static CDS_LIST_HEAD(routes);
 *
 *	cds_list_add(&fresh->node, &routes);
 *	cds_list_for_each_entry(route, &routes, node)
 *		use(route->to);
 *
 * A head and the node in an entry are of one type.  Context: who may change the list is up to the caller.
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

/* As the first. */
static inline void cds_list_add(struct cds_list_head *newp, struct cds_list_head *head)
{
	quiesce_urcu__list_add(newp, head, head->next);
}

/* As the last. */
static inline void cds_list_add_tail(struct cds_list_head *newp, struct cds_list_head *head)
{
	quiesce_urcu__list_add(newp, head->prev, head);
}

/* Whatever is between these two. */
static inline void __cds_list_del(struct cds_list_head *prev, struct cds_list_head *next)
{
	prev->next = next;
	next->prev = prev;
}

static inline void cds_list_del(struct cds_list_head *elem) { __cds_list_del(elem->prev, elem->next); }

/* And make an empty list of it. */
static inline void cds_list_del_init(struct cds_list_head *elem)
{
	cds_list_del(elem);
	quiesce_urcu__list_init(elem);
}

/* Out of its list, to the front of another. */
static inline void cds_list_move(struct cds_list_head *elem, struct cds_list_head *head)
{
	cds_list_del(elem);
	cds_list_add(elem, head);
}

/* @_new is where @old was; @old still points into the list. */
static inline void cds_list_replace(const struct cds_list_head *old, struct cds_list_head *_new)
{
	quiesce_urcu__list_add(_new, old->prev, old->next);
}

/* And make an empty list of @old.  An empty head is replaced by an empty one. */
static inline void cds_list_replace_init(struct cds_list_head *old, struct cds_list_head *_new)
{
	if (cds_list_empty(old)) {
		quiesce_urcu__list_init(_new);
		return;
	}
	cds_list_replace(old, _new);
	quiesce_urcu__list_init(old);
}

/* All entries of @add to the front of @head; the head @add is left as it is. */
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

/* The entry whose @member is at @ptr; the first of a list that is not empty. */
#define cds_list_entry(ptr, type, member) caa_container_of(ptr, type, member)
#define cds_list_first_entry(ptr, type, member) cds_list_entry((ptr)->next, type, member)

/* ---- loops; in those with "safe" the cursor may be removed, and @p is the next ---- */

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

/* From @pos on, an entry of the list. */
#define cds_list_for_each_entry_safe_from(pos, p, head, member)                                                        \
	for (p = quiesce_urcu__list_at(pos, (pos)->member.next, member); &(pos)->member != (head);                     \
	     pos = (p), p = quiesce_urcu__list_at(pos, (pos)->member.next, member))

#define quiesce_urcu__list_at(pos, ptr, member) cds_list_entry(ptr, __typeof__(*(pos)), member)

#endif
