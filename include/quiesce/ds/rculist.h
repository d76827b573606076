/* SPDX-License-Identifier: MIT */
/* quiesce/ds/rculist.h - doubly linked circular lists, whose readers walk forward under RCU.
 *
 * Use if order or the tail matters.  Use quiesce/ds/rcuhlist.h, included here, for the chains of a
 * hash table of your own (a head is one word), and quiesce/ds/hashtable.h if you only need
 * lookups.
 *
 *	struct route { int to; struct list_head node; struct rcu_head rcu; };
 *	static LIST_HEAD(routes);
 *
 *	rcu_read_lock();                                    // reader
 *	list_for_each_entry_rcu(r, &routes, node)
 *		use(r->to);
 *	rcu_read_unlock();
 *
 *	list_add_rcu(&fresh->node, &routes);                // updaters, which exclude each other
 *	list_del_rcu(&old->node);
 *	kfree_rcu(old, rcu);
 *
 * Names, arguments and their order are Linux's, with two differences: the cursor of a loop that
 * ran to its end is NULL, not an entry computed from the head; and conditions for a lock checker
 * are not taken.  C++ has ranges in rculist.hpp; compilers accept only types of standard layout as
 * entries of the macros here.
 *
 * Ordering.  If a walk reaches an entry, it sees everything that was written to it before it was
 * added.
 * A walk visits each entry that is there throughout, once; one that is added or removed meanwhile,
 * once or not at all; a walk that is at a removed entry continues from there.  A replaced entry is
 * seen as old or new; after a splice a walk may have seen none of the moved entries, or all.
 * A removed entry may neither be freed nor added again before a grace period: synchronize_rcu(),
 * call_rcu(), or those of SRCU if the readers' sections belong to a domain.
 * docs/design/rculist.md, tests/litmus/LI1*.litmus.
 *
 * Context of walks: inside a section, or where updaters are excluded.  Context of updates: any,
 * signal handlers as well if the exclusion allows it; sections may be open.  Cost: a step is a
 * load and a comparison; an update is a few stores, without a fence or an atomic instruction (on
 * x86).
 *
 * With <sys/queue.h>, which has another LIST_HEAD(): struct list_head routes =
 * LIST_HEAD_INIT(routes).
 * Beside a list.h of the program: headers with a prefix, docs/kernel-names.md.
 */
#ifndef QUIESCE_DS_RCULIST_H
#define QUIESCE_DS_RCULIST_H

#include <quiesce/detail/link.h>
#include <quiesce/ds/rcuhlist.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

/* This is a node in an entry, or the head of a list. */
struct list_head {
	struct list_head *next; /* written by updaters; read by readers */
	struct list_head *prev; /* accessed by updaters only */
};

/* ---- private: the code that the calls below inline ---- */

/* Add @fresh between two neighbours, one of which may be the head. */
QUIESCE_FAST void quiesce__list_add(struct list_head *fresh, struct list_head *prev, struct list_head *next)
{
	quiesce__link_init(&fresh->next, next);
	fresh->prev = prev;
	quiesce__link_store(&prev->next, fresh);
	next->prev = fresh;
}

/* Link the neighbours of a removed node to each other. */
QUIESCE_FAST void quiesce__list_join(struct list_head *prev, struct list_head *next)
{
	next->prev = prev;
	quiesce__link_pass(&prev->next, next);
}

/* Unlink the nodes from @list, wait for its readers, and then publish the nodes between @prev and
 * @next. */
QUIESCE_FAST void quiesce__list_splice(struct list_head *list, struct list_head *prev, struct list_head *next, void (*sync)(void))
{
	struct list_head *first = quiesce__link_peek(&list->next), *last = list->prev;

	if (first == list || prev == list || next == list)
		return;
	list->prev = list;
	quiesce__link_pass(&list->next, list);
	sync();
	quiesce__link_init(&last->next, next);
	next->prev = last;
	first->prev = prev;
	quiesce__link_store(&prev->next, first);
}

/* ---- lists ---- */

/** LIST_HEAD_INIT, LIST_HEAD - the initialiser of an empty list; define one. */
#define LIST_HEAD_INIT(name) { &(name), &(name) }
#ifndef LIST_HEAD
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)
#endif

/** INIT_LIST_HEAD - initialise an empty list, or an entry that is in no list; no reader can access
 * it. */
QUIESCE_FAST void INIT_LIST_HEAD(struct list_head *list)
{
	quiesce__link_init(&list->next, list);
	list->prev = list;
}

/** list_empty - test whether a list has no entry.
 * Also for readers, which may not conclude that there is a first entry later. */
QUIESCE_FAST bool list_empty(const struct list_head *head) { return quiesce__link_peek(&head->next) == head; }

/* ---- entries ---- */

/** list_entry - return the entry of which @node is the @member; @node is not the list's head. */
#define list_entry(node, type, member) quiesce__object(node, type, member, struct list_head)

/** list_entry_rcu - return the entry to which a link leads.
 * @link: an lvalue: the next of a head or node; it does not lead to the head. */
#define list_entry_rcu(link, type, member) list_entry(quiesce__link_load(&(link)), type, member)

/** list_first_entry - return the first entry of a list that is not empty, for updaters. */
#define list_first_entry(head, type, member) list_entry(quiesce__link_peek(&(head)->next), type, member)

/** list_last_entry - return the last entry of a list that is not empty, for updaters. */
#define list_last_entry(head, type, member) list_entry((head)->prev, type, member)

/** list_first_entry_or_null - return the first entry, or NULL if there is none, for updaters. */
#define list_first_entry_or_null(head, type, member)                                                                    \
	quiesce__object_before(quiesce__link_peek(&(head)->next), head, type, member, struct list_head)

/** list_next_entry, list_prev_entry - return the neighbours of @pos, for updaters.
 * The last entry has no next one and the first no previous one: test for that before. */
#define list_next_entry(pos, member) list_entry(quiesce__link_peek(&(pos)->member.next), __typeof__(*(pos)), member)
#define list_prev_entry(pos, member) list_entry((pos)->member.prev, __typeof__(*(pos)), member)

/** list_first_or_null_rcu - return the first entry, or NULL if there is none. */
#define list_first_or_null_rcu(head, type, member)                                                                      \
	quiesce__object_before(quiesce__link_load(&(head)->next), head, type, member, struct list_head)

/** list_next_or_null_rcu - return the entry after @node, or NULL if that is the last. */
#define list_next_or_null_rcu(head, node, type, member)                                                                 \
	quiesce__object_before(quiesce__link_load(&(node)->next), head, type, member, struct list_head)

/* ---- updates ---- */

/** list_add_rcu - add an entry after @after.
 * @fresh: in no list, and no reader is at it.
 * @after: an entry of the list, or its head: then the new entry is the first. */
QUIESCE_FAST void list_add_rcu(struct list_head *fresh, struct list_head *after)
{
	quiesce__list_add(fresh, after, quiesce__link_peek(&after->next));
}

/** list_add_tail_rcu - add an entry before @before.
 * @before: an entry of the list, or its head: then the new entry is the last. */
QUIESCE_FAST void list_add_tail_rcu(struct list_head *fresh, struct list_head *before)
{
	quiesce__list_add(fresh, before->prev, before);
}

/** list_del_rcu - remove an entry, also the current one of the caller's walk.
 *
 * A reader that is at it continues with its successor.  It may not be freed or added again before
 * a grace period.
 * Misuse: a second removal faults. */
QUIESCE_FAST void list_del_rcu(struct list_head *entry)
{
	quiesce__list_join(entry->prev, quiesce__link_peek(&entry->next));
	entry->prev = (struct list_head *)QUIESCE_LIST_POISON;
}

/** list_replace_rcu - replace @old by @fresh.  No walk finds both, or neither.
 * @old: as after list_del_rcu(). */
QUIESCE_FAST void list_replace_rcu(struct list_head *old, struct list_head *fresh)
{
	quiesce__list_add(fresh, old->prev, quiesce__link_peek(&old->next));
	old->prev = (struct list_head *)QUIESCE_LIST_POISON;
}

/** list_splice_init_rcu - move all entries of @list to the front of another list; @list is empty
 * afterwards.
 * @sync: waits for the readers of @list: synchronize_rcu, or a function that waits for those of a
 *   domain.
 *
 * Walks of @list would not end if its entries already led to another head, so @sync waits for them
 * in between, and meanwhile the entries are in neither list.  No other thread may update @list or
 * @head meanwhile.
 * Context: that of @sync; not in a section.  If @list is empty, or is @head itself, @sync is not
 *   called. */
QUIESCE_FAST void list_splice_init_rcu(struct list_head *list, struct list_head *head, void (*sync)(void))
{
	quiesce__list_splice(list, head, quiesce__link_peek(&head->next), sync);
}

/** list_splice_tail_init_rcu - as list_splice_init_rcu(), to the end of the other list. */
QUIESCE_FAST void list_splice_tail_init_rcu(struct list_head *list, struct list_head *head, void (*sync)(void))
{
	quiesce__list_splice(list, head->prev, head, sync);
}

/* ---- walks ---- */

/** list_for_each_entry_rcu - walk a list.
 * @pos: a pointer to the entry's type, NULL after the last one.
 * @head: evaluated at each step.
 * @member: the struct list_head in the entry; anything else is refused. */
#define list_for_each_entry_rcu(pos, head, member)                                                                            \
	for ((pos) = quiesce__entry_of(pos, quiesce__link_load(&(head)->next), (head), member, struct list_head); (pos);      \
	     (pos) = quiesce__entry_of(pos, quiesce__link_load(&(pos)->member.next), (head), member, struct list_head))

/** list_for_each_entry_continue_rcu - walk on from the entry after @pos, which was found in the
 * same section. */
#define list_for_each_entry_continue_rcu(pos, head, member)                                                                   \
	for ((pos) = quiesce__entry_of(pos, quiesce__link_load(&(pos)->member.next), (head), member, struct list_head); (pos); \
	     (pos) = quiesce__entry_of(pos, quiesce__link_load(&(pos)->member.next), (head), member, struct list_head))

/** list_for_each_entry_from_rcu - walk on from @pos itself; no iteration if that is NULL. */
#define list_for_each_entry_from_rcu(pos, head, member)                                                                       \
	for (; (pos); (pos) = quiesce__entry_of(pos, quiesce__link_load(&(pos)->member.next), (head), member, struct list_head))

/** list_for_each_rcu - walk a list by its nodes; @pos is @head after the last one. */
#define list_for_each_rcu(pos, head)                                                                                          \
	for ((pos) = quiesce__link_load(&(head)->next); (pos) != (head); (pos) = quiesce__link_load(&(pos)->next))

/* ---- for updaters, and for lists that no reader sees ---- */

/** list_for_each_entry - walk a list, with or without readers, while no other thread updates it. */
#define list_for_each_entry(pos, head, member)                                                                                \
	for ((pos) = quiesce__entry_of(pos, quiesce__link_peek(&(head)->next), (head), member, struct list_head); (pos);      \
	     (pos) = quiesce__entry_of(pos, quiesce__link_peek(&(pos)->member.next), (head), member, struct list_head))

/** list_for_each_entry_reverse - as list_for_each_entry(), backwards. */
#define list_for_each_entry_reverse(pos, head, member)                                                                        \
	for ((pos) = quiesce__entry_of(pos, (head)->prev, (head), member, struct list_head); (pos);                           \
	     (pos) = quiesce__entry_of(pos, (pos)->member.prev, (head), member, struct list_head))

/** list_for_each_entry_safe - as list_for_each_entry(); @pos may be freed in the loop.
 * @n: a pointer of the same type, for the loop itself. */
#define list_for_each_entry_safe(pos, n, head, member)                                                                        \
	for ((pos) = quiesce__entry_of(pos, quiesce__link_peek(&(head)->next), (head), member, struct list_head);             \
	     (pos) && ((n) = quiesce__entry_of(pos, quiesce__link_peek(&(pos)->member.next), (head), member, struct list_head), 1); \
	     (pos) = (n))

/** list_is_first, list_is_last - test whether @node, which is in the list, is that of the first or
 * last entry. */
QUIESCE_FAST bool list_is_first(const struct list_head *node, const struct list_head *head) { return node->prev == head; }
QUIESCE_FAST bool list_is_last(const struct list_head *node, const struct list_head *head)
{
	return quiesce__link_peek(&node->next) == head;
}

/** list_is_singular - test whether the list has exactly one entry. */
QUIESCE_FAST bool list_is_singular(const struct list_head *head)
{
	return !list_empty(head) && quiesce__link_peek(&head->next) == head->prev;
}

/** list_add, list_add_tail - add an entry to a list without readers; otherwise as list_add_rcu()
 * and list_add_tail_rcu(). */
QUIESCE_FAST void list_add(struct list_head *fresh, struct list_head *after) { list_add_rcu(fresh, after); }
QUIESCE_FAST void list_add_tail(struct list_head *fresh, struct list_head *before) { list_add_tail_rcu(fresh, before); }

/** list_del - remove an entry that no reader is at or can reach. */
QUIESCE_FAST void list_del(struct list_head *entry)
{
	quiesce__list_join(entry->prev, quiesce__link_peek(&entry->next));
	quiesce__link_init(&entry->next, (struct list_head *)QUIESCE_LIST_POISON);
	entry->prev = (struct list_head *)QUIESCE_LIST_POISON;
}

/** list_del_init - as list_del(); afterwards list_empty() is true of the entry, which may be
 * removed again. */
QUIESCE_FAST void list_del_init(struct list_head *entry)
{
	quiesce__list_join(entry->prev, quiesce__link_peek(&entry->next));
	INIT_LIST_HEAD(entry);
}

QUIESCE_END_DECLS

#endif
