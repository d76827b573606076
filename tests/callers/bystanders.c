/* SPDX-License-Identifier: MIT */
/* bystanders.c - threads that use each primitive during a call: two readers, which sleep inside now and then, and one retirer. */
#include "world.h"

/* The objects that a reader has found and protects. */
struct reading {
	struct object *shared, *guarded, *retired, *counted;
	int idx;
	struct shazptr_guard guard;
	hazptr_t *slot;
	bool ref, lock;
};

static bool all_alive(const struct reading *r)
{
	return is_alive(r->shared) && is_alive(r->guarded) && is_alive(r->retired) && is_alive(r->counted);
}

static bool finds_keys(struct world *w)
{
	bool ok = true;

	for (int i = 0; i < NR_KEYS; i += 7) {
		uint64_t key = (uint64_t)i;

		ok = ok && object_lookup(&w->table, &key) == w->fixed[i] && hashmap_lookup(&w->map, key) == (uintptr_t)w->fixed[i];
		ok = ok && idr_find(&w->idr, key) == w->fixed[i] && xa_load(&w->xa, key) == w->fixed[i];
	}
	return ok;
}

static bool enter(struct world *w, struct reading *r)
{
	r->idx = srcu_read_lock(&w->srcu);
	r->lock = percpu_down_read_trylock(&w->rwsem);
	r->ref = percpu_ref_tryget_live(&w->ref);
	r->guard = shazptr_protect(&w->guarded);
	r->guarded = shazptr_ptr(r->guard);
	r->slot = hazptr_alloc(NULL);
	r->retired = r->slot ? hazptr_protect(r->slot, &w->retired) : NULL;
	r->counted = counted_load(&w->counted, counted);
	rcu_read_lock();
	r->shared = rcu_dereference(w->shared);
	return all_alive(r) && finds_keys(w);
}

static bool leave(struct world *w, struct reading *r)
{
	bool ok = all_alive(r);

	rcu_read_unlock();
	if (r->counted)
		counted_put(&r->counted->counted);
	hazptr_free(NULL, r->slot);
	shazptr_clear(r->guard);
	if (r->ref)
		percpu_ref_put(&w->ref);
	if (r->lock)
		percpu_up_read(&w->rwsem);
	srcu_read_unlock(&w->srcu, r->idx);
	return ok;
}

bool world_read(struct world *w)
{
	struct reading r;
	bool ok = enter(w, &r);

	return leave(w, &r) && ok;
}

bool object_is_fixed(const struct world *w, const void *object)
{
	for (int i = 0; i < NR_KEYS; i++)
		if (w->fixed[i] == object)
			return true;
	return false;
}

static void stay_parked(struct world *w, int stage)
{
	if (flag_get(&w->park) < stage)
		return;
	count_up(&w->parked);
	wait_until(flag_get(&w->park) < stage);
}

static void read_for_a_while(struct bystander *b)
{
	struct world *w = b->world;
	struct reading r;
	unsigned int n = 0;

	while (!flag_get(&w->stop)) {
		bool ok = enter(w, &r);

		if (n++ % 4 == (unsigned int)b->number)
			rest(30);
		stay_parked(w, PARK_READERS);
		if (!leave(w, &r) || !ok)
			flag_set(&w->bad);
		rest(20);
	}
}

/* Retire objects by each call in turn. */
static void replace(struct world *w, unsigned int way)
{
	struct object *fresh = object_owed(w), *old;

	if (way % 4 == 0) {
		old = rcu_xchg_pointer(&w->shared, fresh);
		call_rcu(&old->rcu, object_rcu);
	} else if (way % 4 == 1) {
		old = rcu_xchg_pointer(&w->retired, fresh);
		if (way % 8 == 1)
			call_hazptr(&old->hazptr, object_hazptr);
		else
			hazptr_retire(old, object_delete);
	} else if (way % 4 == 2) {
		counted_init(&fresh->counted, object_counted);
		counted_publish(&w->counted, fresh, counted);
	} else {
		call_srcu(&w->srcu, &fresh->rcu, object_rcu);
		call_hazptr_cohort(&w->bystanders_cohort[w->generation], &object_owed(w)->hazptr, object_hazptr);
		kfree_rcu(object_new(w), rcu);
	}
}

static void retire_for_a_while(struct bystander *b)
{
	struct world *w = b->world;

	for (unsigned int way = 0; !flag_get(&w->stop); way++) {
		replace(w, way);
		rest(40);
		stay_parked(w, PARK_RETIRERS);
	}
}

static void *bystander_main(void *arg)
{
	struct bystander *b = arg;

	if (b->number == NR_BYSTANDERS - 1)
		retire_for_a_while(b);
	else
		read_for_a_while(b);
	return NULL;
}

void bystanders_begin(struct world *w, int nr)
{
	w->nr_bystanders = nr;
	for (int i = 0; i < nr; i++) {
		w->bystander[i] = (struct bystander){ .world = w, .number = i };
		thread_begin(&w->bystander[i].thread, bystander_main, &w->bystander[i]);
	}
}

void bystanders_end(struct world *w)
{
	flag_clear(&w->park);
	flag_set(&w->stop);
	for (int i = 0; i < w->nr_bystanders; i++)
		pthread_join(w->bystander[i].thread, NULL);
	w->nr_bystanders = 0;
	flag_clear(&w->stop);
}

static void park(struct world *w, int stage, int nr)
{
	quiesce_store_relaxed(&w->park, stage); /* Relaxed: a flag. */
	wait_until(flag_get(&w->parked) >= nr);
}

/* Stop readers only after the barriers, which would wait for them. */
void world_park(struct world *w)
{
	park(w, PARK_RETIRERS, w->nr_bystanders == NR_BYSTANDERS);
	rcu_barrier();
	srcu_barrier(&w->srcu);
	hazptr_barrier();
	park(w, PARK_READERS, w->nr_bystanders);
}

void world_unpark(struct world *w)
{
	flag_clear(&w->parked);
	flag_clear(&w->park);
}
