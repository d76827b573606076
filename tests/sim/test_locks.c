/* SPDX-License-Identifier: MIT */
/* test_locks.c - the simulator knows the holder of each short lock, and reports wrong uses as failures. */
#include "driver.h"
#include "platform/platform.h"
#include "runtime/lock.h"

#include <stdio.h>
#include <string.h>

#define SEEDS 1000

static uint64_t x, y;
static bool own_lock;

static void put(uint64_t *p, uint64_t v) { quiesce_store_relaxed(p, v); }
static uint64_t get(uint64_t *p) { return quiesce_load_relaxed(p); }

static struct quiesce__lock lock, other_lock;

static void adds_under_lock(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		quiesce__lock(&lock);
		put(&x, get(&x) + 1);
		quiesce__unlock(&lock);
	}
	while (!quiesce__trylock(&lock))
		platform_yield();
	put(&x, get(&x) + 1);
	quiesce__unlock(&lock);
}

static void finish_locks(void)
{
	sim_assert(get(&x) == 6);
}

static void setup_locks(void)
{
	sim_spawn(adds_under_lock, NULL, "first");
	sim_spawn(adds_under_lock, NULL, "second");
}

static void takes_it_twice(void *unused)
{
	(void)unused;
	quiesce__lock(&lock);
	quiesce__lock(&lock);
}

static void setup_lock_twice(void)
{
	sim_spawn(takes_it_twice, NULL, "taker");
}

static void keeps_it(void *unused)
{
	(void)unused;
	quiesce__lock(&lock);
}

static void setup_lock_kept(void)
{
	sim_spawn(keeps_it, NULL, "taker");
}

static void gives_back(void *unused)
{
	(void)unused;
	quiesce__unlock(&lock);
}

static void setup_unlock(void)
{
	sim_spawn(gives_back, NULL, "other");
}

static void keeps_it_for_long(void *unused)
{
	(void)unused;
	quiesce__lock(&lock);
	put(&x, 1);
	while (!get(&y))
		platform_yield();
	quiesce__unlock(&lock);
}

static void gives_back_anothers(void *unused)
{
	(void)unused;
	while (!get(&x))
		platform_yield();
	quiesce__unlock(&lock);
}

static void setup_unlock_by_another(void)
{
	sim_spawn(keeps_it_for_long, NULL, "holder");
	sim_spawn(gives_back_anothers, NULL, "other");
}

/* A handler may take a lock while its thread takes or releases it. */
static void locks_in_handler(void)
{
	if (quiesce__trylock(&lock))
		quiesce__unlock(&lock);
}

static void locks_and_is_interrupted(void *unused)
{
	sim_set_signal(locks_in_handler, 4);
	adds_under_lock(unused);
}

static void setup_lock_in_handler(void)
{
	sim_spawn(locks_and_is_interrupted, NULL, "first");
	sim_spawn(locks_and_is_interrupted, NULL, "second");
}

/* The child of a fork has the locks of its thread, and no others. */
static void forks_with_lock(void *mine)
{
	while (!get(&x))
		platform_yield();
	if (mine)
		quiesce__lock(&other_lock);
	sim_fork();
	quiesce__lock_reset(&lock, false);
	quiesce__lock_reset(&other_lock, mine);
	quiesce__lock(&lock);
	quiesce__unlock(&lock);
	if (mine)
		quiesce__unlock(&other_lock);
}

static void setup_lock_in_child(void)
{
	sim_spawn(keeps_it_for_long, NULL, "holder");
	sim_spawn(forks_with_lock, own_lock ? &lock : NULL, "forker");
}

static void setup_lock_of_child(void)
{
	own_lock = true;
	setup_lock_in_child();
}

/* Only one thread may be at this place at a time, which a lock ensures, or does not. */
static uint32_t place;

static void comes_under_lock(void *locked)
{
	for (int i = 0; i < 2; i++) {
		if (locked)
			quiesce__lock(&lock);
		sim__alone(&place, true);
		put(&x, get(&x) + 1);
		sim__alone(&place, false);
		if (locked)
			quiesce__unlock(&lock);
	}
}

static void setup_place(void)
{
	sim_spawn(comes_under_lock, &lock, "first");
	sim_spawn(comes_under_lock, &lock, "second");
}

static void setup_place_of_two(void)
{
	sim_spawn(comes_under_lock, NULL, "first");
	sim_spawn(comes_under_lock, NULL, "second");
}

static const struct {
	struct sim_scenario scenario;
	const char *failure; /* NULL: must pass */
} cases[] = {
	{ { .name = "locks", .setup = setup_locks, .finish = finish_locks }, NULL },
	{ { .name = "a lock taken twice", .setup = setup_lock_twice }, "which it holds" },
	{ { .name = "a lock that is kept", .setup = setup_lock_kept }, "ends with the lock or gate" },
	{ { .name = "unlock without lock", .setup = setup_unlock }, "does not hold" },
	{ { .name = "unlock by another thread", .setup = setup_unlock_by_another }, "does not hold" },
	{ { .name = "a lock in handlers", .setup = setup_lock_in_handler, .finish = finish_locks }, NULL },
	{ { .name = "a lock of another thread in a child", .setup = setup_lock_in_child }, NULL },
	{ { .name = "a lock of the child's", .setup = setup_lock_of_child }, NULL },
	{ { .name = "one at a time in a place", .setup = setup_place }, NULL },
	{ { .name = "two in a place", .setup = setup_place_of_two }, "may not be both" },
};

static bool test(unsigned i, struct sim_options options)
{
	const char *failure = cases[i].failure;
	struct sim_search search = { .first = 1, .seeds = SEEDS };
	bool good;

	driver_search(&cases[i].scenario, &options, &search);
	good = search.failed ? failure && strstr(search.failure, failure) : !failure && !search.unfinished;
	printf("%s %s in %s, %s%s%s\n", good ? "ok  " : "FAIL", cases[i].scenario.name, driver_model_name[options.model],
	       driver_sched_name[options.sched], search.failed ? ": " : "", search.failed ? search.failure : "");
	return good;
}

int main(void)
{
	int failures = 0, checks = 0;

	sim_init();
	for (int model = 0; model < SIM_NR_MODELS; model++)
		for (int sched = 0; sched < SIM_NR_SCHEDS; sched++)
			for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++, checks++)
				failures += !test(i, (struct sim_options){ .model = model, .sched = sched, .change_points = 3 });
	printf("%d passed, %d failed\n", checks - failures, failures);
	return failures != 0;
}
