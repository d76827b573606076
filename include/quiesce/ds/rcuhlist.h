/* SPDX-License-Identifier: MIT */
/* quiesce/ds/rcuhlist.h - lists with a head of one word, for the chains of a hash table, walked
 * under RCU.
 *
 * Use quiesce/ds/rculist.h if order or the tail matters; rculist_nulls.h if entries are reused
 * immediately.
 *
 *	struct user { int id; struct hlist_node node; struct rcu_head rcu; };
 *	static struct hlist_head users[64];                 // zero is empty
 *
 *	rcu_read_lock();                                    // reader
 *	hlist_for_each_entry_rcu(u, &users[id % 64], node)
 *		if (u->id == id)
 *			break;
 *	use(u);                                             // NULL: not found
 *	rcu_read_unlock();
 *
 *	hlist_add_head_rcu(&fresh->node, &users[fresh->id % 64]);  // updaters exclude each other
 *	hlist_del_rcu(&old->node);
 *	kfree_rcu(old, rcu);
 *
 * Names, arguments and meaning are Linux's.  Ordering, context, cost, and which operations need a
 * grace period: as in rculist.h.
 */
#ifndef QUIESCE_DS_RCUHLIST_H
#define QUIESCE_DS_RCUHLIST_H

#include <quiesce/detail/link.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

struct hlist_node {
	struct hlist_node *next;   /* written by updaters; read by readers */
	struct hlist_node **pprev; /* for updaters: the link that leads here; NULL: in no list */
};

struct hlist_head {
	struct hlist_node *first; /* written by updaters; read by readers */
};

/* ---- private: the code that the calls below inline ---- */

/* The back pointer: hlist_unhashed_lockless() may load it while an updater stores it. */
#define quiesce__hlist_back(node, where) quiesce_store_relaxed(&(node)->pprev, (where)) /* Relaxed: no order promised. */
#define quiesce__hlist_pprev(node) quiesce_load_relaxed(&(node)->pprev) /* Relaxed: updaters exclude each other. */

/* Insert @fresh between the link @where and the node to which it leads. */
QUIESCE_FAST void quiesce__hlist_add(struct hlist_node *fresh, struct hlist_node **where)
{
	struct hlist_node *next = quiesce__link_peek(where);

	quiesce__link_init(&fresh->next, next);
	quiesce__hlist_back(fresh, where);
	quiesce__link_store(where, fresh);
	if (next)
		quiesce__hlist_back(next, &fresh->next);
}

/* Link @where to @next, to which another link has led. */
QUIESCE_FAST void quiesce__hlist_pass(struct hlist_node **where, struct hlist_node *next)
{
	quiesce__link_pass(where, next);
	if (next)
		quiesce__hlist_back(next, where);
}

QUIESCE_FAST void quiesce__hlist_unlink(struct hlist_node *node)
{
	quiesce__hlist_pass(quiesce__hlist_pprev(node), quiesce__link_peek(&node->next));
}

/* ---- lists ---- */

/** HLIST_HEAD, HLIST_HEAD_INIT - define an empty list; the initialiser of one. */
#define HLIST_HEAD_INIT { NULL }
#define HLIST_HEAD(name) struct hlist_head name = HLIST_HEAD_INIT

/** INIT_HLIST_HEAD - initialise an empty list; all-zero memory is one, too. */
QUIESCE_FAST void INIT_HLIST_HEAD(struct hlist_head *head) { quiesce__link_init(&head->first, (struct hlist_node *)NULL); }

/** INIT_HLIST_NODE - initialise an entry that is in no list. */
QUIESCE_FAST void INIT_HLIST_NODE(struct hlist_node *node)
{
	quiesce__link_init(&node->next, (struct hlist_node *)NULL);
	quiesce__hlist_back(node, (struct hlist_node **)NULL);
}

/** hlist_empty - test whether a list has no entry.
 * Also for readers.
 * Orders: nothing. */
QUIESCE_FAST bool hlist_empty(const struct hlist_head *head) { return !quiesce__link_peek(&head->first); }

/** hlist_unhashed - test whether an entry is in no list.
 * True after INIT_HLIST_NODE() or hlist_del_init_rcu(), not after hlist_del_rcu(). */
QUIESCE_FAST bool hlist_unhashed(const struct hlist_node *node) { return !quiesce__hlist_pprev(node); }

/** hlist_unhashed_lockless - as hlist_unhashed(), beside an updater: the result may be out of date. */
QUIESCE_FAST bool hlist_unhashed_lockless(const struct hlist_node *node) { return hlist_unhashed(node); }

/* ---- entries ---- */

/** hlist_entry - return the entry of which @node is the @member. */
#define hlist_entry(node, type, member) quiesce__object(node, type, member, struct hlist_node)

/** hlist_entry_safe - return the entry of which @node is the @member; NULL if @node is NULL. */
#define hlist_entry_safe(node, type, member) \
	quiesce__object_before(node, NULL, type, member, struct hlist_node)

/* ---- updates ---- */

/** hlist_add_head_rcu - add an entry as the first.
 * @fresh: in no list, and no reader is at it. */
QUIESCE_FAST void hlist_add_head_rcu(struct hlist_node *fresh, struct hlist_head *head) { quiesce__hlist_add(fresh, &head->first); }

/** hlist_add_before_rcu, hlist_add_behind_rcu - add an entry before or after one that is in a list. */
QUIESCE_FAST void hlist_add_before_rcu(struct hlist_node *fresh, struct hlist_node *next)
{
	quiesce__hlist_add(fresh, quiesce__hlist_pprev(next));
}

QUIESCE_FAST void hlist_add_behind_rcu(struct hlist_node *fresh, struct hlist_node *prev) { quiesce__hlist_add(fresh, &prev->next); }

/** hlist_add_tail_rcu - add an entry as the last.
 * Cost: a walk to the end. */
QUIESCE_FAST void hlist_add_tail_rcu(struct hlist_node *fresh, struct hlist_head *head)
{
	struct hlist_node **where = &head->first, *node;

	while ((node = quiesce__link_peek(where)))
		where = &node->next;
	quiesce__hlist_add(fresh, where);
}

/** hlist_del_rcu - remove an entry, also the current one of the caller's walk.
 *
 * A reader that is at it continues with its successor.  It may not be freed or added again before
 * a grace period.
 * Misuse: a second removal faults. */
QUIESCE_FAST void hlist_del_rcu(struct hlist_node *node)
{
	quiesce__hlist_unlink(node);
	quiesce__hlist_back(node, (struct hlist_node **)QUIESCE_LIST_POISON);
}

/** hlist_del_init_rcu - as hlist_del_rcu() if the entry is in a list; afterwards hlist_unhashed()
 * is true of it. */
QUIESCE_FAST void hlist_del_init_rcu(struct hlist_node *node)
{
	if (hlist_unhashed(node))
		return;
	quiesce__hlist_unlink(node);
	quiesce__hlist_back(node, (struct hlist_node **)NULL);
}

/** hlist_replace_rcu - replace @old by @fresh.  No walk finds both, or neither.
 * @old: as after hlist_del_rcu(). */
QUIESCE_FAST void hlist_replace_rcu(struct hlist_node *old, struct hlist_node *fresh)
{
	struct hlist_node *next = quiesce__link_peek(&old->next), **where = quiesce__hlist_pprev(old);

	quiesce__link_init(&fresh->next, next);
	quiesce__hlist_back(fresh, where);
	quiesce__link_store(where, fresh);
	if (next)
		quiesce__hlist_back(next, &fresh->next);
	quiesce__hlist_back(old, (struct hlist_node **)QUIESCE_LIST_POISON);
}

/** hlists_swap_heads_rcu - exchange the entries of two lists.
 *
 * A walk visits the entries of one list or of the other, never of both: it continues in those in
 * which it began.  So all entries of a list can be replaced at once: build a new list aside, swap,
 * and free the old entries after a grace period.  A reader that walks both lists may find the same
 * entries in both, or miss some.
 * Context: no other thread updates either list. */
QUIESCE_FAST void hlists_swap_heads_rcu(struct hlist_head *left, struct hlist_head *right)
{
	struct hlist_node *first = quiesce__link_peek(&left->first);

	quiesce__hlist_pass(&left->first, quiesce__link_peek(&right->first));
	quiesce__hlist_pass(&right->first, first);
}

/** hlist_add_fake - make hlist_unhashed() false of an entry that is in no list, so that it can be
 * removed.
 * @node: no reader is at it. */
QUIESCE_FAST void hlist_add_fake(struct hlist_node *node)
{
	quiesce__link_init(&node->next, (struct hlist_node *)NULL);
	quiesce__hlist_back(node, &node->next);
}

/** hlist_fake - test whether hlist_add_fake() was called for an entry. */
QUIESCE_FAST bool hlist_fake(const struct hlist_node *node)
{
	return (const void *)quiesce__hlist_pprev(node) == &node->next;
}

/* ---- walks ---- */

/** hlist_for_each_entry_rcu - walk a list.
 * @pos: a pointer to the entry's type, NULL after the last one.
 * @head: evaluated once.
 * @member: the struct hlist_node in the entry; anything else is refused. */
#define hlist_for_each_entry_rcu(pos, head, member)                                                                          \
	for ((pos) = quiesce__entry_of(pos, quiesce__link_load(&(head)->first), NULL, member, struct hlist_node); (pos);     \
	     (pos) = quiesce__entry_of(pos, quiesce__link_load(&(pos)->member.next), NULL, member, struct hlist_node))

/** hlist_for_each_entry_continue_rcu - walk on from the entry after @pos, which was found in the
 * same section. */
#define hlist_for_each_entry_continue_rcu(pos, member)                                                                       \
	for ((pos) = quiesce__entry_of(pos, quiesce__link_load(&(pos)->member.next), NULL, member, struct hlist_node); (pos); \
	     (pos) = quiesce__entry_of(pos, quiesce__link_load(&(pos)->member.next), NULL, member, struct hlist_node))

/** hlist_for_each_entry_from_rcu - walk on from @pos itself; no iteration if that is NULL. */
#define hlist_for_each_entry_from_rcu(pos, member)                                                                           \
	for (; (pos); (pos) = quiesce__entry_of(pos, quiesce__link_load(&(pos)->member.next), NULL, member, struct hlist_node))

/* ---- for updaters, and for lists that no reader sees ---- */

/** hlist_for_each_entry - walk a list, with or without readers, while no other thread updates it. */
#define hlist_for_each_entry(pos, head, member)                                                                              \
	for ((pos) = quiesce__entry_of(pos, quiesce__link_peek(&(head)->first), NULL, member, struct hlist_node); (pos);     \
	     (pos) = quiesce__entry_of(pos, quiesce__link_peek(&(pos)->member.next), NULL, member, struct hlist_node))

/** hlist_for_each_entry_safe - as hlist_for_each_entry(); @pos may be freed in the loop.
 * @n: a struct hlist_node *, for the loop itself. */
#define hlist_for_each_entry_safe(pos, n, head, member)                                                                      \
	for ((pos) = quiesce__entry_of(pos, quiesce__link_peek(&(head)->first), NULL, member, struct hlist_node);            \
	     (pos) && ((n) = quiesce__link_peek(&(pos)->member.next), 1);                                                    \
	     (pos) = quiesce__entry_of(pos, (n), NULL, member, struct hlist_node))

/** hlist_add_head, hlist_add_before, hlist_add_behind - as the _rcu forms, for lists without
 * readers. */
QUIESCE_FAST void hlist_add_head(struct hlist_node *fresh, struct hlist_head *head) { hlist_add_head_rcu(fresh, head); }
QUIESCE_FAST void hlist_add_before(struct hlist_node *fresh, struct hlist_node *next) { hlist_add_before_rcu(fresh, next); }
QUIESCE_FAST void hlist_add_behind(struct hlist_node *fresh, struct hlist_node *prev) { hlist_add_behind_rcu(fresh, prev); }

/** hlist_del - remove an entry that no reader is at or can reach. */
QUIESCE_FAST void hlist_del(struct hlist_node *node)
{
	hlist_del_rcu(node);
	quiesce__link_init(&node->next, (struct hlist_node *)QUIESCE_LIST_POISON);
}

/** hlist_del_init - as hlist_del() if the entry is in a list; afterwards hlist_unhashed() is true
 * of it. */
QUIESCE_FAST void hlist_del_init(struct hlist_node *node)
{
	if (hlist_unhashed(node))
		return;
	quiesce__hlist_unlink(node);
	INIT_HLIST_NODE(node);
}

QUIESCE_END_DECLS

#endif
