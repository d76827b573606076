/* SPDX-License-Identifier: MIT */
/* test_ida.c - the numbers that ida gives out. */
#include <quiesce/ds/ida.h>

#include "testing.h"

#define PER_NODE 4096 /* numbers in a node at the bottom */

static void must_be_empty(struct ida *ida)
{
	assert_true(ida_is_empty(ida));
	assert_int_equal(ida->tree.nr_nodes, 0);
	assert_int_equal(ida->tree.count, 0);
	assert_int_equal(ida_find_first(ida), -ENOENT);
}

static DEFINE_IDA(early);

static void empty(void **state)
{
	struct ida ida;

	(void)state;
	must_be_empty(&early);
	ida_init(&ida);
	must_be_empty(&ida);
	assert_false(ida_exists(&ida, 0));
	assert_false(ida_exists(&ida, INT_MAX));
	assert_false(ida_exists(&ida, UINT_MAX));
	ida_destroy(&ida);
	ida_destroy(&ida);
	must_be_empty(&ida);
}

/* Around words, nodes and levels the lowest free number is given out, and is alone in as many nodes as there are levels. */
static void boundaries(void **state)
{
	static const unsigned int edge[] = { 0, 63, 64, 4095, 4096, 262143, 262144, 16777215, 16777216, 1073741823, 1073741824, INT_MAX };
	static const size_t nodes[] = { 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5 };
	struct ida ida;

	(void)state;
	ida_init(&ida);
	for (size_t i = 0; i < sizeof edge / sizeof *edge; i++) {
		assert_int_equal(ida_alloc_min(&ida, edge[i]), edge[i]);
		assert_int_equal(ida.tree.nr_nodes, nodes[i]);
		assert_true(ida_exists(&ida, edge[i]));
		assert_false(ida_exists(&ida, edge[i] + 1));
		assert_false(ida_exists(&ida, edge[i] - 1));
		assert_int_equal(ida_find_first(&ida), edge[i]);
		assert_int_equal(ida_alloc_range(&ida, edge[i], edge[i]), -ENOSPC);
		ida_free(&ida, edge[i]);
		must_be_empty(&ida);
	}
}

static void limits(void **state)
{
	struct ida ida;

	(void)state;
	ida_init(&ida);
	assert_int_equal(ida_alloc_range(&ida, INT_MAX + 1u, UINT_MAX), -ENOSPC);
	assert_int_equal(ida_alloc_min(&ida, UINT_MAX), -ENOSPC);
	assert_int_equal(ida_find_first_range(&ida, INT_MAX + 1u, UINT_MAX), -EINVAL);
	assert_int_equal(ida_alloc_range(&ida, 5, 4), -ENOSPC); /* nothing is between */
	must_be_empty(&ida);
	assert_int_equal(ida_alloc_range(&ida, INT_MAX, UINT_MAX), INT_MAX);
	assert_int_equal(ida_alloc_range(&ida, INT_MAX, UINT_MAX), -ENOSPC); /* no number above INT_MAX is given out */
	assert_int_equal(ida_alloc_range(&ida, INT_MAX - 1, INT_MAX), INT_MAX - 1);
	assert_int_equal(ida_alloc_min(&ida, INT_MAX - 1), -ENOSPC);
	assert_int_equal(ida_alloc_max(&ida, 0), 0);
	assert_int_equal(ida_alloc_max(&ida, 0), -ENOSPC);
	assert_int_equal(ida_alloc_max(&ida, 1), 1);
	assert_int_equal(ida_alloc(&ida), 2);
	assert_int_equal(ida_alloc_min(&ida, 60), 60);
	ida_destroy(&ida);
	must_be_empty(&ida);
}

/* A range over words, nodes and a level is filled completely; holes are filled again from below. */
static void full_ranges(void **state)
{
	enum { N = 64 * PER_NODE + 200 };
	struct ida ida;

	(void)state;
	ida_init(&ida);
	for (int i = 0; i < N; i++)
		if (ida_alloc(&ida) != i)
			fail_msg("not %d", i);
	assert_int_equal(ida.tree.nr_nodes, 64 + 1 + 2 + 1);
	assert_int_equal(ida_alloc_max(&ida, N - 1), -ENOSPC);
	assert_int_equal(ida_alloc_range(&ida, 64, 127), -ENOSPC);
	assert_int_equal(ida_alloc_range(&ida, 4095, 4096), -ENOSPC);
	for (int i = N - 1; i >= 0; i -= 977)
		ida_free(&ida, (unsigned int)i);
	for (int i = (N - 1) % 977; i < N; i += 977) {
		assert_false(ida_exists(&ida, (unsigned int)i));
		assert_int_equal(ida_alloc(&ida), i);
	}
	assert_int_equal(ida_alloc(&ida), N);
	for (int i = 0; i <= N; i++)
		ida_free(&ida, (unsigned int)i);
	must_be_empty(&ida);
}

/* A word becomes full and free again, and searches begin before it and inside it. */
static void a_word(void **state)
{
	struct ida ida;

	(void)state;
	ida_init(&ida);
	for (int i = 64; i < 128; i++)
		assert_int_equal(ida_alloc_min(&ida, 64), i);
	assert_int_equal(ida_alloc_min(&ida, 64), 128);
	for (int i = 64; i < 128; i++) {
		ida_free(&ida, (unsigned int)i);
		assert_int_equal(ida_alloc_range(&ida, 64, 127), i);
		assert_int_equal(ida_alloc_range(&ida, 64, 127), -ENOSPC);
	}
	ida_free(&ida, 100);
	assert_int_equal(ida_alloc_min(&ida, 101), 129);
	assert_int_equal(ida_alloc_min(&ida, 65), 100);
	assert_int_equal(ida_alloc(&ida), 0);
	ida_destroy(&ida);
}

static void finds(void **state)
{
	static const unsigned int at[] = { 3, 64, 127, 4096, 300000, INT_MAX };
	enum { N = sizeof at / sizeof *at };
	struct ida ida;

	(void)state;
	ida_init(&ida);
	for (int i = 0; i < N; i++)
		assert_int_equal(ida_alloc_min(&ida, at[i]), at[i]);
	assert_int_equal(ida_find_first(&ida), 3);
	for (int i = 0; i < N; i++) {
		unsigned int behind = at[i] + 1;

		assert_int_equal(ida_find_first_range(&ida, i ? at[i - 1] + 1 : 0, INT_MAX), at[i]);
		assert_int_equal(ida_find_first_range(&ida, at[i], at[i]), at[i]);
		assert_int_equal(ida_find_first_range(&ida, at[i], UINT_MAX), at[i]);
		if (i + 1 < N) {
			assert_int_equal(ida_find_first_range(&ida, behind, at[i + 1] - 1), -ENOENT);
			assert_int_equal(ida_find_first_range(&ida, behind, at[i + 1]), at[i + 1]);
		}
		if (i)
			assert_int_equal(ida_find_first_range(&ida, at[i], at[i - 1]), -ENOENT); /* nothing is between */
	}
	ida_destroy(&ida);
}

/* ---- against bytes ---- */

static unsigned int draw(unsigned int below)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)((seed >> 33) % below);
}

#define MOST 9000
static char taken[MOST];

static unsigned int model_first(unsigned int from, char is)
{
	while (from < MOST && taken[from] != is)
		from++;
	return from;
}

static void one_step(struct ida *ida, bool filling)
{
	unsigned int id = draw(MOST), first;

	if (draw(8) < (filling ? 7 : 2)) {
		first = model_first(id, 0);
		assert_int_equal(ida_alloc_range(ida, id, MOST - 1), first < MOST ? (int)first : -ENOSPC);
		if (first < MOST)
			taken[first] = 1;
		return;
	}
	first = model_first(id, 1);
	assert_int_equal(ida_find_first_range(ida, id, MOST - 1), first < MOST ? (int)first : -ENOENT);
	assert_int_equal(ida_exists(ida, id), taken[id]);
	if (first < MOST) {
		ida_free(ida, first);
		taken[first] = 0;
	}
}

static void as_the_model(void **state)
{
	struct ida ida;

	(void)state;
	ida_init(&ida);
	for (int i = 0; i < 120000; i++)
		one_step(&ida, i / 20000 % 2 == 0);
	for (unsigned int id = 0; (id = model_first(id, 1)) < MOST; taken[id] = 0) {
		assert_int_equal(ida_find_first(&ida), id);
		ida_free(&ida, id);
	}
	must_be_empty(&ida);
}

/* ---- misuse ---- */

static int nr_reports;
static char last_text[400];

static void hook(enum quiesce_misuse kind, const char *text)
{
	assert_int_equal(kind, QUIESCE_MISUSE_ARGUMENT);
	snprintf(last_text, sizeof last_text, "%s", text);
	nr_reports++;
}

static void freed_twice(void **state)
{
	static const unsigned int not_taken[] = { 5, 6, 0, 63, 64, 4096, INT_MAX, UINT_MAX };
	struct ida ida;

	(void)state;
	ida_init(&ida);
	quiesce_set_misuse_hook(hook);
	ida_free(&ida, 0);
	assert_int_equal(nr_reports, 1);
	assert_int_equal(ida_alloc_min(&ida, 7), 7);
	assert_int_equal(ida_alloc_min(&ida, 5), 5);
	ida_free(&ida, 5);
	assert_int_equal(nr_reports, 1);
	for (size_t i = 0; i < sizeof not_taken / sizeof *not_taken; i++) {
		char word[40];

		snprintf(word, sizeof word, "ida_free() of %u,", not_taken[i]);
		ida_free(&ida, not_taken[i]);
		assert_int_equal(nr_reports, 2 + i);
		assert_non_null(strstr(last_text, word));
	}
	quiesce_set_misuse_hook(NULL);
	assert_int_equal(ida_find_first(&ida), 7);
	ida_free(&ida, 7);
	must_be_empty(&ida);
}

/* ---- many threads: no number has two owners ---- */

#define NR_THREADS 3
#define NR_HELD 200
#define NR_ROUNDS 20000

static DEFINE_IDA(shared);
static int owners[NR_THREADS * NR_HELD], nr_wrong;

static void own(int id, int more)
{
	if (id < 0 || id >= NR_THREADS * NR_HELD) { /* no more numbers than this are in use at any time */
		count_up(&nr_wrong);
		return;
	}
	if (quiesce_load_relaxed(&owners[id]) != !more) /* Relaxed: the allocator orders the number's last owner before this one. */
		count_up(&nr_wrong);
	quiesce_store_relaxed(&owners[id], more);
}

static void *user_main(void *arg)
{
	unsigned int most = NR_HELD - (unsigned int)(uintptr_t)arg;
	int held[NR_HELD];

	for (unsigned int i = 0; i < NR_ROUNDS + most; i++) {
		int *id = &held[i % most];

		if (i >= most) {
			own(*id, 0);
			ida_free(&shared, (unsigned int)*id);
		}
		if (i < NR_ROUNDS) {
			*id = ida_alloc(&shared);
			own(*id, 1);
		}
	}
	return NULL;
}

static void threads(void **state)
{
	pthread_t user[NR_THREADS];

	(void)state;
	for (uintptr_t i = 0; i < NR_THREADS; i++)
		thread_must(pthread_create(&user[i], NULL, user_main, (void *)(i * 7)));
	threads_end(user, NR_THREADS);
	assert_int_equal(nr_wrong, 0);
	must_be_empty(&shared);
}

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer does not survive a fork of a process that had threads */
static struct ida inherited;

static void use_in_child(void)
{
	must(ida_exists(&inherited, 99) && ida_alloc(&inherited) == 100);
	for (unsigned int i = 0; i <= 100; i++)
		ida_free(&inherited, i);
	must(ida_is_empty(&inherited) && ida_alloc_min(&inherited, 100000) == 100000);
	ida_destroy(&inherited);
	rcu_barrier();
}

static void in_a_child(void **state)
{
	(void)state;
	ida_init(&inherited);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ida_alloc(&inherited), i);
	succeeds(use_in_child);
	assert_false(ida_exists(&inherited, 100));
	assert_int_equal(ida_alloc(&inherited), 100);
	ida_destroy(&inherited);
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(empty), TEST(boundaries), TEST(limits), TEST(full_ranges), TEST(a_word), TEST(finds), TEST(as_the_model),
		TEST(freed_twice), TEST(threads),
#ifndef __SANITIZE_THREAD__
		TEST(in_a_child),
#endif
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
