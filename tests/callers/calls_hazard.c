/* SPDX-License-Identifier: MIT */
/* calls_hazard.c - hazard pointers: guards, slots and contexts. */
#include "world.h"

/* A pointer in a node may have marks. */
static struct object *marked(struct object *o, uintptr_t mark)
{
	return (struct object *)((uintptr_t)o | mark);
}

static bool call_guard(struct world *w)
{
	struct shazptr_guard guard = shazptr_protect(&w->guarded), tried = shazptr_tryprotect(&w->guarded);
	bool ok = is_alive(shazptr_ptr(guard)) && is_alive(shazptr_ptr(tried));

	{
		shazptr_scoped struct shazptr_guard scoped = shazptr_acquire(w);

		ok = ok && shazptr_ptr(scoped) == w && quiesce_shazptr_slot(scoped) <= QUIESCE_SLOTS_SHARED;
	}
	ok = ok && is_alive(shazptr_ptr(guard));
	shazptr_clear(guard);
	shazptr_clear(tried);
	return ok;
}

/* Take more guards than a thread, an id or a line has slots. */
static bool call_guards(struct world *w)
{
	enum { NR = 40 };
	struct shazptr_guard guard[NR];

	for (int i = 0; i < NR; i++)
		guard[i] = i % 2 ? shazptr_acquire_detached(&w->fixed[i]) : shazptr_acquire(&w->fixed[i]);
	for (int i = 0; i < NR; i++)
		if (shazptr_ptr(guard[i]) != &w->fixed[i])
			return false;
	for (int i = 0; i < NR; i++)
		shazptr_clear(guard[(i * 7) % NR]);
	return true;
}

static bool call_detached(struct world *w)
{
	struct shazptr_guard guard = shazptr_protect_detached(&w->guarded), other = shazptr_acquire_detached(w);
	bool ok = is_alive(shazptr_ptr(guard)) && shazptr_ptr(other) == w;

	shazptr_detach(guard);
	shazptr_clear(guard);
	shazptr_clear(other);
	return ok;
}

static bool call_synchronize_shazptr(struct world *w)
{
	struct object *old = rcu_xchg_pointer(&w->guarded, object_new(w));

	synchronize_shazptr(old);
	object_end(old);
	return true;
}

static bool use_slot(struct world *w, hazptr_t *slot)
{
	struct object *o = hazptr_protect(slot, &w->retired), *other = marked(w->fixed[0], 1);
	bool ok = is_alive(o);

	ok = ok && hazptr_protect_masked(slot, &other, (uintptr_t)1) == other;
	ok = ok && hazptr_protect_masked(slot, &other, (uintptr_t)1, hazptr) == other;
	ok = ok && is_alive(hazptr_tryprotect(slot, &w->retired));
	hazptr_set(slot, w->fixed[1]);
	hazptr_clear(slot);
	return ok && is_alive(hazptr_protect(slot, &w->retired));
}

static bool call_slot(struct world *w)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	bool ok;

	if (!slot)
		return done(w, -ENOMEM);
	ok = use_slot(w, slot);
	hazptr_free(NULL, slot);
	return ok;
}

static bool call_slot_detached(struct world *w)
{
	hazptr_t *slot = hazptr_alloc_detached();
	bool ok;

	if (!slot)
		return done(w, -ENOMEM);
	ok = use_slot(w, slot);
	hazptr_free(NULL, slot);
	return ok;
}

static bool call_slots(struct world *w)
{
	enum { NR = 3 * HAZPTR_SLOT_PER_CTX };
	hazptr_t *row = hazptr_alloc_array(NULL, 2), *slots[NR];
	void *found[2];
	void **const where[2] = { (void **)(void *)&w->retired, (void **)(void *)&w->fixed[2] };
	bool ok;

	hazptr_free_array(NULL, row, 2);
	if (!hazptr_alloc_batch(NULL, slots, NR))
		return done(w, -ENOMEM);
	hazptr_protect_batch(slots, where, found, 2);
	ok = is_alive(found[0]) && found[1] == w->fixed[2];
	hazptr_clear_batch(slots, 2);
	hazptr_free_batch(NULL, slots, NR);
	return ok && (row || w->memory_fails);
}

static bool call_context(struct world *w)
{
	struct hazptr_context ctx;
	hazptr_t *row, *one;
	bool ok;

	if (init_hazptr_context(&ctx))
		return done(w, -ENOMEM);
	row = hazptr_alloc_array(&ctx, HAZPTR_SLOT_PER_CTX - 1);
	one = hazptr_alloc(&ctx);
	ok = row && one && !hazptr_alloc(&ctx) && use_slot(w, one) && use_slot(w, row + 1);
	hazptr_free_array(&ctx, row, HAZPTR_SLOT_PER_CTX - 1);
	hazptr_free(&ctx, one);
	cleanup_hazptr_context(&ctx);
	return ok;
}

static bool call_synchronize_hazptr(struct world *w)
{
	struct object *old = rcu_xchg_pointer(&w->retired, object_new(w));

	synchronize_hazptr(old);
	object_end(old);
	return true;
}

static bool call_counted(struct world *w)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct object *o = counted_load(&w->counted, counted), *p;
	bool ok = o && is_alive(o) && counted_read(&o->counted) > 0;

	if (o) {
		counted_get(&o->counted);
		ok = ok && !counted_put(&o->counted);
	}
	p = slot ? counted_protect(slot, &w->counted, counted) : NULL;
	if (p && counted_tryget(&p->counted))
		counted_put(&p->counted);
	p = slot ? counted_tryprotect(slot, &w->counted, counted) : NULL;
	ok = ok && is_alive(p);
	hazptr_free(NULL, slot);
	if (o)
		counted_put(&o->counted);
	return ok && is_alive(w->fixed[0]);
}

static struct object *new_counted(struct world *w)
{
	struct object *o = object_owed(w);

	counted_init(&o->counted, object_counted);
	return o;
}

static bool call_counted_replace(struct world *w)
{
	struct object *fresh = new_counted(w), *old, *expected = NULL;

	counted_publish(&w->counted, fresh, counted);
	old = counted_exchange(&w->counted, new_counted(w));
	if (!old || !is_alive(old))
		return false;
	counted_put(&old->counted);
	fresh = new_counted(w);
	if (counted_cmpxchg(&w->counted, &expected, fresh))
		return false;
	return counted_put(&fresh->counted);
}

enum { ANYWHERE = IN_READER | IN_CALLBACK | AT_THREAD_END };

const struct call calls_hazard[] = {
	CALL(guard, "shazptr_protect shazptr_tryprotect shazptr_acquire shazptr_ptr shazptr_clear quiesce_shazptr_slot",
	     NEVER_WAITS | ANYWHERE),
	CALL(guards, "shazptr_acquire shazptr_acquire_detached", ANYWHERE),
	CALL(detached, "shazptr_protect_detached shazptr_acquire_detached shazptr_detach", NEVER_WAITS | ANYWHERE),
	CALL(synchronize_shazptr, "synchronize_shazptr", WAITS | ANYWHERE),
	CALL(slot, "hazptr_alloc hazptr_free hazptr_set hazptr_clear hazptr_protect hazptr_tryprotect hazptr_protect_masked",
	     NEVER_WAITS | ANYWHERE | MAY_FAIL),
	CALL(slot_detached, "hazptr_alloc_detached", NEVER_WAITS | ANYWHERE | MAY_FAIL),
	CALL(slots, "hazptr_alloc_array hazptr_free_array hazptr_alloc_batch hazptr_protect_batch hazptr_clear_batch hazptr_free_batch",
	     ANYWHERE | MAY_FAIL),
	CALL(context, "init_hazptr_context cleanup_hazptr_context", ANYWHERE | MAY_FAIL),
	CALL(synchronize_hazptr, "synchronize_hazptr", WAITS | ANYWHERE),
	CALL(counted, "counted_load counted_read counted_get counted_put counted_protect counted_tryprotect counted_tryget",
	     NEVER_WAITS | ANYWHERE | MAY_FAIL),
	CALL(counted_replace, "counted_init counted_publish counted_exchange counted_cmpxchg", ANYWHERE),
	END_OF_CALLS,
};
