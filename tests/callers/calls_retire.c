/* SPDX-License-Identifier: MIT */
/* calls_retire.c - objects that are retired by hazard pointers, alone and in cohorts. */
#include "world.h"

#include <quiesce/hazptr_cohort.h>
#include <quiesce/hazptr_retire.h>

static struct object *retire(struct world *w)
{
	return rcu_xchg_pointer(&w->retired, object_owed(w));
}

static bool call_call_hazptr(struct world *w)
{
	call_hazptr(&retire(w)->hazptr, object_hazptr);
	call_hazptr_sized(&object_owed(w)->hazptr, object_hazptr, 1000);
	return true;
}

static bool call_call_hazptr_inline(struct world *w)
{
	call_hazptr_inline(&retire(w)->hazptr, object_hazptr);
	call_hazptr_inline_sized(&object_owed(w)->hazptr, object_hazptr, 1000);
	return true;
}

/* Retire more than a batch, by all calls: some callbacks run in this thread. */
static bool call_batches(struct world *w)
{
	for (int i = 0; i < 400; i++) {
		call_hazptr(&object_owed(w)->hazptr, object_hazptr);
		call_hazptr_inline(&object_owed(w)->hazptr, object_hazptr);
		hazptr_retire(object_owed(w), object_delete);
	}
	return true;
}

static bool call_kfree_hazptr(struct world *w)
{
	kfree_hazptr(object_new(w), hazptr);
	kfree_hazptr_head(&object_new(w)->hazptr, offsetof(struct object, hazptr), sizeof(struct object));
	return true;
}

static bool call_retire(struct world *w)
{
	hazptr_retire(retire(w), object_delete);
	hazptr_retire_sized(object_owed(w), object_delete, 1000);
	return true;
}

/* A retirer must not wait for an object that it protects itself. */
static bool call_retire_protected(struct world *w)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct object *o = object_owed(w);
	bool ok;

	if (slot)
		hazptr_set(slot, o);
	if (slot && w->memory_fails) /* the call may wait for the object's readers */
		hazptr_clear(slot);
	hazptr_retire(o, object_delete);
	ok = w->memory_fails || !slot || is_alive(o);
	hazptr_free(NULL, slot);
	return ok && (slot || w->memory_fails);
}

static bool call_hazptr_wait(struct world *w)
{
	int before = flag_get(&w->paid);

	call_hazptr(&object_owed(w)->hazptr, object_hazptr);
	hazptr_barrier();
	return flag_get(&w->paid) > before;
}

static bool call_try_barrier(struct world *w)
{
	call_hazptr(&object_owed(w)->hazptr, object_hazptr);
	(void)hazptr_try_barrier(); /* objects that bystanders protect may be left */
	return true;
}

static bool call_cohort(struct world *w)
{
	struct hazptr_cohort *own = malloc(sizeof *own);
	int before = flag_get(&w->paid);

	if (!own)
		abort();
	*own = (struct hazptr_cohort)HAZPTR_COHORT_INIT;
	for (int i = 0; i < 5; i++)
		call_hazptr_cohort(own, &object_owed(w)->hazptr, object_hazptr);
	synchronize_hazptr_cohort(own);
	free(own);
	return flag_get(&w->paid) >= before + 5;
}

static bool call_into_cohort(struct world *w)
{
	call_hazptr_cohort(&w->cohort, &object_owed(w)->hazptr, object_hazptr);
	return true;
}

static bool call_batch_size(struct world *w)
{
	(void)w;
	return quiesce_set_hazptr_batch(0, 1) == -EINVAL && quiesce_set_hazptr_batch(0, 0) == 0;
}

static bool call_thread_batch_size(struct world *w)
{
	return done(w, quiesce_set_thread_hazptr_batch(16, 64)) && done(w, quiesce_set_thread_hazptr_batch(0, 0));
}

enum { ANYWHERE = IN_READER | IN_CALLBACK | AT_THREAD_END };

const struct call calls_retire[] = {
	CALL(call_hazptr, "call_hazptr call_hazptr_sized", ANYWHERE),
	CALL(call_hazptr_inline, "call_hazptr_inline call_hazptr_inline_sized", ANYWHERE),
	CALL(batches, "call_hazptr call_hazptr_inline hazptr_retire", ANYWHERE),
	CALL(kfree_hazptr, "kfree_hazptr kfree_hazptr_head", ANYWHERE),
	CALL(retire, "hazptr_retire hazptr_retire_sized", ANYWHERE),
	CALL(retire_protected, "hazptr_retire", ANYWHERE | MAY_FAIL),
	CALL(hazptr_wait, "hazptr_barrier", WAITS | FOR_CALLBACKS | AT_THREAD_END),
	CALL(try_barrier, "hazptr_try_barrier", WAITS | FOR_CALLBACKS | AT_THREAD_END),
	CALL(cohort, "call_hazptr_cohort synchronize_hazptr_cohort", IN_CALLBACK | AT_THREAD_END),
	CALL(into_cohort, "call_hazptr_cohort", ANYWHERE),
	CALL(batch_size, "quiesce_set_hazptr_batch", ANYWHERE),
	CALL(thread_batch_size, "quiesce_set_thread_hazptr_batch", IN_READER | IN_CALLBACK | MAY_FAIL),
	END_OF_CALLS,
};
