/* SPDX-License-Identifier: MIT */
/* test_idr.c - the ids that idr gives out, and the pointers found by them. */
#include <quiesce/ds/idr.h>

#include "testing.h"

#define PTR(n) ((void *)(uintptr_t)(n))

static void *find(const struct idr *idr, unsigned long id)
{
	void *found;

	rcu_read_lock();
	found = idr_find(idr, id);
	rcu_read_unlock();
	return found;
}

static void must_be_empty(const struct idr *idr)
{
	assert_true(idr_is_empty(idr));
	assert_int_equal(idr_count(idr), 0);
	assert_int_equal(idr->tree.nr_nodes, 0);
	assert_null(find(idr, 0));
}

/* ---- which id ---- */

static DEFINE_IDR(early);

static void empty(void **state)
{
	struct idr idr;
	int id = 0;

	(void)state;
	must_be_empty(&early);
	idr_init(&idr);
	must_be_empty(&idr);
	assert_null(find(&idr, 63));
	assert_null(find(&idr, 64));
	assert_null(find(&idr, ULONG_MAX));
	assert_null(idr_remove(&idr, 0));
	assert_null(idr_remove(&idr, ULONG_MAX));
	assert_int_equal(idr_replace(&idr, &idr, 0, NULL), -ENOENT);
	assert_null(idr_get_next(&idr, &id));
	assert_int_equal(id, 0);
	idr_destroy(&idr);
	idr_destroy(&idr);
	must_be_empty(&idr);
}

/* Around each boundary of a level the lowest free id is given out and found, and the tree is as high as it must be. */
static void boundaries(void **state)
{
	static const int edge[] = { 0, 62, 63, 64, 65, 4095, 4096, 262143, 262144, 16777215, 16777216, 1073741823, 1073741824, INT_MAX };
	static const size_t nodes[] = { 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6 };
	struct idr idr;

	(void)state;
	idr_init(&idr);
	for (size_t i = 0; i < sizeof edge / sizeof *edge; i++) {
		assert_int_equal(idr_alloc(&idr, PTR(edge[i] + 1ul), edge[i], 0), edge[i]);
		assert_int_equal(idr.tree.nr_nodes, nodes[i]);
		assert_ptr_equal(find(&idr, edge[i]), PTR(edge[i] + 1ul));
		assert_null(find(&idr, edge[i] + 1ul));
		assert_null(find(&idr, edge[i] + (1ul << 32)));
		assert_null(find(&idr, edge[i] + (1ul << 36)));
		assert_int_equal(idr_alloc(&idr, &idr, edge[i], edge[i] < INT_MAX ? edge[i] + 1 : 0), -ENOSPC);
		assert_ptr_equal(idr_remove(&idr, edge[i]), PTR(edge[i] + 1ul));
		must_be_empty(&idr);
	}
}

/* The tree grows and shrinks across all boundaries, one id at a time; the other ids keep their pointers. */
static void grow_and_shrink(void **state)
{
	static const int edge[] = { 0, 63, 64, 4095, 4096, 262144, 16777216, 1073741824, INT_MAX };
	enum { N = sizeof edge / sizeof *edge };
	struct idr idr;

	(void)state;
	idr_init(&idr);
	for (int up = 0; up < 2; up++) {
		for (int i = 0; i < N; i++) {
			int id = edge[up ? i : N - 1 - i];

			assert_int_equal(idr_alloc(&idr, PTR(id + 7ul), id, 0), id);
			assert_int_equal(idr_count(&idr), i + 1);
		}
		for (int i = N - 1; i >= 0; i--) {
			for (int j = 0; j < N; j++)
				assert_ptr_equal(find(&idr, edge[j]), j <= i ? PTR(edge[j] + 7ul) : NULL);
			assert_ptr_equal(idr_remove(&idr, edge[i]), PTR(edge[i] + 7ul));
			assert_null(idr_remove(&idr, edge[i]));
		}
		must_be_empty(&idr);
	}
}

static void ranges(void **state)
{
	struct idr idr;

	(void)state;
	idr_init(&idr);
	assert_int_equal(idr_alloc(&idr, &idr, -1, 0), -EINVAL);
	assert_int_equal(idr_alloc(&idr, &idr, INT_MIN, 5), -EINVAL);
	assert_int_equal(idr_alloc_cyclic(&idr, &idr, -1, 0), -EINVAL);
	assert_int_equal(idr_alloc(&idr, &idr, 5, 5), -ENOSPC);
	assert_int_equal(idr_alloc(&idr, &idr, 5, 4), -ENOSPC);
	must_be_empty(&idr);
	assert_int_equal(idr_alloc(&idr, &idr, INT_MAX, INT_MAX), -ENOSPC); /* the end is not included */
	assert_int_equal(idr_alloc(&idr, &idr, INT_MAX, 0), INT_MAX);       /* an end of 0 stands for no limit */
	assert_int_equal(idr_alloc(&idr, &idr, INT_MAX, -1), -ENOSPC);
	assert_int_equal(idr_alloc(&idr, &idr, 3, 4), 3);
	assert_int_equal(idr_alloc(&idr, &idr, 3, 5), 4);
	assert_int_equal(idr_alloc(&idr, &idr, 3, 5), -ENOSPC);
	assert_int_equal(idr_alloc(&idr, &idr, 0, 0), 0);
	idr_destroy(&idr);
	must_be_empty(&idr);
}

/* A range is filled completely, and its holes are filled again from below. */
static void full_ranges(void **state)
{
	enum { N = 64 * 64 + 130 };
	struct idr idr;

	(void)state;
	idr_init(&idr);
	for (int i = 0; i < N; i++)
		assert_int_equal(idr_alloc(&idr, PTR(i + 1), 0, N), i);
	assert_int_equal(idr_alloc(&idr, &idr, 0, N), -ENOSPC);
	assert_int_equal(idr_alloc(&idr, &idr, 4095, 4096), -ENOSPC);
	for (int i = N - 1; i >= 0; i -= 61)
		assert_ptr_equal(idr_remove(&idr, i), PTR(i + 1));
	for (int i = (N - 1) % 61; i < N; i += 61)
		assert_int_equal(idr_alloc(&idr, PTR(i + 1), 0, 0), i);
	assert_int_equal(idr_alloc(&idr, PTR(N + 1), 0, 0), N);
	for (int i = 0; i <= N; i++)
		assert_ptr_equal(idr_remove(&idr, i), PTR(i + 1));
	must_be_empty(&idr);
}

static void cyclic(void **state)
{
	struct idr idr;

	(void)state;
	idr_init(&idr);
	assert_int_equal(idr_get_cursor(&idr), 0);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(idr_alloc_cyclic(&idr, PTR(i + 1), 0, 100), i);
		assert_int_equal(idr_get_cursor(&idr), i + 1);
		if (i % 10)
			assert_ptr_equal(idr_remove(&idr, i), PTR(i + 1));
	}
	for (int i = 1; i < 10; i++) /* again from the start, past ids that are taken */
		assert_int_equal(idr_alloc_cyclic(&idr, &idr, 0, 100), i);
	assert_int_equal(idr_alloc_cyclic(&idr, &idr, 0, 100), 11);
	assert_int_equal(idr_alloc_cyclic(&idr, &idr, 50, 52), 51);
	assert_int_equal(idr_alloc_cyclic(&idr, &idr, 50, 52), -ENOSPC);
	idr_set_cursor(&idr, INT_MAX);
	assert_int_equal(idr_alloc_cyclic(&idr, &idr, 12, 0), INT_MAX);
	assert_int_equal(idr_alloc_cyclic(&idr, &idr, 12, 0), 12);
	idr_set_cursor(&idr, INT_MAX);
	assert_int_equal(idr_alloc_cyclic(&idr, &idr, 12, 0), 13);
	idr_set_cursor(&idr, UINT_MAX);
	assert_int_equal(idr_alloc_cyclic(&idr, &idr, 0, 0), 14);
	idr_destroy(&idr);
	must_be_empty(&idr);
	assert_int_equal(idr_get_cursor(&idr), 0);
}

static void all_of_32_bits(void **state)
{
	uint32_t id = 0, high = UINT32_MAX - 1, kept = 7;
	unsigned long wide;
	struct idr idr;
	int narrow, n = 0;
	void *p;

	(void)state;
	idr_init(&idr);
	assert_int_equal(idr_alloc_u32(&idr, &id, &id, UINT32_MAX), 0);
	assert_int_equal(id, 0);
	for (uint32_t i = 0; i < 2; i++, high = UINT32_MAX - 1) {
		assert_int_equal(idr_alloc_u32(&idr, &high, &high, ULONG_MAX), 0);
		assert_int_equal(high, UINT32_MAX - 1 + i);
	}
	assert_int_equal(idr_alloc_u32(&idr, &high, &high, ULONG_MAX), -ENOSPC);
	assert_int_equal(idr_alloc_u32(&idr, &kept, &kept, 6), -ENOSPC);
	assert_int_equal(kept, 7);
	idr_for_each_entry_ul(&idr, p, wide)
		assert_int_equal(wide, n++ == 0 ? 0 : UINT32_MAX - 3ul + n);
	assert_int_equal(n, 3);
	idr_for_each_entry(&idr, p, narrow)
		assert_int_equal(narrow, 0); /* the others are no int */
	assert_ptr_equal(idr_remove(&idr, UINT32_MAX), &high);
	assert_ptr_equal(idr_remove(&idr, UINT32_MAX - 1ul), &high);
	assert_ptr_equal(idr_remove(&idr, 0), &id);
	must_be_empty(&idr);
}

/* ---- reservations, replacement ---- */

static void reserved(void **state)
{
	struct idr idr;
	void *old = &idr;
	int id = 0, value;

	(void)state;
	idr_init(&idr);
	assert_int_equal(idr_alloc(&idr, NULL, 70, 0), 70);
	assert_int_equal(idr_alloc(&idr, NULL, 70, 0), 71);
	assert_int_equal(idr_count(&idr), 2);
	assert_false(idr_is_empty(&idr));
	assert_null(find(&idr, 70));
	assert_null(idr_get_next(&idr, &id));
	assert_int_equal(idr_replace(&idr, &value, 70, &old), 0);
	assert_null(old);
	assert_ptr_equal(find(&idr, 70), &value);
	assert_int_equal(idr_replace(&idr, &idr, 70, &old), 0);
	assert_ptr_equal(old, &value);
	assert_int_equal(idr_replace(&idr, &idr, 69, &old), -ENOENT);
	assert_int_equal(idr_replace(&idr, &idr, 4096, &old), -ENOENT);
	assert_ptr_equal(old, &value);
	assert_int_equal(idr_replace(&idr, NULL, 70, NULL), 0); /* the id is reserved again */
	assert_null(find(&idr, 70));
	assert_int_equal(idr_alloc(&idr, &idr, 70, 71), -ENOSPC);
	assert_null(idr_remove(&idr, 70));
	assert_int_equal(idr_alloc(&idr, &idr, 70, 71), 70);
	assert_ptr_equal(idr_remove(&idr, 70), &idr);
	assert_null(idr_remove(&idr, 71));
	must_be_empty(&idr);
}

/* ---- iteration ---- */

static int sum_until_five(int id, void *ptr, void *sum)
{
	assert_ptr_equal(ptr, PTR(id + 1));
	*(int *)sum += id;
	return id == 5 ? -id : 0;
}

static void iteration(void **state)
{
	static const int id_of[] = { 0, 5, 63, 64, 127, 4095, 4096, 300000, INT_MAX };
	int id, n = 0, sum = 0;
	struct idr idr;
	void *p;

	(void)state;
	idr_init(&idr);
	for (size_t i = 0; i < sizeof id_of / sizeof *id_of; i++)
		assert_int_equal(idr_alloc(&idr, PTR(id_of[i] + 1ul), id_of[i], 0), id_of[i]);
	assert_int_equal(idr_alloc(&idr, NULL, 100, 0), 100);
	rcu_read_lock();
	idr_for_each_entry(&idr, p, id) {
		assert_int_equal(id, id_of[n++]);
		assert_ptr_equal(p, PTR(id + 1ul));
	}
	assert_int_equal(n, 9);
	assert_null(p);
	for (int i = 0; i < 9; i++) {
		id = id_of[i];
		n = i;
		idr_for_each_entry_continue(&idr, p, id)
			assert_int_equal(id, id_of[n++]);
		assert_int_equal(n, 9);
		id = i ? id_of[i - 1] + 1 : 0;
		assert_ptr_equal(idr_get_next(&idr, &id), PTR(id_of[i] + 1ul));
		assert_int_equal(id, id_of[i]);
	}
	id = -1;
	assert_null(idr_get_next(&idr, &id));
	assert_int_equal(idr_for_each(&idr, sum_until_five, &sum), -5);
	assert_int_equal(sum, 5);
	rcu_read_unlock();
	idr_for_each_entry(&idr, p, id) /* without other updaters no section is needed, and the body may remove the entry that it visits */
		assert_ptr_equal(idr_remove(&idr, id), p);
	assert_int_equal(idr_count(&idr), 1);
	idr_destroy(&idr);
	must_be_empty(&idr);
}

/* Nodes that a reader walks through stay until it leaves its section: sanitizers would report a use after free. */
static void destroyed_inside(void **state)
{
	int n = 0, id;
	struct idr idr;
	void *p;

	(void)state;
	idr_init(&idr);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(idr_alloc(&idr, PTR(i + 1), 0, 0), i);
	rcu_read_lock();
	idr_for_each_entry(&idr, p, id)
		if (n++ == 2500)
			idr_destroy(&idr);
	assert_int_equal(n, 2501);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(idr_alloc(&idr, PTR(i + 1), 0, 0), i);
	idr_for_each_entry(&idr, p, id)
		assert_ptr_equal(idr_remove(&idr, id), p);
	rcu_read_unlock();
	must_be_empty(&idr);
	rcu_barrier();
	assert_int_equal(stats_now().garbage_objects, 0);
}

/* ---- memory before it is needed ---- */

static void preload(void **state)
{
	struct idr_nodes nodes = IDR_NODES_INIT;
	struct idr idr;

	(void)state;
	idr_init(&idr);
	assert_int_equal(idr_alloc_preloaded(&idr, &nodes, &idr, 0, 0), -ENOMEM);
	must_be_empty(&idr);
	assert_int_equal(idr_preload(&nodes), 0);
	assert_int_equal(idr_alloc_preloaded(&idr, &nodes, &idr, 0, 0), 0);
	assert_int_equal(nodes.nodes.nr, QUIESCE_IDR_PRELOAD - 1);
	assert_int_equal(idr_alloc_preloaded(&idr, &nodes, &idr, 0, 0), 1);
	assert_int_equal(nodes.nodes.nr, QUIESCE_IDR_PRELOAD - 1);
	assert_int_equal(idr_alloc_preloaded(&idr, &nodes, &idr, INT_MAX, 0), -ENOMEM); /* the preloaded nodes were not replenished */
	assert_int_equal(idr_preload(&nodes), 0);
	assert_int_equal(idr_alloc_preloaded(&idr, &nodes, &idr, INT_MAX, 0), INT_MAX); /* as much as it can be */
	assert_int_equal(nodes.nodes.nr, 0);
	assert_int_equal(idr.tree.nr_nodes, 1 + QUIESCE_IDR_PRELOAD);
	assert_int_equal(idr_preload(&nodes), 0);
	assert_int_equal(idr_preload(&nodes), 0);
	assert_int_equal(nodes.nodes.nr, QUIESCE_IDR_PRELOAD);
	idr_preload_end(&nodes);
	idr_preload_end(&nodes);
	assert_int_equal(nodes.nodes.nr, 0);
	idr_destroy(&idr);
}

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer does not survive a fork of a process that had threads */
static struct idr inherited;

static void use_in_child(void)
{
	bool good = true;

	for (int i = 0; i < 100; i++)
		good &= find(&inherited, i) == PTR(i + 1);
	good &= idr_alloc(&inherited, &inherited, 0, 0) == 100 && find(&inherited, 100) == &inherited;
	for (int i = 0; i < 100; i++)
		good &= idr_remove(&inherited, i) == PTR(i + 1);
	idr_destroy(&inherited);
	rcu_barrier();
	_exit(good ? 42 : 1);
}

static void in_a_child(void **state)
{
	static struct outcome o;

	(void)state;
	idr_init(&inherited);
	for (int i = 0; i < 100; i++)
		assert_int_equal(idr_alloc(&inherited, PTR(i + 1), 0, 0), i);
	in_child(use_in_child, &o);
	assert_true(exited_with(o.status, 42));
	assert_int_equal(idr_count(&inherited), 100);
	assert_ptr_equal(find(&inherited, 99), PTR(100));
	idr_destroy(&inherited);
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(empty), TEST(boundaries), TEST(grow_and_shrink), TEST(ranges), TEST(full_ranges), TEST(cyclic),
		TEST(all_of_32_bits), TEST(reserved), TEST(iteration), TEST(destroyed_inside), TEST(preload),
#ifndef __SANITIZE_THREAD__
		TEST(in_a_child),
#endif
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
