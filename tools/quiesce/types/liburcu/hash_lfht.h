/* SPDX-License-Identifier: MIT */
/* hash_lfht.h - liburcu's lock-free table; include it once, with FLAVOUR(x) the name of the flavour's x.
 *
 * The table resizes itself, by its defaults.  The variant of fixed size gets it at the beginning; it has a bucket for
 * each element and finds it with one addition.
 *
 * Automatic resizing may stop for ever: a thread that wakes the worker for a resize sets a flag only afterwards, and
 * in between the worker may have finished and cleared it (0.13).  Then the flag stays set and no thread wakes the
 * worker again, until a resize by hand.  So this file resizes by hand while the table is filled, when there is no
 * other thread.
 */
#include <urcu/rculfhash.h>

#include <stdlib.h>

#include "types/hash.h"
#include "types/retire.h"
#include "registry.h"

struct lfht_node {
	struct cds_lfht_node node;
	uint64_t key, value;
	struct rcu_head rcu;
};

static int lfht_match(struct cds_lfht_node *node, const void *key)
{
	return caa_container_of(node, struct lfht_node, node)->key == *(const uint64_t *)key;
}

static void lfht_free(struct rcu_head *head)
{
	retire_free(caa_container_of(head, struct lfht_node, rcu));
}

static inline void lfht_retire(struct lfht_node *n)
{
	retire_note();
	FLAVOUR(call_rcu)(&n->rcu, lfht_free);
}

#define LFHT_BY_HAND 1024 /* number of elements of the first resize by hand, which each doubling repeats */

static __thread uint64_t lfht_filled; /* number of elements so far, plus one; 0: the table is not being filled */

/* The worker that the call waits for may be waiting for readers: the caller must not be one of them. */
static void lfht_resize(struct cds_lfht *t, uint64_t nr)
{
	FLAVOUR(thread_offline)();
	cds_lfht_resize(t, nr);
	FLAVOUR(thread_online)();
}

static unsigned long lfht_power(uint64_t nr)
{
	unsigned long size = 1;

	while (size < nr)
		size *= 2;
	return size;
}

static void lfht_settle(void *table, uint64_t nr_keys)
{
	lfht_filled = 0;
	lfht_resize(table, lfht_power(nr_keys));
}

static bool lfht_resize_to(void *table, uint64_t nr_keys)
{
	lfht_resize(table, lfht_power(nr_keys));
	return true;
}

static void *lfht_create(uint64_t nr_keys)
{
	(void)nr_keys;
	lfht_filled = 1;
	return cds_lfht_new_flavor(1, 1, 0, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING, &FLAVOUR(flavor), NULL);
}

static void *lfht_create_fixed(uint64_t nr_keys)
{
	unsigned long size = lfht_power(nr_keys);

	return cds_lfht_new_flavor(size, size, size, 0, &FLAVOUR(flavor), NULL);
}

static void lfht_destroy(void *table)
{
	struct cds_lfht *t = table;
	struct cds_lfht_iter iter;
	struct lfht_node *n;

	FLAVOUR(read_lock)();
	cds_lfht_for_each_entry(t, &iter, n, node)
		if (!cds_lfht_del(t, &n->node))
			lfht_retire(n);
	FLAVOUR(read_unlock)();
	FLAVOUR(barrier)();
	FLAVOUR(thread_offline)(); /* the worker may be waiting for readers */
	if (cds_lfht_destroy(t, NULL))
		abort(); /* the table is not empty */
	FLAVOUR(thread_online)();
}

HASH_LOOKUP lfht_lookup(struct cds_lfht *t, uint64_t key)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;
	uint64_t value;

	FLAVOUR(read_lock)();
	cds_lfht_lookup(t, hash_mix(key), lfht_match, &key, &iter);
	node = cds_lfht_iter_get_node(&iter);
	value = node ? caa_container_of(node, struct lfht_node, node)->value : 0;
	FLAVOUR(read_unlock)();
	return value;
}

static bool lfht_insert(struct cds_lfht *t, uint64_t key, uint64_t value)
{
	struct lfht_node *n = malloc(sizeof(*n));
	struct cds_lfht_node *found;

	if (!n)
		return false;
	cds_lfht_node_init(&n->node);
	n->key = key;
	n->value = value;
	FLAVOUR(read_lock)();
	found = cds_lfht_add_unique(t, hash_mix(key), lfht_match, &key, &n->node);
	FLAVOUR(read_unlock)();
	if (found != &n->node) {
		free(n);
		return false;
	}
	if (lfht_filled && ++lfht_filled > LFHT_BY_HAND && !(lfht_filled & (lfht_filled - 1)))
		lfht_resize(t, lfht_filled);
	return true;
}

static bool lfht_remove(struct cds_lfht *t, uint64_t key)
{
	struct cds_lfht_iter iter;
	struct lfht_node *n;
	bool removed;

	FLAVOUR(read_lock)();
	cds_lfht_lookup(t, hash_mix(key), lfht_match, &key, &iter);
	removed = cds_lfht_iter_get_node(&iter) && !cds_lfht_del(t, cds_lfht_iter_get_node(&iter));
	if (removed) {
		n = caa_container_of(cds_lfht_iter_get_node(&iter), struct lfht_node, node);
		lfht_retire(n);
	}
	FLAVOUR(read_unlock)();
	return removed;
}

HASH_RUN(lfht, struct cds_lfht)

static void lfht_enter(void)
{
	FLAVOUR(register_thread)();
}

static void lfht_exit(void)
{
	FLAVOUR(unregister_thread)();
	retire_tally_leave();
}

static void lfht_barrier(void)
{
	FLAVOUR(barrier)();
}

#define LFHT_OPS .destroy = lfht_destroy, .run = lfht_run, .barrier = lfht_barrier, .waiting = retire_waiting
#define LFHT_THREADS .thread_enter = lfht_enter, .thread_exit = lfht_exit
