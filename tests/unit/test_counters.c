/* SPDX-License-Identifier: MIT */
/* test_counters.c - memory of counters: each object has its own, and ids without an owner cost nothing. */
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/srcu.h>

#include "testing.h"

#define NR 700 /* objects per size; more than fit one chunk */
#define PAGE 4096u

static struct percpu_rw_semaphore sems[NR];
static struct srcu_struct domains[NR];
static int idx[NR];

static void begin(int i)
{
	assert_int_equal(percpu_init_rwsem(&sems[i]), 0);
	assert_int_equal(init_srcu_struct(&domains[i]), 0);
}

static void end(int i)
{
	percpu_free_rwsem(&sems[i]);
	cleanup_srcu_struct(&domains[i]);
}

static int by_address(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return (*x > *y) - (*x < *y);
}

/* Counters of two words and of four get places that do not overlap. */
static void places_do_not_overlap(void)
{
	static const char *at[2 * NR];

	for (int i = 0; i < NR; i++) {
		at[2 * i] = sems[i].percpu.base;
		at[2 * i + 1] = domains[i].percpu.base;
		assert_int_equal((uintptr_t)at[2 * i] % 16, 0);
		assert_int_equal((uintptr_t)at[2 * i + 1] % 32, 0);
	}
	qsort(at, 2 * NR, sizeof *at, by_address);
	for (int i = 1; i < 2 * NR; i++)
		assert_true(at[i] - at[i - 1] >= 16);
	for (int i = 0; i < NR; i++)
		for (int k = 0; k < 2 * NR; k++)
			assert_true(at[k] <= domains[i].percpu.base || at[k] >= domains[i].percpu.base + 32);
}

/* Every third counter is held, and no other shows a count. */
static void counts_are_apart(void)
{
	for (int i = 0; i < NR; i += 3) {
		percpu_down_read(&sems[i]);
		idx[i] = srcu_read_lock(&domains[i]);
	}
	for (int i = 0; i < NR; i++) {
		assert_int_equal(percpu_is_read_locked(&sems[i]), i % 3 == 0);
		if (i % 3)
			synchronize_srcu(&domains[i]);
	}
	for (int i = 0; i < NR; i += 3) {
		percpu_up_read(&sems[i]);
		srcu_read_unlock(&domains[i], idx[i]);
	}
	for (int i = 0; i < NR; i++)
		assert_false(percpu_is_read_locked(&sems[i]));
}

static void objects_have_their_own(void **state)
{
	(void)state;
	for (int i = 0; i < NR; i++)
		begin(i);
	places_do_not_overlap();
	counts_are_apart();
	/* Free places in every chunk, and whole chunks. */
	for (int i = 0; i < NR; i++)
		if (i % 2 || i > NR / 2)
			end(i);
	for (int i = NR - 1; i >= 0; i--)
		if (i % 2 || i > NR / 2)
			begin(i);
	places_do_not_overlap();
	counts_are_apart();
	for (int i = 0; i < NR; i++)
		end(i);
}

static void never(struct percpu_ref *ref)
{
	(void)ref;
}

/* A count that was per CPU when it was got, and atomic when it was put, leaves words that differ: the next owner of the place does
 * not find them. */
static void places_come_clean(void **state)
{
	static struct percpu_ref ref;
	static struct percpu_rw_semaphore sem;
	const char *base;

	(void)state;
	assert_int_equal(percpu_ref_init(&ref, never, 0), 0);
	base = ref.percpu.base;
	for (int i = 0; i < 3; i++)
		percpu_ref_get(&ref);
	percpu_ref_switch_to_atomic_sync(&ref);
	for (int i = 0; i < 3; i++)
		percpu_ref_put(&ref);
	percpu_ref_exit(&ref);
	assert_int_equal(percpu_init_rwsem(&sem), 0);
	if (base)
		assert_ptr_equal(sem.percpu.base, base);
	assert_false(percpu_is_read_locked(&sem));
	percpu_free_rwsem(&sem);
}

/* Return the bytes of the chunk of @at that were written; -1 if unknown, because the kernel has merged its mapping with another. */
static long written(const char *at)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long from = 0, to = 0;
	long kib = -1;
	char line[512];

	assert_non_null(f);
	while (kib < 0 && fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx ", &from, &to) < 2 && (uintptr_t)at / PAGE * PAGE == from + PAGE && (uintptr_t)at < to)
			sscanf(line, "Anonymous: %ld kB", &kib);
	fclose(f);
	return kib < 0 ? -1 : kib * 1024;
}

/* One thread has one id at a time; it may have had two here.  Sums read the pages of all. */
static void unused_ids_cost_nothing(void **state)
{
	static struct percpu_rw_semaphore sem;
	long bytes;

	(void)state;
	assert_int_equal(percpu_init_rwsem(&sem), 0);
	if (!sem.open || *(uint64_t *)(void *)(sem.percpu.base + 3 * PAGE)) /* counts begin elsewhere in this build */
		return;
	for (int i = 0; i < 1000; i++) {
		percpu_down_read(&sem);
		assert_true(percpu_is_read_locked(&sem));
		percpu_up_read(&sem);
	}
	bytes = written(sem.percpu.base);
	if (bytes >= 0)
		assert_in_range(bytes, 2 * PAGE, 4 * PAGE); /* the description, and one or two ids */
	percpu_free_rwsem(&sem);
	assert_int_equal(percpu_init_rwsem(&sem), 0); /* clean, and used before */
	assert_int_equal(written(sem.percpu.base), bytes);
	percpu_free_rwsem(&sem);
}

/* While readers take the slow path, too, each counts on a line of its own, if there are sequences. */
static void slow_readers_share_no_word(void **state)
{
	static struct percpu_rw_semaphore sem;
	bool sequences;

	(void)state;
	assert_int_equal(percpu_init_rwsem(&sem), 0);
	sequences = sem.open != 0;
	rcu_sync_enter(&sem.rss);
	assert_true(sem.open == 0);
	for (int i = 0; i < 100; i++) {
		percpu_down_read(&sem);
		assert_true(percpu_is_read_locked(&sem));
		percpu_up_read(&sem);
	}
	assert_int_equal(sem.shared[0], 0);
	assert_int_equal(sem.shared[1], 0);
	assert_false(percpu_is_read_locked(&sem));
	rcu_sync_exit(&sem.rss);
	wait_until(rcu_sync_is_idle(&sem.rss));
	wait_until(!sequences || quiesce_load_relaxed(&sem.open)); /* the helper writes this word next */
	percpu_free_rwsem(&sem);
	assert_true(sem.open == 0);
}

/* Words that users write share no cache line with words that they only read. */
static void lines_are_apart(void **state)
{
	(void)state;
	assert_true(offsetof(struct percpu_ref, count) - offsetof(struct percpu_ref, release) >= QUIESCE_CACHELINE);
	assert_true(offsetof(struct percpu_rw_semaphore, rss) - offsetof(struct percpu_rw_semaphore, percpu) >= QUIESCE_CACHELINE - 8);
	assert_int_equal(offsetof(struct percpu_rw_semaphore, rss) % QUIESCE_CACHELINE, 0);
	assert_true(offsetof(struct srcu_struct, space) - offsetof(struct srcu_struct, name) >= QUIESCE_CACHELINE);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(objects_have_their_own),
		TEST(places_come_clean),
		TEST(unused_ids_cost_nothing),
		TEST(slow_readers_share_no_word),
		TEST(lines_are_apart),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
