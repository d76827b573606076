/* SPDX-License-Identifier: MIT */
/* test_machine.c - the simulator's own tests: shapes whose outcome each memory
 * model must allow or forbid, and the machine's other promises.
 */
#include "driver.h"
#include "platform/platform.h"

#include <quiesce/detail/claim.h>

#include <quiesce/rcu.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SEEDS 4000

static uint64_t x, y, r[4];
static uint32_t word;
static int shape;
static int failures SIM_KEEP, checks SIM_KEEP;

static void check(bool good, const char *format, const char *name, const char *model)
{
	checks++;
	failures += !good;
	printf("%s ", good ? "ok  " : "FAIL");
	printf(format, name, model);
	putchar('\n');
}

/* ---- litmus shapes ---- */

enum { SB, SB_FENCE, SB_ONE_FENCE, SB_MEMBARRIER, SB_HALF_MEMBARRIER, SB_RMW, MP, MP_RELEASE, MP_ACQUIRE, MP_BOTH, MP_FENCES,
       MP_MEMBARRIER, CORR, LB_NEVER, INC, INC_PLAIN };

static void put(uint64_t *p, uint64_t v) { quiesce_store_relaxed(p, v); }
static uint64_t get(uint64_t *p) { return quiesce_load_relaxed(p); }

static void sb_order(bool first)
{
	if (shape == SB_FENCE || (shape == SB_ONE_FENCE && first))
		quiesce_fence_full(RU1);
	if (shape == SB_MEMBARRIER || shape == SB_HALF_MEMBARRIER) {
		if (first)
			platform_membarrier();
		else
			quiesce_fence_light(RU1);
	}
}

static void sb_first(void *unused)
{
	(void)unused;
	if (shape == SB_HALF_MEMBARRIER)
		sb_order(true); /* the membarrier comes too early */
	if (shape == SB_RMW)
		quiesce_xchg(RU3, &x, 1);
	else
		put(&x, 1);
	if (shape != SB_HALF_MEMBARRIER)
		sb_order(true);
	r[0] = get(&y);
}

static void sb_second(void *unused)
{
	(void)unused;
	if (shape == SB_RMW)
		quiesce_xchg(RU3, &y, 1);
	else
		put(&y, 1);
	sb_order(false);
	r[1] = get(&x);
}

static void mp_writer(void *unused)
{
	(void)unused;
	put(&x, 1);
	if (shape == MP_FENCES)
		quiesce_fence_full(RU1);
	if (shape == MP_MEMBARRIER)
		platform_membarrier();
	if (shape == MP_RELEASE || shape == MP_BOTH)
		quiesce_store_release(RU3, &y, 1);
	else
		put(&y, 1);
}

static void mp_reader(void *unused)
{
	(void)unused;
	r[0] = shape == MP_ACQUIRE || shape == MP_BOTH ? quiesce_load_acquire(RU3, &y) : get(&y);
	if (shape == MP_FENCES)
		quiesce_fence_full(RU1);
	r[1] = get(&x);
}

static void corr_writer(void *unused)
{
	(void)unused;
	put(&x, 1);
	put(&x, 2);
}

static void corr_reader(void *unused)
{
	(void)unused;
	r[0] = get(&x);
	r[1] = get(&x);
}

static void lb(void *which)
{
	int i = which != NULL;

	r[i] = get(i ? &x : &y);
	put(i ? &y : &x, 1);
}

static void increment(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++)
		if (shape == INC)
			quiesce_fetch_add_relaxed(&x, 1);
		else
			put(&x, get(&x) + 1);
}

static void litmus_setup(void)
{
	static void (*const body[][2])(void *) = {
		[SB ... SB_RMW] = { sb_first, sb_second }, [MP ... MP_MEMBARRIER] = { mp_writer, mp_reader },
		[CORR] = { corr_writer, corr_reader }, [LB_NEVER] = { lb, lb }, [INC ... INC_PLAIN] = { increment, increment },
	};

	sim_spawn(body[shape][0], NULL, "first");
	sim_spawn(body[shape][1], &x, "second");
}

static void litmus_finish(void)
{
	bool seen;

	if (shape <= SB_RMW)
		seen = !r[0] && !r[1];
	else if (shape <= MP_MEMBARRIER)
		seen = r[0] == 1 && r[1] == 0;
	else if (shape == CORR)
		seen = r[0] > r[1];
	else if (shape == LB_NEVER)
		seen = r[0] && r[1];
	else
		seen = x != 4;
	if (seen)
		sim_fail("outcome seen");
}

/* For each model the relaxed outcome must be seen (S) or never (N), in the order sc tso pso weak. */
static const struct {
	const char *name, *expected;
} litmus[] = {
	[SB] = { "SB", "NSSS" }, [SB_FENCE] = { "SB+fences", "NNNN" }, [SB_ONE_FENCE] = { "SB+one fence", "NSSS" },
	[SB_MEMBARRIER] = { "SB+light+membarrier", "NNNN" }, [SB_HALF_MEMBARRIER] = { "SB+membarrier too early", "NSSS" },
	[SB_RMW] = { "SB+rmws", "NNNN" },
	[MP] = { "MP", "NNSS" }, [MP_RELEASE] = { "MP+release", "NNNS" }, [MP_ACQUIRE] = { "MP+acquire", "NNSS" },
	[MP_BOTH] = { "MP+release+acquire", "NNNN" }, [MP_FENCES] = { "MP+fences", "NNNN" },
	[MP_MEMBARRIER] = { "MP+membarrier", "NNNN" }, [CORR] = { "coherence", "NNNN" }, [LB_NEVER] = { "LB", "NNNN" },
	[INC] = { "atomic increments", "NNNN" }, [INC_PLAIN] = { "increments by load and store", "SSSS" },
};

static int shape_wanted SIM_KEEP;

static void litmus_setup_wanted(void)
{
	shape = shape_wanted;
	litmus_setup();
}

static bool seen_with(const struct sim_scenario *scenario, struct sim_options options, struct sim_search *ret_search)
{
	*ret_search = (struct sim_search){ .first = 1, .seeds = SEEDS };
	options.change_points = 3;
	driver_search(scenario, &options, ret_search);
	return ret_search->failed;
}

static void test_litmus(void)
{
	static const struct sim_scenario scenario = { .name = "litmus", .setup = litmus_setup_wanted, .finish = litmus_finish };

	for (unsigned i = 0; i < sizeof litmus / sizeof litmus[0]; i++)
		for (int model = 0; model < SIM_NR_MODELS; model++) {
			bool seen = false, wanted = litmus[i].expected[model] == 'S';

			shape_wanted = i;
			for (int sched = 0; sched < SIM_NR_SCHEDS; sched++) {
				struct sim_search search;

				seen |= seen_with(&scenario, (struct sim_options){ .model = model, .sched = sched }, &search);
				if (search.failed && strcmp(search.failure, "outcome seen"))
					check(false, "%s: %s", litmus[i].name, search.failure);
			}
			check(seen == wanted, wanted ? "%s is seen in %s" : "%s is never seen in %s", litmus[i].name,
			      driver_model_name[model]);
		}
}

/* ---- scenarios that must pass, or fail with a certain text ---- */

static void futex_waiter(void *unused)
{
	(void)unused;
	while (quiesce_load_acquire(GP1, &word) == 0)
		platform_futex_wait(&word, 0, PLATFORM_FOREVER);
	sim_assert(sim_data_read(1) == 7);
}

static void futex_waker(void *unused)
{
	(void)unused;
	sim_data_write(1, 7);
	quiesce_store_release(GP1, &word, 1);
	if (shape != 1)
		platform_futex_wake(&word, 1);
}

static void setup_futex(void)
{
	sim_spawn(futex_waiter, NULL, "waiter");
	sim_spawn(futex_waker, NULL, "waker");
}

static void setup_no_wake(void)
{
	shape = 1;
	setup_futex();
}

static void timed_sleeper(void *unused)
{
	uint64_t start = sim_now_ns();

	(void)unused;
	while (platform_futex_wait(&word, 0, 1000000) != -ETIMEDOUT)
		;
	sim_assert(sim_now_ns() - start >= 1000000);
}

static void setup_timeout(void)
{
	sim_spawn(timed_sleeper, NULL, "sleeper");
}

static void long_sleeper(void *unused)
{
	(void)unused;
	while (!platform_futex_wait(&word, 0, 20000000000ull))
		;
}

static void setup_idle(void)
{
	sim_spawn(long_sleeper, NULL, "sleeper");
}

static void spinner(void *unused)
{
	(void)unused;
	while (!quiesce_load_relaxed(&word))
		;
}

static void setter(void *unused)
{
	(void)unused;
	quiesce_store_relaxed(&word, 1);
}

static void setup_fair(void)
{
	sim_spawn(spinner, NULL, "spinner");
	sim_spawn(setter, NULL, "setter");
}

/* Restartable sequences: a slot claimed by two threads at once is a failure. */
static uintptr_t blocks[4][QUIESCE_BLOCK_WORDS];
static int holders[4];

static void claimer(void *self)
{
	for (int i = 0; i < 3; i++) {
		uint64_t id = (uint64_t)quiesce__claim_id();
		struct quiesce__cached_slot near = { blocks[id], id };
		uintptr_t *slot = quiesce__claim_rseq(&near, (uintptr_t)self);

		if (!slot)
			continue;
		sim_assert(++holders[id] == 1);
		sim_point("holds the slot");
		sim_point("holds the slot");
		--holders[id];
		quiesce_store_release(SH2, slot, 0);
	}
}

static void setup_rseq(void)
{
	sim_config()->nr_cpus = 2;
	sim_config()->rseq_kind = PLATFORM_RSEQ_MM_CID;
	for (intptr_t i = 1; i <= 3; i++)
		sim_spawn(claimer, (void *)i, "claimer");
}

static void setup_rseq_broken(void)
{
	setup_rseq();
	sim_config()->rseq_never_aborts = true;
}

/* A handler inside the sequence takes the slot: then the sequence must begin anew and find it taken. */
static const struct quiesce__cached_slot near_0 = { blocks[0], 0 };

static void claiming_handler(void)
{
	if (quiesce__claim_rseq(&near_0, 9))
		holders[0]++;
}

static void interrupted_claimer(void *unused)
{
	(void)unused;
	sim_set_signal(claiming_handler, 1);
	if (quiesce__claim_rseq(&near_0, 1))
		holders[0]++;
	sim_set_signal(NULL, 0);
	sim_assert(holders[0] == 1);
}

static void setup_rseq_signal(void)
{
	sim_config()->nr_cpus = 1;
	sim_config()->rseq_kind = PLATFORM_RSEQ_MM_CID;
	sim_spawn(interrupted_claimer, NULL, "claimer");
}

static void setup_rseq_signal_broken(void)
{
	setup_rseq_signal();
	sim_config()->rseq_never_aborts = true;
}

/* Return concurrency ids with holes. */
static int odd_id(int id)
{
	return id ? SIM_MAX_THREADS + id : SIM_MAX_THREADS - 1;
}

static void odd_claimer(void *unused)
{
	struct quiesce__cached_slot near = { blocks[0], SIM_MAX_THREADS - 1 };
	uintptr_t *slot = quiesce__claim_rseq(&near, 1);

	(void)unused;
	sim_assert(!slot || slot == blocks[0]);
	if (slot)
		quiesce_store_release(SH2, slot, 0);
}

static void setup_odd_ids(void)
{
	sim_config()->nr_cpus = 2;
	sim_config()->rseq_kind = PLATFORM_RSEQ_CPU_ID;
	sim_config()->id_hook = odd_id;
	for (int i = 0; i < 3; i++)
		sim_spawn(odd_claimer, NULL, "claimer");
}

/* Signals interrupt a thread, nest in each other, and come neither while blocked nor in their own handlers. */
static int depth, handled;
static bool blocked;

static void handler(void)
{
	sim_assert(!blocked && depth++ == 0);
	put(&y, get(&y) + 1);
	sim_point("in the handler");
	depth--;
	handled++;
}

static void interrupted(void *unused)
{
	struct platform_sigmask mask;

	(void)unused;
	sim_set_signal(handler, 2);
	for (int i = 0; i < 40; i++) {
		platform_signals_block(&mask);
		blocked = true;
		put(&x, i);
		sim_point("blocked");
		blocked = false;
		platform_signals_restore(&mask);
		sim_point("open");
	}
	sim_assert(get(&y) == (uint64_t)handled);
}

static void finish_signals(void)
{
	sim_assert(handled <= 2);
	if (shape == 2 && handled == 2)
		sim_fail("handled twice");
}

static void setup_signals(void)
{
	sim_spawn(interrupted, NULL, "interrupted");
}

static void setup_signals_seen(void)
{
	shape = 2;
	setup_signals();
}

/* The oracles, and the state that a reset must restore. */
static int started;

static void uses_after_free(void *unused)
{
	(void)unused;
	sim_obj_free(1);
	sim_obj_read(1);
}

static void setup_uaf(void)
{
	sim_assert(started++ == 0);
	sim_obj_init(1);
	sim_spawn(uses_after_free, NULL, "user");
}

static void reads_one(void *unused)
{
	(void)unused;
	sim_obj_read(1);
	put(&x, 1);
}

static void frees_one(void *unused)
{
	(void)unused;
	while (!get(&x))
		;
	sim_obj_free(1);
}

static void setup_race(void)
{
	sim_assert(started++ == 0);
	sim_obj_init(1);
	sim_spawn(reads_one, NULL, "reader");
	sim_spawn(frees_one, NULL, "freer");
}

static void touches_the_dead(void *other)
{
	while (!get(&x))
		;
	for (int i = 0; i < 10; i++)
		get(*(uint64_t **)other);
}

static void follows_null(void *unused)
{
	(void)unused;
	get((uint64_t *)(uintptr_t)get(&y));
}

static void setup_crash(void)
{
	sim_spawn(follows_null, NULL, "wild");
	sim_spawn(setter, NULL, "bystander");
}

static uint64_t *of_the_dead;

static void mortal(void *unused)
{
	(void)unused;
	of_the_dead = &quiesce_sim_self()->rcu_word;
	put(&x, 1);
}

static void setup_dead(void)
{
	sim_spawn(mortal, NULL, "mortal");
	sim_spawn(touches_the_dead, &of_the_dead, "survivor");
}

static const struct {
	struct sim_scenario scenario;
	const char *failure; /* NULL: must pass */
} cases[] = {
	{ { .name = "futex", .setup = setup_futex }, NULL },
	{ { .name = "wake-up forgotten", .setup = setup_no_wake }, "deadlock" },
	{ { .name = "timed sleep", .setup = setup_timeout }, NULL },
	{ { .name = "sleep beyond the idle limit", .setup = setup_idle }, "lost wake-up" },
	{ { .name = "a spinning thread starves no other", .setup = setup_fair }, NULL },
	{ { .name = "rseq claims", .setup = setup_rseq }, NULL },
	{ { .name = "rseq claims without abort", .setup = setup_rseq_broken }, "++holders" },
	{ { .name = "rseq claims in handlers", .setup = setup_rseq_signal }, NULL },
	{ { .name = "rseq claims in handlers without abort", .setup = setup_rseq_signal_broken }, "holders[0] == 1" },
	{ { .name = "ids with holes", .setup = setup_odd_ids }, NULL },
	{ { .name = "signals", .setup = setup_signals, .finish = finish_signals }, NULL },
	{ { .name = "signals are delivered", .setup = setup_signals_seen, .finish = finish_signals }, "handled twice" },
	{ { .name = "use after free", .setup = setup_uaf }, "after it was freed" },
	{ { .name = "unordered free", .setup = setup_race }, "not ordered before" },
	{ { .name = "a pointer to nowhere", .setup = setup_crash }, "invalid access" },
	{ { .name = "thread-local memory of the dead", .setup = setup_dead }, "which has ended" },
};

static void test_case(unsigned i, int model)
{
	bool failed = false;
	uint64_t unfinished = 0;

	for (int sched = 0; sched < SIM_NR_SCHEDS; sched++) {
		struct sim_search search;

		failed |= seen_with(&cases[i].scenario, (struct sim_options){ .model = model, .sched = sched }, &search);
		unfinished += search.unfinished;
		if (search.failed && (!cases[i].failure || !strstr(search.failure, cases[i].failure)))
			check(false, "%s: %s", cases[i].scenario.name, search.failure);
	}
	check(failed == !!cases[i].failure && !unfinished, cases[i].failure ? "%s is found in %s" : "%s passes in %s",
	      cases[i].scenario.name, driver_model_name[model]);
}

/* A run with the same seed makes the same steps. */
static void test_replay(int model, int sched)
{
	static const struct sim_scenario scenario = { .name = "futex", .setup = setup_futex };
	int same = 0, different = 0;
	uint64_t previous = 0;

	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct sim_options options = { .model = model, .sched = sched, .seed = seed, .length = 50, .change_points = 3 };
		uint64_t hash;

		sim_run(&scenario, &options);
		hash = sim_trace_hash();
		sim_run(&scenario, &options);
		same += hash == sim_trace_hash();
		different += hash != previous;
		previous = hash;
	}
	check(same == 500 && different > 250, "replay: the same seed takes the same steps in %s, %s",
	      driver_model_name[model], driver_sched_name[sched]);
}

int main(void)
{
	sim_init();
	test_litmus();
	for (int model = 0; model < SIM_NR_MODELS; model++) {
		for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
			test_case(i, model);
		for (int sched = 0; sched < SIM_NR_SCHEDS; sched++)
			test_replay(model, sched);
	}
	printf("%d passed, %d failed\n", checks - failures, failures);
	return failures != 0;
}
