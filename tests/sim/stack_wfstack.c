/* SPDX-License-Identifier: MIT */
/* stack_wfstack.c - wfstack on the simulated machine: pops and takers that come between the two steps of a push. */
#include "stack_world.h"

static struct wfs_stack stack;
static struct quiesce__lock pops;

static struct thing *thing_of(struct wfs_node *node)
{
	return node ? wfs_entry(node, struct thing, wfs) : NULL;
}

static void push(struct thing *thing)
{
	world_in(thing);
	world_filled += !wfs_push(&stack, &thing->wfs);
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

/* ---- pops ---- */

static struct thing *pop(void)
{
	int last;
	struct thing *thing = thing_of(wfs_pop_with_state_blocking(&stack, &last));

	world_emptied += last;
	return thing;
}

static struct thing *try_pop(void)
{
	int last;
	struct wfs_node *node = wfs_pop_with_state_nonblocking(&stack, &last);

	world_emptied += last;
	if (node != WFS_WOULDBLOCK)
		return thing_of(node);
	sim_saw();
	return NULL;
}

static void locked_popper(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct thing *thing;

		quiesce__lock(&pops);
		thing = sim_random(2) ? pop() : try_pop();
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

static struct thing *pop_in_section(void)
{
	struct thing *thing;

	rcu_read_lock();
	thing = sim_random(2) ? pop() : try_pop();
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

/* A thing is pushed again when no pop can be at it any more. */
static void returner(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		struct thing *thing = pop_in_section(), *kept = pop_in_section();

		if (kept)
			world_out(kept);
		if (!thing)
			continue;
		world_out(thing);
		synchronize_rcu();
		push(thing);
	}
}

static void setup_again(void)
{
	for (int i = 0; i < 3; i++)
		push(world_new(0));
	sim_spawn(popper, NULL, "popper");
	sim_spawn(returner, NULL, "returner");
}

/* ---- all at once ---- */

static void take(bool wait)
{
	struct world_order order = { { 0 } };
	struct wfs_head *all = wfs_pop_all(&stack);
	struct wfs_node *next;

	world_emptied += all != NULL;
	for (struct wfs_node *node = wfs_first(all); node; node = next) {
		struct thing *thing = thing_of(node);

		if (!wait)
			while ((next = wfs_next_nonblocking(node)) == WFS_WOULDBLOCK)
				sim_saw();
		else
			next = wfs_next_blocking(node);
		world_ordered(&order, thing);
		world_out(thing);
		world_free(thing);
	}
}

static void taker(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++)
		take(sim_random(2));
}

static void setup_all(void)
{
	pushers(3);
	spawn_each(2, taker, "taker");
}

/* ---- a push that never ends ---- */

static void stops(void *me)
{
	sim_stop_within(1 + sim_random(8));
	pusher(me);
}

static void goes_on(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		push(world_new(1));
		quiesce__lock(&pops);
		try_pop();
		quiesce__unlock(&pops);
	}
	wfs_pop_all(&stack);
}

static void setup_stopped(void)
{
	sim_spawn(stops, (void *)0, "stops");
	spawn_each(2, goes_on, "goes on");
}

/* ---- a handler pushes ---- */

static void handler(void)
{
	push(world_new(WORLD_HANDLER));
}

static void interrupted(void *me)
{
	sim_set_signal(handler, 2);
	pusher(me);
	sim_set_signal(NULL, 0);
}

static void setup_handler(void)
{
	sim_spawn(interrupted, (void *)0, "interrupted");
	sim_spawn(interrupted, (void *)1, "interrupted");
	sim_spawn(taker, NULL, "taker");
}

static void finish(void)
{
	struct thing *thing;
	bool full = !wfs_empty(&stack);

	sim_assert(world_filled == world_emptied + full);
	while ((thing = thing_of(wfs_pop_nonblocking(&stack))))
		world_out(thing);
	world_end();
}

#define BETWEEN "a push that is not through"

const struct sim_scenario wfstack_scenarios[] = {
	{ "wfs_locked", "pops one at a time", setup_locked, finish, BETWEEN },
	{ "wfs_sections", "pops inside sections", setup_sections, finish, BETWEEN },
	{ "wfs_again", "nodes come back after a grace period", setup_again, finish, NULL },
	{ "wfs_all", "all at once, by two", setup_all, finish, BETWEEN },
	{ "wfs_stopped", "a push stops, and no other thread waits for it", setup_stopped, NULL, BETWEEN },
	{ "wfs_handler", "a signal handler pushes, also inside a push", setup_handler, finish, BETWEEN },
	{ NULL, NULL, NULL, NULL, NULL },
};
