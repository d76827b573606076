/* SPDX-License-Identifier: MIT */
/* toy_rcu.c - the simulator must find bugs that are known.
 *
 * A small RCU with membarrier, one number per grace period, and a second one
 * with a two-phase flip, on the same atomics layer as the library.  Each known
 * mistake must be found; the correct versions must pass.  Without arguments
 * this program runs the whole table and fails if one mistake survives.
 */
#include "driver.h"
#include "platform/platform.h"

#include <stdio.h>

enum bug { NONE, NO_HEAVY, HEAVY_FIRST, UNLOCK_RELAXED, POLL_RELAXED, PUBLISH_RELAXED, FETCH_RELAXED, SCAN_SHORT,
	   NO_WAIT, LIGHT_SWAPPED, NESTED, TWO_PHASE, SINGLE_FLIP };

#define MAX_READERS 8

static enum bug bug;
static bool two_phase;
static int readers;
static uint64_t gp = 1, mark[MAX_READERS];
static int *current_object;
static int id_of[8];

/* RU1 here: a reader's mark before its reads.  RU2: its reads before the clearing. */
static void toy_lock(int i)
{
	quiesce_store_relaxed(&mark[i], quiesce_load_relaxed(&gp));
	quiesce_fence_light(RU1);
}

static void toy_unlock(int i)
{
	if (bug == UNLOCK_RELAXED)
		quiesce_store_relaxed(&mark[i], 0);
	else
		quiesce_store_release(RU2, &mark[i], 0);
}

static uint64_t toy_poll(int i)
{
	return bug == POLL_RELAXED ? quiesce_load_relaxed(&mark[i]) : quiesce_load_acquire(RU2, &mark[i]);
}

static void wait_for_readers(uint64_t number)
{
	int n = bug == SCAN_SHORT ? readers - 1 : readers;

	for (int i = 0; i < n; i++)
		for (;;) {
			uint64_t seen = toy_poll(i);

			if (!seen || seen == number)
				break;
			platform_yield();
		}
}

static void flip(uint64_t number)
{
	quiesce_store_relaxed(&gp, number);
	quiesce_fence_full(RU1);
	wait_for_readers(number);
}

static void toy_synchronize(void)
{
	uint64_t number = quiesce_load_relaxed(&gp);

	if (bug != NO_HEAVY && bug != HEAVY_FIRST)
		platform_membarrier();
	if (bug == NO_WAIT)
		return;
	if (!two_phase) {
		flip(number + 1);
		return;
	}
	flip(3 - number);
	if (bug != SINGLE_FLIP)
		flip(number);
	platform_membarrier();
}

static void read_object(void)
{
	int *p = bug == FETCH_RELAXED ? quiesce_load_relaxed(&current_object) :
					quiesce_load_consume(RU3, &current_object);

	sim_obj_read(*p);
	sim_assert(sim_data_read(*p) == 100 + (uint64_t)*p);
	sim_obj_read(*p);
}

static void reader(void *arg)
{
	int i = (int)(intptr_t)arg;

	for (int n = 0; n < 2; n++) {
		toy_lock(i);
		read_object();
		if (bug == NESTED) { /* an inner section ends the outer one */
			toy_lock(i);
			toy_unlock(i);
			sim_obj_read(*quiesce_load_relaxed(&current_object));
			sim_obj_read(*quiesce_load_relaxed(&current_object));
		}
		toy_unlock(i);
	}
}

static void publish(int id)
{
	id_of[id] = id;
	sim_obj_init(id);
	sim_data_write(id, 100 + id);
	if (bug == PUBLISH_RELAXED)
		quiesce_store_relaxed(&current_object, &id_of[id]);
	else
		quiesce_store_release(RU3, &current_object, &id_of[id]);
}

static void updater(void *arg)
{
	(void)arg;
	for (int id = 1; id < 4; id++) {
		if (bug == HEAVY_FIRST)
			platform_membarrier();
		publish(id);
		toy_synchronize();
		sim_obj_free(id - 1);
	}
}

static void start(enum bug which, bool phases)
{
	bug = which;
	two_phase = phases;
	readers = driver_readers;
	sim_obj_init(0);
	sim_data_write(0, 100);
	current_object = &id_of[0];
	if (bug == LIGHT_SWAPPED)
		quiesce_mutant_set("RU1:light");
	for (int i = 0; i < readers; i++)
		sim_spawn(reader, (void *)(intptr_t)i, "reader");
	sim_spawn(updater, NULL, "updater");
}

#define SCENARIO(name, bug, phases) static void setup_##name(void) { start(bug, phases); }
#define SCENARIOS(X)                                                                     \
	X(correct, NONE, false, "nothing is wrong")                                      \
	X(two_phase, NONE, true, "nothing is wrong, two flips")                          \
	X(no_heavy, NO_HEAVY, false, "the updater issues no heavy fence")                \
	X(heavy_first, HEAVY_FIRST, false, "the heavy fence precedes the unlinking")     \
	X(unlock_relaxed, UNLOCK_RELAXED, false, "the mark is cleared without release")  \
	X(poll_relaxed, POLL_RELAXED, false, "the scan reads marks without acquire")     \
	X(publish_relaxed, PUBLISH_RELAXED, false, "publication without release")        \
	X(fetch_relaxed, FETCH_RELAXED, false, "fetch without acquire")                  \
	X(scan_short, SCAN_SHORT, false, "the scan leaves out the last reader")          \
	X(no_wait, NO_WAIT, false, "no reader is waited for")                            \
	X(light_swapped, LIGHT_SWAPPED, false, "the compiler moves the mark below the reads") \
	X(nested, NESTED, false, "an inner unlock ends the section")                     \
	X(single_flip, SINGLE_FLIP, true, "one flip instead of two")

#define X(name, bug, phases, what) SCENARIO(name, bug, phases)
SCENARIOS(X)
#undef X
#define X(id, bug, phases, text) { .name = #id, .what = text, .setup = setup_##id },
static const struct sim_scenario scenarios[] = { SCENARIOS(X) { .name = NULL } };
#undef X

#define MUST_PASS 2 /* the first two */
#define PASS_SEEDS 20000
#define FIND_SEEDS 200000

static bool must_pass(const struct sim_scenario *scenario)
{
	bool passed = true;

	for (int model = 0; model < SIM_NR_MODELS; model++)
		for (int sched = 0; sched < SIM_NR_SCHEDS; sched++) {
			struct sim_options options = { .model = model, .sched = sched, .change_points = 3 };
			struct sim_search search = { .first = 1, .seeds = PASS_SEEDS };

			driver_search(scenario, &options, &search);
			printf("%s %-16s %-4s %-6s %llu runs, %.0f runs/s, %llu unfinished %s\n",
			       search.failed ? "FAIL" : "ok  ", scenario->name, driver_model_name[model],
			       driver_sched_name[sched], (unsigned long long)search.runs, search.runs / search.elapsed,
			       (unsigned long long)search.unfinished, search.failure);
			passed &= !search.failed && search.unfinished * 100 < search.runs;
		}
	return passed;
}

static bool must_fail(const struct sim_scenario *scenario)
{
	bool found = false;

	printf("     %-16s", scenario->name);
	for (int model = SIM_TSO; model < SIM_NR_MODELS; model++)
		for (int sched = 0; sched < SIM_NR_SCHEDS; sched++) {
			struct sim_options options = { .model = model, .sched = sched, .change_points = 3 };
			struct sim_search search = { .first = 1, .seeds = FIND_SEEDS, .seconds = 1 };

			driver_search(scenario, &options, &search);
			found |= search.failed;
			if (search.failed)
				printf(" %s/%s %llu", driver_model_name[model], driver_sched_name[sched],
				       (unsigned long long)search.failing_seed);
			else
				printf(" %s/%s -", driver_model_name[model], driver_sched_name[sched]);
		}
	printf("%s\n", found ? "" : "  SURVIVES");
	return found;
}

int main(int argc, char **argv)
{
	bool good = true;

	if (argc > 1)
		return driver_main(argc, argv, (const struct sim_scenario *const[]){ scenarios, NULL });
	sim_init();
	for (int i = 0; scenarios[i].name; i++) {
		if (i == MUST_PASS)
			printf("first seed that finds the mistake, of %d or as many as one second allows:\n", FIND_SEEDS);
		good &= i < MUST_PASS ? must_pass(&scenarios[i]) : must_fail(&scenarios[i]);
		fflush(stdout);
	}
	return !good;
}
