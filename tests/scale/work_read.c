/* SPDX-License-Identifier: MIT */
/* work_read.c - every read side, while nothing is updated. */
#include "workload.h"

#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/hashtable.h>
#include <quiesce/ds/xarray.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu.h>
#include <quiesce/rcu_sync.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#define NR_KEYS 512u

struct item { uint64_t key, value; };

HASHTABLE_TYPE(item, struct item, key);

static struct item item = { 1, 2 }, items[NR_KEYS];
static struct item *published = &item;
static struct srcu_struct srcu;
static struct percpu_rw_semaphore sem;
static struct percpu_ref ref;
static struct rcu_sync rss;
static struct hashtable table;
static struct hashmap map;
static struct xarray xa;

static void must(int err)
{
	if (err)
		scale_fail("a call of the library has failed: %d", err);
}

static void rcu_op(struct actor *a)
{
	rcu_read_lock();
	a->random += rcu_dereference(published)->value;
	rcu_read_unlock();
}

static void shazptr_op(struct actor *a)
{
	struct shazptr_guard guard = shazptr_protect(&published);

	a->random += ((struct item *)shazptr_ptr(guard))->value;
	shazptr_clear(guard);
}

static void hazptr_op(struct actor *a)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	a->random += hazptr_protect(slot, &published)->value;
	hazptr_free(NULL, slot);
}

static void srcu_setup(void)
{
	must(init_srcu_struct(&srcu));
}

static void srcu_op(struct actor *a)
{
	int idx = srcu_read_lock(&srcu);

	a->random += srcu_dereference(published, &srcu)->value;
	srcu_read_unlock(&srcu, idx);
}

static void rwsem_setup(void)
{
	must(percpu_init_rwsem(&sem));
}

static void rwsem_op(struct actor *a)
{
	percpu_down_read(&sem);
	a->random += published->value;
	percpu_up_read(&sem);
}

static void released(struct percpu_ref *r)
{
	(void)r;
}

static void ref_setup(void)
{
	must(percpu_ref_init(&ref, released, 0));
}

static void ref_op(struct actor *a)
{
	percpu_ref_get(&ref);
	a->random += published->value;
	percpu_ref_put(&ref);
}

static void sync_setup(void)
{
	rcu_sync_init(&rss);
}

static void sync_op(struct actor *a)
{
	rcu_read_lock();
	a->random += rcu_sync_is_idle(&rss) ? published->value : 0;
	rcu_read_unlock();
}

static void hashtable_setup(void)
{
	must(hashtable_init(&table, &item_type));
	for (uint64_t i = 0; i < NR_KEYS; i++) {
		items[i] = (struct item){ i + 1, i };
		must(item_insert(&table, &items[i]));
	}
	rcu_barrier();
}

static void hashtable_op(struct actor *a)
{
	uint64_t key = 1 + scale_random(a, NR_KEYS);
	const struct item *found;

	rcu_read_lock();
	found = item_lookup(&table, &key);
	a->random += found ? found->value : 0;
	rcu_read_unlock();
}

/* Each thread reads every line once before it is measured. */
static void hashtable_begin(struct actor *a)
{
	rcu_read_lock();
	for (uint64_t key = 1; key <= NR_KEYS; key++) {
		const struct item *found = item_lookup(&table, &key);

		a->random += found ? found->value : 0;
	}
	rcu_read_unlock();
}

static void hashmap_setup(void)
{
	must(hashmap_init(&map));
	for (uint64_t i = 0; i < NR_KEYS; i++)
		must(hashmap_insert(&map, i + 1, i + 1, NULL));
	rcu_barrier();
}

static void hashmap_op(struct actor *a)
{
	rcu_read_lock();
	a->random += hashmap_lookup(&map, 1 + scale_random(a, NR_KEYS));
	rcu_read_unlock();
}

static void hashmap_begin(struct actor *a)
{
	rcu_read_lock();
	for (uint64_t key = 1; key <= NR_KEYS; key++)
		a->random += hashmap_lookup(&map, key);
	rcu_read_unlock();
}

static void xarray_setup(void)
{
	xa_init(&xa);
	for (uint64_t i = 0; i < NR_KEYS; i++)
		must(xa_store(&xa, i, &items[i], NULL));
	rcu_barrier();
}

static void xarray_op(struct actor *a)
{
	const struct item *found;

	rcu_read_lock();
	found = xa_load(&xa, scale_random(a, NR_KEYS));
	a->random += found ? found->value : 0;
	rcu_read_unlock();
}

static void xarray_begin(struct actor *a)
{
	rcu_read_lock();
	for (unsigned long i = 0; i < NR_KEYS; i++)
		a->random += ((const struct item *)xa_load(&xa, i))->value;
	rcu_read_unlock();
}

#define READ(what, ...) { .group = "read", .name = what, __VA_ARGS__ }
const struct workload scale_reads[] = {
	READ("rcu", .op = rcu_op, .warm = 10, .ops = 200),
	READ("shazptr", .op = shazptr_op, .warm = 10, .ops = 200),
	READ("hazptr", .op = hazptr_op, .warm = 10, .ops = 200),
	READ("srcu", .setup = srcu_setup, .op = srcu_op, .warm = 10, .ops = 200),
	READ("percpu_rwsem", .setup = rwsem_setup, .op = rwsem_op, .warm = 10, .ops = 200),
	READ("percpu_ref", .setup = ref_setup, .op = ref_op, .warm = 10, .ops = 200),
	READ("rcu_sync", .setup = sync_setup, .op = sync_op, .warm = 10, .ops = 200),
	READ("hashtable", .setup = hashtable_setup, .begin = hashtable_begin, .op = hashtable_op, .warm = 10, .ops = 200),
	READ("hashmap", .setup = hashmap_setup, .begin = hashmap_begin, .op = hashmap_op, .warm = 10, .ops = 200),
	READ("xarray", .setup = xarray_setup, .begin = xarray_begin, .op = xarray_op, .warm = 10, .ops = 200),
	{ 0 }
};
