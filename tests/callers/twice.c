/* SPDX-License-Identifier: MIT */
/* twice.c - each call repeated, by one thread and by several at once; and the documented results for the same object twice in one
 * call, for NULL, and for no objects.
 */
#include "world.h"

#include <quiesce/ds/rculist.h>
#include <quiesce/hazptr_cohort.h>
#include <quiesce/hazptr_retire.h>

/* ---- again ---- */

enum { NR_TIMES = 5, NR_THREADS = 3 };

struct repetition {
	const struct call *call;
	struct world *world;
};

static void *call_often(void *arg)
{
	const struct repetition *r = arg;

	for (int i = 0; i < NR_TIMES; i++)
		world_call(r->world, r->call);
	return NULL;
}

static void call_again(void *arg)
{
	struct repetition *r = arg;
	struct world w;

	r->world = &w;
	world_begin(&w, NR_BYSTANDERS);
	call_often(r);
	world_settle(&w);
}

/* Several threads make the call at once: where its flags say so, updates of shared objects exclude each other by a lock of the call. */
static void call_at_once(void *arg)
{
	struct repetition *r = arg;
	struct world w;
	pthread_t thread[NR_THREADS];

	r->world = &w;
	world_begin(&w, NR_BYSTANDERS);
	for (int i = 0; i < NR_THREADS; i++)
		thread_begin(&thread[i], call_often, r);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(thread[i], NULL);
	world_settle(&w);
}

/* ---- what the manuals say ---- */

static unsigned int reported[QUIESCE_MISUSE_EXIT_IN_CALLBACK + 1];

static void note_report(enum quiesce_misuse kind, const char *text)
{
	(void)text;
	count_up(&reported[kind]);
}

/* True if @kind was reported @times times since the last call, and no other misuse was. */
static bool was_reported(enum quiesce_misuse kind, unsigned int times)
{
	bool ok = true;

	for (int i = 0; i <= QUIESCE_MISUSE_EXIT_IN_CALLBACK; i++)
		ok = ok && reported[i] == ((enum quiesce_misuse)i == kind ? times : 0);
	memset(reported, 0, sizeof reported);
	return ok;
}

static bool nothing_was_reported(void)
{
	return was_reported(QUIESCE_MISUSE_NULL, 0);
}

static int nr_released;

static void released(struct percpu_ref *ref)
{
	(void)ref;
	count_up(&nr_released);
}

static void twice_in_kill_many(struct world *w)
{
	struct percpu_ref a, b, *refs[] = { &a, &b, &a, NULL };

	(void)w;
	must(percpu_ref_init(&a, released, 0) == 0 && percpu_ref_init(&b, released, 0) == 0);
	percpu_ref_kill_many(refs, 0);
	must(!percpu_ref_is_dying(&a) && nothing_was_reported());
	percpu_ref_kill_many(refs, 3);
	must(was_reported(QUIESCE_MISUSE_COUNT, 1) && flag_get(&nr_released) == 2);
	percpu_ref_kill_many(refs + 3, 1);
	percpu_ref_kill(NULL);
	must(was_reported(QUIESCE_MISUSE_NULL, 2));
	percpu_ref_exit(&a);
	percpu_ref_exit(&b);
	percpu_ref_exit(&b);
	must(nothing_was_reported());
}

static void twice_killed(struct world *w)
{
	struct percpu_ref a;

	(void)w;
	must(percpu_ref_init(&a, released, PERCPU_REF_ALLOW_REINIT) == 0);
	percpu_ref_get_many(&a, 0);
	percpu_ref_put_many(&a, 0);
	percpu_ref_get(&a);
	percpu_ref_kill(&a);
	percpu_ref_kill(&a);
	must(was_reported(QUIESCE_MISUSE_COUNT, 1) && flag_get(&nr_released) == 0);
	percpu_ref_put(&a);
	must(flag_get(&nr_released) == 1);
	percpu_ref_exit(&a);
}

static void twice_in_write_many(struct world *w)
{
	struct percpu_rw_semaphore a, b, *sems[] = { &a, &b, &a, NULL };

	(void)w;
	must(percpu_init_rwsem(&a) == 0 && percpu_init_rwsem(&b) == 0);
	percpu_down_write_many(sems, 0);
	must(nothing_was_reported() && !percpu_is_write_locked(&a));
	percpu_down_write_many(sems, 3);
	must(was_reported(QUIESCE_MISUSE_TWICE, 1) && percpu_is_write_locked_by_me(&a) && percpu_is_write_locked_by_me(&b));
	percpu_up_write(&a);
	percpu_up_write(&b);
	must(!percpu_is_write_locked(&a) && !percpu_is_write_locked(&b));
	percpu_down_write_many(sems + 2, 2);
	must(was_reported(QUIESCE_MISUSE_NULL, 1) && percpu_is_write_locked_by_me(&a));
	percpu_up_write(&a);
	percpu_free_rwsem(&a);
	percpu_free_rwsem(&b);
}

static void nothing_is_freed(struct world *w)
{
	struct object *none = NULL;

	(void)w;
	kfree_rcu(none, rcu);
	kfree_rcu_mightsleep(none);
	kfree_hazptr(none, hazptr);
	kfree_rcu_head(NULL, 0, 0);
	kfree_hazptr_head(NULL, 0, 0);
	hazptr_free(NULL, NULL);
	synchronize_hazptr(none);
	synchronize_shazptr(none);
	must(nothing_was_reported());
}

static void nothing_is_retired(struct world *w)
{
	struct object *o = object_new(w);

	call_rcu(NULL, object_rcu);
	call_rcu(&o->rcu, NULL);
	call_srcu(&w->srcu, NULL, object_rcu);
	call_hazptr(NULL, object_hazptr);
	call_hazptr_inline(NULL, object_hazptr);
	hazptr_retire(NULL, object_delete);
	call_hazptr_cohort(&w->cohort, NULL, object_hazptr);
	must(was_reported(QUIESCE_MISUSE_NULL, 7));
	synchronize_srcu(NULL);
	srcu_barrier(NULL);
	call_srcu(NULL, &o->rcu, object_rcu);
	call_hazptr_cohort(NULL, &o->hazptr, object_hazptr);
	synchronize_hazptr_cohort(NULL);
	must(was_reported(QUIESCE_MISUSE_NULL, 5));
	object_end(o);
}

static void nothing_is_protected(struct world *w)
{
	struct object *none = NULL;
	struct shazptr_guard guard = shazptr_protect(&none), other = shazptr_acquire(none);
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)w;
	must(slot && !shazptr_ptr(guard) && !shazptr_ptr(other) && !hazptr_protect(slot, &none));
	hazptr_set(slot, none);
	hazptr_clear(slot);
	hazptr_clear(slot);
	shazptr_clear(guard);
	shazptr_clear(other);
	hazptr_free(NULL, slot);
	must(!hazptr_alloc_array(NULL, 0) && !hazptr_alloc_array(NULL, HAZPTR_SLOT_PER_CTX + 1));
	hazptr_alloc_batch(NULL, &slot, 0);
	hazptr_clear_batch(&slot, 0);
	hazptr_free_batch(NULL, &slot, 0);
	must(nothing_was_reported());
}

/* Two guards protect one object, and two slots another one: each protects its object by itself. */
struct doubly {
	struct object *guarded, *slotted;
	int inside, go_on, left;
};

static void *protect_doubly(void *arg)
{
	struct doubly *d = arg;
	struct shazptr_guard one = shazptr_acquire(d->guarded), two = shazptr_acquire(d->guarded);
	hazptr_t *first = hazptr_alloc(NULL), *second = hazptr_alloc(NULL);

	must(first && second);
	hazptr_set(first, d->slotted);
	hazptr_set(second, d->slotted);
	shazptr_clear(one);
	hazptr_free(NULL, first);
	flag_set(&d->inside);
	wait_until(flag_get(&d->go_on));
	rest(300);
	quiesce_store_relaxed(&d->left, 1); /* Relaxed: the clearing orders. */
	shazptr_clear(two);
	wait_until(flag_get(&d->go_on) > 1);
	rest(300);
	quiesce_store_relaxed(&d->left, 2); /* Relaxed: the clearing orders. */
	hazptr_free(NULL, second);
	return NULL;
}

static void twice_protected(struct world *w)
{
	struct doubly d = { .guarded = object_new(w), .slotted = object_new(w) };
	pthread_t thread;

	thread_begin(&thread, protect_doubly, &d);
	wait_until(flag_get(&d.inside));
	flag_set(&d.go_on);
	synchronize_shazptr(d.guarded);
	must(flag_get(&d.left) == 1);
	quiesce_store_relaxed(&d.go_on, 2); /* Relaxed: a flag. */
	synchronize_hazptr(d.slotted);
	must(flag_get(&d.left) == 2);
	pthread_join(thread, NULL);
	object_end(d.guarded);
	object_end(d.slotted);
}

static void nothing_in_tables(struct world *w)
{
	struct hashtable own;
	struct hashmap map = HASHMAP_INIT;
	struct object *o = w->fixed[0];

	must(hashtable_init(&own, &object_type) == 0);
	must(object_insert(&own, NULL) == -EINVAL && object_insert(&own, o) == 0);
	must(hashtable_replace(&own, o, o) == -EINVAL && object_remove(&own, NULL) == -EINVAL);
	must(hashtable_reserve(&own, 0) == 0 && hashtable_count(&own) == 1);
	must(hashmap_insert(&map, 1, 0, NULL) == -EINVAL && hashmap_reserve(&map, 0) == 0 && hashmap_count(&map) == 0);
	hashtable_clear(&own, NULL, NULL);
	hashtable_clear(&own, NULL, NULL);
	must(hashtable_remove_all(&own, &o->key, NULL, NULL) == 0 && hashtable_remove_all(&own, &o->key, NULL, NULL) == 0);
	must(hashtable_count(&own) == 0);
	hashtable_destroy(&own, NULL, NULL);
	hashtable_destroy(&own, NULL, NULL);
	hashmap_destroy(&map);
	hashmap_destroy(&map);
	must(nothing_was_reported());
}

static void nothing_in_arrays(struct world *w)
{
	struct xarray xa;
	struct idr idr;
	struct ida ida;
	void *old = w, *none[1];

	xa_init(&xa);
	idr_init(&idr);
	ida_init(&ida);
	must(xa_store(&xa, 7, NULL, &old) == 0 && !old && xa_empty(&xa) && !xa_erase(&xa, 7));
	must(xa_store(&xa, 7, w, NULL) == 0 && xa_store(&xa, 7, w, &old) == 0 && old == w && xa_count(&xa) == 1);
	must(xa_extract(&xa, none, 0, 9, 0, XA_PRESENT) == 0 && xa_erase(&xa, 7) == w && !xa_erase(&xa, 7));
	must(idr_alloc(&idr, NULL, 0, 0) == 0 && !idr_find(&idr, 0) && !idr_remove(&idr, 0) && !idr_remove(&idr, 0));
	must(ida_alloc(&ida) == 0);
	ida_free(&ida, 0);
	must(ida_is_empty(&ida) && nothing_was_reported());
	for (int i = 0; i < 2; i++) {
		xa_destroy(&xa);
		idr_destroy(&idr);
		ida_destroy(&ida);
	}
}

static int nr_waits;

static void count_wait(void)
{
	nr_waits++;
}

static void twice_in_splice(struct world *w)
{
	LIST_HEAD(list);
	LIST_HEAD(empty);
	struct list_head entry;
	struct wfcq_head head;
	struct wfcq_tail tail;

	(void)w;
	list_add_rcu(&entry, &list);
	list_splice_init_rcu(&list, &list, count_wait);
	list_splice_init_rcu(&empty, &list, count_wait);
	list_splice_tail_init_rcu(&empty, &list, count_wait);
	must(nr_waits == 0 && list_is_singular(&list));
	wfcq_init(&head, &tail);
	must(wfcq_splice_blocking(&head, &tail, &head, &tail) == WFCQ_RET_SRC_EMPTY);
}

static void twice_ended(struct world *w)
{
	struct quiesce_stats stats;
	struct rcu_sync sync;

	(void)w;
	rcu_sync_init(&sync);
	rcu_sync_enter(&sync);
	rcu_sync_exit(&sync);
	rcu_sync_dtor(&sync);
	quiesce_get_stats(&stats, 0);
	must(quiesce_describe_settings(NULL, 0) > 0);
	must(quiesce_shutdown(0) == 0 && quiesce_shutdown(0) == 0);
	rcu_barrier();
	hazptr_barrier();
	must(nothing_was_reported());
}

static const struct saying {
	const char *name;
	void (*fn)(struct world *w);
	int nr_bystanders;
} sayings[] = {
	{ "a count twice in percpu_ref_kill_many(), none, NULL", twice_in_kill_many, NR_BYSTANDERS },
	{ "a count is killed twice, by none", twice_killed, NR_BYSTANDERS },
	{ "a lock twice in percpu_down_write_many(), none, NULL", twice_in_write_many, NR_BYSTANDERS },
	{ "NULL is freed", nothing_is_freed, NR_BYSTANDERS },
	{ "NULL is retired", nothing_is_retired, NR_BYSTANDERS },
	{ "NULL is protected, and none", nothing_is_protected, NR_BYSTANDERS },
	{ "an object is protected twice", twice_protected, NR_BYSTANDERS },
	{ "NULL and 0 in tables, which end twice", nothing_in_tables, NR_BYSTANDERS },
	{ "NULL in arrays, which end twice", nothing_in_arrays, NR_BYSTANDERS },
	{ "a list is moved to itself, an empty one", twice_in_splice, NR_BYSTANDERS },
	{ "the library is shut down twice", twice_ended, 0 },
};

static void say(void *arg)
{
	const struct saying *s = arg;
	struct world w;

	world_begin(&w, s->nr_bystanders);
	quiesce_set_misuse_hook(note_report);
	s->fn(&w);
	quiesce_set_misuse_hook(NULL);
	world_settle(&w);
}

int situation_twice(void)
{
	const struct call *call;

	for_each_call(call, i) {
		struct repetition r = { .call = call };

		cell(call_again, &r, "again and again - %s", call->name);
		cell(call_at_once, &r, "by %d threads at once - %s", (int)NR_THREADS, call->name);
	}
	for (size_t i = 0; i < sizeof sayings / sizeof *sayings; i++)
		cell(say, (void *)(uintptr_t)&sayings[i], "%s", sayings[i].name);
	return cells_end();
}
