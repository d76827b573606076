/* SPDX-License-Identifier: MIT */
/* stack_lfstack.c - lfstack on the simulated machine: pops that come too late, and reused nodes. */
#include "stack_world.h"

static struct lfs_stack stack;
static struct quiesce__lock pops;

static struct thing *thing_of(struct lfs_node *node)
{
	return node ? lfs_entry(node, struct thing, lfs) : NULL;
}

static void push(struct thing *thing)
{
	world_in(thing);
	world_filled += !lfs_push(&stack, &thing->lfs);
}

static void pusher(void *me)
{
	for (int i = 0; i < 2; i++)
		push(world_new((int)(intptr_t)me));
}

static void pushers(int nr)
{
	for (intptr_t i = 0; i < nr; i++)
		sim_spawn(pusher, (void *)i, "pusher");
}

static struct thing *pop_in_section(void)
{
	struct thing *thing;

	rcu_read_lock();
	thing = thing_of(lfs_pop(&stack));
	rcu_read_unlock();
	return thing;
}

static void popper(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct thing *thing = pop_in_section();

		if (!thing)
			continue;
		world_out(thing);
		call_rcu(&thing->rcu, world_free_rcu);
	}
}

static void setup_sections(void)
{
	pushers(2);
	spawn_each(driver_readers, popper, "popper");
}

static void locked_popper(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct thing *thing;

		quiesce__lock(&pops);
		thing = thing_of(lfs_pop(&stack));
		quiesce__unlock(&pops);
		if (!thing)
			continue;
		world_out(thing);
		world_free(thing); /* no other thread accesses it */
	}
}

static void setup_locked(void)
{
	pushers(2);
	spawn_each(2, locked_popper, "popper");
}

/* A pop has found a thing on top and the one below it.  Both are taken, and the first is pushed again: if that happened at
 * once, or after the pop's section, the pop would put the second one on top, which is no longer in the stack. */
static void returner(void *unused)
{
	struct thing *first = pop_in_section(), *second = pop_in_section();

	(void)unused;
	if (second)
		world_out(second);
	if (!first)
		return;
	world_out(first);
	synchronize_rcu();
	push(first);
}

static void setup_again(void)
{
	for (int i = 0; i < 3; i++)
		push(world_new(0));
	sim_spawn(popper, NULL, "popper");
	sim_spawn(returner, NULL, "returner");
}

static void take(void)
{
	struct world_order order = { { 0 } };
	struct lfs_head *all = lfs_pop_all(&stack);
	struct thing *thing, *next;

	world_emptied += all != NULL;
	lfs_for_each_entry_safe(thing, next, all, lfs) {
		world_ordered(&order, thing);
		world_out(thing);
		call_rcu(&thing->rcu, world_free_rcu);
	}
}

static void taker(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++)
		take();
}

static void setup_all(void)
{
	pushers(3);
	spawn_each(2, taker, "taker");
}

static void setup_both(void)
{
	pushers(2);
	sim_spawn(taker, NULL, "taker");
	sim_spawn(popper, NULL, "popper");
}

static void handler(void)
{
	struct thing *thing = sim_random(2) ? pop_in_section() : NULL;

	push(world_new(WORLD_HANDLER));
	if (thing)
		world_out(thing); /* call_rcu() is not for handlers */
}

static void interrupted(void *me)
{
	sim_set_signal(handler, 2);
	pusher(me);
	popper(NULL);
	sim_set_signal(NULL, 0);
}

static void setup_handler(void)
{
	sim_spawn(interrupted, (void *)0, "interrupted");
	sim_spawn(interrupted, (void *)1, "interrupted");
}

static void stops(void *me)
{
	sim_stop_within(1 + sim_random(12));
	pusher(me);
	pop_in_section();
}

static void goes_on(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		push(world_new(1));
		sim_assert(pop_in_section());
	}
}

static void setup_stopped(void)
{
	push(world_new(2)); /* a thing for the thread that stops, if it gets far enough */
	sim_spawn(stops, (void *)0, "stops");
	sim_spawn(goes_on, NULL, "goes on");
}

static void finish(void)
{
	struct thing *thing;

	while ((thing = thing_of(lfs_pop(&stack))))
		world_out(thing);
	world_end();
}

static void finish_all(void)
{
	bool full = !lfs_empty(&stack);

	sim_assert(world_filled == world_emptied + full);
	finish();
}

const struct sim_scenario lfstack_scenarios[] = {
	{ "lfs_sections", "pops inside sections", setup_sections, finish, NULL },
	{ "lfs_locked", "pops one at a time", setup_locked, finish, NULL },
	{ "lfs_again", "a node comes back after a grace period", setup_again, finish, NULL },
	{ "lfs_all", "all at once, by two", setup_all, finish_all, NULL },
	{ "lfs_both", "all at once, and one by one", setup_both, finish, NULL },
	{ "lfs_handler", "a signal handler pushes and pops, also inside a push or pop", setup_handler, finish, NULL },
	{ "lfs_stopped", "a thread stops, and no other thread waits for it", setup_stopped, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};
