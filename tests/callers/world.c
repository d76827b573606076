/* SPDX-License-Identifier: MIT */
/* world.c - the world's objects, and the checks of it after a call. */
#include "world.h"

#define object_of(node, member) ((struct object *)(void *)((char *)(node) - offsetof(struct object, member)))

/* ---- objects ---- */

struct object *object_new(struct world *w)
{
	static uint64_t keys = NR_KEYS;
	struct object *o = calloc(1, sizeof *o);

	if (!o)
		abort();
	o->world = w;
	o->value = ALIVE;
	o->key = quiesce_fetch_add_relaxed(&keys, 1); /* Relaxed: a number. */
	return o;
}

struct object *object_owed(struct world *w)
{
	struct object *o = object_new(w);

	o->generation = w->generation;
	count_up(&w->owed);
	return o;
}

void object_end(struct object *o)
{
	if (!o)
		return;
	/* A child owes no callbacks of objects that its parent has made. */
	if (o->generation && o->generation == o->world->generation)
		count_up(&o->world->paid);
	quiesce_store_relaxed(&o->value, DEAD); /* Relaxed: no reader may see it, which is the point of the test. */
	free(o);
}

void object_rcu(struct rcu_head *head)
{
	object_end(object_of(head, rcu));
}

void object_hazptr(struct hazptr_head *head)
{
	object_end(object_of(head, hazptr));
}

void object_counted(struct counted *counted)
{
	object_end(object_of(counted, counted));
}

void object_delete(void *object)
{
	object_end(object);
}

/* ---- the beginning ---- */

static void ref_released(struct percpu_ref *ref)
{
	count_up(&((struct world *)(void *)((char *)ref - offsetof(struct world, ref)))->ref_released);
}

/* If memory fails once, the next attempt succeeds. */
#define at_last(err)                                          \
	do {                                                  \
		int at_last_err = -ENOMEM;                    \
		for (int k = 0; at_last_err && k < 9; k++)    \
			at_last_err = (err);                  \
		must(at_last_err == 0);                       \
	} while (0)

static void fill(struct world *w)
{
	for (int i = 0; i < NR_KEYS; i++) {
		struct object *o = w->fixed[i] = object_new(w);

		o->key = (uint64_t)i;
		at_last(object_insert(&w->table, o));
		at_last(hashmap_set(&w->map, o->key, (uintptr_t)o, NULL));
		at_last(xa_store(&w->xa, (unsigned long)i, o, NULL));
		at_last(idr_alloc(&w->idr, o, i, i + 1) - i);
	}
}

void world_begin(struct world *w, int nr_bystanders)
{
	memset(w, 0, sizeof *w);
	w->generation = 1;
	quiesce_set_stall_timeout(STALL_NS);
	w->process = getpid();
	(void)init_srcu_struct(&w->srcu); /* usable without memory, too; so is what follows */
	(void)percpu_init_rwsem(&w->rwsem);
	(void)percpu_ref_init(&w->ref, ref_released, PERCPU_REF_ALLOW_REINIT);
	rcu_sync_init(&w->sync);
	w->cohort = (struct hazptr_cohort)HAZPTR_COHORT_INIT;
	for (int i = 0; i < NR_GENERATIONS; i++)
		w->bystanders_cohort[i] = (struct hazptr_cohort)HAZPTR_COHORT_INIT;
	hashtable_init(&w->table, &object_type);
	hashmap_init(&w->map);
	idr_init(&w->idr);
	xa_init(&w->xa);
	ida_init(&w->ida);
	w->shared = object_new(w);
	w->guarded = object_new(w);
	w->retired = object_new(w);
	w->counted = object_new(w);
	counted_init(&w->counted->counted, object_counted);
	fill(w);
	bystanders_begin(w, nr_bystanders);
}

void world_call(struct world *w, const struct call *call)
{
	w->memory_fails = w->memory_fails && has(call, MAY_FAIL);
	must(call->fn(w));
	must(!rcu_read_lock_held());
}

/* ---- in a child ---- */

void world_in_child(struct world *w)
{
	w->generation++;
	w->owed = w->paid = 0;
	w->nr_bystanders = 0;
	w->parked = w->park = 0;
	w->is_child = true;
	srcu_after_fork_child(&w->srcu);
	percpu_rwsem_after_fork_child(&w->rwsem);
}

/* ---- afterwards ---- */

/* An object whose callback may run only after that insider has left. */
struct after {
	struct object object;
	struct insider *insider;
	int left;
	int too_early, ran;
};

static void after_ran(struct after *a)
{
	a->too_early = flag_get(&a->insider->left) < a->left;
	flag_set(&a->ran);
}

static void after_rcu(struct rcu_head *head)
{
	after_ran((struct after *)(void *)object_of(head, rcu));
}

static void after_hazptr(struct hazptr_head *head)
{
	after_ran((struct after *)(void *)object_of(head, hazptr));
}

void insider_enter(struct insider *in)
{
	if (in->ways & 1 << BY_SRCU)
		in->idx = srcu_read_lock(in->srcu);
	if (in->ways & 1 << BY_GUARD)
		in->guard = shazptr_acquire(in->guarded);
	if (in->ways & 1 << BY_SLOT) {
		in->slot = hazptr_alloc(NULL);
		must(in->slot);
		hazptr_set(in->slot, in->slotted);
	}
	if (in->ways & 1 << BY_LOCK)
		percpu_down_read(in->rwsem);
	if (in->ways & 1 << BY_RCU)
		rcu_read_lock();
	flag_set(&in->inside);
}

static void insider_leave(struct insider *in, int way)
{
	if (way == BY_RCU)
		rcu_read_unlock();
	else if (way == BY_SRCU)
		srcu_read_unlock(in->srcu, in->idx);
	else if (way == BY_GUARD)
		shazptr_clear(in->guard);
	else if (way == BY_SLOT)
		hazptr_free(NULL, in->slot);
	else
		percpu_up_read(in->rwsem);
}

void insider_leave_each(struct insider *in)
{
	for (int way = 0; way < NR_WAYS; way++) {
		wait_until(flag_get(&in->waited_for) > way);
		if (!(in->ways & 1 << way))
			continue;
		rest(300);
		quiesce_store_relaxed(&in->left, way + 1); /* Relaxed: the leave below orders. */
		insider_leave(in, way);
	}
}

void insider_leave_all(struct insider *in)
{
	quiesce_store_relaxed(&in->waited_for, NR_WAYS); /* Relaxed: the thread's own. */
	insider_leave_each(in);
}

static void wait_for_insider(struct insider *in, int way)
{
	quiesce_store_relaxed(&in->waited_for, way + 1); /* Relaxed: a flag. */
	if (!(in->ways & 1 << way))
		return;
	if (way == BY_RCU)
		synchronize_rcu();
	else if (way == BY_SRCU)
		synchronize_srcu(in->srcu);
	else if (way == BY_GUARD)
		synchronize_shazptr(in->guarded);
	else if (way == BY_SLOT)
		synchronize_hazptr(in->slotted);
	else
		percpu_down_write(in->rwsem);
	must(flag_get(&in->left) > way);
	if (way == BY_LOCK)
		percpu_up_write(in->rwsem);
}

void insider_wait_each(struct insider *in)
{
	for (int way = 0; way < NR_WAYS; way++)
		wait_for_insider(in, way);
}

static void *insider_main(void *in)
{
	insider_enter(in);
	insider_leave_each(in);
	return NULL;
}

void waits_are_real(struct world *w)
{
	static struct after after[3];
	struct insider in = { .srcu = &w->srcu, .rwsem = &w->rwsem, .slotted = &after[2].object, .ways = ALL_WAYS };
	pthread_t thread;

	in.guarded = object_new(w);
	memset(after, 0, sizeof after);
	for (int i = 0; i < 3; i++) {
		after[i].insider = &in;
		after[i].left = (int[]){ BY_RCU, BY_SRCU, BY_SLOT }[i] + 1;
	}
	thread_begin(&thread, insider_main, &in);
	wait_until(flag_get(&in.inside));
	call_rcu(&after[0].object.rcu, after_rcu);
	call_srcu(&w->srcu, &after[1].object.rcu, after_rcu);
	call_hazptr(&after[2].object.hazptr, after_hazptr);
	insider_wait_each(&in);
	pthread_join(thread, NULL);
	rcu_barrier();
	srcu_barrier(&w->srcu);
	hazptr_barrier();
	for (int i = 0; i < 3; i++) {
		must(flag_get(&after[i].ran));
		must(!after[i].too_early);
	}
	object_end(in.guarded);
}

static void drop(void *object, void *w)
{
	must(object_is_fixed(w, object));
}

/* End each object, whatever its use: each cleanup must find it whole. */
static void world_end(struct world *w)
{
	must(hashtable_count(&w->table) == NR_KEYS && hashmap_count(&w->map) == NR_KEYS);
	must(idr_count(&w->idr) == NR_KEYS && xa_count(&w->xa) == NR_KEYS);
	hashtable_destroy(&w->table, drop, w);
	hashmap_destroy(&w->map);
	idr_destroy(&w->idr);
	xa_destroy(&w->xa);
	ida_destroy(&w->ida);
	rcu_sync_dtor(&w->sync);
	percpu_free_rwsem(&w->rwsem);
}

static void give_up_objects(struct world *w)
{
	call_rcu(&rcu_xchg_pointer(&w->shared, NULL)->rcu, object_rcu);
	call_hazptr(&rcu_xchg_pointer(&w->retired, NULL)->hazptr, object_hazptr);
	counted_publish(&w->counted, NULL, counted);
	object_end(rcu_xchg_pointer(&w->guarded, NULL));
}

static void nothing_is_left(const struct world *w)
{
	struct quiesce_stats stats;
	int err = quiesce_shutdown(0);

	must(err == 0);
	stats = stats_now();
	must(stats.garbage_objects == 0);
	if (w->is_child)
		return;
	must(stats.callbacks_queued == stats.callbacks_run);
	must(stats.srcu_callbacks_queued == stats.srcu_callbacks_run);
	must(stats.hazptr_retired == stats.hazptr_reclaimed);
}

void world_settle(struct world *w)
{
	bystanders_end(w);
	must(!flag_get(&w->bad));
	must(world_read(w));
	if (!w->alone)
		waits_are_real(w);
	give_up_objects(w);
	rcu_barrier();
	srcu_barrier(&w->srcu);
	hazptr_barrier();
	synchronize_hazptr_cohort(&w->cohort);
	synchronize_hazptr_cohort(&w->bystanders_cohort[w->generation]);
	must(flag_get(&w->paid) == flag_get(&w->owed));
	world_end(w);
	if (!w->beside)
		nothing_is_left(w);
	cleanup_srcu_struct(&w->srcu);
	if (!w->is_child) {
		percpu_ref_kill(&w->ref);
		must(flag_get(&w->ref_released) == 1);
		percpu_ref_exit(&w->ref);
	}
}
