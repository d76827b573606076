/* SPDX-License-Identifier: MIT */
/* test_hazptr_batch.c - objects without a head, and how many wait before a scan. */
#include "hazptrs.h"

/* ---- objects without a head; not from cmocka's allocator, which is for one thread ---- */

static int64_t nr_alive, most_alive;
static int deleted_twice;

struct plain {
	char first;
	int dead;
};

static struct plain *born(void)
{
	struct plain *plain = calloc(1, sizeof *plain);
	int64_t now;

	assert_non_null(plain);
	now = quiesce_fetch_add_relaxed(&nr_alive, (int64_t)1) + 1; /* Relaxed: a count. */
	if (now > flag_get(&most_alive))
		quiesce_store_relaxed(&most_alive, now); /* Relaxed: a count. */
	return plain;
}

static void dies(void *object)
{
	struct plain *plain = object;

	quiesce_fetch_add_relaxed(&deleted_twice, plain->dead++); /* Relaxed: a count. */
	quiesce_fetch_add_relaxed(&nr_alive, (int64_t)-1); /* Relaxed: a count. */
	free(plain);
}

static void all_are_gone(void)
{
	hazptr_barrier();
	assert_int_equal(flag_get(&nr_alive), 0);
	assert_int_equal(flag_get(&deleted_twice), 0);
}

static void an_object_without_a_head_waits_for_its_slot(void **state)
{
	struct plain *plain = born();
	hazptr_t *slot = slot_with(NULL, plain);

	(void)state;
	hazptr_retire(plain, dies);
	assert_false(hazptr_try_barrier());
	assert_int_equal(flag_get(&nr_alive), 1);
	assert_int_equal(plain->dead, 0);
	hazptr_clear(slot);
	all_are_gone();
	hazptr_free(NULL, slot);
}

static int odd_deleted;

static void delete_odd(void *object)
{
	(void)object;
	quiesce_fetch_add_relaxed(&odd_deleted, 1); /* Relaxed: a count. */
}

/* The address of a retired object may be any value that a slot can hold, one between two words for example. */
static void an_object_may_lie_anywhere(void **state)
{
	static char bytes[16];
	hazptr_t *slot = slot_with(NULL, bytes + 3);

	(void)state;
	odd_deleted = 0;
	for (int i = 0; i < 16; i++)
		hazptr_retire(bytes + i, delete_odd);
	assert_false(hazptr_try_barrier());
	assert_int_equal(flag_get(&odd_deleted), 15);
	hazptr_clear(slot);
	hazptr_barrier();
	assert_int_equal(flag_get(&odd_deleted), 16);
	hazptr_free(NULL, slot);
}

#define NR_RETIRED 100000
#define NR_HELD 300

static void *retire_many(void *unused)
{
	for (int i = 0; i < NR_RETIRED; i++)
		hazptr_retire(born(), dies);
	return unused;
}

static void garbage_without_heads_is_bounded(void **state)
{
	static hazptr_t *slot[NR_HELD];

	(void)state;
	for (int i = 0; i < NR_HELD; i++) {
		struct plain *plain = born();

		slot[i] = slot_with(NULL, plain);
		hazptr_retire(plain, dies);
	}
	retire_many(NULL);
	in_thread(retire_many, NULL);
	assert_in_range(flag_get(&most_alive), NR_HELD, 2 * HAZPTR_BATCH_MAX + NR_HELD + 2);
	hazptr_try_barrier();
	assert_int_equal(flag_get(&nr_alive), NR_HELD);
	for (int i = 0; i < NR_HELD; i++)
		hazptr_free(NULL, slot[i]);
	all_are_gone();
}

/* Use more than a chunk of proxies, all of which are returned. */
static void *retire_in_turns(void *unused)
{
	for (int turn = 0; turn < 4; turn++) {
		for (int i = 0; i < 5000; i++)
			hazptr_retire(born(), dies);
		hazptr_barrier();
	}
	return unused;
}

/* Memory that grows once is the stack of a helper or the like; lost proxies would make memory grow in each round. */
static void notes_are_used_again(void **state)
{
	int grew = 0;

	(void)state;
	for (int i = 0; i < 10; i++) {
		long before = address_space();

		for (int threads = 0; threads < 8; threads++)
			in_thread(retire_in_turns, NULL);
		grew += address_space() > before;
	}
	assert_in_range(grew, 0, 5);
	all_are_gone();
}

enum { AT_ONCE = 8 };

/* Wait until each thread has a queue with proxies of its own. */
static void *retire_one_beside_others(void *all)
{
	hazptr_retire(born(), dies);
	pthread_barrier_wait(all);
	return NULL;
}

/* Notes that a thread leaves behind at its end are not lost with its queue. */
static void notes_of_threads_are_used_again(void **state)
{
	pthread_t thread[AT_ONCE];
	pthread_barrier_t all;
	int grew = 0;

	(void)state;
	pthread_barrier_init(&all, NULL, AT_ONCE);
	for (int i = 0; i < 40; i++) {
		long before = address_space();

		for (int k = 0; k < AT_ONCE; k++)
			thread_must(pthread_create(&thread[k], NULL, retire_one_beside_others, &all));
		for (int k = 0; k < AT_ONCE; k++)
			pthread_join(thread[k], NULL);
		all_are_gone();
		grew += address_space() > before;
	}
	pthread_barrier_destroy(&all);
	assert_in_range(grew, 0, 20);
}

/* Two threads that search for proxies at the same time both find some where there are plenty. */
enum { STARTERS = 4, STARTED = 1000 };

static void *retire_one(void *unused)
{
	hazptr_retire(born(), dies);
	return unused;
}

static void *start_one_after_another(void *unused)
{
	for (int i = 0; i < STARTED; i++)
		in_thread(retire_one, NULL);
	return unused;
}

static void start_and_end_threads(void)
{
	pthread_t thread[STARTERS];

	threads_begin(thread, STARTERS, start_one_after_another, NULL);
	threads_end(thread, STARTERS);
	all_are_gone();
}

static long kib_in_use(void)
{
	return resident_pages() * (sysconf(_SC_PAGESIZE) / 1024);
}

static void notes_are_found_by_threads_at_one_time(void **state)
{
	long before;

	(void)state;
	start_and_end_threads();
	before = kib_in_use();
	start_and_end_threads();
	if (OWN_HEAP) /* a sanitizer keeps freed memory */
		assert_in_range(kib_in_use(), 0, before + 4096);
}

static int chain_left;

static void retire_the_next(void *object)
{
	dies(object);
	if (quiesce_fetch_add_relaxed(&chain_left, -1) > 1) /* Relaxed: a count. */
		hazptr_retire(born(), retire_the_next);
}

static void a_deleter_may_retire(void **state)
{
	(void)state;
	chain_left = 2000;
	hazptr_retire(born(), retire_the_next);
	while (flag_get(&chain_left) > 0)
		hazptr_barrier();
	all_are_gone();
}

/* ---- the batch ---- */

static uint64_t scans_for(int nr)
{
	uint64_t before = stats_now().hazptr_scans;

	for (int i = 0; i < nr; i++)
		hazptr_retire(born(), dies);
	return stats_now().hazptr_scans - before;
}

static void *a_small_batch(void *unused)
{
	quiesce_store_relaxed(&most_alive, (int64_t)0); /* Relaxed: a count. */
	assert_int_equal(quiesce_set_thread_hazptr_batch(100, 100), 0);
	assert_in_range(scans_for(10000), 99, 101);
	assert_in_range(flag_get(&most_alive), 50, 102);
	assert_int_equal(quiesce_set_thread_hazptr_batch(0, 0), 0);
	scans_for(10000);
	assert_in_range(scans_for(40960), 10, 40960 / 128 + 1);
	return unused;
}

static void a_thread_chooses_its_batch(void **state)
{
	(void)state;
	in_thread(a_small_batch, NULL);
	all_are_gone();
}

/* ---- the pace: no call reclaims many objects, and each reclaims as many as it retires ---- */

enum { PACED_BATCH = 256, NR_PACED = 20000, MOST_AT_ONCE = 6 };

static __thread int nr_run_here;
static int most_in_a_call;

static void runs_here(struct hazptr_head *head)
{
	nr_run_here++;
	free(head);
}

/* Retire by @retire, which returns how many were reclaimed in this thread. */
static void *retire_at_pace(void *retire)
{
	uint64_t scans;

	assert_int_equal(quiesce_set_thread_hazptr_batch(PACED_BATCH, PACED_BATCH), 0);
	most_in_a_call = 0;
	scans = stats_now().hazptr_scans;
	for (int i = 0; i < NR_PACED; i++) {
		int before = nr_run_here;

		((void (*)(void))retire)();
		if (nr_run_here - before > most_in_a_call)
			most_in_a_call = nr_run_here - before;
	}
	assert_in_range(most_in_a_call, 1, MOST_AT_ONCE);
	assert_in_range(stats_now().hazptr_scans - scans, 1, NR_PACED / PACED_BATCH + 10);
	return NULL;
}

static void retire_with_callback(void)
{
	struct hazptr_head *head = malloc(sizeof *head);

	assert_non_null(head);
	call_hazptr_inline(head, runs_here);
}

static void deleted_here(void *object)
{
	nr_run_here++;
	free(object);
}

static void retire_with_deleter(void)
{
	hazptr_retire(malloc(16), deleted_here);
}

static void callbacks_keep_pace(void **state)
{
	(void)state;
	in_thread(retire_at_pace, (void *)retire_with_callback);
	in_thread(retire_at_pace, (void *)retire_with_deleter);
	hazptr_barrier();
}

/* The library counts frees, those of the helper too, so the helper must not have swept meanwhile. */
static void *free_at_pace(void *unused)
{
	struct quiesce_stats before, after;
	uint64_t most;

	assert_int_equal(quiesce_set_thread_hazptr_batch(PACED_BATCH, PACED_BATCH), 0);
	do {
		most = 0;
		before = stats_now();
		for (int i = 0; i < 4 * PACED_BATCH; i++) {
			struct hazptr_head_object { struct hazptr_head head; } *o = malloc(sizeof *o);
			uint64_t freed = stats_now().hazptr_reclaimed;

			kfree_hazptr(o, head);
			freed = stats_now().hazptr_reclaimed - freed;
			most = freed > most ? freed : most;
		}
		after = stats_now();
	} while (after.hazptr_swept != before.hazptr_swept);
	assert_in_range(most, 1, MOST_AT_ONCE);
	assert_in_range(after.hazptr_retired - after.hazptr_reclaimed, PACED_BATCH / 2, PACED_BATCH + MOST_AT_ONCE);
	return unused;
}

static void frees_keep_pace(void **state)
{
	(void)state;
	hazptr_barrier();
	in_thread(free_at_pace, NULL);
	hazptr_barrier();
}

/* Callbacks that retire, or a reader that lets go of many objects, put the owner behind; it catches up. */
static void *falls_behind(void *unused)
{
	enum { NR_KEPT = 1000 };
	static hazptr_t *slot[NR_KEPT];

	assert_int_equal(quiesce_set_thread_hazptr_batch(100, 100), 0);
	for (int i = 0; i < NR_KEPT; i++) {
		struct plain *plain = born();

		slot[i] = slot_with(NULL, plain);
		hazptr_retire(plain, dies);
	}
	for (int i = 0; i < 10000; i++)
		hazptr_retire(born(), dies);
	for (int i = 0; i < NR_KEPT; i++)
		hazptr_free(NULL, slot[i]);
	for (int i = 0; i < 10000; i++)
		hazptr_retire(born(), dies);
	assert_in_range(flag_get(&nr_alive), 1, 10 * NR_KEPT / 2);
	return unused;
}

static void an_owner_that_is_behind_catches_up(void **state)
{
	(void)state;
	in_thread(falls_behind, NULL);
	all_are_gone();
}

static void *batch_of_the_process(void *unused)
{
	assert_in_range(scans_for(10000), 199, 201);
	return unused;
}

static void the_process_chooses_for_all_threads(void **state)
{
	(void)state;
	assert_int_equal(quiesce_set_hazptr_batch(50, 50), 0);
	in_thread(batch_of_the_process, NULL);
	scans_for(HAZPTR_BATCH_MAX); /* ends reclaims that began earlier */
	assert_in_range(scans_for(10000), 199, 201);
	assert_int_equal(quiesce_set_hazptr_batch(0, 0), 0);
	all_are_gone();
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	assert_int_equal(quiesce_set_hazptr_batch(0, 1), -EINVAL);
	assert_int_equal(quiesce_set_hazptr_batch(2, 1), -EINVAL);
	assert_int_equal(quiesce_set_hazptr_batch(1, HAZPTR_BATCH_MAX / 2 + 1), -EINVAL);
	assert_int_equal(quiesce_set_thread_hazptr_batch(0, 1), -EINVAL);
	assert_int_equal(quiesce_set_thread_hazptr_batch(2, 1), -EINVAL);
	assert_int_equal(quiesce_set_thread_hazptr_batch(1, HAZPTR_BATCH_MAX), -EINVAL);
}

#define NR_CONTEXTS 100

/* The batch is twice the number of slots in use, however slow the fence is, because that may at most double the chosen minimum. */
static void *with_many_slots(void *unused)
{
	static struct hazptr_context ctx[NR_CONTEXTS];
	uint64_t scans;

	assert_int_equal(quiesce_set_thread_hazptr_batch(1, 4000), 0);
	for (int i = 0; i < NR_CONTEXTS; i++)
		assert_int_equal(init_hazptr_context(&ctx[i]), 0);
	scans_for(20000); /* the table of slots has grown by now */
	scans = scans_for(40000);
	assert_in_range(scans, 40000 / 4000, 40000 / (2 * NR_CONTEXTS * HAZPTR_SLOT_PER_CTX) + 1);
	for (int i = 0; i < NR_CONTEXTS; i++)
		cleanup_hazptr_context(&ctx[i]);
	return unused;
}

static void a_batch_grows_with_the_slots_in_use(void **state)
{
	(void)state;
	in_thread(with_many_slots, NULL);
	all_are_gone();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(an_object_without_a_head_waits_for_its_slot),
		TEST(an_object_may_lie_anywhere),
		TEST(garbage_without_heads_is_bounded),
		TEST(notes_are_used_again),
		TEST(notes_of_threads_are_used_again),
		TEST(notes_are_found_by_threads_at_one_time),
		TEST(a_deleter_may_retire),
		TEST(a_thread_chooses_its_batch),
		TEST(callbacks_keep_pace),
		TEST(frees_keep_pace),
		TEST(an_owner_that_is_behind_catches_up),
		TEST(the_process_chooses_for_all_threads),
		TEST(nonsense_is_refused),
		TEST(a_batch_grows_with_the_slots_in_use),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
