/* SPDX-License-Identifier: MIT */
/* percpu_ref_changes.c - scenarios: a count that is reinitialised, changes its mode, or is inherited by a child. */
#include "percpu_ref_world.h"

/* No user is inside: replace the words that users read. */
static void freezer(void *unused)
{
	(void)unused;
	for (uint32_t i = 1; i <= 3; i++) {
		world_stay(8);
		world_kill();
		world_wait_released(i);
		sim_assert(percpu_ref_is_zero(&world_ref));
		sim_obj_init((int)i);
		quiesce_store_relaxed(&world_current, (int)i);
		world_killed = world_confirmed = false;
		world_nr_lives++;
		world_nr_revivals++;
		percpu_ref_reinit(&world_ref);
	}
	world_kill();
}

/* The count is made dead; its owner prepares the words that users read, and only then makes it live. */
static void initialiser(void *unused)
{
	(void)unused;
	world_stay(4);
	sim_obj_init(1);
	quiesce_store_relaxed(&world_current, 1);
	world_nr_revivals++;
	percpu_ref_reinit(&world_ref);
}

static void early_user(void *unused)
{
	(void)unused;
	for (int i = 0; i < 12; i++) {
		if (!world_enter(true)) {
			platform_yield();
			continue;
		}
		sim_assert(quiesce_load_relaxed(&world_current) == 1);
		world_check();
		world_leave();
	}
}

static void exact(struct percpu_ref *r)
{
	uint64_t count;

	sim_assert(!world_changing);
	world_changing = true;
	sim_assert(quiesce_load_relaxed(&r->state) & QUIESCE_REF_ATOMIC);
	count = world_count();
	/* The owner and each of two switches have a reference, too. */
	if (count < (uint64_t)world_at_least || count > (uint64_t)world_at_most + 3)
		sim_fail("the count is %llu, and there are %d to %d references", (unsigned long long)count, world_at_least,
			 world_at_most + 3);
	world_stay(3);
	sim_assert(quiesce_load_relaxed(&r->state) & QUIESCE_REF_ATOMIC);
	world_changing = false;
}

static void switcher(void *unused)
{
	(void)unused;
	for (int i = 0; i < world_laps; i++) {
		if (!world_enter(false))
			return;
		percpu_ref_switch_to_atomic(&world_ref, exact);
		world_stay(3);
		percpu_ref_switch_to_percpu(&world_ref);
		world_leave();
	}
}

/* Take the owner's kill back as soon as it begins, and kill later. */
static void reviver(void *unused)
{
	(void)unused;
	while (!percpu_ref_is_dying(&world_ref))
		platform_yield();
	world_nr_revivals++;
	world_reviving = true;
	percpu_ref_resurrect(&world_ref);
	sim_assert(!world_changing);
	world_confirmed = world_reviving = false;
	world_check();
	world_stay(4);
	world_kill();
	world_leave();
}

static void setup_freeze(void)
{
	world_begin(PERCPU_REF_ALLOW_REINIT, world_release);
	world_laps = 6;
	world_users(driver_readers, world_user, "user");
	sim_spawn(freezer, NULL, "freezer");
}

static void setup_dead(void)
{
	world_begin(PERCPU_REF_INIT_DEAD, world_release);
	world_nr_lives = 0; /* it is not killed again */
	sim_spawn(initialiser, NULL, "owner");
	world_users(driver_readers, early_user, "user");
}

static void setup_freeze_cpu_each(void)
{
	world_cpu_each = true;
	setup_freeze();
}

static void setup_freeze_holes(void)
{
	world_by_cpu = true;
	setup_freeze();
	world_users(1, world_trader, "trader");
	sim_config()->id_hook = world_holes;
}

static void setup_switch(void)
{
	world_begin(PERCPU_REF_ALLOW_REINIT, world_last_release);
	world_users(driver_readers, world_trader, "trader");
	sim_spawn(switcher, NULL, "switcher");
	sim_spawn(world_owner, NULL, "owner");
}

static void setup_switch_holes(void)
{
	world_by_cpu = true;
	setup_switch();
	sim_config()->id_hook = world_holes;
}

static void setup_switch_two(void)
{
	setup_switch();
	sim_spawn(switcher, NULL, "switcher");
}

static void setup_revive(void)
{
	world_begin(PERCPU_REF_ALLOW_REINIT, world_last_release);
	world_get(); /* a reference of the reviver */
	world_users(driver_readers - 1, world_user, "user");
	sim_spawn(world_owner, NULL, "owner");
	sim_spawn(reviver, NULL, "reviver");
}

static void confirm_and_exit(struct percpu_ref *r)
{
	exact(r);
	world_confirmed = true;
	sim_assert(!sim_cancelable());
	sim_exit();
}

static void exiting_owner(void *unused)
{
	(void)unused;
	world_stay(12);
	world_killed = true;
	percpu_ref_kill_and_confirm(&world_ref, confirm_and_exit);
	sim_fail("it goes on");
}

static void setup_confirm_exits(void)
{
	world_begin(PERCPU_REF_ALLOW_REINIT, world_last_release);
	world_users(driver_readers, world_trader, "trader");
	sim_spawn(switcher, NULL, "switcher");
	sim_spawn(exiting_owner, NULL, "owner");
}

static void forker(void *unused)
{
	struct percpu_ref own;
	uint64_t count;

	(void)unused;
	world_stay(40);
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	/* The lock is held without a holder, and the change stands between the state and the sum. */
	if ((world_ref.lock & 3) && world_ref.state && world_ref.count >> 62)
		sim_saw();
	world_changing = false;
	percpu_ref_switch_to_atomic_sync(&world_ref);
	count = quiesce_load_relaxed(&world_ref.count) / 2;
	/* The owner and each switch that was under way have a reference, too. */
	if (count < (uint64_t)world_at_least || count > (uint64_t)world_at_most + 3)
		sim_fail("the child has %llu references of %d to %d", (unsigned long long)count, world_at_least,
			 world_at_most + 3);
	sim_assert(world_nr_released == 0);
	world_killed = true;
	percpu_ref_put_many(&world_ref, count - 1);
	world_nr_lost = world_at_least;
	world_at_least = 0;
	percpu_ref_put(&world_ref);
	sim_assert(world_nr_released == 1);
	sim_assert(!percpu_ref_init(&own, world_release, PERCPU_REF_ALLOW_REINIT));
	percpu_ref_exit(&own);
}

static void fork_release(struct percpu_ref *r)
{
	sim_assert(r == &world_ref && world_killed);
	world_nr_released++;
}

static void setup_fork(void)
{
	world_begin(PERCPU_REF_ALLOW_REINIT, fork_release);
	world_get(); /* a reference of the forker */
	sim_spawn(forker, NULL, "forker");
	world_users(1, world_trader, "trader");
	spawn_each(2, switcher, "switcher");
}

static void setup_fork_kill(void)
{
	world_by_cpu = true;
	world_begin(PERCPU_REF_ALLOW_REINIT, fork_release);
	world_get(); /* a reference of the forker */
	sim_spawn(forker, NULL, "forker");
	world_users(1, world_user, "user");
	sim_spawn(world_owner, NULL, "owner");
	sim_config()->id_hook = world_holes;
}

/* Fork while another thread revives the count, or kills it; true if that change is half done. */
static bool fork_in_change(void)
{
	bool half_done;

	world_stay(20);
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	half_done = percpu_ref_is_dying(&world_ref) && !(world_ref.count & QUIESCE_REF_KILLED);
	if (half_done)
		sim_saw();
	return half_done;
}

static void revives(void *unused)
{
	(void)unused;
	percpu_ref_resurrect(&world_ref);
}

static void revival_forker(void *unused)
{
	(void)unused;
	fork_in_change();
	if (percpu_ref_is_dying(&world_ref))
		percpu_ref_resurrect(&world_ref);
	sim_assert(!percpu_ref_is_dying(&world_ref) && percpu_ref_tryget_live(&world_ref));
	percpu_ref_put(&world_ref);
	percpu_ref_switch_to_atomic_sync(&world_ref);
	sim_assert(world_count() == 2 && !world_nr_released); /* the owner's, and that of this thread */
	percpu_ref_kill(&world_ref);
	percpu_ref_put(&world_ref);
}

static void setup_fork_revive(void)
{
	world_begin(PERCPU_REF_ALLOW_REINIT, fork_release);
	percpu_ref_get(&world_ref);
	percpu_ref_kill(&world_ref);
	world_killed = true;
	sim_spawn(revival_forker, NULL, "forker");
	sim_spawn(revives, NULL, "reviver");
}

static void kills(void *unused)
{
	(void)unused;
	percpu_ref_kill(&world_ref);
}

static void kill_forker(void *unused)
{
	(void)unused;
	if (fork_in_change() || !percpu_ref_is_dying(&world_ref))
		percpu_ref_kill(&world_ref);
	sim_assert(percpu_ref_is_dying(&world_ref) && !percpu_ref_tryget_live(&world_ref));
	sim_assert(!world_nr_released);
	percpu_ref_put_many(&world_ref, world_count()); /* its own, and the owner's if that has not been put */
}

static void setup_fork_killed(void)
{
	world_begin(PERCPU_REF_ALLOW_REINIT, fork_release);
	percpu_ref_get(&world_ref);
	world_killed = true;
	sim_spawn(kill_forker, NULL, "forker");
	sim_spawn(kills, NULL, "killer");
}

static void finish_fork(void)
{
	sim_assert(world_nr_released == 1);
}

/* ---- two counts that are killed together ---- */

static struct percpu_ref other_ref;
static int nr_others_released;

static void assert_both_dead(void)
{
	sim_assert(percpu_ref_is_dying(&world_ref) && percpu_ref_is_dying(&other_ref));
	sim_assert(!percpu_ref_tryget_live(&world_ref));
	sim_assert(!percpu_ref_tryget_live(&other_ref));
}

static void together_release(struct percpu_ref *r)
{
	assert_both_dead();
	world_last_release(r);
}

static void other_release(struct percpu_ref *r)
{
	assert_both_dead();
	nr_others_released++;
	percpu_ref_exit(r);
}

static void other_confirmed(struct percpu_ref *r)
{
	(void)r;
	sim_saw();
	world_stay(6);
}

static void other_switcher(void *unused)
{
	(void)unused;
	for (int i = 0; i < world_laps; i++) {
		if (!percpu_ref_tryget_live(&other_ref))
			return;
		percpu_ref_switch_to_atomic(&other_ref, other_confirmed);
		percpu_ref_switch_to_percpu(&other_ref);
		percpu_ref_put(&other_ref);
	}
}

static void together_owner(void *unused)
{
	struct percpu_ref *refs[2] = { &world_ref, &other_ref };

	(void)unused;
	if (sim_random(2))
		refs[0] = &other_ref, refs[1] = &world_ref;
	world_stay(12);
	world_killed = true;
	percpu_ref_kill_many(refs, 2);
	sim_assert(percpu_ref_is_dying(&world_ref) && percpu_ref_is_dying(&other_ref));
}

static void setup_together(void)
{
	nr_others_released = 0;
	world_begin(PERCPU_REF_ALLOW_REINIT, together_release);
	sim_assert(!percpu_ref_init(&other_ref, other_release, PERCPU_REF_ALLOW_REINIT));
	world_users(driver_readers, world_user, "user");
	sim_spawn(other_switcher, NULL, "switcher");
	sim_spawn(together_owner, NULL, "owner");
}

static void finish_together(void)
{
	world_finish();
	sim_assert(nr_others_released == 1);
}

WORLD_FULL(freeze)
WORLD_FULL(dead)
WORLD_FULL(switch)
WORLD_FULL(switch_two)
WORLD_FULL(revive)
WORLD_FULL(together)
WORLD_FULL(confirm_exits)
WORLD_FULL(fork)
WORLD_FULL(fork_kill)
WORLD_FULL(fork_revive)
WORLD_FULL(fork_killed)

#define REFUSED "a tryget that is refused"

const struct sim_scenario percpu_ref_changes[] = {
	{ "freeze", "kill, replace, reinit", setup_freeze, world_finish, REFUSED },
	{ "freeze_cpu_each", "the same with a CPU for each thread", setup_freeze_cpu_each, world_finish, REFUSED },
	{ "freeze_holes", "the same where some ids have no words", setup_freeze_holes, world_finish, REFUSED },
	{ "freeze_full", "the same with full fences", setup_freeze_full, world_finish, REFUSED },
	{ "dead", "made dead, then live", setup_dead, world_finish, REFUSED },
	{ "dead_full", "the same with full fences", setup_dead_full, world_finish, REFUSED },
	{ "switch", "the mode changes while references go from hand to hand", setup_switch, world_finish, NULL },
	{ "switch_holes", "the same where some ids have no words", setup_switch_holes, world_finish, NULL },
	{ "switch_full", "the same with full fences", setup_switch_full, world_finish, NULL },
	{ "switch_two", "two threads change the mode", setup_switch_two, world_finish, NULL },
	{ "switch_two_full", "the same with full fences", setup_switch_two_full, world_finish, NULL },
	{ "revive", "a kill is taken back while it is confirmed", setup_revive, world_finish, NULL },
	{ "revive_full", "the same with full fences", setup_revive_full, world_finish, NULL },
	{ "together", "two are killed at once, one of which changes its mode", setup_together, finish_together, NULL },
	{ "confirm_exits", "a confirm function ends its thread, others change the mode", setup_confirm_exits, world_finish, NULL },
	{ "fork", "a child goes on with a change of mode", setup_fork, finish_fork, "a change that is half done" },
	{ "fork_kill", "the same while the owner kills", setup_fork_kill, finish_fork, NULL },
	{ "together_full", "two are killed at once, with full fences", setup_together_full, finish_together, NULL },
	{ "confirm_exits_full", "a confirm function ends its thread, with full fences", setup_confirm_exits_full, world_finish, NULL },
	{ "fork_full", "a child goes on with a change, with full fences", setup_fork_full, finish_fork, "a change that is half done" },
	{ "fork_kill_full", "the same while the owner kills", setup_fork_kill_full, finish_fork, NULL },
	{ "fork_revive", "a child goes on with a revival", setup_fork_revive, finish_fork, "a change that is half done" },
	{ "fork_revive_full", "the same with full fences", setup_fork_revive_full, finish_fork, "a change that is half done" },
	{ "fork_killed", "a child goes on with a kill", setup_fork_killed, finish_fork, "a change that is half done" },
	{ "fork_killed_full", "the same with full fences", setup_fork_killed_full, finish_fork, "a change that is half done" },
	{ NULL, NULL, NULL, NULL, NULL },
};
