/* SPDX-License-Identifier: MIT */
/* quiesce/ds/wfstack.h - a stack onto which anybody pushes in two steps, whatever the others do.
 *
 * Use where many threads or signal handlers hand things over and one takes them, best all at once; use lfstack.h where many
 * threads pop one by one: nothing there waits for a push that was interrupted.
 *
 *	static DEFINE_WFS_STACK(free_list);
 *
 *	if (!wfs_push(&free_list, &b->node))            // anybody; was it empty?
 *		wake(taker);
 *
 *	struct wfs_head *all = wfs_pop_all(&free_list);   // newest first
 *	struct buffer *next;
 *	wfs_for_each_entry_blocking_safe(b, next, all, node)
 *		recycle(b);
 *
 * Names and meaning are liburcu's without cds_, but nothing here takes a lock: wfs_pop_blocking() is what
 * __cds_wfs_pop_blocking() is there.  Nodes need no initialisation.
 *
 * Who may run beside whom:
 *                          wfs_push   wfs_pop_*ing   wfs_pop_all
 *     wfs_push             yes        yes            yes
 *     wfs_pop_*ing         yes        *              *
 *     wfs_pop_all          yes        *              yes
 * (*) Either these are serialised: there is one taker, or takers have a lock of yours.  Then a node is the taker's at once, to be
 * pushed again or freed.  Or wfs_pop_*ing() are called inside sections of RCU only, and what they and wfs_pop_all() return is
 * pushed again or freed only after a grace period; its struct wfs_node is not written before that either.
 * Where nobody pops one by one, any number of threads may call wfs_pop_all().
 *
 * Ordering.  If a pop returns a node, or an iteration comes to it, then everything that precedes its push is visible.  A push is
 * a full fence: if the pusher then finds that the taker does not sleep, the taker finds the node in its next look.
 *
 * Waiting.  A push puts its node on top, and then links it to the one below.  Who comes between these two, and needs the link,
 * waits: it spins a few microseconds, then sleeps with pauses that grow to a millisecond, so a pusher of low priority that was
 * preempted there gets the CPU.  The _nonblocking forms return WFS_WOULDBLOCK instead.  Pushes wait for nobody.
 *
 * Signal handlers may push, wfs_pop_all(), and use what is _nonblocking, not what is blocking: they may have interrupted the
 * push that they would wait for.  A thread that is ended inside a push, asynchronously, or that a fork leaves behind there, leaves a
 * stack below whose newest nodes nobody comes: a forked child uses no stack onto which others may have been pushing.
 *
 * Lines.  Every operation writes the stack's line.  A node's link is written by its push, after the node can be found.
 * Proof: docs/design/stacks.md; tests/litmus/WS*.litmus; docs/ordering.md.
 */
#ifndef QUIESCE_DS_WFSTACK_H
#define QUIESCE_DS_WFSTACK_H

#include <quiesce/detail/link.h>
#include <quiesce/detail/wfstack.h> // the structures, WFS_WOULDBLOCK, WFS_STATE_LAST

QUIESCE_BEGIN_DECLS

#define WFS_STACK_INIT { NULL }
/** DEFINE_WFS_STACK - a stack that is ready, before any constructor too. */
#define DEFINE_WFS_STACK(name) struct wfs_stack name = WFS_STACK_INIT

/** wfs_init - make @s empty.  Context: nobody else has it. */
static inline void wfs_init(struct wfs_stack *s)
{
	quiesce__wfs_init(s);
}

/** wfs_destroy - nothing: a stack has no memory of its own. */
static inline void wfs_destroy(struct wfs_stack *s) { (void)s; }

/** wfs_node_init - nothing: wfs_push() does what there is to do. */
static inline void wfs_node_init(struct wfs_node *node) { (void)node; }

/** wfs_empty - is nothing in @s?  Any context; no order. */
QUIESCE_FAST bool wfs_empty(const struct wfs_stack *s)
{
	return quiesce__wfs_empty(s);
}

/** wfs_push - put @node on top of @s.
 * @node: in no stack, and since it was popped a grace period has passed where pops are inside sections.
 *
 * Context: any, signal handlers included; no section needed.  Wait-free.
 * Cost: one locked instruction.
 * Return: false: the stack was empty.  Orders: full fence. */
QUIESCE_FAST bool wfs_push(struct wfs_stack *s, struct wfs_node *node)
{
	return quiesce__wfs_push(s, node);
}

/** wfs_first - the newest node of what wfs_pop_all() returned; NULL: there is none. */
QUIESCE_FAST struct wfs_node *wfs_first(struct wfs_head *head) { return quiesce__wfs_first(head); }

/** wfs_next_nonblocking - the node below @node, which the caller has popped together with it.
 *
 * Context: any.  Return: NULL: @node is the oldest; WFS_WOULDBLOCK: its push is not through. */
QUIESCE_FAST struct wfs_node *wfs_next_nonblocking(struct wfs_node *node)
{
	return quiesce__wfs_next(node);
}

/** wfs_next_blocking - the same; waits for the push.  Context: a thread.  Return: NULL: @node is the oldest. */
QUIESCE_FAST struct wfs_node *wfs_next_blocking(struct wfs_node *node)
{
	return quiesce__wfs_next_blocking(node);
}

/** wfs_pop_with_state_blocking - take the newest node.
 * @ret_state: WFS_STATE_LAST, if that was the last one, or 0.
 *
 * Context: a thread; one at a time, or inside a section: see the table above.  Waits for a push that was interrupted;
 *   inside a section that holds up grace periods.
 * Cost: one locked instruction, and one more for each push that comes between.
 * Return: NULL: the stack is empty. */
QUIESCE_FAST struct wfs_node *wfs_pop_with_state_blocking(struct wfs_stack *s, int *ret_state)
{
	return quiesce__wfs_pop_blocking(s, ret_state);
}

/** wfs_pop_with_state_nonblocking - one attempt at the same.
 *
 * Context: any; one at a time, or inside a section.  Wait-free.
 * Return: NULL: the stack is empty; WFS_WOULDBLOCK: a push is not through, or one came between. */
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

/** wfs_pop_all - take all nodes: for wfs_first() and the loops below.
 *
 * Context: any; beside pops as in the table above.  Wait-free.  Cost: one locked instruction.
 * Return: NULL: there was none.  Orders: full fence. */
QUIESCE_FAST struct wfs_head *wfs_pop_all(struct wfs_stack *s)
{
	return quiesce__wfs_pop_all(s);
}

/** wfs_for_each_blocking - visit what wfs_pop_all() returned, newest first.
 * @head: a struct wfs_head *, evaluated once.  @node: a struct wfs_node * variable, NULL at the end.
 *
 * Context: a thread, the one that popped.  Waits as wfs_next_blocking().  Nodes stay as they are. */
#define wfs_for_each_blocking(head, node) for ((node) = wfs_first(head); (node); (node) = wfs_next_blocking(node))

/** wfs_for_each_blocking_safe - the same; @node may be freed or pushed again in the loop.
 * @next: another such variable. */
#define wfs_for_each_blocking_safe(head, node, next)                                                                \
	for ((node) = wfs_first(head); (node) && ((next) = wfs_next_blocking(node), 1); (node) = (next))

/* Private: the object of a node, and of the one below it; NULL has none. */
#define quiesce__wfs_entry(pos, where, member) quiesce__entry_of(pos, where, NULL, member, struct wfs_node)

/** wfs_entry - the object of which @node, not NULL, is the @member. */
#define wfs_entry(node, type, member) quiesce__object(node, type, member, struct wfs_node)

/** wfs_for_each_entry_blocking - wfs_for_each_blocking() over objects.
 * @pos: a variable, pointer to the objects' type; NULL at the end.  @member: the struct wfs_node in them. */
#define wfs_for_each_entry_blocking(pos, head, member)                                                              \
	for ((pos) = quiesce__wfs_entry(pos, wfs_first(head), member); (pos);                                       \
	     (pos) = quiesce__wfs_entry(pos, wfs_next_blocking(&(pos)->member), member))

/** wfs_for_each_entry_blocking_safe - the same; @pos may be freed or pushed again in the loop.  @n: another such variable. */
#define wfs_for_each_entry_blocking_safe(pos, n, head, member)                                                      \
	for ((pos) = quiesce__wfs_entry(pos, wfs_first(head), member);                                              \
	     (pos) && ((n) = quiesce__wfs_entry(pos, wfs_next_blocking(&(pos)->member), member), 1); (pos) = (n))

QUIESCE_END_DECLS

#endif
