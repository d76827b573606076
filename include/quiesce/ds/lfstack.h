/* SPDX-License-Identifier: MIT */
/* quiesce/ds/lfstack.h - a lock-free stack: no call waits for another thread, and pops run inside
 * sections of RCU.
 *
 * Use if many threads push and pop one by one and none may be delayed by one that is preempted.
 * Use wfstack.h if one thread takes what others push: its push is one exchange under any
 * contention.
 *
 *	static DEFINE_LFS_STACK(jobs);
 *
 *	lfs_push(&jobs, &job->node);                    // any thread
 *
 *	rcu_read_lock();
 *	struct lfs_node *node = lfs_pop(&jobs);       // newest first
 *	rcu_read_unlock();
 *	if (node) {
 *		job = lfs_entry(node, struct job, node);
 *		run(job);
 *		kfree_rcu(job, rcu);                    // not free(): another pop may be reading its link
 *	}
 *
 * Names and meaning are liburcu's without cds_, but no call takes a lock: lfs_pop() corresponds to
 * __cds_lfs_pop().
 *
 * Concurrent calls:
 *                          lfs_push   lfs_pop        lfs_pop_all
 *     lfs_push             yes        yes            yes
 *     lfs_pop              yes        *              *
 *     lfs_pop_all          yes        *              yes
 * (*) Either lfs_pop() is called inside sections of RCU only, and nodes that it or lfs_pop_all()
 * has returned are pushed again or freed only after a grace period; the struct lfs_node may be
 * written before that.  Or these two calls are serialised: there is one popper, or poppers hold a
 * lock of the program.  Then the node belongs to the popper at once, and no section is needed.
 * If no thread pops one by one, any number of threads may call lfs_pop_all().
 *
 * Why a grace period?  A pop loads the top node and the node below it, and replaces the first by
 * the second if the first is still on top.  If the first was popped meanwhile and pushed again, it
 * is on top, but the node below it may be another one by now: the pop would then put a node on top
 * that belongs to another thread.  Inside a section that cannot happen: no node comes back before
 * the section ends.
 *
 * Ordering.  If a pop returns a node, or an iteration reaches it, everything that precedes its
 * push is visible.  A push is a full fence.
 *
 * Signal handlers may push, lfs_pop_all(), and lfs_pop() inside a section, whatever they
 * interrupt.  Threads that die leave no inconsistent state; a forked child has the stack as it was
 * at one moment.
 *
 * Cache lines.  Every operation writes the stack's line.  A pop reads that of the top node.
 * Proof: docs/design/stacks.md; tests/litmus/LS*.litmus; docs/ordering.md.
 */
#ifndef QUIESCE_DS_LFSTACK_H
#define QUIESCE_DS_LFSTACK_H

#include <quiesce/detail/lfstack.h> // the structures
#include <quiesce/detail/link.h>

QUIESCE_BEGIN_DECLS

#define LFS_STACK_INIT { NULL }

/* Private, for the loops below.  The macro returns the object of a node, and NULL for NULL. */
#define quiesce__lfs_entry(pos, where, member) quiesce__entry_of(pos, where, NULL, member, struct lfs_node)

/** DEFINE_LFS_STACK - define an empty stack; usable before any constructor has run, too. */
#define DEFINE_LFS_STACK(name) struct lfs_stack name = LFS_STACK_INIT

/** lfs_init - initialise an empty stack.
 * Context: no other thread has it. */
QUIESCE_PLAIN void lfs_init(struct lfs_stack *s)
{
	quiesce__lfs_init(s);
}

/** lfs_destroy - no operation: a stack has no memory of its own. */
QUIESCE_PLAIN void lfs_destroy(struct lfs_stack *s) { (void)s; }

/** lfs_node_init - no operation: lfs_push() needs no initialised node. */
QUIESCE_PLAIN void lfs_node_init(struct lfs_node *node) { (void)node; }

/** lfs_empty - test whether @s has no node.
 * Context: any.
 * Orders: nothing. */
QUIESCE_FAST bool lfs_empty(const struct lfs_stack *s)
{
	return quiesce__lfs_empty(s);
}

/** lfs_push - push @node onto @s.
 * @node: in no stack; if pops are inside sections, a grace period has passed since it was popped.
 *
 * Context: any, signal handlers included; no section needed.  Lock-free: it retries only if
 *   another thread was faster.
 * Cost: one locked instruction for each attempt; the first one succeeds on an empty stack only,
 *   but fetches the line for the next.
 * Return: false: the stack was empty.
 * Orders: full fence. */
QUIESCE_FAST bool lfs_push(struct lfs_stack *s, struct lfs_node *node)
{
	return quiesce__lfs_push(s, node);
}

/** lfs_pop - pop the newest node.
 *
 * Context: any, inside a section; or serialised: see above.  Lock-free.
 * Cost: one locked instruction for each attempt.
 * Return: the node; NULL: the stack is empty. */
QUIESCE_FAST struct lfs_node *lfs_pop(struct lfs_stack *s)
{
	return quiesce__lfs_pop(s);
}

/** lfs_pop_all - pop all nodes, for the loops below.
 *
 * Context: any; no section needed; beside pops as in the table at the top.  Wait-free.
 * Cost: one locked instruction.
 * Return: the nodes; NULL: there was none.
 * Orders: full fence. */
QUIESCE_FAST struct lfs_head *lfs_pop_all(struct lfs_stack *s)
{
	return quiesce__lfs_pop_all(s);
}

/** lfs_for_each - visit the nodes that lfs_pop_all() returned, newest first.
 * @head: a struct lfs_head *, evaluated once.
 * @node: a struct lfs_node * variable, NULL at the end.
 *
 * Context: any; the popper. */
#define lfs_for_each(head, node)                                                                                    \
	for ((node) = quiesce__lfs_first(head); (node); (node) = quiesce__lfs_below(node))

/** lfs_for_each_safe - as lfs_for_each(); @node may be handed over in the loop.
 * @n: another such variable. */
#define lfs_for_each_safe(head, node, n)                                                                            \
	for ((node) = quiesce__lfs_first(head); (node) && ((n) = quiesce__lfs_below(node), 1); (node) = (n))

/** lfs_entry - return the object of which @node, not NULL, is the @member. */
#define lfs_entry(node, type, member) quiesce__object(node, type, member, struct lfs_node)

/** lfs_for_each_entry - lfs_for_each() over objects.
 * @pos: a variable, pointer to the objects' type; NULL at the end.
 * @member: the struct lfs_node in them. */
#define lfs_for_each_entry(pos, head, member)                                                                       \
	for ((pos) = quiesce__lfs_entry(pos, quiesce__lfs_first(head), member); (pos);                              \
	     (pos) = quiesce__lfs_entry(pos, quiesce__lfs_below(&(pos)->member), member))

/** lfs_for_each_entry_safe - as lfs_for_each_entry(); @pos may be handed over in the loop.
 * @n: another such variable. */
#define lfs_for_each_entry_safe(pos, n, head, member)                                                               \
	for ((pos) = quiesce__lfs_entry(pos, quiesce__lfs_first(head), member);                                     \
	     (pos) && ((n) = quiesce__lfs_entry(pos, quiesce__lfs_below(&(pos)->member), member), 1); (pos) = (n))

QUIESCE_END_DECLS

#endif
