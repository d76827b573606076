/* SPDX-License-Identifier: MIT */
/* quiesce/ds/lfstack.h - a lock-free stack: nobody waits for anybody, and pops run inside sections of RCU.
 *
 * Use where many threads push and pop one by one and none may be held up by one that is preempted; use wfstack.h where one thread
 * takes what others push: its push is one exchange, however many there are.
 *
 *	static DEFINE_LFS_STACK(jobs);
 *
 *	lfs_push(&jobs, &job->node);                    // anybody
 *
 *	rcu_read_lock();
 *	struct lfs_node *node = lfs_pop(&jobs);       // newest first
 *	rcu_read_unlock();
 *	if (node)
 *		run(lfs_entry(node, struct job, node));
 *	kfree_rcu(job, rcu);                            // not free(): another pop may be reading its link
 *
 * Names and meaning are liburcu's without cds_, but nothing here takes a lock: lfs_pop() is what __cds_lfs_pop() is there.
 *
 * Who may run beside whom:
 *                          lfs_push   lfs_pop        lfs_pop_all
 *     lfs_push             yes        yes            yes
 *     lfs_pop              yes        *              *
 *     lfs_pop_all          yes        *              yes
 * (*) Either lfs_pop() is called inside sections of RCU only, and what it and lfs_pop_all() return is pushed again or freed only
 * after a grace period; its struct lfs_node may be written before that.  Or these two are serialised: there is one taker, or takers
 * have a lock of yours.  Then a node is the taker's at once, and no section is needed.
 * Where nobody pops one by one, any number of threads may call lfs_pop_all().
 *
 * Why a grace period?  A pop reads which node is on top, and what is below that one, and puts the second in place of the first
 * if that is still on top.  If the first was popped meanwhile and pushed again, it is, and below it may be another one by now: what
 * the pop then puts on top is somebody else's.  Inside a section that cannot be: no node comes back before it ends.
 *
 * Ordering.  If a pop returns a node, or an iteration comes to it, then everything that precedes its push is visible.  A push is
 * a full fence.
 *
 * Signal handlers may push, lfs_pop_all(), and lfs_pop() inside a section, wherever they come.  Threads that die leave
 * nothing behind; a forked child has the stack as it was at one moment.
 *
 * Lines.  Every operation writes the stack's line.  A pop reads that of the node on top.
 * Proof: docs/design/stacks.md; tests/litmus/LS*.litmus; docs/ordering.md.
 */
#ifndef QUIESCE_DS_LFSTACK_H
#define QUIESCE_DS_LFSTACK_H

#include <quiesce/detail/lfstack.h> // the structures
#include <quiesce/detail/link.h>

QUIESCE_BEGIN_DECLS

#define LFS_STACK_INIT { NULL }
/** DEFINE_LFS_STACK - a stack that is ready, before any constructor too. */
#define DEFINE_LFS_STACK(name) struct lfs_stack name = LFS_STACK_INIT

/** lfs_init - make @s empty.  Context: nobody else has it. */
static inline void lfs_init(struct lfs_stack *s)
{
	quiesce__lfs_init(s);
}

/** lfs_destroy - nothing: a stack has no memory of its own. */
static inline void lfs_destroy(struct lfs_stack *s) { (void)s; }

/** lfs_node_init - nothing: lfs_push() does what there is to do. */
static inline void lfs_node_init(struct lfs_node *node) { (void)node; }

/** lfs_empty - is nothing in @s?  Any context; no order. */
QUIESCE_FAST bool lfs_empty(const struct lfs_stack *s)
{
	return quiesce__lfs_empty(s);
}

/** lfs_push - put @node on top of @s.
 * @node: in no stack, and since it was popped a grace period has passed where pops are inside sections.
 *
 * Context: any, signal handlers included; no section needed.  Lock-free: another attempt only if somebody else was faster.
 * Cost: one locked instruction for each attempt; the first one succeeds on an empty stack only, but has the line for the next.
 * Return: false: the stack was empty.  Orders: full fence. */
QUIESCE_FAST bool lfs_push(struct lfs_stack *s, struct lfs_node *node)
{
	return quiesce__lfs_push(s, node);
}

/** lfs_pop - take the newest node.
 *
 * Context: any, inside a section; or one at a time: see above.  Lock-free.
 * Cost: one locked instruction for each attempt.
 * Return: NULL: the stack is empty. */
QUIESCE_FAST struct lfs_node *lfs_pop(struct lfs_stack *s)
{
	return quiesce__lfs_pop(s);
}

/** lfs_pop_all - take all nodes: for the loops below.
 *
 * Context: any; no section needed; beside pops as in the table above.  Wait-free.  Cost: one locked instruction.
 * Return: NULL: there was none.  Orders: full fence. */
QUIESCE_FAST struct lfs_head *lfs_pop_all(struct lfs_stack *s)
{
	return quiesce__lfs_pop_all(s);
}

/** lfs_for_each - visit what lfs_pop_all() returned, newest first.
 * @head: a struct lfs_head *, evaluated once.  @node: a struct lfs_node * variable, NULL at the end.
 *
 * Context: any; whoever popped. */
#define lfs_for_each(head, node)                                                                                    \
	for ((node) = quiesce__lfs_first(head); (node); (node) = quiesce__lfs_below(node))

/** lfs_for_each_safe - the same; @node may be given away in the loop.  @n: another such variable. */
#define lfs_for_each_safe(head, node, n)                                                                            \
	for ((node) = quiesce__lfs_first(head); (node) && ((n) = quiesce__lfs_below(node), 1); (node) = (n))

/* Private: the object of a node; NULL has none. */
#define quiesce__lfs_entry(pos, where, member) quiesce__entry_of(pos, where, NULL, member, struct lfs_node)

/** lfs_entry - the object of which @node, not NULL, is the @member. */
#define lfs_entry(node, type, member) quiesce__object(node, type, member, struct lfs_node)

/** lfs_for_each_entry - lfs_for_each() over objects.
 * @pos: a variable, pointer to the objects' type; NULL at the end.  @member: the struct lfs_node in them. */
#define lfs_for_each_entry(pos, head, member)                                                                       \
	for ((pos) = quiesce__lfs_entry(pos, quiesce__lfs_first(head), member); (pos);                              \
	     (pos) = quiesce__lfs_entry(pos, quiesce__lfs_below(&(pos)->member), member))

/** lfs_for_each_entry_safe - the same; @pos may be given away in the loop.  @n: another such variable. */
#define lfs_for_each_entry_safe(pos, n, head, member)                                                               \
	for ((pos) = quiesce__lfs_entry(pos, quiesce__lfs_first(head), member);                                     \
	     (pos) && ((n) = quiesce__lfs_entry(pos, quiesce__lfs_below(&(pos)->member), member), 1); (pos) = (n))

QUIESCE_END_DECLS

#endif
