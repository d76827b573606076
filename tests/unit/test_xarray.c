/* SPDX-License-Identifier: MIT */
/* test_xarray.c - the entry at an index, and its marks. */
#include "xarray_edges.h"

static void *load(const struct xarray *xa, unsigned long index)
{
	void *found;

	rcu_read_lock();
	found = xa_load(xa, index);
	rcu_read_unlock();
	return found;
}

static bool marked(const struct xarray *xa, unsigned long index, xa_mark_t mark)
{
	bool has;

	rcu_read_lock();
	has = xa_get_mark(xa, index, mark);
	rcu_read_unlock();
	return has;
}

/* Return the set of the three marks that the entry has. */
static unsigned int marks_of(const struct xarray *xa, unsigned long index)
{
	unsigned int bits = 0;

	for (xa_mark_t mark = XA_MARK_0; mark <= XA_MARK_MAX; mark++)
		bits |= (unsigned int)marked(xa, index, mark) << mark;
	return bits;
}

static void must_be_empty(const struct xarray *xa)
{
	assert_true(xa_empty(xa));
	assert_int_equal(xa_count(xa), 0);
	assert_int_equal(xa->tree.nr_nodes, 0);
	assert_null(load(xa, 0));
	for (xa_mark_t mark = XA_MARK_0; mark <= XA_PRESENT; mark++)
		assert_false(xa_marked(xa, mark));
}

/* ---- one index ---- */

static DEFINE_XARRAY(early);

static void empty(void **state)
{
	unsigned long index = 7;
	struct xarray xa;
	void *old = &xa, *some[2];

	(void)state;
	must_be_empty(&early);
	xa_init(&xa);
	for (int i = 0; i < NR_EDGES; i++) {
		assert_null(load(&xa, edge[i]));
		assert_null(xa_erase(&xa, edge[i]));
		xa_release(&xa, edge[i]);
		xa_set_mark(&xa, edge[i], XA_MARK_0);
		assert_int_equal(marks_of(&xa, edge[i]), 0);
	}
	assert_int_equal(xa_store(&xa, 5, NULL, &old), 0);
	assert_null(old);
	assert_null(xa_find(&xa, &index, ULONG_MAX, XA_PRESENT));
	assert_null(xa_find_after(&xa, &index, ULONG_MAX, XA_PRESENT));
	assert_null(xa_find_reverse(&xa, &index, 0, XA_PRESENT));
	assert_null(xa_find_before(&xa, &index, 0, XA_PRESENT));
	assert_int_equal(index, 7);
	assert_int_equal(xa_extract(&xa, some, 0, ULONG_MAX, 2, XA_PRESENT), 0);
	xa_destroy(&xa);
	xa_destroy(&xa);
	must_be_empty(&xa);
}

/* Store one entry at a time: there are as many nodes as levels, and neighbours and indices that differ in a high bit are free. */
static void boundaries(void **state)
{
	struct xarray xa;

	(void)state;
	xa_init(&xa);
	for (int i = 0; i < NR_EDGES; i++) {
		size_t levels = 1;

		while (levels < 11 && edge[i] >> 6 * levels)
			levels++;
		assert_int_equal(xa_store(&xa, edge[i], edge_entry(i), NULL), 0);
		assert_int_equal(xa.tree.nr_nodes, levels);
		assert_ptr_equal(load(&xa, edge[i]), edge_entry(i));
		assert_null(load(&xa, edge[i] + 1));
		assert_null(load(&xa, edge[i] - 1));
		for (int bit = 0; bit < 64; bit++)
			assert_null(load(&xa, edge[i] ^ 1ul << bit));
		assert_ptr_equal(xa_erase(&xa, edge[i]), edge_entry(i));
		must_be_empty(&xa);
	}
}

/* Entries are stored and erased from below and from above; the others keep their indices and marks. */
static void grow_and_shrink(void **state)
{
	struct xarray xa;

	(void)state;
	xa_init(&xa);
	for (int way = 0; way < 4; way++) {
		for (int n = 0; n < NR_EDGES; n++) {
			int i = way % 2 ? n : NR_EDGES - 1 - n;

			assert_int_equal(xa_insert(&xa, edge[i], edge_entry(i)), 0);
			xa_set_mark(&xa, edge[i], i % 3);
			assert_int_equal(xa_count(&xa), n + 1);
		}
		for (int n = 0; n < NR_EDGES; n++) {
			int gone = way / 2 ? n : NR_EDGES - 1 - n;

			for (int i = 0; i < NR_EDGES; i++) {
				bool there = way / 2 ? i >= n : i < NR_EDGES - n;

				assert_ptr_equal(load(&xa, edge[i]), there ? edge_entry(i) : NULL);
				assert_int_equal(marks_of(&xa, edge[i]), there ? 1 << i % 3 : 0);
			}
			assert_ptr_equal(xa_erase(&xa, edge[gone]), edge_entry(gone));
			assert_null(xa_erase(&xa, edge[gone]));
		}
		must_be_empty(&xa);
	}
}

static void stored(void **state)
{
	struct xarray xa;
	void *old = &xa;

	(void)state;
	xa_init(&xa);
	for (int i = 0; i < NR_EDGES; i++) {
		assert_int_equal(xa_store(&xa, edge[i], PTR(1), &old), 0);
		assert_null(old);
		assert_int_equal(xa_store(&xa, edge[i], PTR(2), &old), 0);
		assert_ptr_equal(old, PTR(1));
		assert_int_equal(xa_store(&xa, edge[i], PTR(3), NULL), 0);
		assert_ptr_equal(load(&xa, edge[i]), PTR(3));
		assert_int_equal(xa_count(&xa), 1);
		assert_int_equal(xa_store(&xa, edge[i], NULL, &old), 0); /* a store of NULL erases */
		assert_ptr_equal(old, PTR(3));
		must_be_empty(&xa);
		assert_int_equal(xa_store(&xa, edge[i], PTR(3), NULL), 0);
		assert_int_equal(xa_store(&xa, edge[i], NULL, NULL), 0);
		must_be_empty(&xa);
	}
}

static void inserted(void **state)
{
	struct xarray xa;

	(void)state;
	xa_init(&xa);
	assert_int_equal(xa_insert(&xa, 9, PTR(1)), 0);
	assert_int_equal(xa_insert(&xa, 9, PTR(2)), -EBUSY);
	assert_int_equal(xa_insert(&xa, 9, NULL), -EBUSY);
	assert_ptr_equal(load(&xa, 9), PTR(1));
	assert_int_equal(xa_insert(&xa, 10, NULL), 0); /* NULL reserves the index */
	assert_int_equal(xa_insert(&xa, 10, PTR(2)), -EBUSY);
	assert_null(load(&xa, 10));
	assert_int_equal(xa_count(&xa), 2);
	assert_ptr_equal(xa_erase(&xa, 9), PTR(1));
	assert_null(xa_erase(&xa, 10));
	must_be_empty(&xa);
}

static void reserved(void **state)
{
	unsigned long index = 0;
	struct xarray xa;
	void *old = &xa;

	(void)state;
	xa_init(&xa);
	assert_int_equal(xa_reserve(&xa, 70), 0);
	assert_int_equal(xa_reserve(&xa, 70), 0);
	assert_int_equal(xa_count(&xa), 1);
	assert_false(xa_empty(&xa));
	assert_null(load(&xa, 70));
	assert_null(xa_find(&xa, &index, ULONG_MAX, XA_PRESENT));
	assert_false(xa_marked(&xa, XA_PRESENT));
	xa_set_mark(&xa, 70, XA_MARK_1); /* a mark at an index without entry is ignored */
	assert_int_equal(marks_of(&xa, 70), 0);
	assert_int_equal(xa_store(&xa, 70, PTR(1), &old), 0);
	assert_null(old);
	assert_int_equal(marks_of(&xa, 70), 0);
	assert_int_equal(xa_reserve(&xa, 70), 0); /* an index with an entry stays as it is */
	xa_release(&xa, 70);
	assert_ptr_equal(load(&xa, 70), PTR(1));
	assert_ptr_equal(xa_erase(&xa, 70), PTR(1));
	must_be_empty(&xa);
	assert_int_equal(xa_reserve(&xa, ULONG_MAX), 0);
	assert_int_equal(xa.tree.nr_nodes, 11);
	xa_release(&xa, ULONG_MAX);
	must_be_empty(&xa);
	assert_int_equal(xa_reserve(&xa, 3), 0);
	assert_int_equal(xa_store(&xa, 3, NULL, &old), 0);
	assert_null(old);
	must_be_empty(&xa);
}

static void compared(void **state)
{
	struct xarray xa;
	void *old = &xa;

	(void)state;
	xa_init(&xa);
	assert_int_equal(xa_cmpxchg(&xa, 64, PTR(1), PTR(2), &old), -EBUSY); /* the index has no entry */
	assert_null(old);
	must_be_empty(&xa);
	assert_int_equal(xa_cmpxchg(&xa, 64, NULL, PTR(1), &old), 0);
	assert_null(old);
	assert_int_equal(xa_cmpxchg(&xa, 64, NULL, PTR(2), &old), -EBUSY);
	assert_ptr_equal(old, PTR(1));
	assert_int_equal(xa_cmpxchg(&xa, 64, PTR(1), PTR(2), NULL), 0);
	assert_int_equal(xa_cmpxchg(&xa, 64, PTR(1), PTR(3), NULL), -EBUSY);
	assert_int_equal(xa_cmpxchg(&xa, 64, PTR(1), NULL, &old), -EBUSY);
	assert_ptr_equal(old, PTR(2));
	assert_ptr_equal(load(&xa, 64), PTR(2));
	assert_int_equal(xa_cmpxchg(&xa, 64, PTR(2), NULL, &old), 0); /* NULL erases the entry */
	assert_ptr_equal(old, PTR(2));
	must_be_empty(&xa);
	assert_int_equal(xa_cmpxchg(&xa, 64, NULL, NULL, &old), 0);
	assert_null(old);
	must_be_empty(&xa);
	assert_int_equal(xa_reserve(&xa, 64), 0); /* a reserved index has no entry to mark either */
	assert_int_equal(xa_cmpxchg(&xa, 64, NULL, PTR(5), NULL), 0);
	assert_ptr_equal(load(&xa, 64), PTR(5));
	assert_int_equal(xa_count(&xa), 1);
	xa_destroy(&xa);
}

/* ---- marks ---- */

static void marks_stay_and_go(void **state)
{
	struct xarray xa;

	(void)state;
	xa_init(&xa);
	assert_int_equal(xa_store(&xa, 5, PTR(1), NULL), 0);
	xa_set_mark(&xa, 5, XA_MARK_0);
	xa_set_mark(&xa, 5, XA_MARK_2);
	xa_set_mark(&xa, 5, XA_MARK_2);
	xa_set_mark(&xa, 6, XA_MARK_1); /* no entry is at this index */
	xa_set_mark(&xa, 64, XA_MARK_1);
	assert_int_equal(marks_of(&xa, 5), 5);
	assert_int_equal(marks_of(&xa, 6), 0);
	assert_false(xa_marked(&xa, XA_MARK_1));
	assert_int_equal(xa_store(&xa, 5, PTR(2), NULL), 0); /* marks stay when an entry replaces another */
	assert_int_equal(marks_of(&xa, 5), 5);
	assert_int_equal(xa_store(&xa, ULONG_MAX, PTR(3), NULL), 0); /* marks stay when the tree grows */
	assert_int_equal(xa.tree.nr_nodes, 21);
	assert_int_equal(marks_of(&xa, 5), 5);
	assert_int_equal(marks_of(&xa, ULONG_MAX), 0);
	assert_true(xa_marked(&xa, XA_MARK_0) && !xa_marked(&xa, XA_MARK_1) && xa_marked(&xa, XA_MARK_2));
	xa_clear_mark(&xa, 5, XA_MARK_2);
	xa_clear_mark(&xa, 5, XA_MARK_1);
	assert_false(xa_marked(&xa, XA_MARK_2));
	xa_set_mark(&xa, ULONG_MAX, XA_MARK_1);
	assert_ptr_equal(xa_erase(&xa, ULONG_MAX), PTR(3)); /* the tree shrinks with this erase */
	assert_int_equal(xa.tree.nr_nodes, 1);
	assert_false(xa_marked(&xa, XA_MARK_1));
	assert_int_equal(marks_of(&xa, 5), 1);
	assert_int_equal(xa_cmpxchg(&xa, 5, PTR(2), NULL, NULL), 0); /* marks go with the entry */
	assert_int_equal(xa_store(&xa, 5, PTR(2), NULL), 0);
	assert_int_equal(marks_of(&xa, 5), 0);
	xa_destroy(&xa);
	must_be_empty(&xa);
}

/* A node has a mark as long as one of the nodes below it has the mark. */
static void marks_of_neighbours(void **state)
{
	struct xarray xa;

	(void)state;
	store_edges(&xa);
	for (int i = 0; i < NR_EDGES; i++)
		xa_set_mark(&xa, edge[i], XA_MARK_1);
	for (int i = 0; i < NR_EDGES; i++) {
		int at = i % 2 ? NR_EDGES - 1 - i / 2 : i / 2, left = 0;
		unsigned long index;
		void *entry;

		assert_true(xa_marked(&xa, XA_MARK_1));
		if (at % 2)
			xa_clear_mark(&xa, edge[at], XA_MARK_1);
		else
			xa_erase(&xa, edge[at]);
		rcu_read_lock();
		xa_for_each_marked(&xa, index, entry, XA_MARK_1)
			left += marked(&xa, index, XA_MARK_1);
		rcu_read_unlock();
		assert_int_equal(left, NR_EDGES - 1 - i);
	}
	assert_false(xa_marked(&xa, XA_MARK_1));
	assert_int_equal(xa_count(&xa), NR_EDGES / 2);
	xa_destroy(&xa);
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

static void reported(const char *text)
{
	assert_int_equal(nr_reports, 1);
	assert_non_null(strstr(last_text, text));
	nr_reports = 0;
}

static void no_marks(void **state)
{
	unsigned long index = 0;
	struct xarray xa;
	void *some[1];

	(void)state;
	xa_init(&xa);
	assert_int_equal(xa_store(&xa, 5, PTR(1), NULL), 0);
	quiesce_set_misuse_hook(hook);
	xa_set_mark(&xa, 5, XA_PRESENT);
	reported("xa_set_mark() of 3");
	xa_clear_mark(&xa, 5, XA_PRESENT);
	reported("xa_clear_mark() of 3");
	xa_set_mark(&xa, 5, UINT_MAX);
	reported("xa_set_mark() of 4294967295");
	assert_false(xa_get_mark(&xa, 5, XA_PRESENT));
	reported("xa_get_mark() of 3");
	assert_false(xa_marked(&xa, XA_PRESENT + 1));
	reported("xa_marked() of 4");
	assert_null(xa_find(&xa, &index, ULONG_MAX, XA_PRESENT + 1));
	reported("xa_find() of 4");
	index = 5;
	assert_null(xa_find_reverse(&xa, &index, 0, 5));
	reported("xa_find_reverse() of 5");
	assert_int_equal(xa_extract(&xa, some, 0, ULONG_MAX, 1, 6), 0);
	reported("xa_extract() of 6");
	quiesce_set_misuse_hook(NULL);
	assert_int_equal(marks_of(&xa, 5), 0);
	assert_ptr_equal(load(&xa, 5), PTR(1));
	assert_int_equal(xa_store(&xa, 6, PTR(2), NULL), 0); /* free indices stay free */
	assert_int_equal(xa_count(&xa), 2);
	xa_destroy(&xa);
}

/* ---- allocation ---- */

static void allocated(void **state)
{
	uint32_t id = 77, in_object = 77;
	struct xarray xa;

	(void)state;
	xa_init(&xa);
	for (uint32_t i = 0; i < 70; i++) {
		assert_int_equal(xa_alloc(&xa, &id, PTR(i + 1), xa_limit_32b), 0);
		assert_int_equal(id, i);
	}
	assert_ptr_equal(xa_erase(&xa, 63), PTR(64));
	assert_int_equal(xa_alloc(&xa, &in_object, &in_object, xa_limit_16b), 0);
	assert_int_equal(in_object, 63);
	assert_ptr_equal(load(&xa, 63), &in_object);
	assert_int_equal(xa_alloc(&xa, &id, PTR(1), XA_LIMIT(10, 69)), -EBUSY);
	assert_int_equal(xa_alloc(&xa, &id, PTR(1), XA_LIMIT(80, 79)), -EBUSY); /* nothing is between */
	assert_int_equal(id, 69);
	assert_int_equal(xa_alloc(&xa, &id, NULL, XA_LIMIT(10, 70)), 0); /* NULL reserves the index */
	assert_int_equal(id, 70);
	assert_null(load(&xa, 70));
	assert_int_equal(xa_alloc(&xa, &id, PTR(1), XA_LIMIT(70, 70)), -EBUSY);
	assert_int_equal(xa_store(&xa, UINT32_MAX + 1ul, PTR(1), NULL), 0); /* such an index is no number, and no allocation avoids it */
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(xa_alloc(&xa, &id, PTR(2), XA_LIMIT(UINT32_MAX - 1, UINT32_MAX)), i < 2 ? 0 : -EBUSY);
		assert_int_equal(id, i < 2 ? UINT32_MAX - 1 + i : UINT32_MAX);
	}
	assert_int_equal(xa_alloc(&xa, &id, PTR(2), XA_LIMIT(INT32_MAX, UINT32_MAX)), 0);
	assert_int_equal(id, INT32_MAX);
	assert_int_equal(xa_alloc(&xa, &id, PTR(2), xa_limit_31b), 0);
	assert_int_equal(id, 71);
	xa_destroy(&xa);
	must_be_empty(&xa);
}

static void allocated_in_turn(void **state)
{
	uint32_t next = 0, id = 77;
	struct xarray xa;

	(void)state;
	xa_init(&xa);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(xa_alloc_cyclic(&xa, &id, PTR(i + 1), XA_LIMIT(0, 99), &next), 0);
		assert_true(id == i && next == i + 1);
		if (i % 10)
			assert_ptr_equal(xa_erase(&xa, i), PTR(i + 1));
	}
	for (uint32_t i = 1; i < 10; i++) { /* again from the start, past indices that are taken */
		assert_int_equal(xa_alloc_cyclic(&xa, &id, PTR(1), XA_LIMIT(0, 99), &next), 0);
		assert_int_equal(id, i);
	}
	assert_int_equal(xa_alloc_cyclic(&xa, &id, PTR(1), XA_LIMIT(0, 9), &next), -EBUSY);
	assert_true(id == 9 && next == 10);
	next = UINT32_MAX;
	assert_int_equal(xa_alloc_cyclic(&xa, &id, PTR(1), xa_limit_32b, &next), 0);
	assert_true(id == UINT32_MAX && next == 0);
	assert_int_equal(xa_alloc_cyclic(&xa, &id, PTR(1), xa_limit_32b, &next), 0);
	assert_true(id == 11 && next == 12);
	next = 5; /* a start below the limits begins at the lower limit */
	assert_int_equal(xa_alloc_cyclic(&xa, &id, PTR(1), XA_LIMIT(50, 99), &next), 0);
	assert_true(id == 51 && next == 52);
	xa_destroy(&xa);
}

static void values(void **state)
{
	static const unsigned long number[] = { 0, 1, 77, LONG_MAX - 1, LONG_MAX };
	struct xarray xa;
	int object;

	(void)state;
	xa_init(&xa);
	for (size_t i = 0; i < LENGTH(number); i++) {
		assert_int_equal(xa_store(&xa, i, xa_mk_value(number[i]), NULL), 0);
		assert_true(xa_is_value(load(&xa, i)));
		assert_int_equal(xa_to_value(load(&xa, i)), number[i]);
	}
	assert_false(xa_is_value(&object));
	assert_false(xa_is_value(NULL));
	xa_destroy(&xa);
}

/* ---- the whole ---- */

/* Nodes that a reader walks through stay until it leaves its section: sanitizers would report a use after free. */
static void destroyed_inside(void **state)
{
	unsigned long index;
	struct xarray xa;
	void *entry;
	int n = 0;

	(void)state;
	xa_init(&xa);
	for (unsigned long i = 0; i < 5000; i++)
		assert_int_equal(xa_store(&xa, i, PTR(i + 1), NULL), 0);
	rcu_read_lock();
	xa_for_each(&xa, index, entry)
		if (n++ == 2500)
			xa_destroy(&xa);
	assert_int_equal(n, 2501);
	for (unsigned long i = 0; i < 5000; i++)
		assert_int_equal(xa_store(&xa, i, PTR(i + 1), NULL), 0);
	xa_for_each_reverse(&xa, index, entry)
		assert_ptr_equal(xa_erase(&xa, index), entry);
	rcu_read_unlock();
	must_be_empty(&xa);
	rcu_barrier();
	assert_int_equal(stats_now().garbage_objects, 0);
}

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer does not survive a fork of a process that had threads */
static struct xarray inherited;

static void use_in_child(void)
{
	for (int i = 0; i < NR_EDGES; i++) {
		must(load(&inherited, edge[i]) == edge_entry(i));
		must(marks_of(&inherited, edge[i]) == 1u << i % 3);
	}
	must(xa_store(&inherited, 5000, PTR(5), NULL) == 0 && load(&inherited, 5000) == PTR(5));
	for (int i = 0; i < NR_EDGES; i++)
		must(xa_erase(&inherited, edge[i]) == edge_entry(i));
	must(xa_count(&inherited) == 1);
	xa_destroy(&inherited);
	rcu_barrier();
}

static void in_a_child(void **state)
{
	(void)state;
	store_edges(&inherited);
	for (int i = 0; i < NR_EDGES; i++)
		xa_set_mark(&inherited, edge[i], i % 3);
	succeeds(use_in_child);
	assert_int_equal(xa_count(&inherited), NR_EDGES);
	xa_destroy(&inherited);
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(empty), TEST(boundaries), TEST(grow_and_shrink), TEST(stored), TEST(inserted), TEST(reserved), TEST(compared),
		TEST(marks_stay_and_go), TEST(marks_of_neighbours), TEST(no_marks),
		TEST(allocated), TEST(allocated_in_turn), TEST(values), TEST(destroyed_inside),
#ifndef __SANITIZE_THREAD__
		TEST(in_a_child),
#endif
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
