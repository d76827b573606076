/* SPDX-License-Identifier: MIT */
/* quiesce/ds/rculist_nulls.h - chains whose end mark names the chain, for entries that are reused
 * immediately.
 *
 * Use if entries come and go too fast to keep each one for a grace period.  Their memory must
 * remain memory of entries for that time (a pool, whose pages are freed through call_rcu()), but
 * an entry may move to another chain, or get another key, at any moment.  Then a walk that is at
 * it continues in the other chain, and misses entries of its own; it detects that by the end mark.
 * All steps of the pattern are needed:
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
 *  - A lookup takes a reference and then compares the key once more.  The reference is taken by
 *    an atomic operation that fails if there is none left, and is an acquire.
 *  - A new life of an entry begins so: key written, then the first reference (a release), then
 *    hlist_nulls_add_head_rcu().
 *  - Add at the head, always: at the tail, an entry that a reader is at would lead the reader
 *    past all others.  The tail is for entries that no reader can be at.
 *  - All chains between which an entry can move have different end marks, those of different
 *    tables included.
 *  - A reference keeps the entry itself valid, but not its successors.
 *
 * Names, arguments and meaning are Linux's; hlist_nulls_strayed() is an addition.  Ordering,
 * context and cost: as in rculist.h; and a lookup that restarts as shown finds an entry that is in
 * its chain throughout the lookup.
 * Proof: docs/design/rculist.md.
 */
#ifndef QUIESCE_DS_RCULIST_NULLS_H
#define QUIESCE_DS_RCULIST_NULLS_H

#include <quiesce/detail/link.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

struct hlist_nulls_node {
	/* @next is written by updaters, and read by readers, also in the entry's next life. */
	struct hlist_nulls_node *next;
	struct hlist_nulls_node **pprev; /* updaters: the link to this node; NULL: in no chain */
};

struct hlist_nulls_head {
	struct hlist_nulls_node *first; /* written by updaters; read by readers */
};

/* ---- private: the code that the calls below inline ---- */

QUIESCE_FAST struct hlist_nulls_node *quiesce__nulls_end(uintptr_t value) { return (struct hlist_nulls_node *)(value << 1 | 1u); }

QUIESCE_FAST bool quiesce__nulls_is_end(const struct hlist_nulls_node *node) { return ((uintptr_t)node & 1) != 0; }

/* The back pointer: hlist_nulls_unhashed_lockless() may load it while an updater stores it. */
#define quiesce__nulls_back(node, where) quiesce_store_relaxed(&(node)->pprev, (where)) /* Relaxed: no order promised. */
#define quiesce__nulls_pprev(node) quiesce_load_relaxed(&(node)->pprev) /* Relaxed: updaters exclude each other. */

/* A reader may be at @fresh since its last life, and follow its link before @fresh is linked.  So
 * that link is published, too (LI1-recycled.litmus). */
QUIESCE_FAST void quiesce__nulls_add(struct hlist_nulls_node *fresh, struct hlist_nulls_node **where)
{
	struct hlist_nulls_node *next = quiesce__link_peek(where);

	quiesce__link_store(&fresh->next, next);
	quiesce__nulls_back(fresh, where);
	quiesce__link_store(where, fresh);
	if (!quiesce__nulls_is_end(next))
		quiesce__nulls_back(next, &fresh->next);
}

QUIESCE_FAST void quiesce__nulls_unlink(struct hlist_nulls_node *node, struct hlist_nulls_node **back)
{
	struct hlist_nulls_node *next = quiesce__link_peek(&node->next), **where = quiesce__nulls_pprev(node);

	quiesce__link_pass(where, next);
	if (!quiesce__nulls_is_end(next))
		quiesce__nulls_back(next, where);
	quiesce__nulls_back(node, back);
}

/* One step of a walk: true if @pos is a node; then @tpos is its entry. */
#define quiesce__nulls_is_entry(tpos, pos, member)                                                                  \
	(!quiesce__nulls_is_end(pos) && ((tpos) = hlist_nulls_entry(pos, __typeof__(*(tpos)), member), 1))

/* ---- chains ---- */

/** NULLS_MARKER - return the end mark of a chain, an odd "address".
 * @value: the number of the chain, less than QUIESCE_NULLS_NOBODY. */
#define NULLS_MARKER(value) (QUIESCE_CAST(uintptr_t, value) << 1 | 1u)

/** QUIESCE_NULLS_NOBODY - the largest number, which no chain has. */
#define QUIESCE_NULLS_NOBODY (UINTPTR_MAX >> 1)

/** HLIST_NULLS_HEAD_INIT - the initialiser of an empty list that ends with @value. */
#define HLIST_NULLS_HEAD_INIT(value) { QUIESCE_AS_POINTER(struct hlist_nulls_node *, NULLS_MARKER(value)) }

/** INIT_HLIST_NULLS_HEAD - initialise an empty chain.
 * @value: its number.  This is a function so that the head is evaluated once. */
QUIESCE_FAST void INIT_HLIST_NULLS_HEAD(struct hlist_nulls_head *head, unsigned long value)
{
	quiesce__link_init(&head->first, quiesce__nulls_end(value));
}

/** is_a_nulls - test whether @node is the end mark of a chain. */
QUIESCE_FAST bool is_a_nulls(const struct hlist_nulls_node *node) { return quiesce__nulls_is_end(node); }

/** get_nulls_value - return the number of the chain whose end mark @end is. */
QUIESCE_FAST unsigned long get_nulls_value(const struct hlist_nulls_node *end) { return (uintptr_t)end >> 1; }

/** hlist_nulls_strayed - test whether a walk of chain @value ended in another chain, and has to be
 * restarted.
 * @pos: the node cursor of hlist_nulls_for_each_entry_rcu(); if it is a node, the walk was left
 *   and did not stray. */
QUIESCE_FAST bool hlist_nulls_strayed(const struct hlist_nulls_node *pos, unsigned long value)
{
	return is_a_nulls(pos) && get_nulls_value(pos) != value;
}

/** hlist_nulls_empty - test whether a chain has no entry.
 * Also for readers.
 * Orders: nothing. */
QUIESCE_FAST bool hlist_nulls_empty(const struct hlist_nulls_head *head) { return is_a_nulls(quiesce__link_peek(&head->first)); }

/** hlist_nulls_unhashed - test whether an entry is in no chain.
 * True of all-zero memory, and after hlist_nulls_del_init_rcu(). */
QUIESCE_FAST bool hlist_nulls_unhashed(const struct hlist_nulls_node *node) { return !quiesce__nulls_pprev(node); }

/** hlist_nulls_unhashed_lockless - as hlist_nulls_unhashed(), beside an updater: the result may be
 * out of date. */
QUIESCE_FAST bool hlist_nulls_unhashed_lockless(const struct hlist_nulls_node *node) { return hlist_nulls_unhashed(node); }

/** hlist_nulls_entry - return the entry of which @node is the @member; @node is not an end mark. */
#define hlist_nulls_entry(node, type, member) quiesce__object(node, type, member, struct hlist_nulls_node)

/* ---- updates ---- */

/** hlist_nulls_add_tail_rcu - add an entry that no reader can be at as the last.
 * Cost: a walk to the end. */
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

/** hlist_nulls_del_rcu - remove an entry.  It may be added again immediately, to any chain, at the
 * head.
 * Misuse: a second removal faults. */
QUIESCE_FAST void hlist_nulls_del_rcu(struct hlist_nulls_node *node)
{
	quiesce__nulls_unlink(node, (struct hlist_nulls_node **)QUIESCE_LIST_POISON);
}

/** hlist_nulls_del_init_rcu - as hlist_nulls_del_rcu() if the entry is in a chain; afterwards
 * hlist_nulls_unhashed() is true of it. */
QUIESCE_FAST void hlist_nulls_del_init_rcu(struct hlist_nulls_node *node)
{
	if (!hlist_nulls_unhashed(node))
		quiesce__nulls_unlink(node, NULL);
}

/** hlist_nulls_add_fake - make hlist_nulls_unhashed() false of an entry that is in no chain, so
 * that it can be removed.
 *
 * A reader that is at it since its last life finds an end mark of no chain, and restarts.  (Linux
 * stores the end mark of chain 0, so a lookup in chain 0 may miss its entry.) */
QUIESCE_FAST void hlist_nulls_add_fake(struct hlist_nulls_node *node)
{
	quiesce__link_init(&node->next, quiesce__nulls_end(QUIESCE_NULLS_NOBODY));
	quiesce__nulls_back(node, &node->next);
}

/* ---- walks ---- */

/** hlist_nulls_for_each_entry_rcu - walk a chain, or several: see above.
 * @tpos: a pointer to the entry's type.
 * @pos: a struct hlist_nulls_node *; after the last entry the end mark of a chain.
 * @member: the struct hlist_nulls_node in the entry; anything else is refused. */
#define hlist_nulls_for_each_entry_rcu(tpos, pos, head, member)                                                     \
	for ((pos) = quiesce__link_load(&(head)->first); quiesce__nulls_is_entry(tpos, pos, member);                \
	     (pos) = quiesce__link_load(&(pos)->next))

/** hlist_nulls_for_each_entry_from - walk on from the node @pos itself; no iteration if that is an
 * end mark. */
#define hlist_nulls_for_each_entry_from(tpos, pos, member)                                                          \
	for (; quiesce__nulls_is_entry(tpos, pos, member); (pos) = quiesce__link_load(&(pos)->next))

/** hlist_nulls_for_each_entry - walk a chain, with or without readers, while no other thread
 * updates it. */
#define hlist_nulls_for_each_entry(tpos, pos, head, member)                                                         \
	for ((pos) = quiesce__link_peek(&(head)->first); quiesce__nulls_is_entry(tpos, pos, member);                \
	     (pos) = quiesce__link_peek(&(pos)->next))

/** hlist_nulls_for_each_entry_safe - as hlist_nulls_for_each_entry(); @tpos may be removed in the
 * loop, and be reused immediately.
 * @pos: in the loop the successor of the node already. */
#define hlist_nulls_for_each_entry_safe(tpos, pos, head, member)                                                    \
	for ((pos) = quiesce__link_peek(&(head)->first);                                                            \
	     quiesce__nulls_is_entry(tpos, pos, member) && ((pos) = quiesce__link_peek(&(pos)->next), 1);)

QUIESCE_END_DECLS

#endif
