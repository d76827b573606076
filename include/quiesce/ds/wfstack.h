/* SPDX-License-Identifier: MIT */
/* quiesce/ds/wfstack.h - a stack with a wait-free push: one exchange, and then a link.
 *
 * Use if many threads or signal handlers hand objects over and one takes them, preferably all at
 * once.  Use lfstack.h if many threads pop one by one: no call there waits for a push that was
 * interrupted.
 *
 *	static DEFINE_WFS_STACK(free_list);
 *
 *	if (!wfs_push(&free_list, &b->node))            // any thread; was it empty?
 *		wake(taker);
 *
 *	struct wfs_head *all = wfs_pop_all(&free_list);   // newest first
 *	struct buffer *next;
 *	wfs_for_each_entry_blocking_safe(b, next, all, node)
 *		recycle(b);
 *
 * Names and meaning are liburcu's without cds_, but no call takes a lock: wfs_pop_blocking()
 * corresponds to __cds_wfs_pop_blocking().  Nodes need no initialisation.
 *
 * Concurrent calls:
 *                          wfs_push   wfs_pop_*ing   wfs_pop_all
 *     wfs_push             yes        yes            yes
 *     wfs_pop_*ing         yes        *              *
 *     wfs_pop_all          yes        *              yes
 * (*) Either these are serialised: there is one popper, or poppers hold a lock of the program.
 * Then a node belongs to the popper at once, to be pushed again or freed.  Or wfs_pop_*ing() are
 * called inside sections of RCU only, and nodes that they or wfs_pop_all() have returned are
 * pushed again or freed only after a grace period; the struct wfs_node is not written before that
 * either.
 * If no thread pops one by one, any number of threads may call wfs_pop_all().
 *
 * Ordering.  If a pop returns a node, or an iteration reaches it, everything that precedes its
 * push is visible.  A push is a full fence: if the pusher then finds that the popper does not
 * sleep, the popper's next check finds the node.
 *
 * Waiting.  A push puts its node on top, and then links it to the node below.  A thread that comes
 * between these two steps, and needs the link, waits: it spins for a few microseconds, then sleeps
 * for times that grow to about a millisecond, so that a pusher of low priority that was preempted
 * there gets the CPU.  The _nonblocking forms return WFS_WOULDBLOCK instead.  Pushes never wait.
 *
 * Signal handlers may push, wfs_pop_all(), and use the _nonblocking forms, not the blocking ones:
 * they may have interrupted the push for which they would wait.  A thread that is ended
 * asynchronously inside a push, or that a fork leaves behind there, leaves a stack in which no
 * thread gets below the newest nodes: a forked child uses no stack onto which other threads may
 * have been pushing.
 *
 * Cache lines.  Every operation writes the stack's line.  A node's link is written by its push,
 * after other threads can find the node.
 * Proof: docs/design/stacks.md; tests/litmus/WS*.litmus; docs/ordering.md.
 */
#ifndef QUIESCE_DS_WFSTACK_H
#define QUIESCE_DS_WFSTACK_H

#include <quiesce/detail/link.h>
#include <quiesce/detail/wfstack.h> // the structures, WFS_WOULDBLOCK, WFS_STATE_LAST

QUIESCE_BEGIN_DECLS

#define WFS_STACK_INIT { NULL }

/* Private, for the loops below.  The macro returns the object of a node, and NULL for NULL. */
#define quiesce__wfs_entry(pos, where, member) quiesce__entry_of(pos, where, NULL, member, struct wfs_node)

/** DEFINE_WFS_STACK - define an empty stack; usable before any constructor has run, too. */
#define DEFINE_WFS_STACK(name) struct wfs_stack name = WFS_STACK_INIT

/** wfs_init - initialise an empty stack.
 * Context: no other thread has it. */
QUIESCE_PLAIN void wfs_init(struct wfs_stack *s)
{
	quiesce__wfs_init(s);
}

/** wfs_destroy - no operation: a stack has no memory of its own. */
QUIESCE_PLAIN void wfs_destroy(struct wfs_stack *s) { (void)s; }

/** wfs_node_init - no operation: wfs_push() needs no initialised node. */
QUIESCE_PLAIN void wfs_node_init(struct wfs_node *node) { (void)node; }

/** wfs_empty - test whether @s has no node.
 * Context: any.
 * Orders: nothing. */
QUIESCE_FAST bool wfs_empty(const struct wfs_stack *s)
{
	return quiesce__wfs_empty(s);
}

/** wfs_push - push @node onto @s.
 * @node: in no stack; if pops are inside sections, a grace period has passed since it was popped.
 *
 * Context: any, signal handlers included; no section needed.  Wait-free.
 * Cost: one locked instruction.
 * Return: false: the stack was empty.
 * Orders: full fence. */
QUIESCE_FAST bool wfs_push(struct wfs_stack *s, struct wfs_node *node)
{
	return quiesce__wfs_push(s, node);
}

/** wfs_first - return the newest node of what wfs_pop_all() returned; NULL if there is none. */
QUIESCE_FAST struct wfs_node *wfs_first(struct wfs_head *head) { return quiesce__wfs_first(head); }

/** wfs_next_nonblocking - return the node below @node, which the caller has popped together with
 * it.
 *
 * Context: any.
 * Return: the node; NULL: @node is the oldest; WFS_WOULDBLOCK: the push of @node is not complete.
 */
QUIESCE_FAST struct wfs_node *wfs_next_nonblocking(struct wfs_node *node)
{
	return quiesce__wfs_next(node);
}

/** wfs_next_blocking - as wfs_next_nonblocking(), but waits for the push.
 * Context: a thread.
 * Return: the node; NULL: @node is the oldest. */
QUIESCE_FAST struct wfs_node *wfs_next_blocking(struct wfs_node *node)
{
	return quiesce__wfs_next_blocking(node);
}

/** wfs_pop_with_state_blocking - pop the newest node.
 * @ret_state: set to WFS_STATE_LAST if that was the last one, else to 0.
 *
 * Context: a thread; serialised, or inside a section: see the table above.  Waits for a push that
 *   was interrupted; inside a section that delays grace periods.
 * Cost: one locked instruction, and one more for each push that comes in between.
 * Return: the node; NULL: the stack is empty. */
QUIESCE_FAST struct wfs_node *wfs_pop_with_state_blocking(struct wfs_stack *s, int *ret_state)
{
	return quiesce__wfs_pop_blocking(s, ret_state);
}

/** wfs_pop_with_state_nonblocking - make one attempt to pop the newest node.
 *
 * Context: any; serialised, or inside a section.  Wait-free.
 * Return: the node; NULL: the stack is empty; WFS_WOULDBLOCK: a push is not complete, or one came
 *   in between. */
QUIESCE_FAST struct wfs_node *wfs_pop_with_state_nonblocking(struct wfs_stack *s, int *ret_state)
{
	return quiesce__wfs_pop(s, ret_state);
}

/** wfs_pop_blocking - wfs_pop_with_state_blocking() without the state. */
QUIESCE_FAST struct wfs_node *wfs_pop_blocking(struct wfs_stack *s)
{
	int state;

	return wfs_pop_with_state_blocking(s, &state);
}

/** wfs_pop_nonblocking - wfs_pop_with_state_nonblocking() without the state. */
QUIESCE_FAST struct wfs_node *wfs_pop_nonblocking(struct wfs_stack *s)
{
	int state;

	return wfs_pop_with_state_nonblocking(s, &state);
}

/** wfs_pop_all - pop all nodes, for wfs_first() and the loops below.
 *
 * Context: any; beside pops as in the table at the top.  Wait-free.
 * Cost: one locked instruction.
 * Return: the nodes; NULL: there was none.
 * Orders: full fence. */
QUIESCE_FAST struct wfs_head *wfs_pop_all(struct wfs_stack *s)
{
	return quiesce__wfs_pop_all(s);
}

/** wfs_for_each_blocking - visit the nodes that wfs_pop_all() returned, newest first.
 * @head: a struct wfs_head *, evaluated once.
 * @node: a struct wfs_node * variable, NULL at the end.
 *
 * Context: a thread, the popper.  Waits as wfs_next_blocking().  Nodes are not changed. */
#define wfs_for_each_blocking(head, node) for ((node) = wfs_first(head); (node); (node) = wfs_next_blocking(node))

/** wfs_for_each_blocking_safe - as wfs_for_each_blocking(); @node may be freed or pushed again in
 * the loop.
 * @next: another such variable. */
#define wfs_for_each_blocking_safe(head, node, next)                                                                \
	for ((node) = wfs_first(head); (node) && ((next) = wfs_next_blocking(node), 1); (node) = (next))

/** wfs_entry - return the object of which @node, not NULL, is the @member. */
#define wfs_entry(node, type, member) quiesce__object(node, type, member, struct wfs_node)

/** wfs_for_each_entry_blocking - wfs_for_each_blocking() over objects.
 * @pos: a variable, pointer to the objects' type; NULL at the end.
 * @member: the struct wfs_node in them. */
#define wfs_for_each_entry_blocking(pos, head, member)                                                              \
	for ((pos) = quiesce__wfs_entry(pos, wfs_first(head), member); (pos);                                       \
	     (pos) = quiesce__wfs_entry(pos, wfs_next_blocking(&(pos)->member), member))

/** wfs_for_each_entry_blocking_safe - as wfs_for_each_entry_blocking(); @pos may be freed or pushed
 * again in the loop.
 * @n: another such variable. */
#define wfs_for_each_entry_blocking_safe(pos, n, head, member)                                                      \
	for ((pos) = quiesce__wfs_entry(pos, wfs_first(head), member);                                              \
	     (pos) && ((n) = quiesce__wfs_entry(pos, wfs_next_blocking(&(pos)->member), member), 1); (pos) = (n))

QUIESCE_END_DECLS

#endif
