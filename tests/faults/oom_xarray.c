/* SPDX-License-Identifier: MIT */
/* oom_xarray.c - for oom.py: an allocation that fails leaves an xarray and an ida as they were, and the next allocation succeeds. */
#include <quiesce/ds/ida.h>
#include <quiesce/ds/xarray.h>

#include <errno.h>
#include <unistd.h>

/* Each of these indices needs nodes: a root, higher ones, branches, as many as possible, none. */
static const unsigned long wanted[] = { 5, 64, 63, ULONG_MAX, 5000, 4999, 1ul << 60, 70000, 1 };
#define NR_WANTED (sizeof wanted / sizeof *wanted)

static DEFINE_XARRAY(xa);
static DEFINE_IDA(ida);
static int ok = 1;

static void must(int condition)
{
	ok &= condition != 0;
}

static void *entry_of(size_t i)
{
	return (void *)(uintptr_t)&wanted[i];
}

/* Check that the xarray has the expected entries, with their marks, in order, upwards and downwards, and no others. */
static void check_all(const int *there)
{
	size_t count = 0, up = 0, down = 0;
	unsigned long index, last = 0;
	void *p;

	for (size_t i = 0; i < NR_WANTED; i++) {
		must(xa_load(&xa, wanted[i]) == (there[i] ? entry_of(i) : NULL));
		must(xa_get_mark(&xa, wanted[i], XA_MARK_1) == there[i]);
		count += there[i] != 0;
	}
	must(xa_count(&xa) == count && xa_empty(&xa) == !count);
	xa_for_each_marked(&xa, index, p, XA_MARK_1) {
		must((!up || index > last) && *(const unsigned long *)p == index);
		last = index;
		up++;
	}
	xa_for_each_reverse(&xa, index, p)
		down++;
	must(up == count && down == count);
}

/* Store an entry by one of the calls that allocate. */
static int take(size_t i, size_t how, void **ret_old)
{
	uint32_t id = (uint32_t)wanted[i];
	int said;

	switch ((i + how) % 5) {
	case 0:
		return xa_store(&xa, wanted[i], entry_of(i), ret_old);
	case 1:
		return xa_insert(&xa, wanted[i], entry_of(i));
	case 2:
		return xa_cmpxchg(&xa, wanted[i], NULL, entry_of(i), ret_old);
	case 3:
		said = xa_reserve(&xa, wanted[i]); /* after this the store needs no memory */
		return said ? said : xa_store(&xa, wanted[i], entry_of(i), NULL);
	default:
		if (wanted[i] > UINT32_MAX)
			return xa_insert(&xa, wanted[i], entry_of(i));
		said = xa_alloc(&xa, &id, entry_of(i), XA_LIMIT(id, id));
		must(id == wanted[i]);
		return said;
	}
}

static void fill(int *there, size_t how)
{
	for (size_t i = 0; i < NR_WANTED; i++) {
		size_t before = xa.tree.nr_nodes;
		void *old = &ok;
		int said = take(i, how, &old);

		there[i] = said == 0;
		must(there[i] || (said == -ENOMEM && xa.tree.nr_nodes == before && old == &ok));
		xa_set_mark(&xa, wanted[i], XA_MARK_1);
		must(!there[i] || xa_store(&xa, wanted[i], entry_of(i), NULL) == 0); /* an entry that exists needs no memory */
		check_all(there);
	}
}

static void empty(int *there)
{
	for (size_t i = 0; i < NR_WANTED; i++) {
		must(xa_erase(&xa, wanted[i]) == (there[i] ? entry_of(i) : NULL));
		there[i] = 0;
		check_all(there);
	}
	must(xa.tree.nr_nodes == 0);
}

/* ---- numbers ---- */

static const unsigned int number[] = { 5, 4096, 63, INT_MAX, 64, 300000, 5000 };
#define NR_NUMBERS (sizeof number / sizeof *number)

static void numbers(void)
{
	int there[NR_NUMBERS] = { 0 };

	for (size_t i = 0; i < NR_NUMBERS; i++) {
		size_t before = ida.tree.nr_nodes, count = ida.tree.count;
		int said = ida_alloc_min(&ida, number[i]);

		there[i] = said == (int)number[i];
		must(there[i] || (said == -ENOMEM && ida.tree.nr_nodes == before && ida.tree.count == count));
		for (size_t j = 0; j < NR_NUMBERS; j++)
			must(ida_exists(&ida, number[j]) == there[j]);
	}
	for (size_t i = 0; i < NR_NUMBERS; i++)
		if (there[i])
			ida_free(&ida, number[i]);
	must(ida_is_empty(&ida) && ida.tree.nr_nodes == 0 && ida.tree.count == 0);
}

int main(void)
{
	int there[NR_WANTED] = { 0 };

	alarm(25);
	for (size_t how = 0; how < 5; how++) {
		fill(there, how);
		empty(there);
	}
	fill(there, 0);
	xa_destroy(&xa);
	must(xa_empty(&xa));
	numbers();
	rcu_barrier();
	return !ok;
}
