/* SPDX-License-Identifier: MIT */
/* work_update.c - updates of each container: of keys that only one thread has, and of one that all have. */
#include "workload.h"

#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/hashtable.h>
#include <quiesce/ds/ida.h>
#include <quiesce/ds/idr.h>
#include <quiesce/ds/lfqueue.h>
#include <quiesce/ds/lfstack.h>
#include <quiesce/ds/value_queue.h>
#include <quiesce/ds/wfcqueue.h>
#include <quiesce/ds/xarray.h>
#include <quiesce/rcu.h>
#include <quiesce/slab.h>

#define KEYS 64u /* each thread has so many */

struct item { uint64_t key, value; } __attribute__((aligned(64)));

HASHTABLE_TYPE(item, struct item, key);

static struct hashtable table;
static struct hashmap map;
static struct xarray xa;
static struct ida ida;
static struct idr idr;
static struct value_queue values;
static struct wfcq_head queue_head;
static struct wfcq_tail queue_tail;
static struct lfs_stack stack;
static struct lfq_queue queue;
static struct kmem_cache *cache;
static struct item items[SCALE_CPUS * KEYS][2];

static void must(int err)
{
	if (err)
		scale_fail("a call of the library has failed: %d", err);
}

static uint64_t key_of(const struct actor *a, uint64_t number)
{
	return (uint64_t)a->number * KEYS + number % KEYS + 1;
}

static uint64_t next_key(struct actor *a)
{
	return key_of(a, (uint64_t)(uintptr_t)(a->object[0] = (char *)a->object[0] + 1));
}

static void map_setup(void)
{
	must(hashmap_init(&map));
	must(hashmap_reserve(&map, (size_t)scale_nr_cpus() * KEYS));
	rcu_barrier();
}

static void map_begin(struct actor *a)
{
	for (uint64_t i = 0; i < KEYS; i++)
		must(hashmap_set(&map, key_of(a, i), 1, NULL));
}

static void map_set_op(struct actor *a)
{
	must(hashmap_set(&map, next_key(a), a->random | 1, NULL));
}

static void map_insert_op(struct actor *a)
{
	uint64_t key = next_key(a);

	hashmap_remove(&map, key);
	must(hashmap_insert(&map, key, key, NULL));
}

static void map_equal_op(struct actor *a)
{
	must(hashmap_set(&map, 7, a->random | 1, NULL));
}

static void table_setup(void)
{
	must(hashtable_init(&table, &item_type));
	must(hashtable_reserve(&table, (size_t)scale_nr_cpus() * KEYS));
	rcu_barrier();
}

static void table_set(struct actor *a, uint64_t key)
{
	struct item *pair = items[key - 1], *fresh = &pair[++pair->value & 1];

	(void)a;
	fresh->key = key;
	must(item_set(&table, fresh, NULL));
}

static void table_begin(struct actor *a)
{
	for (uint64_t i = 0; i < KEYS; i++)
		table_set(a, key_of(a, i));
}

static void table_set_op(struct actor *a)
{
	table_set(a, next_key(a));
}

static void xa_setup(void)
{
	xa_init(&xa);
	for (unsigned long i = 0; i < (unsigned long)scale_nr_cpus() * KEYS; i++)
		must(xa_store(&xa, i, xa_mk_value(i), NULL));
	rcu_barrier();
}

static void xa_store_op(struct actor *a)
{
	must(xa_store(&xa, next_key(a) - 1, xa_mk_value(a->random >> 2), NULL));
}

static void xa_equal_op(struct actor *a)
{
	must(xa_store(&xa, 7, xa_mk_value(a->random >> 2), NULL));
}

static void ida_setup(void)
{
	ida_init(&ida);
}

static void ida_op(struct actor *a)
{
	int id = ida_alloc(&ida);

	(void)a;
	ida_free(&ida, (unsigned int)id);
}

static void idr_setup(void)
{
	idr_init(&idr);
}

static void idr_op(struct actor *a)
{
	int id = idr_alloc(&idr, a, 0, 0);

	if (id < 0 || idr_remove(&idr, (unsigned long)id) != a)
		scale_fail("idr_alloc() or idr_remove() has failed");
}

static void values_setup(void)
{
	must(value_queue_init(&values, sizeof(uint64_t), 4096));
}

static void values_op(struct actor *a)
{
	uint64_t value = a->random;

	must(value_queue_push_try(&values, &value));
	(void)value_queue_pop_try(&values, &value);
}

struct node { struct wfcq_node queue; struct lfs_node stack; struct lfq_node both; } __attribute__((aligned(64)));
static struct node nodes[SCALE_CPUS][1024];

static void wfcq_setup(void)
{
	wfcq_init(&queue_head, &queue_tail);
}

static void wfcq_op(struct actor *a)
{
	struct node *n = &nodes[a->number][(uintptr_t)a->object[0] % 1024];

	a->object[0] = (char *)a->object[0] + 1;
	wfcq_node_init(&n->queue);
	wfcq_enqueue(&queue_head, &queue_tail, &n->queue);
}

static void lfs_setup(void)
{
	lfs_init(&stack);
}

static void lfs_op(struct actor *a)
{
	struct node *n = &nodes[a->number][(uintptr_t)a->object[0] % 1024];

	a->object[0] = (char *)a->object[0] + 1;
	lfs_push(&stack, &n->stack);
}

static void lfq_setup(void)
{
	lfq_init(&queue);
}

/* No node is enqueued twice, so none has to wait for readers. */
static void lfq_op(struct actor *a)
{
	struct node *n = &nodes[a->number][(uintptr_t)a->object[0]];

	a->object[0] = (char *)a->object[0] + 1;
	rcu_read_lock();
	lfq_enqueue(&queue, &n->both);
	if (!lfq_dequeue(&queue))
		scale_fail("the queue is empty");
	rcu_read_unlock();
}

static void slab_setup(void)
{
	cache = kmem_cache_create("scale", 64, 0, 0, NULL);
	if (!cache)
		scale_fail("no cache");
}

static void slab_op(struct actor *a)
{
	for (int i = 0; i < 8; i++)
		a->object[i] = kmem_cache_alloc(cache);
	for (int i = 0; i < 8; i++)
		kmem_cache_free(cache, a->object[i]);
}

/* Each thread retires a burst of 32 objects, and then pauses. */
struct garbage { uint64_t value[6]; struct rcu_head rcu; };

static void burst_op(struct actor *a)
{
	(void)a;
	for (int i = 0; i < 32; i++) {
		struct garbage *g = kmem_cache_alloc(cache);

		kfree_rcu(g, rcu);
	}
	scale_work(20000);
}

#define UPDATE(what, ...) { .group = "update", .name = what, .most_callers = SCALE_CPUS, __VA_ARGS__ }
const struct workload scale_updates[] = {
	UPDATE("hashmap_set", .setup = map_setup, .begin = map_begin, .op = map_set_op, .warm = 64, .ops = 200),
	UPDATE("hashmap_insert", .setup = map_setup, .begin = map_begin, .op = map_insert_op, .warm = 64, .ops = 200),
	UPDATE("hashmap_set_equal", .setup = map_setup, .begin = map_begin, .op = map_equal_op, .warm = 5, .ops = 100),
	UPDATE("hashtable_set", .setup = table_setup, .begin = table_begin, .op = table_set_op, .warm = 64, .ops = 200),
	UPDATE("xarray_store", .setup = xa_setup, .op = xa_store_op, .warm = 64, .ops = 40),
	UPDATE("xarray_store_equal", .setup = xa_setup, .op = xa_equal_op, .warm = 5, .ops = 40),
	UPDATE("ida_alloc_free", .setup = ida_setup, .op = ida_op, .warm = 5, .ops = 40),
	UPDATE("idr_alloc_remove", .setup = idr_setup, .op = idr_op, .warm = 5, .ops = 40),
	UPDATE("value_queue_push_pop", .setup = values_setup, .op = values_op, .warm = 2, .ops = 20),
	UPDATE("wfcqueue_enqueue", .setup = wfcq_setup, .op = wfcq_op, .warm = 5, .ops = 100),
	UPDATE("lfstack_push", .setup = lfs_setup, .op = lfs_op, .warm = 5, .ops = 40),
	UPDATE("lfqueue_enqueue_dequeue", .setup = lfq_setup, .op = lfq_op, .warm = 5, .ops = 40),
	UPDATE("slab_alloc_free_8", .setup = slab_setup, .op = slab_op, .warm = 20, .ops = 100),
	UPDATE("kfree_rcu_burst_32", .setup = slab_setup, .op = burst_op, .warm = 5, .ops = 40),
	{ 0 }
};
