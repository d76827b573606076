/* SPDX-License-Identifier: MIT */
/* test_hazptr_sandbox.c - hazard pointers without memory, threads or membarrier. */
#include "children.h"
#include "filter.h"
#include "no_threads.h"
#include "hazptr_holders.h"

/* ---- this program once more ---- */

static const char *role;

static void *retire_in_thread(void *object)
{
	thing_retire(object);
	return NULL;
}

static void become(void)
{
	execl("/proc/self/exe", "test_hazptr_sandbox", "--as", role, (char *)NULL);
	_exit(127);
}

static void become_one_without_space(void)
{
	filter_now("mmap@3&0x4000=ENOMEM"); /* MAP_NORESERVE */
	become();
}

/* ---- without a worker ---- */

#define MANY 60000
static struct thing object[MANY];

static void retire_range(int first, int end)
{
	for (int i = first; i < end; i++)
		call_hazptr_inline(&object[i].hazptr, thing_run);
}

/* A retirer that calls call_hazptr_inline() often reclaims, and so does a caller of hazptr_barrier(). */
static void callers_reclaim(void)
{
	hazptr_t *slot = slot_with(NULL, &object[7]);

	flag_set(&no_threads);
	retire_range(0, 100);
	hazptr_clear(slot);
	hazptr_barrier();
	must(things_run(object, MANY) == 100);
	must(flag_get(&nr_refused) > 0);
	protect_in(slot, &object[200]);
	retire_range(100, MANY);
	must(things_run(object, MANY) >= MANY - HAZPTR_BATCH_MAX);
	must(runs_of(&object[200]) == 0);
	hazptr_free(NULL, slot);
	must(hazptrs_work_alone());
	must(things_run(object, MANY) == MANY);
	must(quiesce_shutdown(0) == 0);
}

static void without_a_worker(void **state)
{
	(void)state;
	succeeds(callers_reclaim);
}

/* Callbacks of call_hazptr() do not run in that call: they stay queued until a thread that may run them does. */
static void callers_leave_callbacks(void)
{
	flag_set(&no_threads);
	for (int i = 0; i < MANY; i++)
		thing_retire(&object[i]);
	must(things_run(object, MANY) == 0);
	must(flag_get(&nr_refused) > 0);
	hazptr_barrier();
	must(things_run(object, MANY) == MANY);
	must(quiesce_shutdown(0) == 0);
}

static void without_a_worker_callbacks_wait(void **state)
{
	(void)state;
	succeeds(callers_leave_callbacks);
}

/* Objects that were retired without a worker are reclaimed once a worker starts. */
static void worker_comes_back(void)
{
	int i;

	flag_set(&no_threads);
	for (i = 0; i < 3000; i++)
		thing_retire(&object[i]);
	must(flag_get(&nr_refused) > 0);
	must(things_run(object, MANY) == 0);
	quiesce_store_relaxed(&no_threads, 0);
	for (; !flag_get(&nr_started); i++) { /* the library does not try to start it in each call */
		must(i < MANY);
		thing_retire(&object[i]);
		short_rest();
	}
	wait_until(things_run(object, MANY) == i);
	must(hazptrs_work() && worker_works());
}

static void the_worker_starts_when_it_can(void **state)
{
	(void)state;
	succeeds(worker_comes_back);
}

/* ---- no memory for a queue ---- */

static void no_queue(void)
{
	struct thing *o[100];
	hazptr_t *slot = slot_with(NULL, &object[3]);

	for (int i = 0; i < 100; i++)
		o[i] = malloc(sizeof *o[i]);
	filter_now("mmap=ENOMEM");
	retire_range(0, MANY);
	for (int i = 0; i < 100; i++)
		kfree_hazptr(o[i], hazptr);
	must(runs_of(&object[3]) == 0);
	must(stats_now().hazptr_retired == MANY + 100);
	hazptr_clear(slot);
	hazptr_barrier();
	must(things_run(object, MANY) == MANY);
	must(stats_now().hazptr_reclaimed == MANY + 100);
	must(!stats_now().worker_running);
	must(cohort_works());
	must(quiesce_shutdown(0) == 0);
	hazptr_free(NULL, slot);
}

static void retiring_without_a_queue(void **state)
{
	(void)state;
	succeeds(no_queue);
}

/* A helper thread that already runs finds the objects. */
static void queueless_with_a_worker(void)
{
	static struct thing first;
	pthread_t thread;

	thread_must(pthread_create(&thread, NULL, retire_in_thread, &first));
	pthread_join(thread, NULL);
	wait_until(runs_of(&first) == 1);
	filter_now("mmap=ENOMEM");
	retire_range(0, 1000);
	wait_until(things_run(object, MANY) == 1000);
	retire_range(1000, 1001);
	wait_until(things_run(object, MANY) == 1001);
}

static void the_worker_reclaims_what_has_no_queue(void **state)
{
	(void)state;
	succeeds(queueless_with_a_worker);
}

/* There are more slots in use than a small table holds, and no memory for a large one. */
static void no_table(void)
{
	enum { HELD = 900 };
	static hazptr_t *slot[HELD];

	for (int i = 0; i < HELD; i++)
		slot[i] = slot_with(NULL, &object[2 * i]);
	retire_range(0, 1);
	filter_now("mmap=ENOMEM");
	retire_range(1, MANY);
	for (int i = 0; i < HELD; i++)
		must(runs_of(&object[2 * i]) == 0);
	must(things_run(object, MANY) >= MANY - HELD - HAZPTR_BATCH_MAX);
	for (int i = 0; i < HELD; i++)
		hazptr_free(NULL, slot[i]);
	hazptr_barrier();
	must(things_run(object, MANY) == MANY);
}

static void lookup_without_a_table(void **state)
{
	(void)state;
	succeeds(no_table);
}

/* ---- no memory for slots ---- */

enum { SLOTS = 20000 };
static hazptr_t *slots[SLOTS];

/* Allocate slots until none is left; further calls fail, and report that. */
static int take_all(void)
{
	int nr = 0;

	while (nr < SLOTS && (slots[nr] = hazptr_alloc(NULL)))
		protect_in(slots[nr], &object[nr]), nr++;
	must(nr < SLOTS);
	must(!hazptr_alloc(NULL) && !hazptr_alloc_detached());
	return nr;
}

static void all_are_taken(int nr)
{
	hazptr_t *two[2];
	struct hazptr_context ctx;

	must(!hazptr_alloc_batch(NULL, two, 2));
	must(init_hazptr_context(&ctx) == -ENOMEM);
	must(!hazptr_alloc(&ctx)); /* the context is empty and valid */
	cleanup_hazptr_context(&ctx);
	hazptr_free(NULL, slots[nr / 2]);
	must(!hazptr_alloc_batch(NULL, two, 2));
	slots[nr / 2] = hazptr_alloc(NULL);
	must(slots[nr / 2] && !hazptr_alloc(NULL));
	protect_in(slots[nr / 2], &object[nr / 2]);
}

static void reclaim_beside(int nr)
{
	retire_range(0, MANY);
	for (int i = 0; i < nr; i++)
		must(runs_of(&object[i]) == 0);
	for (int i = 0; i < nr; i++)
		hazptr_free(NULL, slots[i]);
	hazptr_barrier();
	must(things_run(object, MANY) == MANY);
	must(hazptrs_work_alone());
}

static void exhaust(void)
{
	int nr;

	hazptr_free(NULL, hazptr_alloc(NULL)); /* the first memory is there */
	filter_now("mprotect=ENOMEM");
	nr = take_all();
	must(nr > 100);
	all_are_taken(nr);
	reclaim_beside(nr);
}

static void slots_run_out(void **state)
{
	(void)state;
	succeeds(exhaust);
}

static void exhaust_reserve(void)
{
	int nr = take_all();

	all_are_taken(nr);
	reclaim_beside(nr);
}

static void the_reserve_of_slots_runs_out(void **state)
{
	(void)state;
	role = "reserve";
	succeeds(become_one_without_space);
}

/* Threads that come and go do not use the memory up. */
static void *take_some(void *unused)
{
	hazptr_t *slot[3];
	struct hazptr_context ctx;

	must(hazptr_alloc_batch(NULL, slot, 3));
	must(init_hazptr_context(&ctx) == 0);
	protect_in(slot[0], &object[0]);
	hazptr_free_batch(NULL, slot, 3);
	cleanup_hazptr_context(&ctx);
	return unused;
}

static void live_on_the_reserve(void)
{
	for (int i = 0; i < 200; i++)
		in_thread(take_some, NULL);
	must(hazptrs_work());
}

static void the_reserve_of_slots_suffices(void **state)
{
	(void)state;
	role = "live";
	succeeds(become_one_without_space);
}

/* ---- membarrier ---- */

static void lose_membarrier(void)
{
	must(hazptrs_work());
	filter_now("membarrier=EPERM");
	must(hazptrs_work());
	thing_retire(&object[0]);
	hazptr_barrier();
}

static void losing_membarrier_is_said(void **state)
{
	(void)state;
	loses_membarrier(lose_membarrier);
}

static int play(const char *name)
{
	alarm(watchdog_seconds() / 2);
	if (!strcmp(name, "reserve"))
		exhaust_reserve();
	else if (!strcmp(name, "live"))
		live_on_the_reserve();
	else
		return 2;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(without_a_worker),
		TEST(without_a_worker_callbacks_wait),
		TEST(the_worker_starts_when_it_can),
		TEST(retiring_without_a_queue),
		TEST(the_worker_reclaims_what_has_no_queue),
		TEST(lookup_without_a_table),
		TEST(slots_run_out),
		TEST(the_reserve_of_slots_runs_out),
		TEST(the_reserve_of_slots_suffices),
		TEST(losing_membarrier_is_said),
	};

	if (argc == 3 && !strcmp(argv[1], "--as"))
		return play(argv[2]);
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
