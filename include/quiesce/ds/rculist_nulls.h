/* SPDX-License-Identifier: MIT */
/* quiesce/ds/rculist_nulls.h - chains whose end says whose end it is: for entries that are used again at once.
 *
 * Use where entries come and go too fast to keep each one for a grace period.  Their memory must stay memory of
 * entries for one (a pool, whose pages go back through call_rcu()), but an entry may be in another chain, or stand for
 * something else, in the next moment.  Then a walk that is at it arrives in the other chain, and looks in vain for what
 * was in its own all the time; it notices by the end.  The pattern, of which no step can be left out:
 *
 *	rcu_read_lock();
 *	again:
 *	hlist_nulls_for_each_entry_rcu(o, pos, &chains[slot], node)
 *		if (key_of(o) == key) {                 // perhaps no longer
 *			if (!tryget(o))                 // fails if it has no reference left
 *				goto again;
 *			if (key_of(o) == key)           // still, or again: and now it stays so
 *				goto found;
 *			put(o);
 *			goto again;
 *		}
 *	if (hlist_nulls_strayed(pos, slot))             // it ended in another chain
 *		goto again;
 *	o = NULL;
 *	found:
 *	rcu_read_unlock();
 *
 * tests/unit/test_rculist_nulls.c has it in full, as find().  The rules:
 *  - A lookup takes a reference and then compares the key once more.  The reference is taken by an atomic operation that
 *    fails where there is none, and is an acquire.
 *  - A new life begins: key written, then the first reference (a release), then hlist_nulls_add_head_rcu().
 *  - At the head, always: at the tail, an entry that a reader is at would lead it past all the others.  The tail is for
 *    entries that no reader can be at.
 *  - All chains between which an entry can move end differently, those of different tables included.
 *  - Whoever has a reference may be sure of the entry, and of nothing that is behind it.
 *
 * Names, arguments and meaning are Linux's; hlist_nulls_strayed() is ours.  Ordering, context and cost: as in rculist.h,
 * and a lookup restarted as above finds an entry that was in its chain from the beginning to the end of the lookup.
 * Proof: docs/design/rculist.md.
 */
#ifndef QUIESCE_DS_RCULIST_NULLS_H
#define QUIESCE_DS_RCULIST_NULLS_H

#include <quiesce/detail/link.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

struct hlist_nulls_node {
	struct hlist_nulls_node *next;   /* written by updaters; read by readers, also in the entry's next life */
	struct hlist_nulls_node **pprev; /* updaters: the link that leads here; NULL: in no chain */
};

struct hlist_nulls_head {
	struct hlist_nulls_node *first; /* written by updaters; read by readers */
};

/** NULLS_MARKER - the end of the chain with this number, less than QUIESCE_NULLS_NOBODY: an odd "address". */
#define NULLS_MARKER(value) (QUIESCE_CAST(uintptr_t, value) << 1 | 1u)

/** QUIESCE_NULLS_NOBODY - the number of no chain, the largest there is. */
#define QUIESCE_NULLS_NOBODY (UINTPTR_MAX >> 1)

#define quiesce__nulls_end(value) QUIESCE_AS_POINTER(struct hlist_nulls_node *, NULLS_MARKER(value))

#define HLIST_NULLS_HEAD_INIT(value) { quiesce__nulls_end(value) }

/** INIT_HLIST_NULLS_HEAD - an empty chain.
 * @value: its number; as a function, so that the head is evaluated once. */
QUIESCE_FAST void INIT_HLIST_NULLS_HEAD(struct hlist_nulls_head *head, unsigned long value)
{
	quiesce__link_init(&head->first, quiesce__nulls_end(value));
}

/** is_a_nulls - is this the end of a chain, and no node? */
QUIESCE_FAST bool is_a_nulls(const struct hlist_nulls_node *node) { return ((uintptr_t)node & 1) != 0; }

/** get_nulls_value - the number of the chain of which this is the end. */
QUIESCE_FAST unsigned long get_nulls_value(const struct hlist_nulls_node *end) { return (unsigned long)((uintptr_t)end >> 1); }

/** hlist_nulls_strayed - did a walk of chain @value that is over end in another one?  Then it has to begin anew.
 * @pos: the node cursor of hlist_nulls_for_each_entry_rcu(); if it is a node the walk was left, and did not stray. */
QUIESCE_FAST bool hlist_nulls_strayed(const struct hlist_nulls_node *pos, unsigned long value)
{
	return is_a_nulls(pos) && get_nulls_value(pos) != value;
}

/* The back pointer, as in rcuhlist.h. */
#define quiesce__nulls_back(node, where) quiesce_store_relaxed(&(node)->pprev, (where)) /* Relaxed: no order promised. */
#define quiesce__nulls_pprev(node) quiesce_load_relaxed(&(node)->pprev) /* Relaxed: updaters exclude each other. */

/** hlist_nulls_empty - is nothing in the chain?  Also for readers; no order. */
QUIESCE_FAST bool hlist_nulls_empty(const struct hlist_nulls_head *head) { return is_a_nulls(quiesce__link_peek(&head->first)); }

/** hlist_nulls_unhashed - is the entry in no chain?  Of zeroed memory, and after hlist_nulls_del_init_rcu(). */
QUIESCE_FAST bool hlist_nulls_unhashed(const struct hlist_nulls_node *node) { return !quiesce__nulls_pprev(node); }

/** hlist_nulls_unhashed_lockless - the same beside an updater: so it is, or was just now. */
QUIESCE_FAST bool hlist_nulls_unhashed_lockless(const struct hlist_nulls_node *node) { return hlist_nulls_unhashed(node); }

/** hlist_nulls_entry - the entry of which @node is the @member; @node is not an end. */
#define hlist_nulls_entry(node, type, member) quiesce__object(node, type, member, struct hlist_nulls_node)

/* ---- updates ---- */

/* A reader may be at @fresh, since its last life, and follow its link before the one to it.  So that is shown, too
 * (LI1-recycled.litmus). */
QUIESCE_FAST void quiesce__nulls_add(struct hlist_nulls_node *fresh, struct hlist_nulls_node **where)
{
	struct hlist_nulls_node *next = quiesce__link_peek(where);

	quiesce__link_store(&fresh->next, next);
	quiesce__nulls_back(fresh, where);
	quiesce__link_store(where, fresh);
	if (!is_a_nulls(next))
		quiesce__nulls_back(next, &fresh->next);
}

/** hlist_nulls_add_tail_rcu - add an entry as the last, if no reader can be at it.  Cost: a walk to the end. */
QUIESCE_FAST void hlist_nulls_add_tail_rcu(struct hlist_nulls_node *fresh, struct hlist_nulls_head *head)
{
	struct hlist_nulls_node **where = &head->first, *node;

	while (!is_a_nulls(node = quiesce__link_peek(where)))
		where = &node->next;
	quiesce__nulls_add(fresh, where);
}

/** hlist_nulls_add_head_rcu - add an entry as the first; readers may be at it. */
QUIESCE_FAST void hlist_nulls_add_head_rcu(struct hlist_nulls_node *fresh, struct hlist_nulls_head *head)
{
	quiesce__nulls_add(fresh, &head->first);
}

QUIESCE_FAST void quiesce__nulls_unlink(struct hlist_nulls_node *node, struct hlist_nulls_node **back)
{
	struct hlist_nulls_node *next = quiesce__link_peek(&node->next), **where = quiesce__nulls_pprev(node);

	quiesce__link_pass(where, next);
	if (!is_a_nulls(next))
		quiesce__nulls_back(next, where);
	quiesce__nulls_back(node, back);
}

/** hlist_nulls_del_rcu - remove an entry.  It may be added again at once, to any chain, at the head.
 * Misuse: a second removal faults. */
QUIESCE_FAST void hlist_nulls_del_rcu(struct hlist_nulls_node *node)
{
	quiesce__nulls_unlink(node, (struct hlist_nulls_node **)QUIESCE_LIST_POISON);
}

/** hlist_nulls_del_init_rcu - the same if it is in a chain, and hlist_nulls_unhashed() is true of it then. */
QUIESCE_FAST void hlist_nulls_del_init_rcu(struct hlist_nulls_node *node)
{
	if (!hlist_nulls_unhashed(node))
		quiesce__nulls_unlink(node, NULL);
}

/** hlist_nulls_add_fake - let an entry that is in no chain be as if it were: hlist_nulls_unhashed() is not true of it, and
 * it can be removed.
 *
 * Who is at it since its last life comes to an end that is nobody's, and begins anew.  (Linux's end is that of chain 0,
 * and then who looks for something in chain 0 may miss it.) */
QUIESCE_FAST void hlist_nulls_add_fake(struct hlist_nulls_node *node)
{
	quiesce__link_init(&node->next, quiesce__nulls_end(QUIESCE_NULLS_NOBODY));
	quiesce__nulls_back(node, &node->next);
}

/* ---- walks ---- */

/* One step of a walk: is @pos a node?  Then @tpos is its entry. */
#define quiesce__nulls_is_entry(tpos, pos, member)                                                                  \
	(!is_a_nulls(pos) && ((tpos) = hlist_nulls_entry(pos, __typeof__(*(tpos)), member), 1))

/** hlist_nulls_for_each_entry_rcu - walk a chain, or several, see above.
 * @tpos: a pointer to the entry's type.  @pos: a struct hlist_nulls_node *, the end of a chain after the last entry.
 * @member: the struct hlist_nulls_node in the entry; anything else is refused. */
#define hlist_nulls_for_each_entry_rcu(tpos, pos, head, member)                                                     \
	for ((pos) = quiesce__link_load(&(head)->first); quiesce__nulls_is_entry(tpos, pos, member);                \
	     (pos) = quiesce__link_load(&(pos)->next))

/** hlist_nulls_for_each_entry_from - walk on, from the node @pos itself, or nothing at the end of a chain. */
#define hlist_nulls_for_each_entry_from(tpos, pos, member)                                                          \
	for (; quiesce__nulls_is_entry(tpos, pos, member); (pos) = quiesce__link_load(&(pos)->next))

/** hlist_nulls_for_each_entry - walk a chain, readers or not, while no other updater is there. */
#define hlist_nulls_for_each_entry(tpos, pos, head, member)                                                         \
	for ((pos) = quiesce__link_peek(&(head)->first); quiesce__nulls_is_entry(tpos, pos, member);                \
	     (pos) = quiesce__link_peek(&(pos)->next))

/** hlist_nulls_for_each_entry_safe - the same; @tpos may be removed in the loop, and be used again at once.
 * @pos: in the loop what follows it already. */
#define hlist_nulls_for_each_entry_safe(tpos, pos, head, member)                                                    \
	for ((pos) = quiesce__link_peek(&(head)->first);                                                            \
	     quiesce__nulls_is_entry(tpos, pos, member) && ((pos) = quiesce__link_peek(&(pos)->next), 1);)

QUIESCE_END_DECLS

#endif
