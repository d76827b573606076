/* SPDX-License-Identifier: MIT */
/* test_xarray_order.c - the next entry, upwards and downwards, and the entries in a range. */
#include "xarray_edges.h"

/* From every edge, the index before and the one after it, xa_find() goes in both directions and to all ends. */
static void finds(void **state)
{
	struct xarray xa;

	(void)state;
	store_edges(&xa);
	for (int from = 0; from < NR_EDGES; from++)
		for (int to = 0; to < NR_EDGES; to++) {
			unsigned long at = edge[from];
			int next = from + 1, previous = from - 1;

			assert_ptr_equal(xa_find(&xa, &at, edge[to], XA_PRESENT), from <= to ? edge_entry(from) : NULL);
			assert_ptr_equal(xa_find_reverse(&xa, &at, edge[to], XA_PRESENT), from >= to ? edge_entry(from) : NULL);
			assert_int_equal(at, edge[from]);
			assert_ptr_equal(xa_find_after(&xa, &at, edge[to], XA_PRESENT), next <= to ? edge_entry(next) : NULL);
			assert_int_equal(at, next <= to ? edge[next] : edge[from]);
			at = edge[from];
			assert_ptr_equal(xa_find_before(&xa, &at, edge[to], XA_PRESENT), previous >= to ? edge_entry(previous) : NULL);
			assert_int_equal(at, previous >= to ? edge[previous] : edge[from]);
		}
	xa_destroy(&xa);
}

/* A search that begins between two entries finds those on either side. */
static void finds_in_gaps(void **state)
{
	struct xarray xa;

	(void)state;
	store_edges(&xa);
	for (int i = 0; i + 1 < NR_EDGES; i++) {
		unsigned long first = edge[i] + 1, last = edge[i + 1] - 1, up = first, down = last;

		if (first > last)
			continue;
		assert_null(xa_find(&xa, &up, last, XA_PRESENT));
		assert_null(xa_find_reverse(&xa, &down, first, XA_PRESENT));
		assert_true(up == first && down == last);
		assert_ptr_equal(xa_find(&xa, &up, edge[i + 1], XA_PRESENT), edge_entry(i + 1));
		assert_ptr_equal(xa_find_reverse(&xa, &down, edge[i], XA_PRESENT), edge_entry(i));
		assert_true(up == edge[i + 1] && down == edge[i]);
		up = down = first + (last - first) / 2;
		assert_ptr_equal(xa_find_after(&xa, &up, ULONG_MAX, XA_PRESENT), edge_entry(i + 1));
		assert_ptr_equal(xa_find_before(&xa, &down, 0, XA_PRESENT), edge_entry(i));
	}
	xa_destroy(&xa);
}

static void finds_marked(void **state)
{
	unsigned long at;
	struct xarray xa;

	(void)state;
	store_edges(&xa);
	for (int i = 0; i < NR_EDGES; i++) {
		xa_set_mark(&xa, edge[i], XA_MARK_2);
		at = 0;
		assert_ptr_equal(xa_find(&xa, &at, ULONG_MAX, XA_MARK_2), edge_entry(i));
		assert_int_equal(at, edge[i]);
		at = ULONG_MAX;
		assert_ptr_equal(xa_find_reverse(&xa, &at, 0, XA_MARK_2), edge_entry(i));
		assert_int_equal(at, edge[i]);
		assert_null(xa_find_after(&xa, &at, ULONG_MAX, XA_MARK_2));
		assert_null(xa_find_before(&xa, &at, 0, XA_MARK_2));
		assert_null(xa_find(&xa, &at, ULONG_MAX, XA_MARK_1));
		xa_clear_mark(&xa, edge[i], XA_MARK_2);
	}
	xa_destroy(&xa);
}

static void iterations(void **state)
{
	unsigned long index;
	struct xarray xa;
	void *entry;
	int n = 0;

	(void)state;
	store_edges(&xa);
	assert_int_equal(xa_reserve(&xa, 100), 0);
	rcu_read_lock();
	xa_for_each(&xa, index, entry) {
		assert_int_equal(index, edge[n]);
		assert_ptr_equal(entry, edge_entry(n++));
	}
	assert_int_equal(n, NR_EDGES);
	xa_for_each_reverse(&xa, index, entry) {
		assert_int_equal(index, edge[--n]);
		assert_ptr_equal(entry, edge_entry(n));
	}
	assert_int_equal(n, 0);
	n = 5;
	xa_for_each_start(&xa, index, entry, edge[5])
		assert_int_equal(index, edge[n++]);
	assert_int_equal(n, NR_EDGES);
	n = 4;
	xa_for_each_range(&xa, index, entry, 64, 4095)
		assert_int_equal(index, edge[n++]);
	assert_int_equal(n, 7);
	xa_for_each_range_reverse(&xa, index, entry, 64, 4095)
		assert_int_equal(index, edge[--n]);
	assert_int_equal(n, 4);
	xa_for_each_range(&xa, index, entry, 66, 65)
		n = -1;
	xa_for_each_range_reverse(&xa, index, entry, 66, 65)
		n = -1;
	assert_int_equal(n, 4);
	rcu_read_unlock();
	xa_for_each(&xa, index, entry) /* without other updaters no section is needed, and the body may erase the entry that it visits */
		assert_ptr_equal(xa_erase(&xa, index), entry);
	assert_int_equal(xa_count(&xa), 1);
	xa_release(&xa, 100);
	assert_true(xa_empty(&xa));
}

static void extracted(void **state)
{
	void *some[NR_EDGES + 1];
	struct xarray xa;

	(void)state;
	store_edges(&xa);
	for (int from = 0; from < NR_EDGES; from++)
		for (int to = 0; to < NR_EDGES; to++) {
			unsigned int nr = to < from ? 0 : to - from + 1;

			memset(some, 0, sizeof some);
			assert_int_equal(xa_extract(&xa, some, edge[from], edge[to], NR_EDGES, XA_PRESENT), nr);
			for (unsigned int i = 0; i < nr; i++)
				assert_ptr_equal(some[i], edge_entry(from + i));
			assert_null(some[nr]); /* nothing beyond is written */
			some[0] = NULL;
			assert_int_equal(xa_extract(&xa, some, edge[from], edge[to], 1, XA_PRESENT), nr != 0);
			assert_ptr_equal(some[0], nr ? edge_entry(from) : NULL);
			assert_int_equal(xa_extract(&xa, NULL, edge[from], edge[to], 0, XA_PRESENT), 0);
		}
	xa_set_mark(&xa, edge[3], XA_MARK_0);
	xa_set_mark(&xa, ULONG_MAX, XA_MARK_0);
	assert_int_equal(xa_extract(&xa, some, 0, ULONG_MAX, 5, XA_MARK_0), 2);
	assert_true(some[0] == edge_entry(3) && some[1] == edge_entry(NR_EDGES - 1));
	assert_int_equal(xa_extract(&xa, some, edge[4], ULONG_MAX - 1, 5, XA_MARK_0), 0);
	xa_destroy(&xa);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(finds), TEST(finds_in_gaps), TEST(finds_marked), TEST(iterations), TEST(extracted),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
