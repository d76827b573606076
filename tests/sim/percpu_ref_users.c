/* SPDX-License-Identifier: MIT */
/* percpu_ref_users.c - scenarios of one life: many users, one kill, in any computer. */
#include "percpu_ref_world.h"

/* The user, and its signal handler, get live references only. */
static void handler(void)
{
	if (!world_enter(true))
		return;
	world_check();
	world_leave();
}

static void modest_user(void *unused)
{
	(void)unused;
	for (int i = 0; i < world_laps; i++)
		handler();
}

/* The user gets references also from a dying count, as long as there are any. */
static void late_user(void *unused)
{
	(void)unused;
	for (int i = 0; i < world_laps; i++)
		if (world_enter(false)) {
			world_check();
			world_leave();
		}
}

static void in_batches(void *unused)
{
	(void)unused;
	for (int i = 0; i < world_laps; i++) {
		if (!world_enter(true))
			continue;
		world_at_most += 3;
		percpu_ref_get_many(&world_ref, 3);
		world_at_least += 3;
		world_leave();
		world_check();
		world_at_least -= 3;
		percpu_ref_put_many(&world_ref, 3);
		world_at_most -= 3;
	}
}

static void interrupted_user(void *arg)
{
	sim_set_signal(handler, 4);
	world_user(arg);
}

/* Without gets the number of references only falls after the confirm function, also where a tryget_live took long. */
static void watching_owner(void *unused)
{
	uint64_t before, now;

	(void)unused;
	world_get();
	world_stay(12);
	world_kill();
	before = world_count();
	for (int i = 0; i < 4; i++, before = now) {
		world_stay(3);
		now = world_count();
		if (now > before)
			sim_fail("%llu references after there were %llu, and no user may enter", (unsigned long long)now,
				 (unsigned long long)before);
	}
	world_leave();
}

/* The release function does nothing; another thread finds that no reference is left. */
static void no_release(struct percpu_ref *r)
{
	sim_assert(r == &world_ref && world_killed && world_at_least == 0);
	world_nr_released++;
}

static void observer(void *unused)
{
	(void)unused;
	while (!percpu_ref_is_zero(&world_ref))
		platform_yield();
	sim_assert(world_at_least == 0);
	sim_obj_free(quiesce_load_relaxed(&world_current));
}

static void setup_basic(void)
{
	world_begin(0, world_last_release);
	sim_assert(world_ref.state == 0);
	world_users(driver_readers + 1, world_user, "user");
	sim_spawn(world_owner, NULL, "owner");
}

static void setup_cpu_each(void)
{
	world_cpu_each = true;
	setup_basic();
}

static void setup_cpu_id(void)
{
	world_by_cpu = true;
	setup_basic();
}

static void setup_holes(void)
{
	world_by_cpu = true;
	setup_basic();
	sim_config()->id_hook = world_holes;
}

/* The count is atomic throughout on request only.  Words close if any requirement of sequences is missing. */
static void throughout(unsigned int flags)
{
	sim_config()->nr_cpus = 2;
	sim_obj_init(0);
	sim_assert(!percpu_ref_init(&world_ref, world_last_release, flags));
	sim_assert(world_ref.state == (flags ? QUIESCE_REF_ATOMIC : 0));
	world_users(driver_readers, world_user, "user");
	world_users(1, late_user, "late");
	sim_spawn(world_owner, NULL, "owner");
}

static void setup_atomic(void)
{
	sim_config()->rseq_kind = PLATFORM_RSEQ_MM_CID;
	throughout(PERCPU_REF_INIT_ATOMIC);
}

static void setup_no_restart(void)
{
	sim_config()->rseq_kind = PLATFORM_RSEQ_MM_CID;
	sim_config()->membarrier = SIM_MEMBARRIER_NO_RESTART;
	throughout(0);
}

static void setup_no_rseq(void)
{
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
	throughout(0);
}

static void setup_full(void)
{
	sim_config()->rseq_kind = PLATFORM_RSEQ_MM_CID;
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	throughout(0);
}

static void setup_fall(void)
{
	world_begin(0, world_last_release);
	world_users(driver_readers, modest_user, "user");
	sim_spawn(watching_owner, NULL, "owner");
}

static void setup_fall_holes(void)
{
	world_by_cpu = true;
	setup_fall();
	sim_config()->id_hook = world_holes;
}

static void setup_fall_atomic(void)
{
	world_begin(PERCPU_REF_INIT_ATOMIC, world_last_release);
	world_users(driver_readers, modest_user, "user");
	sim_spawn(watching_owner, NULL, "owner");
}

static void setup_late(void)
{
	world_begin(0, world_last_release);
	world_users(1, world_user, "user");
	world_users(driver_readers, late_user, "late");
	sim_spawn(world_owner, NULL, "owner");
}

static void setup_trade(void)
{
	world_begin(0, world_last_release);
	world_users(driver_readers + 1, world_trader, "trader");
	sim_spawn(world_owner, NULL, "owner");
}

static void setup_trade_holes(void)
{
	world_by_cpu = true;
	setup_trade();
	sim_config()->id_hook = world_holes;
}

static void setup_batches(void)
{
	world_begin(0, world_last_release);
	world_users(driver_readers, in_batches, "batches");
	world_users(1, world_trader, "trader");
	sim_spawn(world_owner, NULL, "owner");
}

static void setup_signal(void)
{
	world_begin(0, world_last_release);
	world_users(driver_readers, interrupted_user, "user");
	sim_spawn(world_owner, NULL, "owner");
}

static void setup_observer(void)
{
	world_begin(0, no_release);
	world_users(driver_readers, world_user, "user");
	sim_spawn(world_owner, NULL, "owner");
	sim_spawn(observer, NULL, "observer");
}

/* Further counts without users: they are killed together with the object's, and by another thread, so that fences are shared. */
static struct percpu_ref idle[3];
static uint32_t nr_idle_released;

static void idle_release(struct percpu_ref *ref)
{
	sim_assert(percpu_ref_is_zero(ref));
	quiesce_fetch_add_relaxed(&nr_idle_released, 1u);
}

static void owner_of_many(void *unused)
{
	struct percpu_ref *list[] = { &idle[0], &world_ref, &idle[1] };

	(void)unused;
	world_stay(12);
	world_killed = true;
	percpu_ref_kill_many(list, 3);
	world_confirmed = true;
}

static void owner_of_another(void *unused)
{
	(void)unused;
	world_stay(12);
	percpu_ref_kill(&idle[2]);
}

static void setup_kill_many(void)
{
	world_begin(0, world_last_release);
	for (int i = 0; i < 3; i++)
		sim_assert(!percpu_ref_init(&idle[i], idle_release, 0));
	world_users(driver_readers, world_user, "user");
	sim_spawn(owner_of_many, NULL, "owner");
	sim_spawn(owner_of_another, NULL, "owner");
}

static void setup_kill_many_cpu_each(void)
{
	world_cpu_each = true;
	setup_kill_many();
}

static void finish_kill_many(void)
{
	world_finish();
	sim_assert(nr_idle_released == 3);
}

WORLD_FULL(cpu_each)
WORLD_FULL(fall)
WORLD_FULL(trade)
WORLD_FULL(batches)
WORLD_FULL(signal)
WORLD_FULL(observer)
WORLD_FULL(kill_many)

#define REFUSED "a tryget that is refused"

const struct sim_scenario percpu_ref_users[] = {
	{ "basic", "users get and put, and the owner kills", setup_basic, world_finish, REFUSED },
	{ "cpu_each", "the same with a CPU for each thread", setup_cpu_each, world_finish, REFUSED },
	{ "cpu_id", "the same with words per CPU number", setup_cpu_id, world_finish, REFUSED },
	{ "holes", "the same where some ids have no words", setup_holes, world_finish, REFUSED },
	{ "atomic", "atomic on request", setup_atomic, world_finish, REFUSED },
	{ "no_restart", "words that close, for want of a fence that restarts sequences", setup_no_restart, world_finish, REFUSED },
	{ "no_rseq", "... for want of restartable sequences", setup_no_rseq, world_finish, REFUSED },
	{ "full", "... for want of light fences", setup_full, world_finish, REFUSED },
	{ "full_cpu_each", "the same with a CPU for each thread", setup_cpu_each_full, world_finish, REFUSED },
	{ "fall", "after the confirm function references only become fewer", setup_fall, world_finish, REFUSED },
	{ "fall_holes", "the same where some ids have no words", setup_fall_holes, world_finish, REFUSED },
	{ "fall_full", "the same with full fences", setup_fall_full, world_finish, REFUSED },
	{ "fall_atomic", "the same, atomic", setup_fall_atomic, world_finish, REFUSED },
	{ "late", "tryget of a dying count", setup_late, world_finish, REFUSED },
	{ "trade", "got by one thread, put by another", setup_trade, world_finish, NULL },
	{ "trade_holes", "the same where some ids have no words", setup_trade_holes, world_finish, NULL },
	{ "trade_full", "the same with full fences", setup_trade_full, world_finish, NULL },
	{ "batches", "many at once", setup_batches, world_finish, NULL },
	{ "batches_full", "the same with full fences", setup_batches_full, world_finish, NULL },
	{ "signal", "signal handlers get and put", setup_signal, world_finish, REFUSED },
	{ "signal_full", "the same with full fences", setup_signal_full, world_finish, REFUSED },
	{ "kill_many", "several are killed at once", setup_kill_many, finish_kill_many, REFUSED },
	{ "kill_many_cpu_each", "the same with a CPU for each thread", setup_kill_many_cpu_each, finish_kill_many, REFUSED },
	{ "kill_many_full", "the same with full fences", setup_kill_many_full, finish_kill_many, REFUSED },
	{ "observer", "the user that finds the count zero frees", setup_observer, world_finish, REFUSED },
	{ "observer_full", "the same with full fences", setup_observer_full, world_finish, REFUSED },
	{ NULL, NULL, NULL, NULL, NULL },
};
