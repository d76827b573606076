/* SPDX-License-Identifier: MIT */
/* oom_idr.c - for oom.py: an allocation that fails leaves an idr as it was, and the next allocation succeeds. */
#include <quiesce/ds/idr.h>

#include <errno.h>
#include <unistd.h>

/* Each of these ids needs nodes: a root, higher ones, branches, as many as possible, none. */
static const int wanted[] = { 5, 64, 63, 5000, 4999, INT_MAX, 70000, 1 };
#define NR_WANTED (sizeof wanted / sizeof *wanted)

static struct idr idr;
static int ok = 1;

static void must(int condition)
{
	ok &= condition != 0;
}

/* Check that the idr has the expected entries, in order, and no others. */
static void check_all(const int *there)
{
	size_t count = 0;
	int id, last = -1;
	void *p;

	for (size_t i = 0; i < NR_WANTED; i++) {
		must(idr_find(&idr, (unsigned long)wanted[i]) == (there[i] ? &wanted[i] : NULL));
		count += there[i] != 0;
	}
	must(idr_count(&idr) == count && idr_is_empty(&idr) == !count);
	idr_for_each_entry(&idr, p, id) {
		must(id > last && *(const int *)p == id);
		last = id;
		count--;
	}
	must(count == 0);
}

static void fill(int *there, struct idr_nodes *nodes)
{
	for (size_t i = 0; i < NR_WANTED; i++) {
		void *p = (void *)(uintptr_t)&wanted[i];
		size_t before = idr.tree.nr_nodes;
		int prepared = nodes && idr_preload(nodes) == 0;
		int got = nodes ? idr_alloc_preloaded(&idr, nodes, p, wanted[i], 0) : idr_alloc(&idr, p, wanted[i], 0);

		there[i] = got == wanted[i];
		must(there[i] || (got == -ENOMEM && !prepared && idr.tree.nr_nodes == before));
		check_all(there);
	}
}

static void empty(int *there)
{
	for (size_t i = 0; i < NR_WANTED; i++) {
		must(idr_remove(&idr, (unsigned long)wanted[i]) == (there[i] ? &wanted[i] : NULL));
		there[i] = 0;
		check_all(there);
	}
	must(idr.tree.nr_nodes == 0);
}

int main(void)
{
	struct idr_nodes nodes = IDR_NODES_INIT;
	int there[NR_WANTED] = { 0 };

	alarm(25);
	fill(there, NULL);
	empty(there);
	fill(there, &nodes);
	idr_preload_end(&nodes);
	idr_destroy(&idr);
	rcu_barrier();
	must(idr_is_empty(&idr));
	return !ok;
}
